"""One connection of the fault server: reads requests, and misbehaves exactly as a `Reply` says."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from urllib.parse import parse_qsl, unquote, urlsplit

from failwise.faults.replies import Reply, phrase
from failwise.faults.requests import Request

HEAD_LIMIT = 65_536
"""Bytes of a request's first line and headers."""

BODY_LIMIT = 1_048_576
"""Bytes of a request's body."""

_CHUNK = 65_536


class _Broken(Exception):
    """The client's request cannot be read: answered with this status, then closed."""

    def __init__(self, status: int) -> None:
        self.status = status


class Connection:
    """A client's socket with what has been read ahead. Used by one thread; closed by any."""

    def __init__(self, raw: socket.socket, listener: str, number: int) -> None:
        self.socket = raw
        self._listener = listener
        self._number = number
        self._read_ahead = bytearray()

    def serve(self, answer: Callable[[Request], Reply]) -> None:
        """Requests one after another, until either side ends it."""
        try:
            while (request := self._read()) is not None:
                if not self._perform(request, answer(request)):
                    return
        except _Broken as broken:
            with contextlib.suppress(OSError):
                self._send(Reply(broken.status, None, b"", ending="close"), "GET")
        except OSError:
            pass  # the client is gone, or the server is closing: there is nobody to tell

    def close(self) -> None:
        """End the connection, also under a thread that reads or waits on it."""
        with contextlib.suppress(OSError):
            # The plain socket's method: TLS state belongs to the thread that uses it.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    # Reading

    def _read(self) -> Request | None:
        head = self._read_head()
        if head is None:
            return None
        try:
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, version = first.split(" ")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            parts = urlsplit(target)
            length = int(headers.get("content-length", "0"))
        except ValueError:
            raise _Broken(400) from None
        if not version.startswith("HTTP/1.") or length < 0:
            raise _Broken(400)
        if headers.get("expect", "").lower() == "100-continue":
            self.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._read_chunks()
        elif length > BODY_LIMIT:
            raise _Broken(413)
        else:
            body = self._take(length)
        return Request(
            method=method,
            path=unquote(parts.path) or "/",
            target=target,
            query=dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=1000)),
            headers=headers,
            body=body,
            time=time.monotonic(),
            listener=self._listener,
            connection=self._number,
            parameters={},
        )

    def _read_head(self) -> bytes | None:
        while (end := self._read_ahead.find(b"\r\n\r\n")) < 0:
            if len(self._read_ahead) > HEAD_LIMIT:
                raise _Broken(431)
            if not self._more():
                return None
        head = bytes(self._read_ahead[:end])
        del self._read_ahead[: end + 4]
        return head

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            while (end := self._read_ahead.find(b"\r\n")) < 0:
                if len(self._read_ahead) > HEAD_LIMIT or not self._more():
                    raise _Broken(400)
            line = self._take(end + 2)
            try:
                size = int(line.partition(b";")[0].strip(), 16)
            except ValueError:
                raise _Broken(400) from None
            if size < 0 or len(body) + size > BODY_LIMIT:
                raise _Broken(413)
            body += self._take(size)
            self._take(2)
            if size == 0:
                return bytes(body)

    def _take(self, size: int) -> bytes:
        while len(self._read_ahead) < size:
            if not self._more():
                raise _Broken(400)
        taken = bytes(self._read_ahead[:size])
        del self._read_ahead[:size]
        return taken

    def _more(self) -> bool:
        data = self.socket.recv(_CHUNK)
        self._read_ahead += data
        return bool(data)

    # Answering

    def _perform(self, request: Request, reply: Reply) -> bool:
        """Do what the reply says; True when the connection serves further requests."""
        if reply.delay > 0 and not self._pause(reply.delay):
            return False
        if reply.answers:
            self._send(reply, request.method)
        if reply.ending == "hold":
            self._pause(None)
        elif reply.ending == "reset":
            # Zero linger: close() sends RST and throws away what was not yet sent.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        keeps = request.headers.get("connection", "").lower() != "close"
        return reply.ending == "keep" and keeps

    def _pause(self, seconds: float | None) -> bool:
        """Let time pass (None: without end); False as soon as the client has hung up."""
        until = None if seconds is None else time.monotonic() + seconds
        try:
            while until is None or (left := until - time.monotonic()) > 0:
                self.socket.settimeout(None if until is None else left)
                if not self._more() or len(self._read_ahead) > HEAD_LIMIT + BODY_LIMIT:
                    return False
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(None)
        return True

    def _send(self, reply: Reply, method: str) -> None:
        if reply.raw is not None:
            self.socket.sendall(reply.raw)
            return
        bodiless = method == "HEAD" or reply.status in {204, 304} or reply.status < 200
        body = b"" if bodiless else reply.body
        self.socket.sendall(_head(reply))
        if reply.chunked and not bodiless:
            body = _chunks(body, broken=reply.broken_chunk)
        if reply.pace is None:
            self.socket.sendall(body)
            return
        size, every = reply.pace
        for start in range(0, len(body), max(1, size)):
            if start and not self._pause(every):
                raise ConnectionAbortedError
            self.socket.sendall(body[start : start + max(1, size)])


def _head(reply: Reply) -> bytes:
    from email.utils import formatdate

    usual = {"Date": formatdate(usegmt=True)}
    if reply.chunked:
        usual["Transfer-Encoding"] = "chunked"
    elif reply.status not in {204, 304}:
        length = len(reply.body) if reply.promised is None else reply.promised
        usual["Content-Length"] = str(length)
    if reply.ending == "close":
        usual["Connection"] = "close"
    own = dict(reply.headers or {})
    given = {name.lower() for name in own}
    usual = {name: value for name, value in usual.items() if name.lower() not in given}
    lines = [f"HTTP/1.1 {reply.status} {phrase(reply.status)}"]
    lines += [f"{name}: {value}" for name, value in (usual | own).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")


def _chunks(body: bytes, *, broken: bool) -> bytes:
    half = len(body) // 2 or 1
    parts = [body[:half], body[half:]]
    sound = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)
    if not broken:
        return sound + b"0\r\n\r\n"
    return b"%x\r\n%b\r\nnot a length\r\n" % (half, body[:half])
