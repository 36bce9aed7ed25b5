"""FastMCP: the tools of a server, called through a runtime (extra: ``fastmcp``).

    from failwise.connect.fastmcp import middleware

    mcp = FastMCP("shop")
    mcp.add_middleware(middleware(rt))

For servers written with the ``mcp`` SDK itself see `failwise.connect.mcp_server`.
Source: fastmcp 4.2, "Middleware" (`on_call_tool`), "Tools" (errors, annotations, timeouts).
"""

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from failwise.connect import mcp_results
from failwise.connect.bridge import Outcome, wrong_arguments
from failwise.connect.mcp_results import Passed
from failwise.connect.mcp_serving import Job, Served
from failwise.connect.remarks import required, warn_of_retries, warn_once, was_said
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from fastmcp.server.middleware import Middleware

    from failwise.runtime.runtime import Runtime

__all__ = ["middleware"]

_OF_OTHERS: Final = "ProxyTool"
"""The class of tools that a server passes on from another one."""


def middleware(
    runtime: "Runtime | Run", *, lang: Language = "en", job: Job | None = None
) -> "Middleware":
    """For ``mcp.add_middleware(middleware(rt))``, or ``FastMCP(middleware=[middleware(rt), ...])``: give it the
    first place.

    A failed call becomes a result with ``isError``, the text that a model can use, and the record under
    ``dev.failwise/result`` in its ``_meta`` (before fastmcp 3.4: the text alone); a success is handed on,
    with a line where arguments were corrected. What a tool's annotations say is what it declares; those
    of proxied tools only where they narrow. Causes are seen behind ``mask_error_details``. The author's
    own `ToolError`s, protocol errors, background tasks and questions to the user pass; a tool that is not
    there is answered by FastMCP.

    `job`: gives the name of the job a request belongs to (a tenant, a conversation), from FastMCP's
    `Context`; see `failwise.connect.mcp_serving`. `lang`: the language of what models read. Raises
    `ConfigurationError` where fastmcp is not installed.
    """
    try:
        made: Middleware = _middleware_class()(_Adapter(Served(runtime, lang, job)))
        return made
    except ImportError as error:
        raise required("fastmcp", "failwise[fastmcp]", error) from error


class _Adapter:
    """The calls of any number of servers."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def call(self, context: Any, call_next: Any, own: Any) -> Any:
        """`on_call_tool`."""
        here, message = context.fastmcp_context, context.message
        tool = await _tool(here.fastmcp, message.name)
        if tool is None:
            return await call_next(context)
        _warn_of_retries(here.fastmcp, own)
        plan = self._plan(message.name, tool)
        call = _Call(context, call_next, plan, tool)
        try:
            outcome = await self._served.call(
                plan,
                message.arguments or {},
                call.attempt,
                lambda: call_next(context),
                self._served.run(here, _request(here)),
            )
        except Passed as passed:
            return passed.out()
        except Exception:
            if call.raised is not None and self._served.runtime.mode == "observe":
                raise call.raised from call.raised.__cause__
            raise
        return _answer(outcome, self._served.lang, tool)

    def _plan(self, name: str, tool: Any) -> Plan:
        warn_of_retries(getattr(tool, "fn", None), name)
        annotations, meta = tool.annotations, getattr(tool, "meta", None)
        timeout = getattr(tool, "timeout", None)
        return self._served.plan(
            name,
            tool.parameters,
            # A provider may make the tool anew for each call.
            source={
                "parameters": tool.parameters,
                "annotations": annotations,
                "meta": meta,
                "timeout": timeout,
            },
            description=tool.description or "",
            annotations=annotations,
            meta=meta,
            timeout=timeout,
            trusted=all(base.__name__ != _OF_OTHERS for base in type(tool).__mro__),
        )


class _Call:
    """How FastMCP runs the tool of one call once."""

    __slots__ = ("_call_next", "_context", "_plan", "_tool", "raised")

    def __init__(self, context: Any, call_next: Any, plan: Plan, tool: Any) -> None:
        self._context, self._call_next, self._plan, self._tool = context, call_next, plan, tool
        self.raised: Exception | None = None

    async def attempt(self, called: str, arguments: Arguments, _: CallContext) -> Any:
        context, message = self._context, self._context.message
        name = message.name if called == self._plan.tool.name else called
        if name != message.name or arguments != message.arguments:
            sent = message.model_copy(update={"name": name, "arguments": arguments})
            context = context.copy(message=sent)
        self.raised = None
        try:
            answer = await self._call_next(context)
        except Exception as error:
            self.raised = error
            meant = _meant(error, name, self._tool)
        else:
            if hasattr(answer, "input_required") or not isinstance(answer, _results()):
                raise Passed(value=answer)
            return answer
        raise meant


def _meant(error: BaseException, name: str, tool: Any) -> BaseException:
    """What a tool meant with what came out of it: FastMCP puts its own error around everything."""
    from fastmcp.exceptions import FastMCPError, ToolError, ValidationError
    from pydantic import ValidationError as Refused

    signals = (FastMCPError, _protocol_error(), *_not_there())
    seen = error
    if isinstance(seen, _protocol_error()) and isinstance(seen.__cause__, ToolError):
        seen = seen.__cause__  # by ErrorHandlingMiddleware, within
    if isinstance(seen, ValidationError | Refused):
        return wrong_arguments(seen.__cause__ or seen, name)
    if isinstance(seen, ToolError) and seen.__cause__ is not None and _by_fastmcp(seen):
        cause = seen.__cause__
        if _timed_out(cause, tool):
            return TimeoutError(str(cause))
        return wrong_arguments(cause, name) if _refused(cause, name) else cause
    return Passed(error=error) if isinstance(seen, signals) else error


def _by_fastmcp(error: BaseException) -> bool:
    """FastMCP itself raised it, and not the tool."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == "fastmcp"


def _refused(cause: BaseException, name: str) -> bool:
    """Before 3.3 a refusal of the arguments looks like any error of pydantic's: it names the call."""
    from pydantic import ValidationError

    return isinstance(cause, ValidationError) and cause.title.startswith("call[")


def _timed_out(cause: BaseException, tool: Any) -> bool:
    """The tool's own `timeout` has passed: what it did by then is not known."""
    limit = getattr(tool, "timeout", None)
    return (
        limit is not None
        and isinstance(cause, _protocol_error())
        and f"timed out after {limit}s" in str(cause)
    )


@cache
def _protocol_error() -> Any:
    import mcp

    return getattr(mcp, "MCPError", None) or getattr(mcp, "McpError", ())


@cache
def _not_there() -> tuple[Any, ...]:
    from fastmcp import exceptions

    return (exceptions.NotFoundError, exceptions.DisabledError)


@cache
def _results() -> Any:
    from fastmcp.tools import ToolResult

    return ToolResult


async def _tool(server: Any, name: str) -> Any:
    try:
        return await server.get_tool(name)
    except _not_there():
        return None


def _request(here: Any) -> Any:
    """The SDK's context of the request, None outside of one."""
    try:
        return here.request_context
    except (LookupError, ValueError):
        return None


def _answer(outcome: Outcome, lang: Language, tool: Any) -> Any:
    result = outcome.result
    if result is None:
        return outcome.given
    if outcome.as_it_is:
        given = outcome.given
        if not mcp_results.noteworthy(result):
            return given
        note = mcp_results.note(result, lang)
        content = [*given.content, *(_results()(content=note).content if note else ())]
        meta = {**(given.meta or {}), mcp_results.RECORD: mcp_results.record(result)}
        if hasattr(given, "model_copy"):
            return given.model_copy(update={"content": content, "meta": meta})
        return _results()(content, given.structured_content, meta)
    structured, promised = None, True
    if result.success:
        structured, promised = mcp_results.structured_for(result.value, tool.output_schema)
    failed = outcome.failed or not promised
    options: dict[str, Any] = {"meta": {mcp_results.RECORD: mcp_results.record(result)}}
    if failed:
        if "is_error" not in signature(_results().__init__).parameters:
            from fastmcp.exceptions import ToolError

            raise ToolError(outcome.text)
        options["is_error"] = True
    return _results()(content=outcome.text, structured_content=structured, **options)


def _warn_of_retries(server: Any, own: Any) -> None:
    """Once: a middleware within repeats calls by itself, so that its retries and the runtime's multiply."""
    if was_said("fastmcp.retry"):
        return
    stack = list(server.middleware)
    within = stack[stack.index(own) + 1 :] if own in stack else ()
    for one in within:
        if type(one).__name__ == "RetryMiddleware":
            warn_once(
                "fastmcp.retry",
                "RetryMiddleware repeats tool calls blindly, writes too, and once more for each of the "
                "runtime's attempts: take it out of the server; the policy says what is repeated",
            )


@cache
def _middleware_class() -> Any:
    from fastmcp.server.middleware import Middleware

    class FailwiseMiddleware(Middleware):
        """Calls the tools of a server through a runtime."""

        def __init__(self, adapter: _Adapter) -> None:
            self._adapter = adapter

        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            return await self._adapter.call(context, call_next, self)

    return FailwiseMiddleware
