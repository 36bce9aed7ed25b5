"""`Proxy`: the server that the host talks to, and the runtime between it and the upstreams."""

import asyncio
import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

from failwise.connect.mcp_results import RECORD, noteworthy, record
from failwise.connect.proxy import words
from failwise.connect.proxy.calling import FrontCall, InputRequired, here
from failwise.connect.proxy.hosts import Host, Hosts
from failwise.connect.proxy.passing import PassedThrough
from failwise.connect.proxy.questions import Questions
from failwise.connect.proxy.settings import ProxySettings
from failwise.connect.proxy.tools import shown_name, spec_of
from failwise.connect.proxy.trouble import Trouble
from failwise.connect.proxy.upstream import Upstream
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.result import Language, ToolResult

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from failwise.runtime.runtime import Runtime

logger = logging.getLogger("failwise")


class _Entry:
    """A listed tool: whose it is, and who declared what."""

    __slots__ = ("declared", "shown", "tool", "upstream")

    def __init__(
        self, upstream: Upstream, tool: types.Tool, shown: str, declared: Mapping[str, str]
    ) -> None:
        self.upstream, self.tool, self.shown, self.declared = upstream, tool, shown, declared


class Proxy:
    """An MCP server whose tools are those of its upstreams, each call run by `runtime`.

    Use it with ``async with`` on the loop that serves `server`, a lowlevel ``mcp`` server for any of its
    transports. With one upstream and no prefix of its own, names are passed on as they are.
    """

    def __init__(self, settings: ProxySettings, runtime: "Runtime") -> None:
        self.settings, self.runtime = settings, runtime
        self.lang: Language = "zh" if settings.lang == "zh" else "en"
        self._questions = Questions()
        self.upstreams = [
            Upstream(server, changed=self._changed, asked=self._questions.asked)
            for server in settings.servers
        ]
        self._tools: dict[str, _Entry] = {}
        self._trouble = Trouble(runtime)
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._hosts = Hosts(runtime)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.began = time.time()
        runtime.passthrough = (*runtime.passthrough, InputRequired)
        if runtime.confirm is None:
            runtime.confirm = _confirmed
        passed = PassedThrough(self.upstreams, self._hosts, self._prefix, self._ready)
        self.server: Server[Any] = Server(
            "failwise",
            version=_version(),
            instructions=None,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=passed.list_resources,
            on_list_resource_templates=passed.list_templates,
            on_read_resource=passed.read_resource,
            on_list_prompts=passed.list_prompts,
            on_get_prompt=passed.get_prompt,
            on_completion=passed.complete,
            on_subscriptions_listen=self._listening,
        )

    async def __aenter__(self) -> "Proxy":
        for upstream in self.upstreams:
            upstream.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.close()
        await self._questions.close()
        for task in list(self._tasks):
            task.cancel()
        for upstream in self.upstreams:
            await upstream.close()
        await self.runtime.flush_async()

    # Tools

    def _prefix(self, upstream: Upstream) -> str:
        own = upstream.settings.prefix
        if own is not None:
            return own
        return "" if len(self.upstreams) == 1 else f"{upstream.name}__"

    def _changed(self, upstream: Upstream, what: str) -> None:
        """A list is another than before: take the tools over, tell the hosts."""
        if what == "tools":
            self._take_over(upstream)
        self._spawn(self._tell(what))

    def _take_over(self, upstream: Upstream) -> None:
        prefix = self._prefix(upstream)
        before = {name for name, entry in self._tools.items() if entry.upstream is upstream}
        for tool in upstream.tools:
            name = shown_name(prefix, tool.name)
            other = self._tools.get(name)
            if other is not None and other.upstream is not upstream:
                logger.warning("two tools are named %s: the first one stays", name)
                continue
            spec, declared = spec_of(upstream, tool, name, self.settings.result_limit)
            self.runtime.replace(spec)
            self._tools[name] = _Entry(upstream, tool, name, declared)
            before.discard(name)
        for name in before:
            del self._tools[name]
            self.runtime.discard(name)

    async def _tell(self, what: str) -> None:
        event: Any = {
            "tools": ToolsListChanged(),
            "resources": ResourcesListChanged(),
            "prompts": PromptsListChanged(),
        }[what]
        await self._bus.publish(event)
        for host in self._hosts.to_tell():
            try:
                await getattr(host.session, f"send_{what[:-1]}_list_changed")()
            except Exception:
                self._hosts.forget(host)

    async def _ready(self) -> None:
        """Wait for servers that are starting for the first time; never for one that is down."""
        waiting = [
            asyncio.ensure_future(upstream.settled())
            for upstream in self.upstreams
            if upstream.state == "starting" and not upstream.generation
        ]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=self.settings.start_wait)
            for task in late:
                task.cancel()

    async def _list_tools(
        self,
        context: "ServerRequestContext[Any, Any]",
        params: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        self._hosts.of(context)
        await self._ready()
        listed = []
        for name, entry in self._tools.items():
            if entry.upstream.settings.of(entry.tool.name).hidden:
                continue
            note = None
            if self.settings.notes or self.settings.hide_open:
                trouble = self._trouble.of(name, entry.upstream.name)
                if self.settings.hide_open and trouble.open:
                    continue
                note = trouble.note(self.lang) if self.settings.notes else None
            tool = entry.tool.model_copy(update={"name": name})
            if note:
                tool.description = f"{note}\n{tool.description or ''}".rstrip()
            listed.append(tool)
        return types.ListToolsResult(tools=listed)

    async def _call_tool(
        self, context: "ServerRequestContext[Any, Any]", params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        host = self._hosts.of(context)
        held = self._questions.held(params)
        if held is not None:
            return await self._watched(*held)
        entry = self._tools.get(params.name)
        if entry is None:
            await self._ready()
            entry = self._tools.get(params.name)
        if entry is None:
            raise MCPError(
                types.INVALID_PARAMS, words.unknown_tool(params.name, self._tools, self.lang)
            )
        front = FrontCall(context, params, host)
        if front.modern:
            front.question = asyncio.get_running_loop().create_future()
        token = here.set(front)
        try:
            task = asyncio.ensure_future(self._called(entry, front, host))
        finally:
            here.reset(token)
        return await self._watched(task, front, entry)

    async def _called(self, entry: _Entry, front: FrontCall, host: Host) -> Any:
        declared = {"declared": dict(entry.declared)} if entry.declared else None
        return await host.run.call(entry.shown, front.params.arguments or {}, extra=declared)

    async def _watched(
        self, task: "asyncio.Task[Any]", front: FrontCall, entry: _Entry
    ) -> types.CallToolResult | types.InputRequiredResult:
        """The call's end; or a question, which is the answer until the host has asked its user."""
        try:
            question = front.question
            waiting: set[asyncio.Future[Any]] = {task} if question is None else {task, question}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if question is not None and not task.done():
                return self._questions.hold(task, front, entry, question.result())
            result = task.result()
        except InputRequired as required:
            return required.result
        except asyncio.CancelledError:
            # Once only: a second cancellation would cut off the word to the upstream that nobody waits.
            task.cancel()
            raise
        if front.confirmation is not None and front.confirmation.question is not None:
            return front.confirmation.question
        return self._answer(result, entry)

    def _answer(self, result: ToolResult[Any], entry: _Entry) -> types.CallToolResult:
        self._trouble.saw(result)
        if result.success:
            return self._success(result)
        text = result.for_model(self.lang)
        verified_by = entry.upstream.settings.of(entry.tool.name).verified_by
        if verified_by and result.effect in (Effect.UNKNOWN, Effect.APPLIED):
            text += "\n" + words.verify_with(self._shown(entry.upstream, verified_by), self.lang)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            is_error=True,
            _meta={RECORD: record(result)},
        )

    def _success(self, result: ToolResult[Any]) -> types.CallToolResult:
        value = result.value
        assert isinstance(value, types.CallToolResult)
        if not noteworthy(result):
            return value
        meta = {**(value.meta or {}), RECORD: record(result)}
        content = list(value.content)
        note = words.note(result, self.lang)
        if note:
            content.append(types.TextContent(type="text", text=note))
        return value.model_copy(update={"meta": meta, "content": content})

    def _shown(self, upstream: Upstream, tool: str) -> str:
        name = shown_name(self._prefix(upstream), tool)
        return name if name in self._tools else tool

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # For people

    def status(self) -> dict[str, Any]:
        """What ``failwise mcp status`` shows: one row an upstream. Redacted."""
        guards = {row["upstream"]: row for row in self._trouble.statistics()}
        return {
            "began": self.began,
            "servers": [
                {
                    "name": upstream.name,
                    "state": upstream.state,
                    "since": upstream.since,
                    "starts": upstream.generation,
                    "tools": len(upstream.tools),
                    "under_way": len(upstream.under_way),
                    "protocol": upstream.client.protocol_version if upstream.client else None,
                    "circuit": guards.get(upstream.name, {}).get("circuit", "closed"),
                    "error": upstream.error,
                    **self._trouble.counts(upstream.name),
                }
                for upstream in self.upstreams
            ],
        }


async def _confirmed(tool: str, repairs: Any) -> bool:
    """Ask the user of the host whose call this is about a guessed repair."""
    from failwise.connect.mcp import confirm

    front = here.get()
    if front is None:
        return False
    if front.confirmation is None:
        front.confirmation = confirm(front.context, front.params)
    return await front.confirmation(tool, repairs)


def _version() -> str:
    from failwise._version import __version__

    return __version__
