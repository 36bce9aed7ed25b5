"""What an exception tells: its chain, its phase, and the answer it may carry."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from failwise.evidence.asked import Asked
from failwise.evidence.attributes import attributes_of, class_facts, may_have, qualified_name
from failwise.evidence.bodies import read_body
from failwise.evidence.bounds import bounded
from failwise.evidence.chains import strands
from failwise.evidence.classes import NOT_SENT, class_table, combined_phase, described
from failwise.evidence.facts import Evidence, ExceptionFact, Phase, ToldWait
from failwise.evidence.responses import (
    attribute,
    from_response,
    is_response,
    length_told,
    plain_headers,
    status_of,
    use_body,
)
from failwise.evidence.texts import from_text, tells_of_answer
from failwise.evidence.waits import told_waits
from failwise.vocabulary.errors import ToolCallFailed, ToolError
from failwise.vocabulary.records import UNSET, Unset, defer

TEXT_OF_ONE: Final = 2_048
"""Characters kept of one exception's text."""

_MAY_BE_SENT: Final = frozenset({"write", "read", "body"})
# What a text may add to a known class: a body, a page, a number, an address, parts.
_MORE_TO_TELL = re.compile(r"[{<\d]|: |：|://|=")
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


def from_exception(
    error: BaseException, *, limit: float | None = None, now: float | None = None
) -> Evidence:
    """The facts of an exception: never raises, whatever its class does.

    Looks along causes, contexts, groups and the places where libraries keep the inner exception,
    by qualified class name. `limit` is the time limit that was set, in seconds; else the one its
    text names. `now` (epoch seconds) is what dates in headers are counted from. When no structure
    tells anything, the messages are taken apart as free text.
    """
    evidence = Evidence(source="exception", exception=error, limit=limit)
    chains = strands(error)
    facts: list[ExceptionFact] = []
    phases: list[Phase | Literal["answered"] | None] = []
    for strand in chains:
        found = [_fact(one) for one in strand]
        for fact, _ in found[0 if facts else 1 :]:
            if fact.kind == "cancelled":
                fact.text = ""  # how a time limit was enforced, with an address: nobody said that
        facts.extend(fact for fact, _ in found)
        phase: Phase | Literal["answered"] | None = _placed(
            combined_phase((fact.phase, sure) for fact, sure in found), strand
        )
        if phase is None and phases and any(fact.kind == "status" for fact, _ in found):
            phase = "answered"
        phases.append(phase)
    evidence.exceptions = tuple(facts)
    evidence.phase = _of_strands(phases)
    evidence.text = next((fact.text for fact in facts if fact.text), None)
    for strand in chains:
        for one in strand:
            _add_own(evidence, one)
    for number, strand in enumerate(chains):
        for one in strand:
            # An answer of an earlier request says nothing of one that then failed on the way.
            if evidence.status is None and (number == 0 or phases[0] is None):
                _add_answer(evidence, one, now)
    told: list[Evidence | str] = []
    if evidence.status is None and evidence.body is UNSET and evidence.tool_error is None:
        told_by = facts if phases[0] is None else facts[: len(chains[0])]
        told = _add_from_text(evidence, told_by, now)
    errors = [one for strand in chains for one in strand]
    _defer_surroundings(evidence, errors, facts, told, now)
    return evidence


_REQUEST: Final = ("method", "url", "host", "limit")


def _defer_surroundings(
    evidence: Evidence,
    errors: list[BaseException],
    facts: list[ExceptionFact],
    told: "list[Evidence | str]",
    now: float | None,
) -> None:
    """What a verdict hardly ever rests on is looked up when it is read: the request, the
    certificate, the pieces of the texts."""
    answered = evidence.method, evidence.url, evidence.host, evidence.limit
    phase = evidence.phase

    def heard() -> Iterator[Evidence]:
        for place, one in enumerate(told):
            if isinstance(one, str):
                one = told[place] = from_text(one, now=now, classes=False)  # noqa: PLW2901
            yield one

    def request() -> dict[str, Any]:
        asked = Asked(*answered)
        for error in errors:
            asked.learn(error, _text_of(error), phase)
        for one in () if asked.host and asked.url else heard():
            asked.hear(one.host, one.url)
        return {
            "method": asked.method,
            "url": asked.url,
            "host": asked.host,
            "limit": asked.limit,
        }

    def certificate() -> dict[str, Any]:
        return {"tls": _certificate(errors, facts, evidence.host, now)}

    def parts() -> dict[str, Any]:
        return {"parts": next((one.parts for one in heard() if one.parts), {})}

    defer(evidence, _REQUEST, request)
    defer(evidence, ("tls",), certificate)
    defer(evidence, ("parts",), parts)


def _fact(error: BaseException) -> tuple[ExceptionFact, bool]:
    cls = type(error)
    known = class_facts(cls)
    name, bases = known.name, known.bases
    if cls.__name__ == "KafkaException":
        name, bases = _librdkafka(error, name), (name, *bases)
    text = _text_of(error)
    return described(name, bases or ("Exception",), text, attributes_of(error, (name, *bases)))


def _librdkafka(error: BaseException, name: str) -> str:
    """confluent-kafka has one exception class; what it holds tells its own name."""
    try:
        own = error.args[0].name()
    except Exception:
        return name
    return f"librdkafka.{own}" if isinstance(own, str) else name


def _text_of(error: BaseException) -> str:
    try:
        return bounded(_mail_reply(error) or str(error), TEXT_OF_ONE)
    except Exception:
        return ""


def _mail_reply(error: BaseException) -> str | None:
    """The server's line (``550 5.1.1 User unknown``), which smtplib hides in tuples and bytes."""
    if not type(error).__module__.startswith(("smtplib", "aiosmtplib")):
        return None
    number, reply = attribute(error, "smtp_code", "code"), attribute(error, "smtp_error", "message")
    refused = attribute(error, "recipients")
    if number is None and isinstance(refused, Mapping) and refused:
        number, reply = next(iter(refused.values()))
    if isinstance(reply, bytes):
        reply = reply.decode("utf-8", "replace")
    return f"{number} {reply}" if isinstance(number, int) else None


def _of_strands(phases: list[Phase | Literal["answered"] | None]) -> Phase | None:
    """One phase of several events: where any request may have been sent, that is what counts.

    A request that was answered (or whose answer could not be decoded) before another failed on the
    way leaves the whole as unknown as a lost answer does.
    """
    if len(phases) == 1 and phases[0] != "answered":
        return phases[0]
    known = [phase for phase in phases if phase is not None]
    first = next((phase for phase in known if phase != "answered"), None)
    if first is None or not (first in NOT_SENT or first == "any"):
        return first
    for phase in known:
        if phase in ("answered", "decode"):
            return "read"
        if phase in _MAY_BE_SENT:
            return phase  # type: ignore[return-value]
    return first


def _placed(phase: Phase | None, strand: list[BaseException]) -> Phase | None:
    """The phase, corrected by where the deepest exception was raised.

    A class often cannot tell (urllib3 calls a handshake that took too long a read timeout); the
    traceback can: it passes `ssl.do_handshake`, `http.client.connect` or `http.client.send`.
    """
    if phase not in (None, "any", "connect", "read", "write"):
        return phase
    frame = None
    for one in reversed(strand):
        frame = _frame_of(one)
        if frame is not None:
            break
    if frame is None or (phase == "connect" and frame not in NOT_SENT):
        return phase
    if frame in NOT_SENT or phase in (None, "any"):
        return frame
    return "body" if frame == "body" and phase == "read" else phase


def _frame_of(error: BaseException) -> Phase | None:
    table = class_table()
    traceback, place = error.__traceback__, None
    for _ in range(256):
        if traceback is None:
            break
        frame = traceback.tb_frame
        function = frame.f_code.co_name
        if function in table.frame_functions:
            place = table.frames.get(f"{frame.f_globals.get('__name__', '')}.{function}", place)
        traceback = traceback.tb_next
    return place


def _add_own(evidence: Evidence, error: BaseException) -> None:
    """Failwise's own exceptions: a tool that speaks for itself, and a nested call's result."""
    if isinstance(error, ToolError) and evidence.tool_error is None:
        evidence.tool_error = error
        if error.http_status is not None:
            evidence.status = error.http_status
        if error.retry_after is not None:
            evidence.waits = (ToldWait(float(error.retry_after), "tool"),)
    elif isinstance(error, ToolCallFailed) and evidence.inner is None:
        evidence.inner = error.result


def _add_answer(evidence: Evidence, error: BaseException, now: float | None) -> None:
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
    text = _text_of(error)
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


def _certificate(
    errors: list[BaseException], facts: list[ExceptionFact], host: str | None, now: float | None
) -> Mapping[str, Any] | None:
    """The facts of the deepest TLS error, which is where a capturing context left them.

    A probe leaves them on the outermost exception where no TLS error is in the chain.
    """
    for fact, error in zip(reversed(facts), reversed(errors), strict=True):
        probed = "failwise_tls" in (getattr(error, "__dict__", None) or ())
        if probed or ("ssl.SSLError" in (fact.name, *fact.bases) and "Want" not in fact.name):
            from failwise.evidence.tls import facts_of_exception

            return facts_of_exception(error, host=host, now=now)
    return None


def _add_from_text(
    evidence: Evidence, facts: list[ExceptionFact], now: float | None
) -> list[Evidence | str]:
    """Free text inside the exceptions: ``RuntimeError("Error code: 429 - {...}")``.

    Gives what was read of it, and the texts of which only their surroundings are of interest.
    """
    structural = any(fact.kind not in (None, "bug", "status", "database") for fact in facts)
    read: list[Evidence | str] = []
    plain = ""
    for fact in facts[:4]:
        if not fact.text or (structural and not _MORE_TO_TELL.search(fact.text)):
            continue
        # Wrappers print what they wrap: what was looked at in one is not looked at again.
        if structural and (fact.text in plain or not tells_of_answer(fact.text)):
            plain += f"\n{fact.text}"
            read.append(fact.text)
            continue
        told = from_text(fact.text, now=now, classes=not structural)
        read.append(told)
        evidence.status = evidence.status or told.status
        if isinstance(evidence.body, Unset):
            evidence.body = told.body
        evidence.headers = evidence.headers or told.headers
        evidence.title = evidence.title or told.title
        evidence.waits = evidence.waits or told.waits
        if not structural and told.exceptions:
            evidence.exceptions = (*evidence.exceptions, *told.exceptions)
            evidence.phase = evidence.phase or told.phase
            break
    return read
