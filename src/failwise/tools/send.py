"""The two senders: an `HttpRequest` over httpx, in a thread or on a loop.

One client a process (sync) or a loop (async) and TLS setting, so that connections are reused. None
outlives its loop: an async client is closed when asyncio shuts its loop's generators down. Cookies
are never kept: clients are shared by tools, and tools by tenants.
"""

import atexit
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeAlias

from failwise.tools.answer import HttpAnswer, HttpRequest
from failwise.vocabulary.spec import CallContext

if TYPE_CHECKING:
    import asyncio
    import ssl

    import httpx

_ENVIRONMENT = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
_KEPT_CONNECTIONS = 100

_Settings: TypeAlias = "tuple[int, str | None, tuple[str | None, ...]]"
_LoopClients: TypeAlias = "dict[_Settings, tuple[httpx.AsyncClient, AsyncIterator[None]]]"

_clients: "dict[_Settings, httpx.Client]" = {}


class _LoopClientsOfThread(threading.local):
    """A loop runs in one thread, so that its clients are nobody else's to see."""

    def __init__(self) -> None:
        self.by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = (
            weakref.WeakKeyDictionary()
        )


_loops = _LoopClientsOfThread()


def send(request: HttpRequest, context: CallContext) -> HttpAnswer:
    """Send a request and read its answer within the limits.

    httpx's exceptions pass as they are; one raised while the body was read carries what had
    arrived as its attribute ``answer``.
    """
    began = time.perf_counter()
    client = _client(request)
    while True:
        sent = _prepared(client, request, context)
        response = client.send(sent, stream=True)
        try:
            following = request.redirected(response.status_code, response.headers.get("location"))
            if following is None:
                body = _Body(request, response, context, began)
                try:
                    for chunk in response.iter_bytes():
                        if body.full(chunk):
                            break
                except Exception as error:
                    body.note(error)
                    raise
                return body.answer()
            request = following
        finally:
            response.close()


async def send_async(request: HttpRequest, context: CallContext) -> HttpAnswer:
    """`send`, on the running loop."""
    began = time.perf_counter()
    client = await _async_client(request)
    while True:
        sent = _prepared(client, request, context)
        response = await client.send(sent, stream=True)
        try:
            following = request.redirected(response.status_code, response.headers.get("location"))
            if following is None:
                body = _Body(request, response, context, began)
                try:
                    async for chunk in response.aiter_bytes():
                        if body.full(chunk):
                            break
                except Exception as error:
                    body.note(error)
                    raise
                return body.answer()
            request = following
        finally:
            await response.aclose()


class _Body:
    """An answer's body as it arrives, up to the size limit and the time limit."""

    __slots__ = ("_began", "_content", "_context", "_request", "_response", "_too_large")

    def __init__(
        self, request: HttpRequest, response: "httpx.Response", context: CallContext, began: float
    ) -> None:
        self._request = request
        self._response = response
        self._context = context
        self._began = began
        self._content = bytearray()
        self._too_large = False

    def full(self, chunk: bytes) -> bool:
        """Take a chunk; True once nothing more is wanted. Raises `httpx.ReadTimeout`."""
        room = self._request.max_response_bytes - len(self._content)
        self._content += chunk[:room]
        self._too_large = len(chunk) > room
        if not self._too_large and self._context.remaining == 0.0:
            import httpx

            # each read was in time, the whole is not: a dripping server
            raise httpx.ReadTimeout("the answer took too long", request=self._response.request)
        return self._too_large

    def answer(self) -> HttpAnswer:
        response = self._response
        return HttpAnswer(
            response.status_code,
            response.headers,
            bytes(self._content),
            reason=response.reason_phrase,
            method=self._request.method,
            url=str(response.url),
            expects=self._request.expects,
            too_large=self._too_large,
            elapsed_ms=(time.perf_counter() - self._began) * 1000,
        )

    def note(self, error: Exception) -> None:
        """Give the exception what had arrived: the status tells what became of the effect."""
        error.answer = self.answer()  # type: ignore[attr-defined]


def _prepared(
    client: "httpx.Client | httpx.AsyncClient", request: HttpRequest, context: CallContext
) -> "httpx.Request":
    import httpx

    remaining = context.remaining

    def cut(limit: float | None) -> float | None:
        if remaining is None:
            return limit
        return max(0.001, remaining if limit is None else min(limit, remaining))

    timeout = httpx.Timeout(
        connect=cut(request.connect_timeout),
        read=cut(request.read_timeout),
        write=cut(request.write_timeout),
        pool=cut(request.connect_timeout),
    )
    headers = [(name, value.encode("utf-8")) for name, value in request.headers.items()]
    own = {name.lower() for name, _ in headers}
    headers += [
        (name, value.encode("utf-8"))
        for name, value in context.headers.items()
        if name.lower() not in own
    ]
    return client.build_request(
        request.method,
        request.url,
        headers=[(name.encode("ascii"), value) for name, value in headers],
        content=request.content,
        timeout=timeout,
    )


def _settings(request: HttpRequest) -> "_Settings":
    return os.getpid(), request.ca_file, tuple(map(os.environ.get, _ENVIRONMENT))


def _client_options(request: HttpRequest) -> dict[str, Any]:
    import http.cookiejar

    import httpx

    nobody = http.cookiejar.DefaultCookiePolicy(allowed_domains=[])
    return {
        "verify": _trust(request.ca_file),
        "follow_redirects": False,
        "cookies": http.cookiejar.CookieJar(nobody),
        # the guards limit how many calls run at once: a second limit here would only hide a wait
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
    }


def _trust(ca_file: str | None) -> "ssl.SSLContext":
    """Whom to trust: the given file only; else SSL_CERT_FILE or SSL_CERT_DIR; else the system's.

    A failed handshake leaves the peer's chain on its exception: nobody connects again to look.
    """
    import ssl

    from failwise.evidence.tls import capturing_context

    return capturing_context(ssl.create_default_context(cafile=ca_file))


def _client(request: HttpRequest) -> "httpx.Client":
    settings = _settings(request)
    client = _clients.get(settings)
    if client is None:
        import httpx

        made = httpx.Client(**_client_options(request))
        client = _clients.setdefault(settings, made)
        if client is not made:
            made.close()
    return client


async def _async_client(request: HttpRequest) -> "httpx.AsyncClient":
    import asyncio

    loop = asyncio.get_running_loop()
    clients = _loops.by_loop.get(loop)
    if clients is None:
        for other in [one for one in _loops.by_loop if one.is_closed()]:
            del _loops.by_loop[other]
        clients = _loops.by_loop[loop] = {}
    settings = _settings(request)
    found = clients.get(settings)
    if found is not None and not found[0].is_closed:
        return found[0]
    import httpx

    client = httpx.AsyncClient(**_client_options(request))
    lifetime = _closed_with_loop(client)
    clients[settings] = client, lifetime
    await anext(lifetime)
    return client


async def _closed_with_loop(client: "httpx.AsyncClient") -> AsyncIterator[None]:
    """A generator left open on purpose: asyncio finishes it when the loop shuts down."""
    try:
        yield
    finally:
        await client.aclose()


def close_clients() -> None:
    """Close this process's sync clients; the next request opens a new one."""
    for settings in [one for one in _clients if one[0] == os.getpid()]:
        client = _clients.pop(settings, None)
        if client is not None:
            client.close()


atexit.register(close_clients)
