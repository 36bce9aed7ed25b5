"""The proxy over stdio and over HTTP."""

import asyncio
import contextlib
import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from failwise.connect.proxy.front import Proxy
from failwise.connect.proxy.statusfile import reported
from failwise.vocabulary.errors import UsageError

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


async def serve_stdio(proxy: Proxy, folder: Path) -> None:
    """Serve one host over standard input and output, until it hangs up."""
    async with proxy, reported(proxy, folder), stdio_server() as (read, write):
        options = proxy.server.create_initialization_options(
            NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        )
        await proxy.server.run(read, write, options)


async def serve_http(
    proxy: Proxy,
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    allowed_hosts: tuple[str, ...] = (),
    began: Callable[[int], Any] | None = None,
    dashboard: Any = None,
) -> None:
    """Serve hosts over streamable HTTP at ``/mcp`` until cancelled. `began` is told the port.
    `dashboard`: an ASGI application, with a gate of its own, to serve below ``/dashboard``.

    Raises `UsageError` for another host than loopback without `token`.
    """
    import uvicorn

    served = app(proxy, host=host, token=token, allowed_hosts=allowed_hosts)
    server = uvicorn.Server(
        uvicorn.Config(
            served if dashboard is None else _Beside(served, "/dashboard", dashboard),
            host=host,
            port=port,
            log_level="warning",
            timeout_graceful_shutdown=5,
        )
    )
    async with proxy, reported(proxy, folder):
        serving = asyncio.ensure_future(server.serve())
        while not server.started and not serving.done():  # uvicorn tells nobody else
            await asyncio.wait({serving}, timeout=0.02)
        if began is not None and server.started:
            began(int(server.servers[0].sockets[0].getsockname()[1]))
        try:
            await serving
        except asyncio.CancelledError:
            server.should_exit = True
            with contextlib.suppress(Exception):
                await serving
            raise


def app(
    proxy: Proxy,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    allowed_hosts: tuple[str, ...] = (),
) -> Any:
    """The proxy as an ASGI application; enter `proxy` on the same loop.

    ``Host`` and ``Origin`` are checked: loopback names, and `allowed_hosts` (``name:port``, ``name:*``).
    With `token`, requests must say ``Authorization: Bearer TOKEN``. Raises `UsageError` for another
    host than loopback without one.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    if host not in LOOPBACK and not token:
        raise UsageError(
            f"host {host}: beyond this machine a token is needed; set FAILWISE_MCP_TOKEN"
        )
    names = ["127.0.0.1:*", "localhost:*", "[::1]:*", *allowed_hosts]
    if host not in (*LOOPBACK, "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        names.append(f"{host}:*")
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
    )
    inner = proxy.server.streamable_http_app(host=host, transport_security=security)
    return inner if token is None else _Guarded(inner, token)


class _Beside:
    """One application, and another one below a path."""

    def __init__(self, inner: Any, path: str, other: Any) -> None:
        self._inner, self._path, self._other = inner, path, other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and (path == self._path or path.startswith(f"{self._path}/")):
            base = scope.get("root_path", "") + self._path
            scope = {**scope, "root_path": base, "path": path if path != self._path else f"{path}/"}
            await self._other(scope, receive, send)
            return
        await self._inner(scope, receive, send)


class _Guarded:
    """Lets requests through that carry the token."""

    def __init__(self, inner: Any, token: str) -> None:
        self._inner, self._token = inner, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._token):
                body = b'{"error": "say Authorization: Bearer TOKEN"}'
                headers = [
                    (b"content-type", b"application/json"),
                    (b"www-authenticate", b"Bearer"),
                    (b"content-length", str(len(body)).encode()),
                ]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": body})
                return
        await self._inner(scope, receive, send)
