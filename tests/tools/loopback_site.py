"""A small HTTP server on loopback whose answers a test writes, and which remembers requests."""

import contextlib
import http.server
import ssl
import threading
from collections.abc import Callable
from typing import Any

Handler = Callable[["Request"], None]


class Request(http.server.BaseHTTPRequestHandler):
    """One request as a route sees it; `reply` answers it."""

    protocol_version = "HTTP/1.1"
    body: bytes

    def handle_request(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server: Any = self.server
        server.site.requests.append(self)
        route = server.site.routes.get(self.path.partition("?")[0], server.site.default)
        with contextlib.suppress(OSError):
            route(self)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_request

    def reply(
        self,
        content: bytes = b"{}",
        status: int = 200,
        content_type: str | None = "application/json",
        **headers: str,
    ) -> None:
        self.send_response(status)
        if content_type is not None:
            self.send_header("Content-Type", content_type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


class Site:
    """The server: `routes` by path, `requests` seen so far, `connections` opened."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.routes: dict[str, Handler] = {}
        self.default: Handler = lambda request: request.reply()
        self.requests: list[Request] = []
        self.connections: set[Any] = set()
        self.released = threading.Event()
        site = self

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def process_request(self, request: Any, client_address: Any) -> None:
                site.connections.add(client_address)
                super().process_request(request, client_address)

            def handle_error(self, request: Any, client_address: Any) -> None: ...

        self.server = Server(("127.0.0.1", 0), Request)
        self.server.site = self  # type: ignore[attr-defined]
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if tls is not None:
            # the handshake is the handler thread's: a client that breaks it off is counted too
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
            self.url = f"https://localhost:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def hang(self, request: Request) -> None:
        """A route that does not answer while the test runs."""
        self.released.wait(10)

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
