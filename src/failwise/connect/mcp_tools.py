"""Tools of MCP servers in a runtime (extra: ``mcp``): for a loop of your own, `failwise.Agent`, `call_many`.

    from failwise.connect import mcp_tools

    async with mcp.Client("http://127.0.0.1:8000/mcp") as client:
        await mcp_tools.load(rt, client)
        result = await rt.call("search", {"query": "shoes"})

`load` takes the tools of a session that you hold; `connected` holds one itself, opens it again when it is lost,
and sees the HTTP status behind what the SDK folds into one error. For agents of a framework see
`docs/frameworks.md`, for hosts `failwise mcp`.
Source: mcp 2.3, "Client" (`list_tools`, `call_tool`); MCP 2026-07-28, "Tools".
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from failwise.connect import mcp_results
from failwise.connect.remarks import required
from failwise.vocabulary.errors import ConfigurationError, ToolError, UsageError
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

if TYPE_CHECKING:
    from failwise.connect.proxy.settings import ServerSettings
    from failwise.runtime.runtime import Runtime

__all__ = ["connected", "load"]

_MOST_TOOLS: Final = 2_000
_MOST_PAGES: Final = 100
_RESULT_LIMIT: Final = 16_000_000


async def load(
    runtime: "Runtime",
    session: Any,
    *,
    prefix: str = "",
    upstream: str | None = None,
    trust_annotations: bool = False,
    timeout: float = 60.0,  # noqa: ASYNC109 - what is declared of the tools
) -> list[ToolSpec]:
    """Register the tools of a session in a runtime, in the place of those it had loaded before.

    `session`: a connected `mcp.Client` or `mcp.ClientSession`, or a `fastmcp.Client`; it stays yours.
    `prefix` stands before the tools' names. `upstream`: whom the guards count, by default the server's
    own name, or each tool by itself where it has none. `timeout`: seconds for one attempt. A tool's value
    is its structured content, else its text; a result with ``isError`` is a failure.

    Annotations are hints: without `trust_annotations` only those that narrow are believed, and what
    ``Runtime(declarations=)`` or ``[declare."glob"]`` in ``failwise.toml`` says wins over all. Raises
    `UsageError` where a name is taken by another tool, or a session is none.
    """
    if not (hasattr(session, "call_tool") and hasattr(session, "list_tools")):
        raise UsageError(f"load(rt, {session!r}): give a connected mcp.Client or ClientSession")
    server = upstream or _name_of(session)
    found = [
        ToolSpec(
            prefix + mcp_results.tool_name(tool.name),
            tool.description or "",
            _schema(tool),
            call_async=_Remote(session, tool.name),
            timeout=timeout,
            upstream=server,
            **_said(tool.annotations, trust_annotations),
        )
        for tool in await _listed(session)
    ]
    known, names = runtime.tools, {spec.name for spec in found}
    for name, spec in known.items():
        if _is_of(spec, session) and name not in names:
            runtime.discard(name)
    for spec in found:
        if spec.name in known and not _is_of(known[spec.name], session):
            raise UsageError(
                f"a tool named {spec.name!r} is registered already: give another prefix="
            )
        runtime.replace(spec)
    return [runtime.tools[spec.name] for spec in found]


@asynccontextmanager
async def connected(
    runtime: "Runtime",
    server: "str | Sequence[str] | ServerSettings",
    *,
    name: str | None = None,
    prefix: str = "",
    trust_annotations: bool = False,
    timeout: float = 60.0,  # noqa: ASYNC109 - what is declared of the tools
) -> AsyncIterator[tuple[str, ...]]:
    """The tools of a server in a runtime for as long as the ``async with`` lasts; gives their names.

    `server`: the address of a server over streamable HTTP; a command and its arguments; or
    `failwise.connect.proxy.ServerSettings`, with headers, environment and declarations. The connection
    is opened again when it breaks, tools that the server adds or takes away are followed, and each try
    is the runtime's to allow. `timeout`: seconds a call may go without news. Nobody is asked here what
    the server wants to know of a user: that call fails. Otherwise as for `load`. Raises
    `ConfigurationError` where the server cannot be reached.
    """
    try:
        from failwise.connect.proxy.upstream import Upstream
    except ImportError as error:
        raise required("mcp 2", "failwise[mcp]", error) from error
    settings = _settings(server, name, prefix, trust_annotations, timeout)
    taken: dict[str, ToolSpec] = {}

    def take_over(upstream: Upstream) -> None:
        _take_over(runtime, upstream, taken)

    def changed(upstream: Upstream, what: str) -> None:
        if what == "tools":
            take_over(upstream)

    upstream = Upstream(settings, changed=changed, asked=_nobody)
    upstream.start()
    try:
        await upstream.settled()
        if not upstream.generation:
            raise ConfigurationError(
                f"the MCP server {upstream.name} cannot be reached: {upstream.error}"
            )
        yield tuple(taken)
    finally:
        await upstream.close()
        for known in taken:
            runtime.discard(known)


class _Remote:
    """What a `ToolSpec` calls: one tool of a session."""

    def __init__(self, session: Any, name: str) -> None:
        self.session, self._name = session, name
        self._home = asyncio.get_running_loop()
        whole = getattr(session, "call_tool_mcp", None)  # fastmcp's `call_tool` raises and unpacks
        self._call = whole or session.call_tool

    async def __call__(self, arguments: Arguments, context: CallContext) -> Any:
        call = self._answer(arguments)
        if asyncio.get_running_loop() is not self._home:
            # The session belongs to the loop it was opened on.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._home))
        return await call

    async def _answer(self, arguments: Arguments) -> Any:
        return _value(await self._call(self._name, arguments))


def _said(annotations: Any, trusted: bool) -> dict[str, Any]:
    return dict(mcp_results.declared(annotations, trusted=trusted))


def _is_of(spec: ToolSpec, session: Any) -> bool:
    return isinstance(spec.call_async, _Remote) and spec.call_async.session is session


def _value(answer: Any) -> Any:
    """A tool's answer as its value: data, where it holds any; else its blocks as they stand on the wire."""
    value = mcp_results.judged(answer)
    if value is None and answer.content:
        return [
            item.model_dump(by_alias=True, exclude_none=True, mode="json")
            for item in answer.content
        ]
    return value


async def _listed(session: Any) -> list[Any]:
    """All tools, page by page."""
    ask = getattr(session, "list_tools_mcp", None) or session.list_tools
    paged = "cursor" in inspect.signature(ask).parameters
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        if paged:
            page = await ask(cursor=cursor) if cursor else await ask()
        elif cursor is None:
            page = await ask()
        else:
            from mcp_types import PaginatedRequestParams

            page = await ask(params=PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = mcp_results.field(page, "next_cursor", "nextCursor")
        if cursor is None or len(found) >= _MOST_TOOLS:
            break
    return found[:_MOST_TOOLS]


def _schema(tool: Any) -> Any:
    return mcp_results.field(tool, "input_schema", "inputSchema")


def _name_of(session: Any) -> str | None:
    """What the server calls itself, where the session knows it."""
    for place in ("server_info", "initialize_result"):
        try:
            found = getattr(session, place, None)
        except Exception:  # a property that cannot be read yet
            found = None
        info = mcp_results.field(found, "server_info", "serverInfo") or found
        name = getattr(info, "name", None)
        if isinstance(name, str) and name.strip():
            return name
    return None


# A server of one's own


def _settings(
    server: "str | Sequence[str] | ServerSettings",
    name: str | None,
    prefix: str,
    trust_annotations: bool,
    timeout: float,
) -> "ServerSettings":
    from failwise.connect.proxy.settings import ServerSettings

    if isinstance(server, ServerSettings):
        return server if server.prefix is not None else replace(server, prefix=prefix)
    options: dict[str, Any] = {
        "prefix": prefix,
        "trust_annotations": trust_annotations,
        "timeout": timeout,
        "timeout_limit": max(timeout, 600.0),
    }
    if isinstance(server, str):
        if not server.startswith(("http://", "https://")):
            raise UsageError(
                f"connected(rt, {server!r}): give an address (http://...), or a command as a list"
            )
        from urllib.parse import urlsplit

        return ServerSettings(name or urlsplit(server).netloc, url=server, **options)
    command, *arguments = [str(part) for part in server]
    return ServerSettings(name or command, command=command, args=tuple(arguments), **options)


def _take_over(runtime: "Runtime", upstream: Any, taken: dict[str, ToolSpec]) -> None:
    """Register what the server lists now; forget what it lists no more."""
    from failwise.connect.proxy.tools import shown_name, spec_of

    before = set(taken)
    for tool in upstream.tools:
        name = shown_name(upstream.settings.prefix or "", tool.name)
        if name in runtime.tools and name not in taken:
            raise UsageError(f"a tool named {name!r} is registered already: give another prefix=")
        spec, _ = spec_of(upstream, tool, name, _RESULT_LIMIT)
        assert spec.call_async is not None
        spec = replace(spec, call_async=_valued(spec.call_async))
        runtime.replace(spec)
        taken[name] = spec
        before.discard(name)
    for name in before:
        del taken[name]
        runtime.discard(name)


def _valued(call: Any) -> Any:
    async def valued(arguments: Arguments, context: CallContext) -> Any:
        from failwise.connect.proxy.calling import InputRequired

        try:
            return _value(await call(arguments, context))
        except InputRequired:
            raise ToolError(
                "the server asks its user for input first, and nobody can be asked here",
                code="invalid_request.parameter",
                effect="unknown",
                transient=False,
            ) from None

    return valued


async def _nobody(upstream: Any, params: Any) -> Any:
    from mcp_types import INVALID_REQUEST, ErrorData

    return ErrorData(code=INVALID_REQUEST, message="Elicitation not supported")
