"""`Reply`: what the fault server does with one request; `Fault`: short words for the usual ones."""

import json as _json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from failwise.faults.requests import Request
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

MANY_BYTES = 10_000_000
MOST_BYTES = 100_000_000

_JSON = "application/json"
_HTML = "text/html; charset=utf-8"


@record
class Effect:
    """A side effect that the server really does: a line in its ledger.

    `data`: what to note (None: the request's JSON body). `after`: seconds until it lands, which
    may be after the answer, or after the client has gone.
    """

    name: str
    data: Any = None
    after: float = 0.0


@record
class Reply:
    """What happens to one request, from the effect to the last byte.

    In this order: `effect` is done; `delay` seconds pass (less when the client hangs up); then
    `raw` bytes are sent as they are, or else a status line, headers and `body`. `promised` is the
    Content-Length to claim (None: the true one); `chunked` sends chunks, the last one broken if
    `broken_chunk`. `pace` sends (that many bytes, every so many seconds). `ending`: ``keep`` the
    connection for further requests, ``close`` it, ``reset`` it (RST), or ``hold`` it open in silence
    until the client leaves. `answers` false: nothing is sent at all.
    """

    status: int = 200
    headers: Mapping[str, str] | None = None
    body: bytes = b""
    delay: float = 0.0
    effect: Effect | None = None
    raw: bytes | None = None
    promised: int | None = None
    chunked: bool = False
    broken_chunk: bool = False
    pace: tuple[int, float] | None = None
    ending: Literal["keep", "close", "reset", "hold"] = "keep"
    answers: bool = True

    @property
    def sound(self) -> bool:
        """True when the client can read a complete HTTP answer."""
        return self.answers and self.ending == "keep" and self.raw is None and not self.broken_chunk


Script: TypeAlias = Reply | Callable[[Request, int], Reply]
"""One entry of a route: a reply, or a function of the request and its number (from 1)."""


class Fault:
    """The usual ways in which an upstream answers, or fails to. Each gives a `Reply`.

    Every method takes `headers` to add and `delay` (seconds before the answer) where it answers.
    """

    @staticmethod
    def json(
        value: Any,
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> Reply:
        """A sound JSON answer."""
        return _reply(status, _encode(value), _JSON, headers, delay)

    @staticmethod
    def text(
        text: str,
        status: int = 200,
        *,
        content_type: str = "text/plain; charset=utf-8",
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> Reply:
        """Any text under any content type, for example JSON called ``text/html``."""
        return _reply(status, text.encode(), content_type, headers, delay)

    @staticmethod
    def html(
        text: str = "<!doctype html><html><head><title>Sign in</title></head><body></body></html>",
        status: int = 200,
        *,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> Reply:
        """An HTML page, such as a login page where JSON was expected."""
        return _reply(status, text.encode(), _HTML, headers, delay)

    @staticmethod
    def status(
        status: int,
        *,
        json: Any = None,
        html: str | None = None,
        text: str | None = None,
        retry_after: float | str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> Reply:
        """An answer with this status: a page like a proxy's unless `json`, `html` or `text` is given.

        `retry_after` is sent as the header, seconds or an HTTP date.
        """
        own = dict(headers or {})
        if retry_after is not None:
            told = retry_after
            own["Retry-After"] = told if isinstance(told, str) else f"{told:g}"
        if json is not None:
            return _reply(status, _encode(json), _JSON, own, delay)
        if text is not None:
            return _reply(status, text.encode(), "text/plain; charset=utf-8", own, delay)
        return _reply(status, (html or _page(status)).encode(), _HTML, own, delay)

    @staticmethod
    def huge_html(status: int = 502, size: int = MANY_BYTES) -> Reply:
        """An HTML page of `size` bytes."""
        if not 0 < size <= MOST_BYTES:
            raise UsageError(f"huge_html(size={size}): from 1 to {MOST_BYTES} bytes")
        head, tail = _page(status).encode().split(b"</body>")
        filler = b"<p>The server is not available.</p>\n"
        room = max(0, size - len(head) - len(tail) - len(b"</body>"))
        body = head + (filler * (room // len(filler) + 1))[:room] + b"</body>" + tail
        return _reply(status, body, _HTML, None, 0.0)

    @staticmethod
    def mislabelled(
        value: Any, encoding: str = "gbk", label: str = "utf-8", status: int = 200
    ) -> Reply:
        """JSON in one encoding under the label of another: GBK that says it is UTF-8."""
        body = _json.dumps(value, ensure_ascii=False).encode(encoding)
        return _reply(status, body, f"{_JSON}; charset={label}", None, 0.0)

    @staticmethod
    def empty(status: int = 200, content_type: str = _JSON) -> Reply:
        """No body where one was promised."""
        return _reply(status, b"", content_type, None, 0.0)

    @staticmethod
    def cut_off(value: Any, share: float = 0.5, status: int = 200) -> Reply:
        """JSON that ends in the middle although HTTP says it is complete."""
        body = _encode(value)
        return _reply(status, body[: int(len(body) * share)], _JSON, None, 0.0)

    @staticmethod
    def truncated(value: Any, share: float = 0.5, status: int = 200) -> Reply:
        """The connection closes before the promised Content-Length has been sent."""
        body = _encode(value)
        whole = _reply(status, body[: int(len(body) * share)], _JSON, None, 0.0)
        return replace(whole, promised=len(body), ending="close")

    @staticmethod
    def broken_chunks(value: Any, status: int = 200) -> Reply:
        """Chunked transfer with a chunk whose size is no number."""
        whole = _reply(status, _encode(value), _JSON, None, 0.0)
        return replace(whole, chunked=True, broken_chunk=True, ending="close")

    @staticmethod
    def chunked(value: Any, status: int = 200) -> Reply:
        """A sound answer in chunks, without a length."""
        return replace(_reply(status, _encode(value), _JSON, None, 0.0), chunked=True)

    @staticmethod
    def trickle(value: Any, *, size: int = 1, every: float = 0.1, status: int = 200) -> Reply:
        """A sound JSON answer, `size` bytes every `every` seconds."""
        return replace(_reply(status, _encode(value), _JSON, None, 0.0), pace=(size, every))

    @staticmethod
    def slow(seconds: float, then: Reply) -> Reply:
        """`then`, after so many seconds more."""
        return replace(then, delay=then.delay + seconds)

    @staticmethod
    def silent() -> Reply:
        """Read the request and never answer: the client's read timeout."""
        return Reply(answers=False, ending="hold")

    @staticmethod
    def reset(delay: float = 0.0) -> Reply:
        """Read the request, then reset the connection (RST)."""
        return Reply(answers=False, ending="reset", delay=delay)

    @staticmethod
    def close(delay: float = 0.0) -> Reply:
        """Read the request, then close the connection without an answer."""
        return Reply(answers=False, ending="close", delay=delay)

    @staticmethod
    def garbage(raw: bytes = b"\x15\x03\x01\x00\x02\x02\x28 SSH-2.0-OpenSSH_9.9\r\n") -> Reply:
        """Bytes that are not HTTP."""
        return Reply(raw=raw, ending="close")

    @staticmethod
    def effect(name: str, then: Reply, *, data: Any = None, after: float = 0.0) -> Reply:
        """Do the effect (a line in `server.ledger`), then whatever `then` does.

        `after` seconds later, where it lands late. `data` is noted; None notes the request's JSON.
        """
        return replace(then, effect=Effect(name, data, after))


def _encode(value: Any) -> bytes:
    return _json.dumps(value, ensure_ascii=False).encode()


def _reply(
    status: int,
    body: bytes,
    content_type: str,
    headers: Mapping[str, str] | None,
    delay: float,
) -> Reply:
    if not 100 <= status <= 999:
        raise UsageError(f"status {status}: an HTTP status has three digits")
    own = {"Content-Type": content_type, **(headers or {})}
    for name, value in own.items():
        if any(mark in name + value for mark in "\r\n"):
            raise UsageError(f"header {name!r}: no line breaks; use Reply(raw=...) to break HTTP")
    return Reply(status, own, body, delay)


def _page(status: int) -> str:
    title = f"{status} {phrase(status)}"
    return (
        f"<!doctype html><html><head><title>{title}</title></head>"
        f"<body><center><h1>{title}</h1></center><hr><center>nginx</center></body></html>"
    )


def phrase(status: int) -> str:
    """The reason phrase of a status, as in RFC 9110; empty for one that has none."""
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
