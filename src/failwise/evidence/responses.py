"""Response objects of HTTP clients, told by their shape: no HTTP library is imported.

httpx, httpx2, requests, urllib3, aiohttp, urllib, http.client, and `HttpTool`'s own answers.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from failwise.evidence.bodies import BodyReading, is_json_type, read_body
from failwise.evidence.bounds import bounded, clean_url, host_of
from failwise.evidence.facts import Evidence
from failwise.evidence.pages import asked_for, first_address, header, leads_to_login
from failwise.evidence.waits import told_waits
from failwise.vocabulary.records import UNSET, Unset

HEADERS_LIMIT: Final = 128
"""Header fields kept of one answer."""

_BODILESS: Final = frozenset({204, 205, 304})


_DEPRECATED: Final = frozenset({"code", "reason"})
"""Attributes of websockets' exceptions that warn when they are read."""


def attribute(value: object, *names: str) -> Any:
    """The first of these attributes that is there; a property that raises counts as missing."""
    for name in names:
        if name in _DEPRECATED and type(value).__module__ == "websockets.exceptions":
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
    )
    if isinstance(content, Unset):
        evidence.unread = not bodiless
    elif not (bodiless and not content):
        evidence.length_got = len(content.encode()) if isinstance(content, str) else len(content)
        coded = headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        use_body(
            evidence,
            read_body(
                content,
                content_type,
                expects_json=due and not (status is not None and 300 <= status < 400),
                length_told=None if coded else told,
            ),
        )
    if evidence.title is not None or evidence.problem == "html" or "html" in (content_type or ""):
        _add_asked(evidence, response)
    if attribute(response, "too_large") is True:
        evidence.problem = "too_large"
    evidence.waits = told_waits(headers, evidence.body, evidence.text, now=now, status=status)
    return evidence


def _add_asked(evidence: Evidence, response: object) -> None:
    """A page came: was one asked for?"""
    promised = attribute(response, "expects")
    request = attribute(response, "request", "request_info", "_request")
    first = clean_url(first_address(attribute(response, "history")))
    accepts = header(attribute(request, "headers"), "accept")
    evidence.asked = asked_for(
        promised if isinstance(promised, str) else None, accepts, first or evidence.url
    )
    evidence.sent_to_login = leads_to_login(first, evidence.url)


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
