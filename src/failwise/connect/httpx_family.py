"""httpx and httpx2 alike: transports that send through a runtime. Either library is given as a module."""

import functools
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from types import ModuleType
from typing import Any

from failwise.connect.bodies import BEGINNING, READING_SECONDS, refusal
from failwise.connect.transport import Gate
from failwise.tools.answer import HttpAnswer
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record


@record
class Family:
    """The classes made for one library."""

    transport: type[Any]
    async_transport: type[Any]
    not_sent: type[Any]


class _Exchange:
    """A request of httpx. Its transport's `send` is one attempt."""

    __slots__ = (
        "_inner", "_kinds", "error", "host", "method", "replayable", "request",
        "response", "url",
    )  # fmt: skip

    def __init__(self, request: Any, inner: Any, kinds: "_Kinds") -> None:
        self.request, self._inner, self._kinds = request, inner, kinds
        url = request.url
        self.method = request.method
        self.url = str(url)
        self.host = url.netloc.decode("ascii", "replace").lower()
        # Content that is at hand can be sent again; a file or a generator is gone once it was read.
        if not hasattr(request, "_content") and isinstance(
            request.stream, kinds.library.ByteStream
        ):
            request.read()  # a redirected request has its content still in a stream
        self.replayable = hasattr(request, "_content")
        self.response: Any = None
        self.error: BaseException | None = None

    @property
    def path(self) -> str:
        path: str = self.request.url.path
        return path

    def body(self) -> bytes | None:
        return (self.request.content or None) if self.replayable else None

    def header(self, name: str) -> str | None:
        value: str | None = self.request.headers.get(name)
        return value

    def set_header(self, name: str, value: str) -> None:
        self.request.headers[name] = value

    def limit(self, seconds: float) -> None:
        seconds = max(0.001, seconds)
        given = self.request.extensions.get("timeout") or {}
        cut = {
            phase: seconds if given.get(phase) is None else min(given[phase], seconds)
            for phase in ("connect", "read", "write", "pool")
        }
        self.request.extensions = {**self.request.extensions, "timeout": cut}

    def status(self) -> int:
        status: int = self.response.status_code
        return status

    def not_sent(self, text: str) -> Exception:
        made: Exception = self._kinds.not_sent(text, request=self.request)
        return made

    def expired(self, text: str) -> Exception:
        error: Exception = self._kinds.library.ReadTimeout(text, request=self.request)
        return error

    def _refusal(self, content: bytes) -> HttpAnswer:
        answer = self.response
        return refusal(answer.status_code, answer.headers, content, self.method, self.url, raw=True)


class _SyncExchange(_Exchange):
    __slots__ = ()

    def send(self) -> Any:
        return self._inner.handle_request(self.request)

    def discard(self) -> None:
        self.response.close()

    def beginning(self) -> HttpAnswer:
        stream = self.response.stream
        pieces, rest, until = _Pieces(), iter(stream), time.monotonic() + READING_SECONDS
        try:
            while pieces.wanted and time.monotonic() < until:
                pieces.add(next(rest))
        except StopIteration:
            pass
        except Exception as error:
            pieces.broken = error
        self.response.stream = self._kinds.replay(pieces, rest, stream)
        return self._refusal(pieces.joined)


class _AsyncExchange(_Exchange):
    __slots__ = ()

    async def send(self) -> Any:
        return await self._inner.handle_async_request(self.request)

    async def discard(self) -> None:
        await self.response.aclose()

    async def beginning(self) -> HttpAnswer:
        stream = self.response.stream
        pieces, rest, until = _Pieces(), aiter(stream), time.monotonic() + READING_SECONDS
        try:
            while pieces.wanted and time.monotonic() < until:
                pieces.add(await anext(rest))
        except StopAsyncIteration:
            pass
        except Exception as error:
            pieces.broken = error
        self.response.stream = self._kinds.replay_async(pieces, rest, stream)
        return self._refusal(pieces.joined)


class _Pieces:
    """What was read of a body ahead of its reader; `broken` is what ended it."""

    __slots__ = ("broken", "read", "size")

    def __init__(self) -> None:
        self.read: list[bytes] = []
        self.size = 0
        self.broken: Exception | None = None

    @property
    def wanted(self) -> bool:
        return self.size < BEGINNING

    def add(self, piece: bytes) -> None:
        self.read.append(piece)
        self.size += len(piece)

    @property
    def joined(self) -> bytes:
        return b"".join(self.read)[:BEGINNING]


class _Kinds:
    """What is derived from the classes of one library."""

    def __init__(self, library: ModuleType) -> None:
        self.library = library
        self.not_sent = _not_sent(library)
        self.replay, self.replay_async = _replays(library)


def _not_sent(library: ModuleType) -> type[Any]:
    base: Any = library.ConnectError

    class NotSent(base):  # type: ignore[misc]
        """The runtime declined to send: an open circuit, a shared cool-down, a stopped run.

        A `ConnectError`, since nothing has left; `result_of` tells why, and when it may be tried again.
        """

    NotSent.__module__, NotSent.__qualname__ = f"failwise.connect.{library.__name__}", "NotSent"
    return NotSent


def _replays(library: ModuleType) -> tuple[type[Any], type[Any]]:
    """Bodies whose beginning was read ahead: the reader gets every byte, in order."""
    sync_base: Any = library.SyncByteStream
    async_base: Any = library.AsyncByteStream

    class Replay(sync_base):  # type: ignore[misc]
        def __init__(self, pieces: _Pieces, rest: Iterator[bytes], stream: Any) -> None:
            self._pieces, self._rest, self._stream = pieces, rest, stream

        def __iter__(self) -> Iterator[bytes]:
            yield from self._pieces.read
            if self._pieces.broken is not None:
                raise self._pieces.broken
            yield from self._rest

        def close(self) -> None:
            self._stream.close()

    class AsyncReplay(async_base):  # type: ignore[misc]
        def __init__(self, pieces: _Pieces, rest: AsyncIterator[bytes], stream: Any) -> None:
            self._pieces, self._rest, self._stream = pieces, rest, stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self._pieces.read:
                yield piece
            if self._pieces.broken is not None:
                raise self._pieces.broken
            async for piece in self._rest:
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Replay, AsyncReplay


@functools.cache
def family(library: ModuleType) -> Family:
    """The transports for a library, made once."""
    kinds = _Kinds(library)
    sync_base: Any = library.BaseTransport
    async_base: Any = library.AsyncBaseTransport

    class Transport(sync_base):  # type: ignore[misc]
        """A transport that sends through a runtime."""

        def __init__(self, gate: Gate, inner: Any) -> None:
            self.gate, self.inner = gate, inner

        def handle_request(self, request: Any) -> Any:
            return self.gate.pass_through(_SyncExchange(request, self.inner, kinds))

        def __enter__(self) -> Any:
            self.inner.__enter__()
            return self

        def __exit__(self, *error: Any) -> None:
            self.inner.__exit__(*error)

        def close(self) -> None:
            self.inner.close()

    class AsyncTransport(async_base):  # type: ignore[misc]
        """A transport that sends through a runtime, on the running loop."""

        def __init__(self, gate: Gate, inner: Any) -> None:
            self.gate, self.inner = gate, inner

        async def handle_async_request(self, request: Any) -> Any:
            return await self.gate.pass_through_async(_AsyncExchange(request, self.inner, kinds))

        async def __aenter__(self) -> Any:
            await self.inner.__aenter__()
            return self

        async def __aexit__(self, *error: Any) -> None:
            await self.inner.__aexit__(*error)

        async def aclose(self) -> None:
            await self.inner.aclose()

    return Family(Transport, AsyncTransport, kinds.not_sent)


def transport(library: ModuleType, wrapped: Any, options: Mapping[str, Any]) -> Any:
    """`failwise.connect.httpx.transport`, for either library."""
    gate, rest = _gate(options)
    return family(library).transport(gate, _inner(wrapped, rest, library.HTTPTransport))


def async_transport(library: ModuleType, wrapped: Any, options: Mapping[str, Any]) -> Any:
    """`failwise.connect.httpx.async_transport`, for either library."""
    gate, rest = _gate(options)
    return family(library).async_transport(gate, _inner(wrapped, rest, library.AsyncHTTPTransport))


_GATE = ("runtime", "idempotency_key", "declare", "profile", "upstream")


def _gate(options: Mapping[str, Any]) -> tuple[Gate, dict[str, Any]]:
    given = {key: value for key, value in options.items() if key in _GATE}
    runtime = given.pop("runtime", None)
    return Gate(runtime, **given), {k: v for k, v in options.items() if k not in _GATE}


def _inner(wrapped: Any, options: dict[str, Any], kind: Any) -> Any:
    if options.get("retries"):
        raise UsageError(
            f"retries={options['retries']}: the runtime repeats, and both would multiply: drop it"
        )
    if wrapped is None:
        return kind(**options)
    if options:
        raise UsageError(
            f"{min(options)}=: it belongs to the transport that is made; wrapped= is made already"
        )
    return wrapped


def attach(library: ModuleType, client: Any, options: Mapping[str, Any]) -> Any:
    """`failwise.connect.httpx.attach`, for either library."""
    made = family(library)
    if isinstance(client, library.Client):
        kind = made.transport
    elif isinstance(client, library.AsyncClient):
        kind = made.async_transport
    else:
        raise UsageError(f"attach({client!r}): give a {library.__name__} Client or AsyncClient")
    gate, rest = _gate(options)
    if rest:
        raise UsageError(f"attach(): unknown option {min(rest)!r}; options are {', '.join(_GATE)}")

    def through(inner: Any) -> Any:
        return inner if inner is None or isinstance(inner, kind) else kind(gate, inner)

    # The client chose its transports by its own options (proxies, certificates): they stay inside.
    client._transport = through(client._transport)
    client._mounts = {pattern: through(inner) for pattern, inner in client._mounts.items()}
    return client
