"""A listening socket on loopback with a thread for each connection, all ended by `close`."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from failwise.faults.replies import Reply
from failwise.faults.requests import Request
from failwise.faults.wire import Connection

if TYPE_CHECKING:
    import ssl

HOST = "127.0.0.1"


class Listener:
    """Accepts on an ephemeral port; with `secured` it shakes hands first, with the context that
    `secured` gives for the plain socket (None: it refuses, and the connection ends).

    At most `most` connections are open at once; one more is closed at once. `accepted` counts all of them.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[[Request], Reply],
        *,
        most: int,
        secured: "Callable[[socket.socket], ssl.SSLContext | None] | None" = None,
    ) -> None:
        self.name = name
        self.accepted = 0
        self._answer = answer
        self._secured = secured
        self._most = most
        self._lock = threading.Lock()
        self._open: dict[Connection, threading.Thread] = {}
        self._closing = False
        self._socket = socket.create_server((HOST, 0), backlog=256)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(
            target=self._accept, name=f"failwise-faults-{name}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End every connection and every thread."""
        with self._lock:
            self._closing = True
        # Closing a socket does not wake a thread that accepts on it; a connection does.
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            pass
        self._thread.join(5)
        self._socket.close()
        with self._lock:
            connections = dict(self._open)
        for connection in connections:
            connection.close()
        for thread in connections.values():
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                if self._closing or len(self._open) >= self._most:
                    raw.close()
                    if self._closing:
                        return
                    continue
                self.accepted += 1
                connection = Connection(raw, self.name, self.accepted)
                thread = threading.Thread(
                    target=self._serve,
                    args=(connection,),
                    name=f"failwise-faults-{self.name}-{self.accepted}",
                    daemon=True,
                )
                self._open[connection] = thread
                thread.start()

    def _serve(self, connection: Connection) -> None:
        try:
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._secured is not None:
                context = self._secured(connection.socket)
                if context is None:
                    return
                connection.socket = context.wrap_socket(
                    connection.socket, server_side=True, do_handshake_on_connect=False
                )
                if self._closing:  # `close` may have found the socket as it was before
                    return
                connection.socket.do_handshake()
            connection.serve(self._answer)
        except OSError:
            pass  # the handshake failed: the client does not trust us, as a test wants it
        finally:
            with self._lock:
                self._open.pop(connection, None)
            connection.socket.close()
