"""Response objects of HTTP clients, told by their shape: no HTTP library is imported.

httpx, httpx2, requests, urllib3, aiohttp, urllib, http.client, and `HttpTool`'s own answers.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from failwise.evidence.bodies import NO_BODY, BodyReading, is_json_type, read_body
from failwise.evidence.bounds import bounded, clean_url, host_of
from failwise.evidence.facts import Evidence
from failwise.evidence.pages import Asked, asked_for, first_address, header, leads_to_login
from failwise.evidence.waits import tells_moment, told_waits
from failwise.vocabulary.records import UNSET, Unset, defer

HEADERS_LIMIT: Final = 128
"""Header fields kept of one answer."""

_BODILESS: Final = frozenset({204, 205, 304})
_SAME_LIMIT: Final = 65_536
"""Bytes of a body of which it is asked whether it came before."""
_CHANGING: Final = frozenset(
    {"date", "age", "etag", "expires", "last-modified", "set-cookie", "server-timing", "x-runtime", "x-response-time", "x-timer", "x-served-by",
     "x-envoy-upstream-service-time", "x-trace-id", "traceparent", "tracestate", "report-to", "nel", "cf-ray", "x-amz-cf-id", "x-amz-id-2",
     "x-request-id", "request-id", "x-amzn-requestid", "x-amz-request-id", "x-correlation-id", "openai-processing-ms", "x-vercel-id"}
)  # fmt: skip
"""Headers that differ from answer to answer, and of which no verdict depends."""


DEPRECATED: Final = frozenset({"code", "reason"})
"""Attributes of websockets' exceptions that warn when they are read."""


def attribute(value: object, *names: str) -> Any:
    """The first of these attributes that is there; a property that raises counts as missing."""
    for name in names:
        if name in DEPRECATED and type(value).__module__ == "websockets.exceptions":
            continue
        try:
            found = getattr(value, name, None)
        except Exception:
            found = None
        if found is not None:
            return found
    return None


def is_response(value: object) -> bool:
    """Is it an answer to an HTTP request, of whichever client?"""
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple, dict, type)):
        return False
    if status_of(value) is None:
        return False
    headers = attribute(value, "headers", "msg")
    return (
        headers is not None
        and hasattr(headers, "get")
        and hasattr(headers, "items")
        and any(hasattr(type(value), name) or hasattr(value, name) for name in _BODY_NAMES)
    )


_BODY_NAMES: Final = ("content", "_body", "read", "data", "body", "text")


def status_of(value: object) -> int | None:
    """The HTTP status an object carries: an integer (`HTTPStatus` too) from 100 to 599."""
    for name in ("status_code", "status", "code"):
        status = attribute(value, name)
        if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
            return int(status)
    return None


def plain_headers(headers: object) -> dict[str, str]:
    """Headers with lower-case names; fields that came more than once are joined (RFC 9110 §5.3)."""
    plain: dict[str, str] = {}
    try:
        pairs: Iterable[Any] = headers.items() if hasattr(headers, "items") else headers or ()  # type: ignore[assignment]
        for name, value in pairs:
            if len(plain) >= HEADERS_LIMIT:
                break
            key = _text(name).lower()
            text = bounded(_text(value), 2_048)
            plain[key] = f"{plain[key]}, {text}" if key in plain else text
    except Exception:
        return plain
    return plain


def _text(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("latin-1")
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value)
    return str(value)


def from_response(
    response: object, *, now: float | None = None, expects_json: bool = False
) -> Evidence:
    """The facts of an answer, good or bad.

    A body that nobody has read yet is left alone (`unread`): reading could block. `now` (epoch
    seconds) is what dates in headers are counted from when the answer itself has no ``Date``.
    """
    headers = plain_headers(attribute(response, "headers", "msg"))
    content_type = headers.get("content-type")
    status = status_of(response)
    method, url = _request_of(response)
    content = content_of(response)
    told = length_told(headers)
    wanted = attribute(response, "expects_json")
    if isinstance(wanted, str):
        wanted = is_json_type(wanted)
    due = bool(wanted) or expects_json
    bodiless = status in _BODILESS or method == "HEAD"
    evidence = Evidence(
        source="response",
        status=status,
        reason=_short(attribute(response, "reason_phrase", "reason")),
        method=method,
        url=url,
        host=host_of(url),
        headers=headers,
        content_type=content_type,
        length_told=told,
        expects_json=due,
        unread=isinstance(content, Unset) and not bodiless,
    )
    too_large = attribute(response, "too_large") is True

    def read() -> dict[str, Any]:
        return _read(evidence, response, content, due, bodiless, too_large, now)

    if now is None and not too_large:
        evidence.same = _same(evidence, content, due)
    if evidence.same is not None:
        defer(evidence, (_FROM_BODY, read))
    else:
        for name, value in read().items():
            setattr(evidence, name, value)
    return evidence


_FROM_BODY: Final = (
    "body", "text", "title", "problem", "position", "length_got", "asked", "sent_to_login", "waits",
)  # fmt: skip


def _read(
    evidence: Evidence,
    response: object,
    content: bytes | str | Unset,
    due: bool,
    bodiless: bool,
    too_large: bool,
    now: float | None,
) -> dict[str, Any]:
    """What the body of an answer turns out to be, and the waits it tells."""
    status, content_type = evidence.status, evidence.content_type
    length = None if isinstance(content, Unset) else len(_bytes(content))
    reading = NO_BODY
    if not isinstance(content, Unset) and not (bodiless and not content):
        coding = evidence.headers.get("content-encoding", "identity").strip().lower()
        reading = read_body(
            content,
            content_type,
            expects_json=due and not (status is not None and 300 <= status < 400),
            length_told=evidence.length_told if coding in ("", "identity") else None,
        )
    else:
        length = None
    asked, sent_to_login = None, False
    if reading.title is not None or reading.problem == "html" or "html" in (content_type or ""):
        asked, sent_to_login = _asked(response, evidence.url)
    return {
        "body": reading.value,
        "text": reading.text,
        "title": reading.title,
        "problem": "too_large" if too_large else reading.problem,
        "position": reading.position,
        "length_got": length,
        "asked": asked,
        "sent_to_login": sent_to_login,
        "waits": told_waits(evidence.headers, reading.value, reading.text, now=now, status=status),
    }


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _same(evidence: Evidence, content: bytes | str | Unset, due: bool) -> bytes | None:
    """What stands for all that a verdict on an answer can rest on; see `Evidence.same`."""
    status, headers = evidence.status, evidence.headers
    if status is None or isinstance(content, Unset) or tells_moment(headers):
        return None
    body = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(body) > _SAME_LIMIT:
        return None
    if status < 400 and (status >= 300 or not _is_json(body, evidence.content_type)):
        return None  # where pages come, it also counts what was asked and where it led
    told = [f"{status} {evidence.method} {evidence.host} {evidence.reason} {due}"]
    told += [f"{name}:{value}" for name, value in headers.items() if name not in _CHANGING]
    digest = blake2b("\n".join(told).encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(b"\n\n")
    digest.update(body)
    return digest.digest()


def _is_json(body: bytes, content_type: str | None) -> bool:
    return body[:1] in (b"{", b"[") and is_json_type(content_type or "")


def _asked(response: object, url: str | None) -> tuple[Asked | None, bool]:
    """A page came: what was asked for, and did redirects lead to a login?"""
    promised = attribute(response, "expects")
    request = attribute(response, "request", "request_info", "_request")
    first = clean_url(first_address(attribute(response, "history")))
    accepts = header(attribute(request, "headers"), "accept")
    asked = asked_for(promised if isinstance(promised, str) else None, accepts, first or url)
    return asked, leads_to_login(first, url)


def use_body(evidence: Evidence, reading: BodyReading) -> None:
    """Put what a body turned out to be into the evidence."""
    evidence.body, evidence.text, evidence.title = reading.value, reading.text, reading.title
    evidence.problem, evidence.position = reading.problem, reading.position


def length_told(headers: Mapping[str, str]) -> int | None:
    """What ``Content-Length`` says, in bytes."""
    text = headers.get("content-length", "").split(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def content_of(response: object) -> bytes | str | Unset:
    """The body as far as it has been read already; UNSET when it still is on the wire."""
    state = attribute(response, "__dict__")
    if not isinstance(state, dict):
        state = {}
    if "_content_consumed" in state:  # requests
        content = state.get("_content")
        return content if isinstance(content, bytes) else b"" if content is None else UNSET
    for name in ("_content", "_body", "failwise_body"):  # httpx, aiohttp and urllib3, ours
        found = state.get(name)
        if isinstance(found, (bytes, bytearray)):
            return bytes(found)
    if "stream" in state and "is_closed" in state:
        return UNSET
    if attribute(response, "read") is not None:  # a live one
        return UNSET
    for name in ("content", "body", "data", "text"):
        found = attribute(response, name)
        if isinstance(found, (bytes, bytearray)):
            return bytes(found)
        if isinstance(found, str):
            return found
    return UNSET


def _request_of(response: object) -> tuple[str | None, str | None]:
    request = attribute(response, "request", "request_info", "_request")
    method = attribute(response, "method", "_method") or attribute(request, "method")
    url = attribute(response, "url", "real_url") or attribute(request, "url", "real_url")
    return (method.upper()[:16] if isinstance(method, str) else None), clean_url(url)


def _short(value: object) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
