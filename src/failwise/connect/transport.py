"""The requests of an HTTP client as calls of a runtime: what httpx, requests and aiohttp have in common.

Each request is a call of a `ToolSpec` of its method and host, decided by the same machine and policy as
a tool's: RFC 9110 §9.2 says which methods may be repeated. Inside of a tool of any runtime the request
is sent once, since that runtime decides. The modules beside this one know one client each.
"""

import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

from failwise.connect.bodies import recorded
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run, surroundings
from failwise.tools.declared import Declarations
from failwise.tools.headers import is_token
from failwise.vocabulary.errors import ToolCallFailed, UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution
    from failwise.runtime.runtime import Runtime

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""RFC 9110 §9.2.1."""
IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
"""RFC 9110 §9.2.2, the safe ones apart."""
KEYED: Final = frozenset({"POST", "PATCH"})
"""Methods that an idempotency key is added to where a transport declares one."""

_LANES: Final = 1_024
_NEVER_AGAIN: Final = {
    category: {"retries": 0, "retries_read": 0}
    for category in ("network", "server", "rate_limit", "parsing", "unknown")
}
"""Rows for a request whose body is gone once it was sent."""


class Exchange(Protocol):
    """One request of one client, and what came of its last attempt. `send` is the client's own: one
    attempt, sync or async; so is `beginning`, which reads the start of a refusal's body and leaves the
    response as if nobody had read it."""

    method: str
    url: str
    host: str
    replayable: bool
    response: Any
    error: BaseException | None

    @property
    def path(self) -> str:
        """Where on the host: declarations are matched against host and path."""
        ...

    def body(self) -> bytes | None:
        """The request's body where it is at hand; never read from a stream."""
        ...

    def header(self, name: str) -> str | None: ...

    def set_header(self, name: str, value: str) -> None: ...

    def limit(self, seconds: float) -> None:
        """Cut the client's own time limits to what is left."""
        ...

    def status(self) -> int: ...

    def send(self) -> Any: ...

    def beginning(self) -> Any: ...

    def discard(self) -> Any:
        """Let go of a response that is not handed on."""
        ...

    def not_sent(self, text: str) -> Exception:
        """The client's own kind of exception for a request that was not sent."""
        ...

    def expired(self, text: str) -> Exception:
        """The client's own kind of exception for an answer that did not come in time."""
        ...


@record
class Lane:
    """The requests of one method to one host that are declared alike."""

    spec: ToolSpec
    plan: Plan
    key_header: str | None


class Gate:
    """Sends the requests of a client through a runtime. What `transport(...)` and the like have inside.

    `runtime`: a `Runtime`, a `Run` (whose deadline and interruption then hold), or None for the one that
    all clients share. `idempotency_key` names the header in which the upstreams of this client honour a
    key; POST and PATCH then carry one, and may be repeated. `declare`: what is known of requests, by
    ``METHOD host/path`` with globs (``{"POST api.example/search*": {"read_only": True}}``), beside what
    the runtime's own declarations say. `profile` and `upstream` as for a tool. Raises `UsageError` for
    options that cannot work.
    """

    def __init__(
        self,
        runtime: "Runtime | Run | None" = None,
        *,
        idempotency_key: str | None = None,
        declare: Mapping[str, Mapping[str, Any]] | None = None,
        profile: str | None = None,
        upstream: str | None = None,
    ) -> None:
        if runtime is not None and not hasattr(runtime, "_where"):
            raise UsageError(f"runtime={runtime!r}: give a Runtime, a Run, or nothing")
        if idempotency_key is not None and not is_token(idempotency_key):
            raise UsageError(
                f"idempotency_key={idempotency_key!r}: name a header, such as 'Idempotency-Key'"
            )
        for name in declare or ():
            if " " not in name:
                raise UsageError(
                    f"declare: {name!r} names no request: write a method and an address, such as "
                    "'POST api.shop.example/search*'"
                )
        self._given = runtime
        self._key_header = idempotency_key
        self._declared = Declarations(declare or {})
        self._common = {"profile": profile, "upstream": upstream}
        self._lanes: dict[tuple[Any, ...], Lane] = {}
        self._lock = threading.Lock()

    @property
    def runtime(self) -> "Runtime":
        """The runtime that decides."""
        return own_runtime() if self._given is None else self._given._where()[0]

    # One request

    def pass_through(self, exchange: Exchange) -> Any:
        """Send a request and hand back the client's own response, or raise its own exception.

        Both carry the `ToolResult` of the request; see `result_of`.
        """
        outer = surroundings.get()
        if outer is not None:
            _in_tool(exchange, outer)
            return exchange.send()
        if self.runtime.mode == "off":
            return exchange.send()
        lane = self._lane(exchange)
        execution = self._execution(exchange, lane)

        def attempt(_: Arguments, context: CallContext) -> Any:
            if exchange.response is not None:
                exchange.discard()
            _prepare(exchange, lane, context, execution)
            _sent(exchange, exchange.send)
            return exchange.status() if exchange.status() < 400 else exchange.beginning()

        token = _current.set(attempt)
        try:
            runtime = execution.runtime
            result = (runtime._drive_sync or runtime._sync_driver())(execution)
        finally:
            _current.reset(token)
        return _handed_on(exchange, result)

    async def pass_through_async(self, exchange: Exchange) -> Any:
        """`pass_through`, for a client of the running loop."""
        outer = surroundings.get()
        if outer is not None:
            _in_tool(exchange, outer)
            return await exchange.send()
        if self.runtime.mode == "off":
            return await exchange.send()
        lane = self._lane(exchange)
        execution = self._execution(exchange, lane)

        async def attempt(_: Arguments, context: CallContext) -> Any:
            if exchange.response is not None:
                await exchange.discard()
            _prepare(exchange, lane, context, execution)
            await _sent_async(exchange, exchange.send)
            return exchange.status() if exchange.status() < 400 else await exchange.beginning()

        token = _current.set(attempt)
        try:
            runtime = execution.runtime
            result = await (runtime._drive or runtime._async_driver())(execution)
        finally:
            _current.reset(token)
        return _handed_on(exchange, result)

    def _execution(self, exchange: Exchange, lane: Lane) -> "Execution":
        runtime, run = (own_runtime(), None) if self._given is None else self._given._where()
        arguments: dict[str, Any] = {"url": exchange.url}
        if lane.spec.read_only is not True:
            arguments["body"] = recorded(exchange.body(), exchange.replayable)
            if run is None:
                # Two orders of the same thing are two orders, where no run says they belong together.
                arguments["request"] = runtime._new_id("request")
        return runtime._begin(lane.spec, (arguments,), {}, run, plan=lane.plan)

    # What is alike for many requests

    def _lane(self, exchange: Exchange) -> Lane:
        runtime, method = self.runtime, exchange.method
        said = self._said(runtime, exchange)
        shown = tuple((name, id(value)) for name, value in said.items()) if said else ()
        key = (method, exchange.host, exchange.replayable, shown)
        lane = self._lanes.get(key)
        if lane is None:
            with self._lock:
                if len(self._lanes) >= _LANES:
                    self._lanes.clear()
                lane = self._lanes[key] = self._made(runtime, exchange, said)
        return lane

    def _said(self, runtime: "Runtime", exchange: Exchange) -> Mapping[str, Any]:
        """What is declared of this request: the file's or runtime's declarations have the last word."""
        said: Mapping[str, Any] = {}
        if self._declared:
            said = self._declared.of_request(exchange.method, exchange.host + exchange.path)
        if runtime._declarations:
            theirs = runtime._declarations.of_request(
                exchange.method, exchange.host + exchange.path
            )
            said = {**said, **theirs} if theirs else said
        return said

    def _made(self, runtime: "Runtime", exchange: Exchange, said: Mapping[str, Any]) -> Lane:
        method = exchange.method
        options: dict[str, Any] = {**self._common, "read_only": method in SAFE}
        if method in IDEMPOTENT:
            options["idempotent"] = True
        if self._key_header is not None and method in KEYED:
            options["idempotency_key"] = self._key_header
        options.update(said)
        if options["read_only"]:
            options["idempotency_key"] = None
        if not exchange.replayable:
            options["policy"] = {**(options.get("policy") or {}), **_NEVER_AGAIN}
        options["upstream"] = options.get("upstream") or exchange.host
        spec = ToolSpec(
            f"{method} {exchange.host}",
            call=_call,
            call_async=_call_async,
            thread=False,
            self_timed=True,
            kind="client",
            **options,
        )
        return Lane(spec, runtime._plan(spec), options.get("idempotency_key"))


def _prepare(exchange: Exchange, lane: Lane, context: CallContext, execution: "Execution") -> None:
    """Before each attempt: the trace, the key, and the time that is left."""
    exchange.response = exchange.error = None
    for name, value in context.headers.items():
        exchange.set_header(name, value)
    key = lane.key_header
    if key is not None and context.idempotency_key and exchange.header(key) is None:
        exchange.set_header(key, context.idempotency_key)
    if execution.call.deadline is not None and context.remaining is not None:
        exchange.limit(context.remaining)


def _handed_on(exchange: Exchange, result: ToolResult[Any]) -> Any:
    """The response, or the exception, of the last attempt; with the result on it."""
    if exchange.response is not None:
        _mark(exchange.response, result)
        return exchange.response
    failure = result.failure
    text = f"{failure.code}: {failure.message}" if failure is not None else "not sent"
    error = exchange.error
    if error is None:
        sent = result.sent > 0
        error = exchange.expired(text) if sent else exchange.not_sent(f"not sent: {text}")
        error.__cause__ = ToolCallFailed(result)
    _mark(error, result)
    raise error


def _mark(carrier: Any, result: ToolResult[Any]) -> None:
    try:
        carrier.failwise = result
    except AttributeError:  # an exception or response of somebody's own, with slots
        return


def result_of(response_or_error: Any) -> "ToolResult[Any] | None":
    """The `ToolResult` of a request: from the client's response, its exception, or one whose
    ``.response`` carries it (``HTTPStatusError``). None where it did not go through a runtime."""
    for carrier in (response_or_error, getattr(response_or_error, "response", None)):
        found = getattr(carrier, "failwise", None)
        if isinstance(found, ToolResult):
            return found
    return None


# The request under way: a spec is shared by many requests, so each finds its own by its context.

_current: ContextVar[Callable[[Arguments, CallContext], Any]] = ContextVar("failwise_request")


def _call(arguments: Arguments, context: CallContext) -> Any:
    return _current.get()(arguments, context)


def _call_async(arguments: Arguments, context: CallContext) -> Awaitable[Any]:
    made: Awaitable[Any] = _current.get()(arguments, context)
    return made


def _sent(exchange: Exchange, send: Callable[[], Any]) -> None:
    try:
        exchange.response = send()
    except Exception as error:
        exchange.error = error
        raise


async def _sent_async(exchange: Exchange, send: Callable[[], Awaitable[Any]]) -> None:
    try:
        exchange.response = await send()
    except Exception as error:
        exchange.error = error
        raise


def _in_tool(exchange: Exchange, outer: "Execution") -> None:
    """A request inside of a tool's call: the call's runtime decides whether to repeat, this sends once.

    It carries the trace, keeps to the call's deadline, and is counted in the result's `extra`.
    """
    if outer.runtime._observers:
        from failwise.runtime.observed import headers_of

        for name, value in headers_of(outer.runtime._observers).items():
            if exchange.header(name) is None:
                exchange.set_header(name, value)
    left = outer.time_left
    if left is not None:
        exchange.limit(left)
    call = outer.call
    earlier = (call.extra or {}).get("requests", 0)
    call.extra = {**(call.extra or {}), "requests": earlier + 1}


_own: "list[Runtime]" = []
_own_lock = threading.Lock()


def own_runtime() -> "Runtime":
    """The runtime of all clients that were given none; made at the first need, one a process."""
    if not _own:
        with _own_lock:
            if not _own:
                from failwise.runtime.runtime import Runtime

                _own.append(Runtime())
    return _own[0]
