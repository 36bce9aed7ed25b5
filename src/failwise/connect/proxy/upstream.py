"""One upstream: a task of its own owns the connection, opens it again, and knows what it is like.

Each connection has a generation number: a call that lost one waits for a newer one, so that it never
meets the dead one again. Nothing here decides whether a call may be repeated.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import stdio_client

from failwise.connect.proxy.answers import HttpAnswers
from failwise.connect.proxy.settings import ServerSettings, filled
from failwise.connect.proxy.stderr import Stderr
from failwise.vocabulary.errors import ConfigurationError, ToolError

logger = logging.getLogger("failwise")

State = Literal["starting", "up", "down"]
Asked = Callable[["Upstream", types.ElicitRequestParams], Awaitable[Any]]

_FIRST_DELAY: Final = 0.2
_LONGEST_DELAY: Final = 10.0
_MOST_TOOLS: Final = 2_000
_MOST_PAGES: Final = 100
_LONGEST_SCHEMA: Final = 262_144
_LONGEST_DESCRIPTION: Final = 16_384
_ERROR: Final = 300
_FAREWELL: Final = 8.0
"""Seconds a server has to end; the SDK closes its input, then terminates, then kills it."""


class Connection:
    """A connection that stands: the client, its number, whether it was lost."""

    __slots__ = ("client", "generation", "lost")

    def __init__(self, client: Client, generation: int) -> None:
        self.client, self.generation = client, generation
        self.lost = asyncio.Event()


class Upstream:
    """A server behind the proxy. `start` and `close` it on one loop.

    `tools`, `resources`, ... are what it listed last, also while it is down. `changed` is called with
    (this, ``tools``|``resources``|``prompts``) when a list is another than before, `asked` when it
    wants to know something of the user (handshake era).
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        changed: "Callable[[Upstream, str], None]",
        asked: Asked,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.state: State = "starting"
        self.since = time.time()
        self.error = ""
        self.generation = 0
        self.tools: tuple[types.Tool, ...] = ()
        self.answers = HttpAnswers(settings.forward_authorization)
        self.stderr = Stderr()
        self.under_way: set[Any] = set()
        """The front's calls that this upstream works on at this moment."""
        self._changed, self._asked = changed, asked
        self._connection: Connection | None = None
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._relisting: set[asyncio.Task[None]] = set()

    # Its life

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def close(self) -> None:
        """End the connection and what was started for it."""
        self._closing.set()
        for relisting in list(self._relisting):
            await _ended(relisting)
        task = self._task
        if task is None:
            return
        if self._connection is not None:
            self._connection.lost.set()  # its own task lets go of it, in order
            await asyncio.wait({task}, timeout=_FAREWELL)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_FAREWELL)

    async def _live(self) -> None:
        delay = _FIRST_DELAY
        while not self._closing.is_set():
            before = self.generation
            try:
                await self._connected()
            except asyncio.CancelledError:
                # A transport that breaks cancels the task that holds it; it may be us who end it.
                if self._closing.is_set():
                    return
                self._failed(ConnectionError("the connection broke off"))
            except Exception as error:
                self._failed(error)
            finally:
                self._connection = None
            if self._closing.is_set():
                return
            if self.generation > before:
                # It did run: whoever calls now waits for the next connection, which comes soon.
                delay = _FIRST_DELAY
                self._turn("starting")
            else:
                self._turn("down")
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY)

    async def _connected(self) -> None:
        """One connection, from its beginning until it is lost."""
        loop = asyncio.get_running_loop()
        lost = asyncio.Event()
        async with AsyncExitStack() as stack:
            target = await self._target(stack, lost)
            client = Client(
                target,
                message_handler=self._heard,
                elicitation_callback=self._elicited,
                client_info=types.Implementation(name="failwise", version=_version()),
                cache=None,
                mode=self.settings.protocol,
            )
            task = asyncio.current_task()
            assert task is not None
            ready = False

            def too_late() -> None:
                if not ready:
                    task.cancel("too late")

            alarm = loop.call_later(self.settings.connect_timeout, too_late)
            try:
                await stack.enter_async_context(client)
                # The proxy passes structured content on; whether it fits is between host and server.
                client.session.validate_tool_result = _unjudged  # type: ignore[method-assign]
                await self._list_tools(client)
                ready = True
            except asyncio.CancelledError:
                if not ready and task.cancelling() and task.uncancel() == 0:
                    raise TimeoutError(
                        f"no connection within {self.settings.connect_timeout:g} s"
                    ) from None
                raise
            finally:
                alarm.cancel()
            self.generation += 1
            connection = Connection(client, self.generation)
            connection.lost = lost
            self._connection = connection
            self.error = ""
            self._turn("up")
            self._listen(client, stack)
            await lost.wait()
            self.error = self.stderr.tail(_ERROR) or "the connection was closed"

    async def _target(self, stack: AsyncExitStack, lost: asyncio.Event) -> Any:
        settings = self.settings
        loop = asyncio.get_running_loop()
        if settings.url is not None:
            headers = await loop.run_in_executor(None, filled, settings.headers, self.name)
            return await self.answers.transport(stack, settings.url, headers)
        assert settings.command is not None
        environment = await loop.run_in_executor(None, filled, settings.env, self.name)
        parameters = StdioServerParameters(
            command=settings.command,
            args=list(settings.args),
            env=environment or None,
            cwd=settings.cwd,
        )
        errors = stack.enter_context(self.stderr.opened())
        return _watched(stdio_client(parameters, errlog=errors), lost)

    def _turn(self, state: State) -> None:
        if state != self.state:
            self.state, self.since = state, time.time()
        self._moved.set()
        self._moved = asyncio.Event()

    def _failed(self, error: BaseException) -> None:
        from failwise.redaction import default

        told = _first(error)
        text = str(told) or type(told).__name__
        tail = self.stderr.tail(_ERROR)
        if tail and not isinstance(told, ConfigurationError):
            text = f"{text}: {tail}"
        text = default().text(text)[: _ERROR * 2]
        if text != self.error:
            logger.warning("MCP server %s: %s", self.name, text)
        self.error = text

    # What is asked of it

    async def connection(self, newer_than: int = 0) -> Connection:
        """The connection that stands, newer than the one that was lost.

        While it is being opened, that is waited for; where it could not be, `ToolError` says why
        (``network.connect_refused``, nothing was sent).
        """
        if newer_than and self._connection and self._connection.generation <= newer_than:
            self._connection.lost.set()
        while True:
            found = self._connection
            if found is not None and not found.lost.is_set() and found.generation > newer_than:
                return found
            if self.state == "down":
                raise ToolError(
                    f"the MCP server {self.name} is not running: {self.error or 'it ended'}",
                    code="network.connect_refused",
                    effect="not_sent",
                    transient=True,
                )
            await self._moved.wait()

    async def settled(self) -> None:
        """Wait until the first try to connect has ended, one way or the other."""
        while self.state == "starting" and not self.generation:
            await self._moved.wait()

    def lose(self, generation: int) -> None:
        """The connection of this number is dead: open another one."""
        if self._connection is not None and self._connection.generation == generation:
            self._connection.lost.set()

    @property
    def client(self) -> Client | None:
        """The present connection's client."""
        return self._connection.client if self._connection is not None else None

    # What it says

    async def _list_tools(self, client: Client) -> None:
        found: list[types.Tool] = []
        if client.server_capabilities.tools is not None:
            cursor: str | None = None
            for _ in range(_MOST_PAGES):
                page = await client.session.list_tools(
                    params=types.PaginatedRequestParams(cursor=cursor)
                )
                found += page.tools
                cursor = page.next_cursor
                if cursor is None or len(found) >= _MOST_TOOLS:
                    break
        tools = tuple(tool for tool in found[:_MOST_TOOLS] if self._bearable(tool))
        if tools != self.tools:
            self.tools = tools
            self._changed(self, "tools")

    def _bearable(self, tool: types.Tool) -> bool:
        """Names and texts come from others: what is out of all proportion is left out."""
        size = len(str(tool.input_schema)) + len(str(tool.output_schema or ""))
        if not tool.name or len(tool.name) > 200 or size > _LONGEST_SCHEMA:
            logger.warning("MCP server %s: a tool of unbearable size is left out", self.name)
            return False
        if tool.description and len(tool.description) > _LONGEST_DESCRIPTION:
            tool.description = tool.description[:_LONGEST_DESCRIPTION]
        return True

    def _listen(self, client: Client, stack: AsyncExitStack) -> None:
        """Hear of changed lists where the server only says so on request (modern era)."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return

        async def listen() -> None:
            from mcp.client.subscriptions import ToolsListChanged

            with contextlib.suppress(Exception):  # a server need not offer it
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as events:
                    async for event in events:
                        if isinstance(event, ToolsListChanged):
                            await self._list_tools(client)
                        else:
                            self._changed(self, _LISTS.get(type(event).__name__, "resources"))

        task = asyncio.get_running_loop().create_task(listen())
        stack.push_async_callback(_ended, task)

    async def _heard(self, message: Any) -> None:
        """A notification. Lists are asked for again beside the reader, which must go on reading."""
        if isinstance(message, types.ToolListChangedNotification):
            client = self.client
            if client is not None:
                task = asyncio.get_running_loop().create_task(self._relist(client))
                self._relisting.add(task)
                task.add_done_callback(self._relisting.discard)
        elif isinstance(message, types.ResourceListChangedNotification):
            self._changed(self, "resources")
        elif isinstance(message, types.PromptListChangedNotification):
            self._changed(self, "prompts")

    async def _relist(self, client: Client) -> None:
        try:
            await self._list_tools(client)
        except Exception as error:
            logger.warning(
                "MCP server %s: its tools could not be listed again: %s",
                self.name,
                type(error).__name__,
            )

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> Any:
        return await self._asked(self, params)


_LISTS: Mapping[str, str] = {"PromptsListChanged": "prompts", "ResourcesListChanged": "resources"}


async def _unjudged(name: str, result: types.CallToolResult) -> None:
    return None


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task


def _first(error: BaseException) -> BaseException:
    """What stands at the bottom of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _version() -> str:
    from failwise._version import __version__

    return __version__


@asynccontextmanager
async def _watched(transport: Any, lost: asyncio.Event) -> AsyncIterator[Any]:
    """A transport that tells at once when the other side has gone, not only at the next request."""
    async with transport as (read, write):
        yield _Watched(read, lost), write


class _Watched:
    """A stream that sets `lost` at its end; anything else is the stream's own."""

    def __init__(self, stream: Any, lost: asyncio.Event) -> None:
        self._stream, self._lost = stream, lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._lost.set()
            raise

    async def __aenter__(self) -> "_Watched":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *ended: Any) -> Any:
        return await self._stream.__aexit__(*ended)
