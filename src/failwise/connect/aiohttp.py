"""aiohttp: a session whose requests go through a runtime.

```python
session = aiohttp.ClientSession(middlewares=[failwise.connect.aiohttp.middleware()])
```

Safe repeats, told waits, guards, idempotency keys and records, by the method of each request; the session
gives the responses and exceptions it always gave. It needs aiohttp 3.12, the first with client
middlewares. See ``docs/http-clients.md``.
"""

import functools
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from failwise.connect.bodies import BEGINNING, READING_SECONDS, refusal
from failwise.connect.transport import Gate, result_of
from failwise.tools.answer import HttpAnswer
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    import aiohttp

    from failwise.runtime.run import Run
    from failwise.runtime.runtime import Runtime

    Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
    Middleware = Callable[[aiohttp.ClientRequest, Handler], Awaitable[aiohttp.ClientResponse]]

__all__ = ["NotSent", "middleware", "result_of"]


def middleware(
    runtime: "Runtime | Run | None" = None,
    *,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
) -> "Middleware":
    """A middleware for ``ClientSession(middlewares=[...])``, or for one request.

    `runtime`: a `Runtime` or a `Run`; None: one that all clients of the process share.
    `idempotency_key` names the header in which these upstreams honour a key: POST and PATCH then carry
    one and may be repeated. `declare` says more of single requests:
    ``{"POST api.example/search*": {"read_only": True}}``. `profile` names the API's profile, `upstream`
    whom the guards count (else each host). Put it first, so that it stands outside of the others: they
    then see each attempt. Raises `UsageError` for options that cannot work, and where aiohttp is older
    than 3.12.
    """
    import aiohttp

    if not hasattr(aiohttp, "ClientMiddlewareType"):
        raise UsageError(
            f"aiohttp {aiohttp.__version__} has no client middlewares: install aiohttp>=3.12"
        )
    gate = Gate(
        runtime,
        idempotency_key=idempotency_key,
        declare=declare,
        profile=profile,
        upstream=upstream,
    )

    async def through_runtime(
        request: "aiohttp.ClientRequest", handler: "Handler"
    ) -> "aiohttp.ClientResponse":
        gave_up = _gave_up.get()
        of = getattr(request, "_timer", None)
        if gave_up is not None and of is not None and gave_up[0] is of:
            # aiohttp itself repeats once after a lost connection: all that was safe has been tried.
            _gave_up.set(None)
            raise gave_up[1]
        exchange = _Exchange(request, handler)
        try:
            response: aiohttp.ClientResponse = await gate.pass_through_async(exchange)
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            _gave_up.set((of, error))
            raise
        return response

    return through_runtime


_gave_up: ContextVar[tuple[Any, Exception] | None] = ContextVar("failwise_gave_up", default=None)
"""The last request of this task that failed for good, known by its timer: one for each request."""


class _Exchange:
    """A request of aiohttp, and what comes after this middleware."""

    __slots__ = (
        "_handler", "error", "host", "method", "replayable", "request", "response", "url",
    )  # fmt: skip

    def __init__(self, request: Any, handler: Any) -> None:
        self.request, self._handler = request, handler
        url = request.url
        self.method = request.method
        self.url = str(url)
        self.host = url.raw_authority.rpartition("@")[2].lower()
        self.replayable = _replayable(request.body)
        self.response: Any = None
        self.error: BaseException | None = None

    @property
    def path(self) -> str:
        path: str = self.request.url.raw_path
        return path

    def body(self) -> bytes | None:
        body = self.request.body
        if not self.replayable or not body:
            return None
        content = getattr(body, "_value", body)
        return bytes(content) if isinstance(content, bytes | bytearray | memoryview) else None

    def header(self, name: str) -> str | None:
        value: str | None = self.request.headers.get(name)
        return value

    def set_header(self, name: str, value: str) -> None:
        self.request.headers[name] = value

    def limit(self, seconds: float) -> None:
        """The runtime's own alarm ends an attempt on a loop."""

    def status(self) -> int:
        status: int = self.response.status
        return status

    async def send(self) -> Any:
        return await self._handler(self.request)

    async def discard(self) -> None:
        self.response.release()

    async def beginning(self) -> HttpAnswer:
        answer = self.response
        content = answer._body if isinstance(getattr(answer, "_body", None), bytes) else None
        if content is None:
            content = await _read_ahead(answer.content)
        # the session has decompressed it on the way
        return refusal(answer.status, answer.headers, content, self.method, self.url, raw=False)

    def not_sent(self, text: str) -> Exception:
        made: Exception = _not_sent_type()(text)
        return made

    def expired(self, text: str) -> Exception:
        import aiohttp

        return aiohttp.ServerTimeoutError(text)


def _replayable(body: Any) -> bool:
    """Content at hand can be sent again; a file, a form with files or a generator is used up."""
    if not body:
        return True
    import aiohttp

    return isinstance(body, bytes | aiohttp.BytesPayload | aiohttp.StringPayload)


async def _read_ahead(stream: Any) -> bytes:
    """The beginning of a body, put back for whoever reads it."""
    pieces: list[bytes] = []
    size, until = 0, time.monotonic() + READING_SECONDS
    try:
        while size < BEGINNING and time.monotonic() < until and not stream.at_eof():
            pieces.append(await stream.readany())
            size += len(pieces[-1])
    except Exception:  # noqa: S110 - the stream keeps it, and raises it for its reader again
        pass
    content = b"".join(pieces)
    if content:
        with (
            warnings.catch_warnings()
        ):  # deprecated for years, and there is no other way to put back
            warnings.simplefilter("ignore", DeprecationWarning)
            stream.unread_data(content)
    return content[:BEGINNING]


@functools.cache
def _not_sent_type() -> type[Any]:
    import aiohttp

    class NotSent(aiohttp.ClientConnectionError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""

    NotSent.__module__, NotSent.__qualname__ = __name__, "NotSent"
    return NotSent


if TYPE_CHECKING:

    class NotSent(aiohttp.ClientConnectionError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""


def __getattr__(name: str) -> Any:
    if name != "NotSent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = _not_sent_type()
    return found
