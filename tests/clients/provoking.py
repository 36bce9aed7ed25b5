"""Peers that misbehave below HTTP, and a check of the verdict on what a client raised."""

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from failwise.classify import classify_exception
from failwise.vocabulary.failure import Failure

Handler = Callable[[socket.socket], None]


def refused_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def mute(connection: socket.socket) -> None:
    """Read, and never answer."""
    while connection.recv(4_096):
        pass


def reset(connection: socket.socket) -> None:
    """Read something, then cut the connection with a TCP reset."""
    connection.recv(4_096)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def greeting(data: bytes) -> Handler:
    """Speak first, once, then hang up."""

    def handler(connection: socket.socket) -> None:
        connection.sendall(data)

    return handler


def replying(answer: Callable[[bytes], bytes]) -> Handler:
    """Answer each piece that comes in."""

    def handler(connection: socket.socket) -> None:
        while data := connection.recv(65_536):
            connection.sendall(answer(data))

    return handler


@contextmanager
def peer(handler: Handler) -> Iterator[int]:
    """The port of a listener that treats each connection with `handler`."""
    listener = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            handler(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        for connection in open_ones:
            connection.close()


def raised(action: Callable[[], Any]) -> BaseException:
    """What `action` raises, or the coroutine that it gives."""
    try:
        given = action()
        if isinstance(given, Awaitable):
            asyncio.run(_awaited(given))
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


async def _awaited(given: Awaitable[Any]) -> Any:
    return await given


def judged(error: BaseException, code: str, effect: str) -> Failure:
    """The verdict on `error`, which has one of the codes and effects (``a|b``)."""
    failure = classify_exception(error)
    assert failure.code in code.split("|"), (failure.code, failure.rule, repr(error)[:300])
    assert failure.effect.value in effect.split("|"), (failure.effect, failure.rule)
    return failure
