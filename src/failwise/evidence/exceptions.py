"""What an exception tells: its chain, its phase, its words; the answer it carries is `carried`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from failwise.evidence.asked import Asked
from failwise.evidence.attributes import attributes_of, class_facts, text_of
from failwise.evidence.carried import add_answer
from failwise.evidence.chains import strands
from failwise.evidence.classes import NOT_SENT, class_table, combined_phase, described
from failwise.evidence.facts import Evidence, ExceptionFact, Phase, ToldWait
from failwise.evidence.texts import from_text, tells_of_answer
from failwise.vocabulary.errors import ToolCallFailed, ToolError
from failwise.vocabulary.records import UNSET, Unset, defer

_MAY_BE_SENT: Final = frozenset({"write", "read", "body"})
# What a text may add to a known class: a body, a page, a number, an address, parts.
_MORE_TO_TELL = re.compile(r"[{<\d]|: |：|://|=")


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
                add_answer(evidence, one, now)
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
            asked.learn(error, text_of(error), phase)
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
    text = text_of(error)
    return described(name, bases or ("Exception",), text, attributes_of(error, (name, *bases)))


def _librdkafka(error: BaseException, name: str) -> str:
    """confluent-kafka has one exception class; what it holds tells its own name."""
    try:
        own = error.args[0].name()
    except Exception:
        return name
    return f"librdkafka.{own}" if isinstance(own, str) else name


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
