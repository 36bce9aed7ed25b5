"""The answer that an exception carries: in its `response`, in attributes of its own, in its words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from failwise.evidence.attributes import may_have, qualified_name, text_of
from failwise.evidence.bodies import read_body
from failwise.evidence.facts import Evidence
from failwise.evidence.responses import (
    attribute,
    from_response,
    is_response,
    length_told,
    plain_headers,
    status_of,
    use_body,
)
from failwise.evidence.waits import told_waits

_TOO_MANY = re.compile(r"too many ([1-5]\d\d) error responses")
# Exit codes, mail replies, and aiohttp's parser, which calls its own complaints by HTTP statuses.
_NO_STATUS: Final = ("SystemExit", "smtplib.", "aiohttp.http_exceptions.")
# Attributes without which an exception knows nothing of an answer.
_OF_ANSWERS: Final = frozenset(
    {"response", "read", "status_code", "status", "code", "http_status", "http_code", "body"}
    | {"response_body", "content", "json_body", "headers", "msg"}
)
_BODY_LIMIT: Final = 1_000_000
_BODY_SECONDS: Final = 1.0


def add_answer(evidence: Evidence, error: BaseException, now: float | None) -> None:
    """The answer an exception carries, in its `response` or in its own attributes."""
    if not may_have(error, _OF_ANSWERS):
        _add_too_many(evidence, error)
        return
    response = attribute(error, "response")
    if isinstance(response, Mapping) and response:
        _add_botocore(evidence, response, now)
    elif response is not None and is_response(response):
        _take(evidence, from_response(response, now=now))
    elif is_response(error) and attribute(error, "read") is not None:
        _read_urllib(error)
        _take(evidence, from_response(error, now=now))
    else:
        _add_attributes(evidence, error, now)


def _take(evidence: Evidence, answer: Evidence) -> None:
    for name in (
        "status",
        "reason",
        "method",
        "url",
        "host",
        "headers",
        "content_type",
        "length_told",
        "length_got",
        "body",
        "title",
        "problem",
        "position",
        "waits",
        "unread",
    ):
        setattr(evidence, name, getattr(answer, name))
    if answer.text:
        evidence.text = answer.text


def _add_botocore(evidence: Evidence, response: Mapping[str, Any], now: float | None) -> None:
    metadata = response.get("ResponseMetadata")
    if isinstance(metadata, Mapping):
        status = metadata.get("HTTPStatusCode")
        evidence.status = status if isinstance(status, int) else None
        evidence.headers = plain_headers(metadata.get("HTTPHeaders"))
    evidence.body = dict(response)
    evidence.waits = told_waits(
        evidence.headers, evidence.body, evidence.text, now=now, status=evidence.status
    )


def _add_attributes(evidence: Evidence, error: BaseException, now: float | None) -> None:
    """An unknown class that has `status`, `status_code`, `code`, `headers` or `body` of its own."""
    names = [qualified_name(type(one)) for one in (error, error.__cause__) if one is not None]
    if any(name.startswith(_NO_STATUS) for name in names):
        return
    status = status_of(error)
    if status is None:
        found = attribute(error, "http_status", "http_code")
        status = found if isinstance(found, int) and 100 <= found <= 599 else None
    if status is None:
        _add_too_many(evidence, error)
        status = evidence.status
    body = attribute(error, "body", "response_body", "content", "json_body")
    if status is None and not isinstance(body, Mapping):
        return
    headers = attribute(error, "headers")
    if headers is not None and not evidence.headers:
        evidence.headers = plain_headers(headers)
        evidence.content_type = evidence.headers.get("content-type")
        evidence.length_told = length_told(evidence.headers)
    evidence.status = status
    if isinstance(body, (bytes, str)) and body:
        evidence.length_got = len(body)
        use_body(evidence, read_body(body, evidence.content_type))
    elif isinstance(body, (Mapping, list)) and body:
        evidence.body = body
    evidence.waits = evidence.waits or told_waits(
        evidence.headers, evidence.body, evidence.text, now=now, status=status
    )


def _add_too_many(evidence: Evidence, error: BaseException) -> None:
    """A client that gave up after the same answer came again and again."""
    text = text_of(error)
    match = _TOO_MANY.search(text) if "error responses" in text else None
    if match:
        evidence.status = int(match.group(1))


def _read_urllib(error: BaseException) -> None:
    """Read what `urllib.error.HTTPError` still has on the wire: at most a second and a megabyte.

    The bytes are kept on the exception, where the next reader finds them.
    """
    import time

    if not isinstance(attribute(error, "fp"), object) or "failwise_body" in vars(error):
        return
    read = attribute(error, "read1", "read")
    socket = attribute(attribute(attribute(attribute(error, "fp"), "fp"), "raw"), "_sock")
    until = time.monotonic() + _BODY_SECONDS
    pieces: list[bytes] = []
    size = 0
    try:
        if socket is not None:
            socket.settimeout(_BODY_SECONDS)
        while size < _BODY_LIMIT and time.monotonic() < until:
            piece = read(65_536)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
    except Exception:
        pieces.append(b"")
    error.failwise_body = b"".join(pieces)  # type: ignore[attr-defined]
