"""What goes out over HTTP and what comes back: `HttpRequest` and `HttpAnswer`, plain data."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from failwise.vocabulary.records import record

MAXIMUM_REDIRECTS = 3


@record
class HttpRequest:
    """One request, ready to send. Limits in seconds and bytes.

    `secret_headers` (lower case) are dropped where a redirect leads to another origin.
    `redirects` is how many more are followed. `ca_file` holds the only authorities trusted.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    secret_headers: frozenset[str] = frozenset()
    connect_timeout: float | None = 3.0
    read_timeout: float | None = 10.0
    write_timeout: float | None = 10.0
    max_response_bytes: int = 5_000_000
    redirects: int = 0
    ca_file: str | None = None
    expects: str | None = None

    def redirected(self, status: int, location: str | None) -> "HttpRequest | None":
        """The request that a redirect asks for; None where it is not to be followed.

        Only GET and HEAD follow, never from https to http. Another origin gets no credentials.
        """
        from dataclasses import replace

        if status not in (301, 302, 303, 307, 308) or not location or self.redirects <= 0:
            return None
        try:
            url = urljoin(self.url, location).partition("#")[0]
            here, there = urlsplit(self.url), urlsplit(url)
            same = _origin(here) == _origin(there) or (
                here.hostname == there.hostname and _upgraded(_origin(here), _origin(there))
            )
        except ValueError:
            return None
        if there.scheme not in ("http", "https") or not there.hostname or "@" in there.netloc:
            return None
        if here.scheme == "https" and there.scheme == "http":
            return None
        headers = self.headers
        if not same:
            headers = {
                name: value
                for name, value in headers.items()
                if name.lower() not in self.secret_headers
            }
        return replace(self, url=url, headers=headers, redirects=self.redirects - 1)


def _origin(parts: Any) -> tuple[str, str | None, int | None]:
    standard = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, parts.port or standard


def _upgraded(here: tuple[Any, ...], there: tuple[Any, ...]) -> bool:
    return (here[0], here[2]) == ("http", 80) and (there[0], there[2]) == ("https", 443)


# The charsets of the web. Python's other codecs (punycode, unicode_escape, ...) are none, and some
# take time that grows with the square of the length.
_CHARSETS = (
    "utf-8",
    "utf8",
    "utf-16",
    "utf-32",
    "us-ascii",
    "ascii",
    "iso-8859-",
    "latin",
    "windows-",
    "cp",
    "gb",
    "big5",
    "euc-",
    "iso-2022-",
    "shift_jis",
    "shift-jis",
    "koi8-",
    "hz-gb",
)


class _Unread:
    """The body was not parsed yet."""


_UNREAD: Final = _Unread()


class HttpAnswer:
    """An HTTP response as data: facts, no verdict.

    `headers` have lower-case names, repeated ones joined by commas. `content` is the decoded body,
    cut at the size limit where `too_large`. `expects` is the media type the tool promised,
    `expects_json` whether that is JSON. `elapsed_ms` counts from sending to the last byte.
    """

    __slots__ = (
        "_value",
        "content",
        "elapsed_ms",
        "expects",
        "expects_json",
        "headers",
        "method",
        "reason",
        "status",
        "too_large",
        "url",
    )

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        content: bytes = b"",
        *,
        reason: str = "",
        method: str = "GET",
        url: str = "",
        expects: str | None = None,
        too_large: bool = False,
        elapsed_ms: float = 0.0,
    ) -> None:
        self.status = status
        self.reason = reason
        self.method = method
        self.url = url
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.content = content
        self.expects = expects
        self.expects_json = is_json(expects) and method != "HEAD"
        self.too_large = too_large
        self.elapsed_ms = elapsed_ms
        self._value: Any = _UNREAD

    def __repr__(self) -> str:
        return f"<HttpAnswer {self.status} {self.method} {len(self.content)} bytes>"

    @property
    def media_type(self) -> str:
        """The content type without its parameters, lower case; empty where none was told."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text: by its charset, else UTF-8; what cannot be decoded is replaced."""
        try:
            return self.content.decode(self._charset(), "replace")
        except (LookupError, ValueError):
            return self.content.decode("utf-8", "replace")

    @property
    def value(self) -> Any:
        """The parsed JSON body, else its text; None where there is no body (204, HEAD).

        JSON is tried where the answer says so, says nothing, or the tool promised it.
        """
        if self._value is _UNREAD:
            self._value = self._read()
        return self._value

    def _read(self) -> Any:
        if not self.content:
            return None
        media_type = self.media_type
        if not media_type or is_json(media_type) or self.expects_json:
            try:
                return json.loads(self.text)
            except (ValueError, RecursionError):
                pass
        return self.text

    def _charset(self) -> str:
        if self.content.startswith(b"\xef\xbb\xbf"):
            return "utf-8-sig"
        for part in self.headers.get("content-type", "").split(";")[1:]:
            name, _, charset = part.partition("=")
            if name.strip().lower() == "charset":
                charset = charset.strip(" \"'").lower()
                return charset if charset.startswith(_CHARSETS) else "utf-8"
        return "utf-8"


def is_json(media_type: str | None) -> bool:
    """Whether a media type is JSON: ``application/json``, ``text/json``, anything ``+json``."""
    if not media_type:
        return False
    kind = media_type.partition(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))
