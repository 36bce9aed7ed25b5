"""`Classifier`: `Evidence` → `Failure`, or None where it was a success."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from failwise.classify.case import Judgement
from failwise.classify.confidence import confidence
from failwise.classify.details import details_of, trail_of
from failwise.classify.finding import Finding
from failwise.classify.fingerprint import fingerprint, ignores_text
from failwise.classify.judge import Judge
from failwise.classify.message import clean_message, excerpt
from failwise.classify.once import OnceRedactor
from failwise.classify.recall import Decided, Key, Recall, Verdict, made
from failwise.classify.tables import likely_causes
from failwise.evidence.facts import Evidence
from failwise.redaction import Redactor, default
from failwise.vocabulary.codes import category_of, lookup
from failwise.vocabulary.failure import Failure, Spoke
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, Layer

if TYPE_CHECKING:
    from failwise.classify.advisor import Advisor
    from failwise.classify.own import OwnRules
    from failwise.profiles.library import Profiles

REFRESHED: Final = frozenset({"auth.invalid_credential", "auth.credential_expired"})
"""What a new credential cures: a signature that does not fit, or a missing right, it does not."""
_PROVIDER_CODE_LIMIT: Final = 120
_SPOKE: Final = 8
"""Rules that spoke, kept with a failure; the trail on demand has all of them."""


class Classifier:
    """Gives every end of a call its verdict. Safe to share between threads. What comes again word for
    word is judged once (`Recall`); nothing else is kept.

    `profiles` is the library of provider profiles (default: the package's), `redactor` the border
    for every text that leaves (default: the shared one), `now` the wall clock in epoch seconds.
    `advisor` labels what no rule knows; `rules` are the user's own, which win over the package's.
    """

    def __init__(
        self,
        profiles: "Profiles | None" = None,
        redactor: Redactor | None = None,
        now: Callable[[], float] = time.time,
        advisor: "Advisor | None" = None,
        rules: "OwnRules | None" = None,
    ) -> None:
        self._profiles = profiles
        self._redactor = redactor
        self._now = now
        self._advisor = advisor
        self._rules = rules
        self._judging: Judge | None = None
        self._recall = Recall()

    def classify(
        self,
        evidence: Evidence,
        *,
        tool: str = "",
        profile: str | None = None,
        read_only: bool = False,
        trail: bool = False,
    ) -> Failure | None:
        """The failure that the evidence shows, or None: it was a success.

        `tool` goes into the fingerprint; `profile` names the provider's profile. `trail=True` puts
        what was found, what spoke and why it won into ``details["trail"]``, with `read_only` beside
        it: reads and writes get the same verdict, what follows from the effect is the policy's.
        Raises `UsageError` for a profile that does not exist, else nothing.
        """
        if evidence.inner is not None:
            return self._inner(evidence)
        key = None if evidence.same is None or trail else self._key(evidence, tool, profile)
        failure = None if key is None else self._once_more(key, evidence, tool, profile)
        if failure is None:
            judgement = self._judge().judge(evidence, profile=profile, now=self._now())
            if judgement.finding is None:
                return None
            found = judgement.evidence or evidence
            if found is not evidence and found.exception is None:
                found.exception = evidence.exception
            kept = None if key is None or not _lasting(found, judgement) else Verdict()
            failure = self._failure(found, judgement, tool, kept, read_only if trail else None)
            if key is not None and kept is not None:
                self._recall.keep(key, kept)
        return failure if self._advisor is None else self._advisor.advised(failure, tool)

    def _key(self, evidence: Evidence, tool: str, profile: str | None) -> Key:
        """All that a verdict on this evidence rests on."""
        named = profile or evidence.profile
        return evidence.same, tool, named, self._judge().edition, self._border().edition

    def _once_more(
        self, key: Key, evidence: Evidence, tool: str, profile: str | None
    ) -> Failure | None:
        """The failure of evidence that was judged before, word for word."""
        kept = self._recall.get(key)
        if kept is None:
            return None

        def anew() -> Failure:
            judgement = self._judge().judge(evidence, profile=profile, now=self._now())
            return self._failure(evidence, judgement, tool, kept)

        return kept.failure(anew, functools.partial(_request_id, evidence), evidence.exception)

    def explain(self, evidence: Evidence, *, profile: str | None = None) -> dict[str, Any]:
        """The trail of a verdict, for successes too: evidence, rules that spoke, winner, why."""
        judgement = self._judge().judge(evidence, profile=profile, now=self._now())
        return trail_of(judgement.evidence or evidence, judgement, self._border())

    def _inner(self, evidence: Evidence) -> Failure | None:
        """A tool that called the runtime itself: its failure is the inner one, already retried."""
        assert evidence.inner is not None
        failure = evidence.inner.failure
        if failure is None:
            return None
        effect = evidence.inner.effect or failure.effect
        return dataclasses.replace(
            failure, effect=effect, rule=f"inner:{failure.rule}", exception=evidence.exception
        )

    def _judge(self) -> Judge:
        if self._judging is None:
            if self._profiles is None:
                from failwise.profiles.library import Profiles

                self._profiles = Profiles.default()
            self._judging = Judge(self._profiles, self._rules)
        return self._judging

    def _border(self) -> Redactor:
        if self._redactor is None:
            self._redactor = default()
        return self._redactor

    def _failure(
        self,
        evidence: Evidence,
        judgement: Judgement,
        tool: str,
        kept: Verdict | None = None,
        read_only: bool | None = None,
    ) -> Failure:
        """What decides is there at once; what is only told is put in words when read, and then known
        to `kept`. With `read_only` the trail is told too."""
        finding = judgement.finding
        assert finding is not None
        redactor = OnceRedactor(self._border())
        code, details = finding.code, None
        if code == "invalid_request.malformed":
            details = details_of(evidence, judgement, redactor)
            code = _refined(finding, details)
        status = _status(evidence, judgement)

        def named() -> dict[str, Any]:
            entry = lookup(code)
            provider_code = _provider_code(finding, judgement)
            said = _request_id_of_body(judgement)
            found = {
                "meaning": finding.meaning or (dict(entry.meaning) if entry else None),
                "likely_causes": likely_causes(code),
                "provider_code": redactor.text(provider_code) if provider_code else None,
                "request_id": said,
            }
            if kept is not None:
                kept.named = found
            return {**found, "request_id": _request_id(evidence, said)}

        def told() -> dict[str, Any]:
            facts = details_of(evidence, judgement, redactor) if details is None else {**details}
            if read_only is not None:
                seen = trail_of(evidence, judgement, redactor)
                facts["trail"] = {**seen, "read_only": read_only}
            message = clean_message(evidence, judgement, redactor)
            subject = _provider_code(finding, judgement)
            found = {
                "message": message,
                "details": facts or None,
                "remedies": _remedies(finding, evidence),
                "spoke": _spoke(judgement),
                "fingerprint": _fingerprint(code, tool, status, subject, evidence, message),
                "evidence": excerpt(evidence, redactor),
            }
            if kept is not None:
                kept.told = found
            return {**found, "details": {**facts} or None}

        category = category_of(code)
        decided: Decided = (
            category,
            code,
            Effect.NOT_SENT
            if category is Category.MODEL_OUTPUT and not evidence.status
            else finding.effect,
            _transient(finding, evidence),
            _fix_by(finding, code),
            Layer.TOOL_EXECUTION,
            _advice(finding, evidence),
            status,
            _told_wait(evidence, judgement, finding),
            finding.provider,
            finding.rule,
            judgement.why,
            *confidence(finding),
        )
        if kept is not None:
            kept.decided = decided
        return made(decided, named, told, evidence.exception)


def _lasting(evidence: Evidence, judgement: Judgement) -> bool:
    """Does the verdict hold at any time? Waits that fields tell may be counted from now."""
    reading = judgement.reading
    return (reading is None or not reading.waits) and all(
        wait.source in ("text", *evidence.headers) for wait in evidence.waits
    )


def _spoke(judgement: Judgement) -> tuple[Spoke, ...]:
    """The rules that spoke, strongest first."""
    findings = judgement.spoke
    if len(findings) > 1:
        findings = sorted(findings, key=lambda finding: finding.order, reverse=True)[:_SPOKE]
    return tuple(Spoke(finding.rule, finding.code, finding.strength) for finding in findings)


def _refined(finding: Finding, details: dict[str, Any]) -> str:
    """A refused request whose parameter is known is about that parameter."""
    violations = details.get("violations")
    if violations and finding.code == "invalid_request.malformed":
        return (
            "invalid_request.missing_parameter"
            if all(one.get("rule") == "required" for one in violations)
            else "invalid_request.parameter"
        )
    return finding.code


def _transient(finding: Finding, evidence: Evidence) -> bool | None:
    """The rule's view; the upstream's own word (``x-should-retry``) is firm where it applies."""
    if "x-should-retry" in evidence.headers:
        should = evidence.headers["x-should-retry"].strip().lower()
        if should == "false":
            return False
        if should == "true" and finding.category in ("server", "network", "rate_limit"):
            return True
    return finding.is_transient()


def _fix_by(finding: Finding, code: str) -> FixBy:
    if finding.fix_by is not None:
        return finding.fix_by
    if finding.advice is None:
        return finding.fixed_by() if code == finding.code else FixBy.MODEL
    match finding.advice:
        case Action.ASK_USER if finding.category in ("business",):
            return FixBy.USER
        case Action.REFRESH_CREDENTIAL if code in REFRESHED:
            return FixBy.RUNTIME
        case Action.REPAIR_ARGUMENTS:
            return FixBy.MODEL
        case _:
            return finding.fixed_by() if code == finding.code else FixBy.MODEL


def _advice(finding: Finding, evidence: Evidence) -> Action | None:
    """A wait without a number is a back-off."""
    if finding.advice is Action.RETRY_EXACT and not evidence.waits:
        return Action.RETRY_BACKOFF
    return finding.advice


def _remedies(finding: Finding, evidence: Evidence) -> dict[str, str] | None:
    """What the handshake showed may say more than the code does: who must change what."""
    if finding.category != "security" or not evidence.tls:
        return None
    from failwise.evidence.tls_labels import remedies

    return remedies(evidence.tls)


def _told_wait(evidence: Evidence, judgement: Judgement, finding: Finding) -> float | None:
    if finding.family == "stated" and evidence.tool_error is not None:
        return evidence.tool_error.retry_after
    if evidence.waits:
        return evidence.waits[0].seconds
    reading = judgement.reading
    if (
        reading is not None
        and reading.waits
        and finding.category in ("rate_limit", "server", "network", "business")
    ):
        return reading.waits[0][0]
    return None


def _status(evidence: Evidence, judgement: Judgement) -> int | None:
    if evidence.tool_error is not None:
        return evidence.tool_error.http_status
    if evidence.status is not None:
        return evidence.status
    return judgement.shape.status if judgement.shape is not None else None


def _provider_code(finding: Finding, judgement: Judgement) -> str | None:
    code = finding.provider_code
    if code is None and judgement.shape is not None:
        code = judgement.shape.code
    if code is None and judgement.reading is not None:
        code = judgement.reading.code
    if code is not None and code.startswith("http:"):
        return None
    return code[:_PROVIDER_CODE_LIMIT] if code else None


def _request_id(evidence: Evidence, of_body: str | None) -> str | None:
    return (
        _request_id_of_headers(evidence, _REQUEST_IDS)
        or of_body
        or _request_id_of_headers(evidence, _TRACE_IDS)
    )


def _request_id_of_body(judgement: Judgement) -> str | None:
    found = judgement.finding.request_id if judgement.finding else None
    if found is None and judgement.reading is not None:
        found = judgement.reading.request_id
    if found is None and judgement.shape is not None:
        found = judgement.shape.request_id
    return found[:_PROVIDER_CODE_LIMIT] if found else None


def _request_id_of_headers(evidence: Evidence, names: tuple[str, ...]) -> str | None:
    for name in names if evidence.headers else ():
        if name in evidence.headers:
            return evidence.headers[name][:_PROVIDER_CODE_LIMIT]
    return None


_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id")
"""Headers with the id that the service gave the request; they stand before what a body says."""
_TRACE_IDS: Final = ("cf-ray", "x-trace-id")
"""Headers with an id of somebody on the way."""


def _fingerprint(
    code: str,
    tool: str,
    status: int | None,
    provider_code: str | None,
    evidence: Evidence,
    message: str,
) -> str:
    """Gateways put any page around the same cause: there the code alone is the template. Where no
    upstream said a code, the type of the error is what the failure is about."""
    category = category_of(code)
    if ignores_text(code):
        return fingerprint(category, code, tool, "", "")
    subject = provider_code or (str(status) if status else "")
    if not subject and category in (Category.TOOL, Category.UNKNOWN):
        subject = _error_type(evidence)
    return fingerprint(category, code, tool, subject, message)


def _error_type(evidence: Evidence) -> str:
    """The class of the exception without its module: libraries move classes about."""
    name = evidence.exceptions[0].name if evidence.exceptions else evidence.parts.get("wrapper", "")
    return name.rpartition(".")[2][:_PROVIDER_CODE_LIMIT]
