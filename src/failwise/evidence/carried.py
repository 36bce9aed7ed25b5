"""The answer that an exception carries: in its `response`, in attributes of its own, in its words."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from failwise.evidence.bodies import read_body
from failwise.evidence.chains import Strand
from failwise.evidence.exception_forms import ExceptionForm, qualified_name
from failwise.evidence.facts import Evidence, ExceptionFact
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
from failwise.vocabulary.records import defer

_TOO_MANY = re.compile(r"too many ([1-5]\d\d) error responses")
# Exit codes, mail replies, and aiohttp's parser, which calls its own complaints by HTTP statuses.
_NO_STATUS: Final = ("SystemExit", "smtplib.", "aiohttp.http_exceptions.")
_BODY_LIMIT: Final = 1_000_000
_BODY_SECONDS: Final = 1.0


def add_answer(
    evidence: Evidence, error: BaseException, form: ExceptionForm, text: str, now: float | None
) -> None:
    """The answer an exception carries, in its `response` or in its own attributes; `text` is what it
    says."""
    for name in form.answers:
        if attribute(error, name) is not None:
            break
    else:  # as most do, although clients give all of theirs a `response`
        if "error responses" in text and not _numbers_are_none(error):
            _add_too_many(evidence, text)
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
        _add_attributes(evidence, error, text, now)


_AT_ONCE: Final = (
    "status", "reason", "method", "url", "host", "headers", "content_type", "length_told", "unread", "same",
)  # fmt: skip
_OF_BODY: Final = ("length_got", "body", "title", "problem", "position", "waits", "text")


def _take(evidence: Evidence, answer: Evidence) -> None:
    said = evidence.text
    for name in _AT_ONCE:
        setattr(evidence, name, getattr(answer, name))

    def read() -> dict[str, Any]:
        found = {name: getattr(answer, name) for name in _OF_BODY}
        return {**found, "text": answer.text or said}

    if answer.same is not None:  # its body is not read yet
        defer(evidence, (_OF_BODY, read))
        return
    for name, value in read().items():
        setattr(evidence, name, value)


_CARRIED: Final = frozenset({"response", "request", "body", "pool", "conn"})
"""Attributes that hold the answer itself, or a part of it, or what was asked."""


def may_come_again(behind: Strand, facts: Sequence[ExceptionFact]) -> bool:
    """Can it be told whether exceptions are the same as others? Not where a verdict may rest on more than
    their classes, words and plain attributes."""
    for (_, form), fact in zip(behind, facts, strict=True):
        if form.handshake or form.special or form.ours or fact.kind == "database":
            return False
    return True


def same_with(
    told: bytes, headers: Collection[str], behind: Strand, facts: Sequence[ExceptionFact]
) -> bytes | None:
    """What stands for exceptions together with what is `told` beside them: the answer they carry, whom
    they had asked (`Evidence.same`). `headers` are the answer's. None where they hold more than can be
    told apart; see `may_come_again`."""
    from hashlib import blake2b

    said: list[str] = []
    for (error, form), fact in zip(behind, facts, strict=True):
        for name, value in (getattr(error, "__dict__", None) or {}).items():
            if name in _CARRIED or name.startswith("_"):
                continue
            if name == "request_id" and value in headers:
                continue
            if name in form.links and isinstance(value, BaseException):
                continue  # one of those behind it
            if value is not None and type(value) not in (str, int, float, bool, bytes):
                return None
            said.append(f"{name}={value!r}")
        said.append(f"{form.names}: {fact.text} {fact.attributes or ''}")
    digest = blake2b(told, digest_size=16)
    digest.update("\n".join(said).encode("utf-8", "surrogatepass"))
    return digest.digest()


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


def _numbers_are_none(error: BaseException) -> bool:
    """Is it one whose codes are no statuses?"""
    around = (error, error.__cause__)
    return any(
        qualified_name(type(one)).startswith(_NO_STATUS) for one in around if one is not None
    )


def _add_attributes(evidence: Evidence, error: BaseException, text: str, now: float | None) -> None:
    """An unknown class that has `status`, `status_code`, `code`, `headers` or `body` of its own."""
    if _numbers_are_none(error):
        return
    status = status_of(error)
    if status is None:
        found = attribute(error, "http_status", "http_code")
        status = found if isinstance(found, int) and 100 <= found <= 599 else None
    if status is None:
        _add_too_many(evidence, text)
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


def _add_too_many(evidence: Evidence, text: str) -> None:
    """A client that gave up after the same answer came again and again."""
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
