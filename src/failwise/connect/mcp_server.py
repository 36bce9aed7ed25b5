"""MCP servers written with the ``mcp`` SDK: their tools, called through a runtime (extra: ``mcp``).

    from failwise.connect.mcp_server import protect

    server = protect(MCPServer("shop"), rt)

The SDK's middleware sees a failure only when its cause is gone, so the call itself is where this stands: an
`MCPServer`'s `call_tool`, a low-level `Server`'s handler of ``tools/call``. For FastMCP see
`failwise.connect.fastmcp`; to stand before servers that others wrote, `failwise mcp`.
Source: mcp 2.3, "Tools" (errors), `MCPServer.call_tool`, `Server.add_request_handler`.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from failwise.connect import mcp_results
from failwise.connect.bridge import Outcome, wrong_arguments
from failwise.connect.mcp_results import Passed
from failwise.connect.mcp_serving import Asking, Job, Served
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.run import Run
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, InputRequiredResult

    from failwise.runtime.runtime import Runtime

__all__ = ["protect"]

ServerT = TypeVar("ServerT")

_MOST_PAGES: Final = 100
_MARK: Final = "_failwise_protected"


def protect(
    server: ServerT, runtime: "Runtime | Run", *, lang: Language = "en", job: Job | None = None
) -> ServerT:
    """Call all tools of a server through a runtime, those that are added later too; gives the same server.

    `server`: an `MCPServer`, or a low-level `Server` that has its handler of ``tools/call`` already. A failed
    call becomes a result with ``isError``, the text that a model can use, and the record under
    ``dev.failwise/result`` in its ``_meta``; a success is handed on, with a line where arguments were
    corrected. What a tool's annotations say is what it declares. The author's own `ToolError`s, `MCPError`s
    and questions to the user pass; a tool that is not there is answered by the SDK.

    `job`: gives the name of the job a request belongs to (a tenant, a conversation), from the `Context`
    that tools are given too (low-level: the `ServerRequestContext`); see `failwise.connect.mcp_serving`.
    `lang`: the language of what models read. Raises `UsageError` for what is no such server, or is
    protected already, and `ConfigurationError` where ``mcp`` 2 is not installed.
    """
    try:
        from mcp.server.lowlevel import Server
        from mcp.server.mcpserver import MCPServer
    except ImportError as error:
        raise required("mcp 2", "failwise[mcp]", error) from error
    if hasattr(server, _MARK):
        raise UsageError("protect(server): it is protected already")
    served = Served(runtime, lang, job)
    if isinstance(server, MCPServer):
        _Ready(server, served)
    elif isinstance(server, Server):
        _Handlers(server, served)
    elif hasattr(server, "add_middleware"):
        raise UsageError(
            "protect(server): this is FastMCP's: say mcp.add_middleware(failwise.connect.fastmcp.middleware(rt))"
        )
    else:
        raise UsageError(f"protect({server!r}): give an MCPServer or a lowlevel Server of mcp")
    setattr(server, _MARK, True)
    return server


class _Ready:
    """The calls of an `MCPServer`."""

    def __init__(self, server: Any, served: Served) -> None:
        self._server, self._served = server, served
        self._perform: Callable[..., Awaitable[Any]] = server.call_tool
        server.call_tool = self.call

    async def call(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """`MCPServer.call_tool`."""
        tool = self._server._tool_manager.get_tool(name)
        if tool is None:
            return await self._perform(name, arguments, context)
        plan = self._served.plan(
            name,
            tool.parameters,
            source=tool,
            description=tool.description,
            annotations=tool.annotations,
            meta=tool.meta,
        )
        warn_of_retries(tool.fn, name)
        request = getattr(context, "_request_context", None)
        raised: list[Exception] = []

        async def attempt(called: str, given: Arguments, _: CallContext) -> Any:
            own = name if called == plan.tool.name else called
            raised.clear()
            try:
                answer = await self._perform(own, given, context)
            except Exception as error:
                raised.append(error)
                meant: BaseException = _meant(error, own)
            else:
                return _unless_asking(answer)
            raise meant

        try:
            with Asking(request or context, context) as asking:
                outcome = await self._served.call(
                    plan,
                    arguments,
                    attempt,
                    lambda: self._perform(name, arguments, context),
                    self._served.run(context, request),
                )
        except Passed as passed:
            return passed.out()
        except Exception:
            if raised and self._served.runtime.mode == "observe":
                raise raised[0] from raised[0].__cause__
            raise
        if outcome.failed and asking.question is not None:
            return asking.question
        return _answer(outcome, self._served.lang, tool.output_schema)


class _Handlers:
    """The calls of a low-level `Server`."""

    def __init__(self, server: "Server[Any]", served: Served) -> None:
        self._served = served
        self._tools: dict[str, Any] = {}
        called, listed = (server.get_request_handler(f"tools/{what}") for what in ("call", "list"))
        if called is None:
            raise UsageError(
                "protect(server): a lowlevel Server needs its on_call_tool first: protect it after"
            )
        self._perform = called.handler
        self._list = listed.handler if listed is not None else None
        server.add_request_handler("tools/call", called.params_type, self.call)
        if listed is not None:
            server.add_request_handler("tools/list", listed.params_type, self.list)

    async def list(self, context: Any, params: Any) -> Any:
        """The handler of ``tools/list``."""
        assert self._list is not None
        answer = await self._list(context, params)
        for tool in getattr(answer, "tools", None) or ():
            self._tools[tool.name] = tool
        return answer

    async def _tool(self, context: Any, name: str) -> Any:
        """A tool as the server lists it, None where it does not."""
        if name not in self._tools and self._list is not None:
            from mcp_types import PaginatedRequestParams

            params = None
            for _ in range(_MOST_PAGES):
                page = await self.list(context, params)
                cursor = getattr(page, "next_cursor", None)
                if name in self._tools or cursor is None:
                    break
                params = PaginatedRequestParams(cursor=cursor)
        return self._tools.get(name)

    async def call(self, context: Any, params: Any) -> "CallToolResult | InputRequiredResult":
        """The handler of ``tools/call``."""
        tool = await self._tool(context, params.name)
        if tool is None:
            given: Any = await self._perform(context, params)
            return given  # type: ignore[no-any-return]
        plan = self._served.plan(
            params.name,
            tool.input_schema,
            source=tool,
            description=tool.description or "",
            annotations=tool.annotations,
            meta=tool.meta,
        )

        async def attempt(called: str, arguments: Arguments, _: CallContext) -> Any:
            from mcp import MCPError

            own = params.name if called == plan.tool.name else called
            sent = params.model_copy(update={"name": own, "arguments": arguments})
            try:
                return _unless_asking(await self._perform(context, sent))
            except MCPError as error:
                raise Passed(error=error) from None

        try:
            with Asking(context, params) as asking:
                outcome = await self._served.call(
                    plan,
                    params.arguments or {},
                    attempt,
                    lambda: self._perform(context, params),
                    self._served.run(context, context),
                )
        except Passed as passed:
            return passed.out()  # type: ignore[no-any-return]
        if outcome.failed and asking.question is not None:
            return asking.question  # type: ignore[no-any-return]
        return _answer(outcome, self._served.lang, tool.output_schema)  # type: ignore[no-any-return]


def _meant(error: BaseException, name: str) -> BaseException:
    """What a tool of an `MCPServer` meant with what came out of it: the SDK puts its own error around
    everything."""
    from mcp.server.mcpserver import exceptions
    from pydantic import ValidationError

    deliberate = (exceptions.ToolError, exceptions.ResourceError)
    masks = tuple(
        getattr(exceptions, mask)
        for mask in ("UnexpectedToolError", "UnexpectedResourceError")
        if hasattr(exceptions, mask)  # before 2.2 there are none
    )
    if not isinstance(error, exceptions.ToolError):
        return Passed(error=error)
    cause = error.__cause__
    if isinstance(cause, ValidationError) and not isinstance(error, masks):
        return wrong_arguments(cause, name)
    while isinstance(cause, masks):
        cause = cause.__cause__
    if cause is None or isinstance(cause, deliberate):
        return Passed(error=error)
    return cause


def _unless_asking(answer: Any) -> Any:
    """A tool's result; where it asks the user first, that is no result yet."""
    if getattr(answer, "content", None) is None:
        raise Passed(value=answer)
    return answer


def _answer(outcome: Outcome, lang: Language, output_schema: Any) -> Any:
    from mcp_types import CallToolResult, TextContent

    result = outcome.result
    if result is None:
        return outcome.given
    if outcome.as_it_is:
        given = outcome.given
        if not mcp_results.noteworthy(result):
            return given
        content = list(given.content)
        if note := mcp_results.note(result, lang):
            content.append(TextContent(type="text", text=note))
        meta = {**(given.meta or {}), mcp_results.RECORD: mcp_results.record(result)}
        return given.model_copy(update={"content": content, "meta": meta})
    structured, promised = None, True
    if result.success:
        structured, promised = mcp_results.structured_for(result.value, output_schema)
    return CallToolResult(
        content=[TextContent(type="text", text=outcome.text)],
        structured_content=structured,
        is_error=outcome.failed or not promised,
        _meta={mcp_results.RECORD: mcp_results.record(result)},
    )
