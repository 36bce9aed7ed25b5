"""Peers on loopback: raw sockets that misbehave in one way each."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

Handler = Callable[[socket.socket], None]


def _read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4_096)
        if not piece:
            return
        data += piece


def reset(connection: socket.socket) -> None:
    """Read the request, then cut the connection with a TCP reset."""
    _read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def closed(connection: socket.socket) -> None:
    """Read the request, then close without an answer."""
    _read_request(connection)


def silent(connection: socket.socket) -> None:
    """Never answer; ends when the client goes away."""
    while connection.recv(4_096):
        pass


def truncated(connection: socket.socket) -> None:
    """Promise 100 bytes of JSON, and send 20."""
    _read_request(connection)
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        b'{"items": [1, 2, 3, '
    )


def slow_body(connection: socket.socket) -> None:
    """Begin an answer and never finish it."""
    _read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    silent(connection)


def garbage(connection: socket.socket) -> None:
    """Answer with something that is not HTTP."""
    _read_request(connection)
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


def looping(connection: socket.socket) -> None:
    """Redirect to the same place for ever."""
    _read_request(connection)
    connection.sendall(
        b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


def plain_http(connection: socket.socket) -> None:
    """Speak plain HTTP on a port where TLS is tried."""
    connection.recv(4_096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def answer(status: str, body: bytes, *headers: str) -> Handler:
    """An ordinary answer."""

    def handler(connection: socket.socket) -> None:
        _read_request(connection)
        lines = [
            f"HTTP/1.1 {status}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *headers,
        ]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return handler


class Peer:
    """A listening socket that treats each connection in its own thread, and counts them."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/path"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._handle, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _handle(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        try:
            self.handler(connection)
        except OSError:
            pass
        finally:
            connection.close()

    def close(self) -> None:
        self.listener.close()
        for thread in self.threads:
            thread.join(5)


@pytest.fixture
def peer() -> Iterator[Callable[[Handler], Peer]]:
    """Start a peer with a handler; closed at the end of the test."""
    started: list[Peer] = []

    def start(handler: Handler) -> Peer:
        started.append(Peer(handler))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
