"""requests: a session whose requests go through a runtime.

```python
session = requests.Session()
failwise.connect.requests.attach(session)
```

Safe repeats, told waits, guards, idempotency keys and records, by the method of each request; the session
gives the responses and exceptions it always gave. See ``docs/http-clients.md``.
"""

import functools
import io
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.bodies import BEGINNING, READING_SECONDS, refusal
from failwise.connect.transport import Gate, result_of
from failwise.tools.answer import HttpAnswer
from failwise.vocabulary.errors import UsageError

if TYPE_CHECKING:
    import requests

    from failwise.runtime.run import Run
    from failwise.runtime.runtime import Runtime

__all__ = ["NotSent", "adapter", "attach", "result_of"]

logger = logging.getLogger("failwise")


def adapter(
    runtime: "Runtime | Run | None" = None,
    *,
    wrapped: "requests.adapters.BaseAdapter | None" = None,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
    **options: Any,
) -> "requests.adapters.HTTPAdapter":
    """An adapter for ``session.mount("https://", adapter)``.

    `runtime`: a `Runtime` or a `Run`; None: one that all clients of the process share. `wrapped`: the
    adapter that sends (else this one, with the `options` of `HTTPAdapter`: `pool_maxsize`, ...).
    `idempotency_key` names the header in which these upstreams honour a key: POST and PATCH then carry
    one and may be repeated. `declare` says more of single requests:
    ``{"POST api.example/search*": {"read_only": True}}``. `profile` names the API's profile, `upstream`
    whom the guards count (else each host). Raises `UsageError` for options that cannot work.
    """
    gate = Gate(
        runtime,
        idempotency_key=idempotency_key,
        declare=declare,
        profile=profile,
        upstream=upstream,
    )
    if options.get("max_retries"):
        raise UsageError(
            f"max_retries={options['max_retries']}: the runtime repeats, and both would multiply: "
            "drop it"
        )
    made: requests.adapters.HTTPAdapter = _adapter_type()(gate, wrapped, options)
    return made


def attach(
    session: "requests.Session",
    runtime: "Runtime | Run | None" = None,
    *,
    idempotency_key: str | None = None,
    declare: Mapping[str, Mapping[str, Any]] | None = None,
    profile: str | None = None,
    upstream: str | None = None,
) -> "requests.Session":
    """Let a session send through a runtime, by the adapters it has; gives the session back.

    An adapter that repeats by itself (`max_retries`) is told of in the log: both would multiply.
    Options as for `adapter`.
    """
    import requests

    if not isinstance(session, requests.Session):
        raise UsageError(f"attach({session!r}): give a requests.Session")
    for prefix, inner in list(session.adapters.items()):
        if isinstance(inner, _adapter_type()):
            continue
        repeats = getattr(getattr(inner, "max_retries", None), "total", 0)
        if repeats:
            logger.warning(
                "the adapter for %s repeats by itself (max_retries=%s), beside the runtime: mount one "
                "without max_retries, or the attempts multiply",
                prefix,
                repeats,
            )
        made = adapter(
            runtime,
            wrapped=inner,
            idempotency_key=idempotency_key,
            declare=declare,
            profile=profile,
            upstream=upstream,
        )
        session.adapters[prefix] = made
    return session


class _Exchange:
    """A request of requests, prepared, with what its session says of timeouts and trust."""

    __slots__ = (
        "_options", "_send", "error", "host", "method", "path", "replayable", "request",
        "response", "url",
    )  # fmt: skip

    def __init__(self, request: Any, send: Any, options: dict[str, Any]) -> None:
        from urllib.parse import urlsplit

        self.request, self._send, self._options = request, send, options
        self.method = request.method or "GET"
        self.url = request.url or ""
        parts = urlsplit(self.url)
        self.host = parts.netloc.rpartition("@")[2].lower()
        self.path = parts.path
        self.replayable = request.body is None or isinstance(request.body, bytes | str)
        self.response: Any = None
        self.error: BaseException | None = None

    def body(self) -> bytes | None:
        body = self.request.body
        if not self.replayable or not body:
            return None
        return body.encode("utf-8", "replace") if isinstance(body, str) else body

    def header(self, name: str) -> str | None:
        value: str | None = self.request.headers.get(name)
        return value

    def set_header(self, name: str, value: str) -> None:
        self.request.headers[name] = value

    def limit(self, seconds: float) -> None:
        seconds = max(0.001, seconds)
        given = self._options.get("timeout")
        if given is None or isinstance(given, int | float):
            given = (given, given)
        if isinstance(given, tuple) and len(given) == 2:
            self._options["timeout"] = tuple(
                seconds if one is None else min(one, seconds) for one in given
            )

    def status(self) -> int:
        status: int = self.response.status_code
        return status

    def send(self) -> Any:
        return self._send(self.request, **self._options)

    def discard(self) -> None:
        self.response.close()

    def beginning(self) -> HttpAnswer:
        response, content = self.response, b""
        raw = response.raw
        if isinstance(
            getattr(response, "_content", None), bytes
        ):  # an adapter that has read it all
            return self._refusal(response.content[:BEGINNING], raw=False)
        if hasattr(raw, "read") and hasattr(raw, "headers"):
            content, broken = _read(raw)
            response.raw = _replayed(raw, content, broken, self.method)
        return self._refusal(content, raw=True)

    def _refusal(self, content: bytes, *, raw: bool) -> HttpAnswer:
        answer = self.response
        return refusal(answer.status_code, answer.headers, content, self.method, self.url, raw=raw)

    def not_sent(self, text: str) -> Exception:
        made: Exception = _not_sent_type()(text, request=self.request)
        return made

    def expired(self, text: str) -> Exception:
        import requests

        return requests.ReadTimeout(text, request=self.request)


_PIECE: Final = 8_192


def _read(raw: Any) -> tuple[bytes, Exception | None]:
    """The beginning of a body as it came, and what broke it off."""
    content, until = bytearray(), time.monotonic() + READING_SECONDS
    while len(content) < BEGINNING and time.monotonic() < until:
        try:
            piece = raw.read(_PIECE, decode_content=False)
        except Exception as error:
            return bytes(content), error
        if not piece:
            break
        content += piece
    return bytes(content), None


class _Replay(io.RawIOBase):
    """A body whose beginning was read ahead: the reader gets every byte, in order."""

    def __init__(self, content: bytes, broken: Exception | None, rest: Any) -> None:
        self._content, self._broken, self._rest = io.BytesIO(content), broken, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        whole = size is None or size < 0
        found = self._content.read(-1 if whole else size)
        if found and not whole:
            return found
        if self._broken is not None:
            raise self._broken
        more: bytes = self._rest.read(None if whole else size, decode_content=False)
        return found + more

    read1 = read

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._rest.close()
            self._rest.release_conn()
        super().close()


def _replayed(raw: Any, content: bytes, broken: Exception | None, method: str) -> Any:
    from urllib3 import HTTPResponse

    return HTTPResponse(
        body=_Replay(content, broken, raw),
        headers=raw.headers,
        status=raw.status,
        version=raw.version,
        reason=raw.reason,
        preload_content=False,
        decode_content=raw.decode_content,
        original_response=getattr(raw, "_original_response", None),  # cookies are read from it
        request_method=method,
    )


@functools.cache
def _adapter_type() -> type[Any]:
    from requests.adapters import HTTPAdapter

    class Adapter(HTTPAdapter):
        """An adapter that sends through a runtime."""

        def __init__(self, gate: Gate, wrapped: Any, options: Mapping[str, Any]) -> None:
            super().__init__(**options)
            self.gate, self.wrapped = gate, wrapped

        def send(self, request: Any, *args: Any, **options: Any) -> Any:
            given = dict(
                zip(("stream", "timeout", "verify", "cert", "proxies"), args, strict=False)
            )
            inner = super().send if self.wrapped is None else self.wrapped.send
            exchange = _Exchange(request, inner, {**given, **options})
            return self.gate.pass_through(exchange)

        def close(self) -> None:
            super().close()
            if self.wrapped is not None:
                self.wrapped.close()

    return Adapter


@functools.cache
def _not_sent_type() -> type[Any]:
    import requests

    class NotSent(requests.ConnectionError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""

    NotSent.__module__, NotSent.__qualname__ = __name__, "NotSent"
    return NotSent


if TYPE_CHECKING:

    class NotSent(requests.ConnectionError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""


def __getattr__(name: str) -> Any:
    if name != "NotSent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = _not_sent_type()
    return found
