"""Who may come in: the host that was meant, the origin a change comes from, tokens, and what every
answer tells the browser to forbid."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from failwise.vocabulary.errors import UsageError

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "::1")
Door: TypeAlias = Literal["pages", "raw"]
SHORTEST: Final = 16
"""Characters that a token must have."""

HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not "no-referrer": with it browsers send "Origin: null" along with forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_VISITOR: Final = "failwise_visitor"
_COOKIES: Final[Mapping[Door, str]] = {"pages": "failwise_pages", "raw": "failwise_raw"}


class Gate:
    """`token` opens the pages, `raw_token` the raw answers; None for no such door (the pages are then
    open, raw answers are shown to nobody). `hosts`: names, with or without port, besides loopback's, or
    ``*`` for any. Raises `UsageError` for tokens that are too short, or the same."""

    def __init__(
        self, token: str | None = None, raw_token: str | None = None, hosts: Sequence[str] = ()
    ) -> None:
        for name, one in (("token", token), ("raw_token", raw_token)):
            if one is not None and len(one) < SHORTEST:
                raise UsageError(
                    f"{name}: too short; write {SHORTEST} characters or more, such as "
                    "`python -c 'import secrets; print(secrets.token_urlsafe())'` gives"
                )
        if token is not None and token == raw_token:
            raise UsageError("raw_token: must be another one than token")
        self._tokens: dict[Door, str | None] = {"pages": token, "raw": raw_token}
        self._hosts = frozenset(host.lower() for host in (*LOOPBACK, *hosts))
        self._any = "*" in self._hosts
        # With a token all processes that know it agree; without one there is one process.
        self._secret = (token or secrets.token_urlsafe(32)).encode()

    def host_fits(self, host: str) -> bool:
        """The name in ``Host`` is one of this dashboard: a page of another name that resolves to this
        machine gets nothing."""
        if self._any:
            return True
        named = host.lower()
        bare = named.rpartition(":")[0] if not named.endswith("]") else named
        return named in self._hosts or (bare != "" and bare in self._hosts)

    def origin_fits(self, origin: str | None, host: str) -> bool:
        """Where a change comes from is this very place. Without ``Origin`` it is no browser."""
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()

    def guarded(self, door: Door) -> bool:
        """A token is needed there."""
        return self._tokens[door] is not None

    def opens(self, door: Door, given: str) -> bool:
        """The token fits; compared in constant time."""
        token = self._tokens[door]
        return token is not None and hmac.compare_digest(given.encode(), token.encode())

    def open_to(self, door: Door, cookies: Mapping[str, str], authorization: str = "") -> bool:
        """Whether a request may pass: it carries the cookie that `pass_for` gave, or the token."""
        token = self._tokens[door]
        if token is None:
            return door == "pages"
        if authorization.startswith("Bearer ") and self.opens(door, authorization[7:].strip()):
            return True
        given = cookies.get(_COOKIES[door], "")
        return hmac.compare_digest(given.encode(), self._pass(door).encode())

    def pass_for(self, door: Door) -> tuple[str, str]:
        """Name and value of the cookie for somebody who has told the token."""
        return _COOKIES[door], self._pass(door)

    def _pass(self, door: Door) -> str:
        token = self._tokens[door] or ""
        return hmac.new(token.encode(), f"failwise {door}".encode(), hashlib.sha256).hexdigest()

    def visitor(self, cookies: Mapping[str, str]) -> tuple[str, bool]:
        """The mark of this browser, and whether it is a new one that has to be set."""
        known = cookies.get(_VISITOR, "")
        if 20 <= len(known) <= 100 and known.isascii():
            return known, False
        return secrets.token_urlsafe(24), True

    @property
    def visitor_cookie(self) -> str:
        """The name of the cookie that holds the mark."""
        return _VISITOR

    def form_mark(self, visitor: str) -> str:
        """What a form of this visitor must carry along."""
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()

    def form_fits(self, cookies: Mapping[str, str], given: str) -> bool:
        """A form was made by this dashboard for this very browser."""
        visitor, new = self.visitor(cookies)
        return not new and hmac.compare_digest(given.encode(), self.form_mark(visitor).encode())


def cookies_of(header: str) -> dict[str, str]:
    """The cookies of a ``Cookie`` header; of one that cannot be read none."""
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header)
    except CookieError:
        return {}
    return {name: one.value for name, one in jar.items()}


class Headers:
    """An ASGI application whose answers carry `HEADERS`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [*message.get("headers", ()), *self._headers]
                if b"cache-control" not in names:
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        await self._inner(scope, receive, answer)
