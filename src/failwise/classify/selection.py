"""Several findings → one: the status sets the frame, codes and texts split it, waits tell rate from quota."""

from collections.abc import Callable, Sequence
from typing import Final

from failwise.classify.finding import PHRASE, TOKEN, Finding, Said, strongest
from failwise.classify.tables import StatusRow, status_rows
from failwise.evidence.facts import Evidence
from failwise.vocabulary.kinds import Effect, FixBy

_HOUR: Final = 3_600
_BUSY: Final = 45
"""That it is busy says little alone, and enough beside a status that says nothing of its own."""
_STATUS_STRENGTH: Final = 60
_ALONE: Final = "the status alone"
_ANY_REFUSAL: Final = frozenset({400, 409, 422})
"""Statuses under which services say no for any reason: the words beside them say which."""


def status_row(status: int) -> StatusRow:
    """What the status says; an unknown 4xx counts as 400, an unknown 5xx as 500."""
    rows = status_rows()
    return rows.get(status) or rows[500 if status >= 500 else 400]


def status_finding(evidence: Evidence, status: int, *, detailed: bool) -> Finding:
    """The finding of the status alone. `detailed`: the body names a parameter, code or message."""
    row = status_row(status)
    code, fix_by = row.code, None
    if status == 404 and not detailed:
        code = "invalid_request.endpoint_not_found"
    challenge = evidence.headers.get("www-authenticate", "").lower()
    if status == 401 and "expired" in challenge:
        code = "auth.credential_expired"
    if status == 403:
        if _throttled(evidence):
            code = "rate_limit.requests"
        elif "challenge" in evidence.headers.get("cf-mitigated", ""):
            code = "auth.human_check"
        elif "insufficient_scope" in challenge:
            code = "auth.insufficient_scope"
    return Finding(f"status.{status}", code, row.effect, _STATUS_STRENGTH, "status", fix_by=fix_by)


def _throttled(evidence: Evidence) -> bool:
    """A 403 that is a limit: the counter is empty, or a wait is told."""
    headers = evidence.headers
    remaining = headers.get("x-ratelimit-remaining", headers.get("ratelimit-remaining", "")).strip()
    return remaining == "0" or "retry-after" in headers


def split(
    evidence: Evidence, status: int, findings: Sequence[Finding | Said], *, detailed: bool
) -> tuple[Finding, str]:
    """The verdict of an answer with this status, and why: what may split it, else itself."""
    default = status_finding(evidence, status, detailed=detailed)
    row = status_row(status)
    if default.code != row.code and default.category != "invalid_request":
        return default, "a header of the answer says so"

    def may_split(finding: Finding) -> bool:
        return (
            row.may_be(finding.code)
            and finding.strength >= (_BUSY if finding.code == "server.overloaded" else PHRASE)
        ) or (
            finding.strength >= TOKEN
            and finding.family != "shape"
            and _may_overrule(finding, status)
        )

    best = strongest(findings, may_split)
    if best is None or (not detailed and best.code == row.code and best.strength < TOKEN):
        return default, _ALONE
    if status == 429 and best.category == "business" and _short_wait(evidence):
        told = Finding("status.429.wait", "rate_limit.requests", row.effect, TOKEN, "status")
        return told, "a quota with a short wait is a rate"
    if best.category == default.category and best.code == row.code and best.family == "text":
        best.family = "status"
    if row.effect is Effect.REJECTED and best.effect is Effect.UNKNOWN:
        best.effect = Effect.REJECTED
    return best, f"splits status {status}"


def refined(status: int, why: str, findings: Callable[[], list[Finding]]) -> Finding | None:
    """What makes a bare refusal more precise: the best of `findings`, asked for only where the status
    decided alone and stands for any refusal."""
    if why != _ALONE or status not in _ANY_REFUSAL:
        return None
    row = status_row(status)
    eligible = [finding for finding in findings() if row.may_be(finding.code)]
    best = strongest(eligible)
    if best is not None and best.effect is Effect.UNKNOWN:
        best.effect = row.effect
    return best


def _may_overrule(finding: Finding, status: int) -> bool:
    """Network and trust tokens tell of a hop behind the one that answered: gateways pass them on. A
    credential that is refused is what many services answer 500 for, and no repeat cures it."""
    return (status >= 500 and finding.category in ("network", "security", "rate_limit")) or (
        status == 500 and finding.category == "auth"
    )


def _short_wait(evidence: Evidence) -> bool:
    return any(0 < wait.seconds <= _HOUR for wait in evidence.waits)


def refuse(rule: str, code: str | None) -> Finding:
    """A well-formed "no" that no table and no rule knows: business, with the provider's own code."""
    return Finding(
        rule,
        "business.refused",
        Effect.REJECTED,
        45,
        "shape",
        transient=False,
        fix_by=FixBy.MODEL,
        provider_code=code,
    )
