"""What an exception tells: its chain, its phase, its words; the answer it carries is `carried`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from failwise.evidence.asked import Asked, knows_something
from failwise.evidence.attributes import attributes_of, text_of
from failwise.evidence.carried import add_answer, may_come_again, same_with
from failwise.evidence.chains import Strand, strands
from failwise.evidence.classes import (
    NOT_SENT,
    class_table,
    combined_phase,
    described,
    fact_of,
    of_message,
)
from failwise.evidence.exception_forms import ExceptionForm
from failwise.evidence.facts import Evidence, ExceptionFact, Phase, ToldWait
from failwise.evidence.words import Words
from failwise.vocabulary.errors import ToolCallFailed, ToolError
from failwise.vocabulary.records import UNSET, Work, defer

_MAY_BE_SENT: Final = frozenset({"write", "read", "body"})


def from_exception(
    error: BaseException, *, limit: float | None = None, now: float | None = None
) -> Evidence:
    """The facts of an exception: never raises, whatever its class does.

    Looks along causes, contexts, groups and the places where libraries keep the inner exception,
    by qualified class name. `limit` is the time limit that was set, in seconds; else the one its
    text names. `now` (epoch seconds) is what dates in headers are counted from. When no structure
    tells anything, the messages are taken apart as free text.
    """
    evidence = Evidence("exception", exception=error, limit=limit)
    chains = strands(error)
    facts: list[ExceptionFact] = []
    texts: list[str] = []
    phases: list[Phase | Literal["answered"] | None] = []
    for strand in chains:
        told: list[tuple[Phase | None, bool]] = []
        answered = False
        for one, form in strand:
            text = text_of(one, form)
            fact, sure = _fact(one, form, text)
            if fact.kind == "cancelled" and facts:
                fact.text = ""  # how a time limit was enforced, with an address: nobody said that
            elif fact.kind == "status":
                answered = True
            facts.append(fact)
            texts.append(text)
            told.append((fact.phase, sure))
        phase: Phase | Literal["answered"] | None = _placed(combined_phase(told), strand)
        phases.append("answered" if phase is None and phases and answered else phase)
    evidence.exceptions = tuple(facts)
    evidence.phase = placed = _of_strands(phases)
    for fact in facts:
        if fact.text:
            evidence.text = fact.text
            break
    behind = [one for strand in chains for one in strand] if len(chains) > 1 else chains[0]
    for one, form in behind:
        if form.ours:
            _add_own(evidence, one)
    # An answer of an earlier request says nothing of one that then failed on the way.
    first = chains[0] if phases[0] is not None else behind
    for (one, form), text in zip(first, texts, strict=False):
        if evidence.status is None:
            add_answer(evidence, one, form, text, now)
    if evidence.same is not None:
        evidence.same = (
            same_with(evidence.same, evidence.headers.values(), behind, facts)
            if may_come_again(behind, facts)
            else None
        )
    words = None
    later: list[Work] = []
    asking = _Asking(evidence, behind, texts, placed)
    if evidence.status is None and evidence.body is UNSET and evidence.tool_error is None:
        words = Words(facts[: len(first)], now, address=not asking.knows)
        if words.may_tell:
            kept = evidence.headers, evidence.title, evidence.exceptions, evidence.phase
            later.append((words.names, lambda: words.fields(*kept)))
        # Of a class that is known itself the verdict costs no more than to tell whether it is the same.
        if not words.structural and may_come_again(behind, facts):
            seed = f"{phases} {[len(strand) for strand in chains]}"
            later.append((("same",), lambda: {"same": _same(seed, asking, behind, facts)}))
    later += _surroundings(behind, asking, words, now)
    if later:
        defer(evidence, *later)
    return evidence


_REQUEST: Final = ("method", "url", "host", "limit")


class _Asking:
    """What exceptions know of the request themselves, learnt when somebody asks."""

    __slots__ = ("_behind", "_learnt", "_phase", "_said", "_texts", "knows")

    def __init__(
        self, evidence: Evidence, behind: Strand, texts: list[str], phase: Phase | None
    ) -> None:
        self._said = evidence.method, evidence.url, evidence.host, evidence.limit
        self._behind, self._texts, self._phase = behind, texts, phase
        self._learnt: Asked | None = None
        self.knows = False
        for (_, form), text in zip(behind, texts, strict=True):
            self.knows = self.knows or knows_something(form, text)

    def asked(self) -> Asked:
        """The request, as far as they know it."""
        asked = self._learnt
        if asked is None:
            self._learnt = asked = Asked(*self._said)
            if self.knows:
                for (error, form), text in zip(self._behind, self._texts, strict=True):
                    asked.learn(error, form, text, self._phase)
        return asked


def _same(seed: str, asking: _Asking, behind: Strand, facts: list[ExceptionFact]) -> bytes | None:
    """What stands for exceptions that carry no answer (`Evidence.same`): their classes, words and plain
    attributes, and whom was asked."""
    for fact in facts:
        if "<" in fact.text and "html" in fact.text.lower():
            return None  # what a page means depends on the address that was asked
    asked = asking.asked()
    told = f"{seed} {asked.method} {asked.host} {asked.limit}"
    return same_with(told.encode("utf-8", "surrogatepass"), (), behind, facts)


def _surroundings(
    behind: Strand, asking: _Asking, words: Words | None, now: float | None
) -> Iterator[Work]:
    """What a verdict hardly ever rests on is looked up when it is read: the request, the
    certificate, the pieces of the texts."""

    def request() -> dict[str, Any]:
        known = asking.asked()
        asked = Asked(known.method, known.url, known.host, known.limit)
        for host, url in words.addresses() if words is not None else ():
            if asked.host and asked.url:
                break
            asked.hear(host, url)
        return {
            "method": asked.method,
            "url": asked.url,
            "host": asked.host,
            "limit": asked.limit,
        }

    def certificate() -> dict[str, Any]:
        return {"tls": _certificate(behind, request()["host"], now)}

    telling = words is not None and words.may_tell
    if asking.knows or (telling and words is not None and not words.addressed):
        yield _REQUEST, request
    if any(form.handshake for _, form in behind):
        yield ("tls",), certificate
    if telling and words is not None:
        yield ("parts",), words.parts


def _fact(error: BaseException, form: ExceptionForm, text: str) -> tuple[ExceptionFact, bool]:
    names = form.names
    attributes = attributes_of(error, form)
    if form.names_itself:
        name = _librdkafka(error, names[0])
        return described(name, names, text, attributes)
    known = of_message(form.messages, text) or form.known
    return fact_of(names[0], form.bases, text, attributes, known)


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


def _placed(phase: Phase | None, strand: Strand) -> Phase | None:
    """The phase, corrected by where the deepest exception was raised.

    A class often cannot tell (urllib3 calls a handshake that took too long a read timeout); the
    traceback can: it passes `ssl.do_handshake`, `http.client.connect` or `http.client.send`.
    """
    if phase not in (None, "any", "connect", "read", "write"):
        return phase
    frame = None
    for one, _ in reversed(strand):
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


def _certificate(behind: Strand, host: str | None, now: float | None) -> Mapping[str, Any] | None:
    """The facts of the deepest TLS error, which is where a capturing context left them.

    A probe leaves them on the outermost exception where no TLS error is in the chain.
    """
    for error, form in reversed(behind):
        if form.handshake:
            from failwise.evidence.tls import facts_of_exception

            return facts_of_exception(error, host=host, now=now)
    return None
