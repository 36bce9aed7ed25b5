"""The beginning of a connection through a proxy: its ``CONNECT`` request (RFC 9110 section 9.3.6)."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

_HEAD_LIMIT = 16_384
_HOSTS_KEPT = 64


class Tunnel:
    """Answers a ``CONNECT`` and gives the TLS context with which to go on in that host's name."""

    def __init__(self, context_for: "Callable[[str], ssl.SSLContext]") -> None:
        self._context_for = context_for
        self._contexts: dict[str, ssl.SSLContext] = {}

    def __call__(self, plain: socket.socket) -> "ssl.SSLContext | None":
        """The context, or None (after a 405) for a request that is no ``CONNECT``."""
        host = _asked_for(plain)
        if host is None:
            plain.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return None
        context = self._contexts.get(host)
        if context is None:
            context = self._context_for(host)
            if len(self._contexts) < _HOSTS_KEPT:
                self._contexts[host] = context
        plain.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return context


def _asked_for(plain: socket.socket) -> str | None:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = plain.recv(4_096)
        head += piece
        if not piece or len(head) > _HEAD_LIMIT:
            return None
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    host = rest.partition(" ")[0].rpartition(":")[0].strip("[]")
    return host if method == "CONNECT" and host else None
