"""A tool call sent to its upstream once: within its time, with progress, questions, and what went wrong
told as evidence. Whether it is sent again is the runtime's to decide.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED

from failwise.connect.proxy.answers import CALL, UpstreamStatus
from failwise.vocabulary.errors import ToolError
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from failwise.connect.mcp import Confirmation
    from failwise.connect.proxy.upstream import Upstream

_SESSION_STATUS: Final = (400, 404)
_ROUNDS: Final = 10
_HOP: Final = ("io.modelcontextprotocol/",)


class FrontCall:
    """One request of the host, as long as it is answered. `lost`: which connections it saw die."""

    __slots__ = ("asked", "confirmation", "context", "host", "lost", "params", "question")

    def __init__(
        self,
        context: "ServerRequestContext[Any, Any]",
        params: types.CallToolRequestParams,
        host: object = None,
    ) -> None:
        self.context, self.params, self.host = context, params, host
        self.lost: dict[str, int] = {}
        self.confirmation: Confirmation | None = None
        self.question: asyncio.Future[types.ElicitRequestParams] | None = None
        """Resolved when an upstream asks, where the host can only be asked by an answer."""
        self.asked: asyncio.Future[types.ElicitResult] | None = None
        """The host's answer to it."""

    @property
    def modern(self) -> bool:
        """The host speaks the era in which it is asked by an answer."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self.context.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def authorization(self) -> str | None:
        """The host's own token, where it came over HTTP."""
        request = self.context.request
        headers = getattr(request, "headers", None)
        return headers.get("authorization") if headers is not None else None


here: "ContextVar[FrontCall | None]" = ContextVar("failwise_proxy_call", default=None)
"""The host's request that is being answered in this context."""


class InputRequired(Exception):
    """The upstream wants the host's user to answer first: passes through the runtime untouched."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        self.result = result
        super().__init__("the server asks for input")


def caller(
    upstream: "Upstream",
    name: str,
    *,
    timeout: float,
    timeout_limit: float,
    result_limit: int,
    key_argument: str | None,
) -> Callable[[Arguments, CallContext], Awaitable[Any]]:
    """What a `ToolSpec` calls: sends one tool call to one upstream and gives its `CallToolResult`."""

    async def call(arguments: Arguments, context: CallContext) -> Any:
        front = here.get()
        connection = await upstream.connection(front.lost.get(upstream.name, 0) if front else 0)
        number = f"{context.call_id}:{context.attempt}"
        if key_argument and context.idempotency_key and key_argument not in arguments:
            arguments = {**arguments, key_argument: context.idempotency_key}
        upstream.answers.expect(number, front.authorization if front else None)
        upstream.under_way.add(front)
        try:
            return await _within(
                upstream, connection.client, name, arguments, number, front, timeout, timeout_limit,
                result_limit,
            )  # fmt: skip
        except MCPError as error:
            seen = upstream.answers.take(number)
            lost = _lost(error, seen)
            if lost or error.code == CONNECTION_CLOSED:
                upstream.lose(connection.generation)
                if front is not None:
                    front.lost[upstream.name] = connection.generation
            if lost:
                raise ToolError(
                    f"the session with {upstream.name} was lost; it is opened again",
                    code="network.connection_reset",
                    effect="not_sent",
                    transient=True,
                ) from error
            # What the SDK made of it says less than what came.
            if isinstance(seen, BaseException):
                raise seen from None
            if seen is not None:
                raise UpstreamStatus(seen) from None
            raise
        finally:
            upstream.answers.take(number)
            upstream.under_way.discard(front)

    return call


async def _within(
    upstream: "Upstream",
    client: Any,
    name: str,
    arguments: Arguments,
    number: str,
    front: FrontCall | None,
    timeout: float,  # noqa: ASYNC109 - its passing is told as a failure with its limit
    limit: float,
    result_limit: int,
) -> Any:
    """The call within its time: `timeout` seconds without news, `limit` in all."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    last = began + limit
    try:
        async with asyncio.timeout_at(min(began + timeout, last)) as timer:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                if not timer.expired():
                    timer.reschedule(min(loop.time() + timeout, last))
                if front is not None:
                    await front.context.session.report_progress(done, total, message)

            result = await _answered(client, name, arguments, number, front, progress)
    except TimeoutError:
        told = limit if loop.time() >= last else timeout
        raise ToolError(
            f"{upstream.name} gave no answer within {told:g} s",
            code="network.read_timeout",
            effect="unknown",
            transient=True,
        ) from None
    size = sum(len(getattr(item, "text", None) or getattr(item, "data", None) or "") for item in result.content)  # fmt: skip
    if size > result_limit:
        raise ToolError(
            f"the result has {size} characters; {result_limit} are passed on",
            code="parsing.too_large",
            effect="applied",
            transient=False,
        )
    return result


async def _answered(
    client: Any,
    name: str,
    arguments: Arguments,
    number: str,
    front: FrontCall | None,
    progress: Any,
) -> Any:
    """The result, after whatever the upstream asks of the host's user."""
    params = front.params if front is not None else None
    responses = params.input_responses if params is not None else None
    state = params.request_state if params is not None else None
    meta = {**_passed_on(front), CALL: number}
    for _ in range(_ROUNDS):
        result = await client.session.call_tool(
            name,
            arguments,
            progress_callback=progress,
            input_responses=responses,
            request_state=state,
            meta=meta,
            allow_input_required=True,
        )
        if not isinstance(result, types.InputRequiredResult):
            return result
        if front is None or front.modern:
            raise InputRequired(result)
        responses, state = await _put_to(front, result), result.request_state
    raise ToolError(
        f"the server asked for input more than {_ROUNDS} times",
        code="parsing.schema_mismatch",
        effect="unknown",
        transient=False,
    )


async def _put_to(front: FrontCall, result: types.InputRequiredResult) -> dict[str, Any]:
    """An upstream of the modern era asks; the host of the handshake era is asked while it waits."""
    answers: dict[str, Any] = {}
    for key, request in (result.input_requests or {}).items():
        if not isinstance(request, types.ElicitRequest):
            raise ToolError(
                f"the server asks for {request.method}, which this host cannot give",
                code="invalid_request.parameter",
                effect="unknown",
                transient=False,
            )
        answers[key] = await ask_host(front, request.params)
    return answers


async def ask_host(front: FrontCall, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Ask the user of a handshake-era host. Raises `MCPError` where the host cannot ask."""
    session = front.context.session
    if isinstance(params, types.ElicitRequestFormParams):
        return await session.elicit_form(
            params.message, params.requested_schema, related_request_id=front.context.request_id
        )
    return await session.elicit_url(
        params.message,
        params.url,
        params.elicitation_id or "",
        related_request_id=front.context.request_id,
    )


def _passed_on(front: FrontCall | None) -> Mapping[str, Any]:
    """The host's ``_meta`` without what belongs to its own connection."""
    meta = dict(front.context.meta or {}) if front is not None else {}
    return {
        key: value
        for key, value in meta.items()
        if key not in ("progressToken", "progress_token") and not key.startswith(_HOP)
    }


def _lost(error: MCPError, seen: Any) -> bool:
    """The upstream did not know our session: the call was not taken up.

    Servers say so with 404, or 400 and a word about the session; the SDK with "Session terminated".
    """
    status = getattr(seen, "status_code", None)
    said = error.message.lower()
    if status in _SESSION_STATUS:
        body = (getattr(seen, "text", "") or "")[:2_000].lower()
        return "session" in body or (status == 404 and "session" in said)
    return "session terminated" in said or ("session" in said and "not found" in said)
