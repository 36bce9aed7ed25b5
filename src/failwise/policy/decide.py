"""The decision: what to do about one failure. Pure, so any process decides alike."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from failwise.policy.table import Row, Table, load
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, StopReason
from failwise.vocabulary.result import Attempt, Decision
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Situation

_ADVICE = (Action.ASK_MODEL, Action.ASK_USER, Action.ABORT)
"""What a provider's table may choose for the end of a call: it never causes a send."""


def chance(seed: str, number: int) -> float:
    """A fixed "random" share of 1 for attempt `number` of a call: the same in every process."""
    digest = hashlib.blake2b(f"{seed}\x1f{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class TablePolicy:
    """Decisions by table. `source` is a preset, a TOML file or parsed tables; see `load`."""

    def __init__(
        self,
        source: "str | Path | Mapping[str, Any] | Table | None" = None,
        *,
        jitter: float | None = None,
    ) -> None:
        self.table = source if isinstance(source, Table) else load(source, jitter=jitter)
        self._rows: dict[tuple[str, str | None, str], Row] = {}

    @property
    def wait_ceiling(self) -> float:
        """Told waits above this many seconds are handed back."""
        return self.table.settings.wait_ceiling

    def row(self, failure: Failure, situation: Situation) -> Row:
        """The row in force for this failure of this tool."""
        tool, overrides = situation.tool, situation.overrides
        if tool.policy or overrides:
            return self.table.row(
                failure.code,
                provider=failure.provider,
                tool=tool.name,
                overrides=(tool.policy, overrides),
            )
        key = (failure.code, failure.provider, tool.name)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) > 10_000:
                self._rows.clear()
            row = self._rows[key] = self.table.row(
                failure.code, provider=failure.provider, tool=tool.name
            )
        return row

    def timeout(self, tool: ToolSpec, attempts: tuple[Attempt, ...]) -> float | None:
        """Seconds the next attempt may take: longer after each read timeout."""
        if tool.timeout is None:
            return None
        slow = sum(
            1 for a in attempts if a.failure and a.failure.code in ("network.read_timeout", "network.timeout")
        )  # fmt: skip
        return tool.timeout * self.table.settings.timeout_growth**slow

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        """What to do now. Order: cure, repeat, verify, another door, tell."""
        row = self.row(failure, situation)
        interrupt = _interrupt(row, situation)
        untouched = situation.read_only or situation.effect(failure).safe
        safe = untouched or situation.repeatable
        if situation.observe:
            return _end(
                failure,
                row,
                situation,
                "",
                StopReason.OBSERVED,
                "observe mode: nothing is repeated",
            )
        if _probably_done(failure, situation):
            return Decision(
                Action.VERIFY_EFFECT,
                reason="it exists already, after an attempt whose effect is unknown: probably ours",
                rule="verify.already_exists",
            )
        if safe and not failure.detail("already_retried"):
            cure = _cure(failure, row, situation)
            if cure is not None:
                return cure
            retry, stop = self._retry(failure, row, situation)
            if retry is not None:
                return retry
        else:
            stop = StopReason.UNSAFE_EFFECT if not safe else StopReason.RETRIES_EXHAUSTED
        if not untouched and situation.can_verify:
            return Decision(
                Action.VERIFY_EFFECT,
                reason=f"the effect is {situation.effect(failure)}: ask whether it happened before anything else",
                rule="verify.unknown_effect",
            )
        # A key or idempotence holds at this door only: through another one it would be a second effect.
        # And where TLS trust failed, nobody knows who would get the write: only a read goes elsewhere.
        trusted = situation.read_only or failure.category is not Category.SECURITY
        elsewhere = row.fallback and untouched and trusted and stop is not StopReason.DEADLINE
        why = _why(stop, failure, situation)
        if elsewhere and situation.can_fall_back:
            return Decision(
                Action.FALLBACK,
                reason=f"{failure.code}: {why}; another tool may answer",
                rule="fallback",
                stop=stop,
                interrupt=interrupt,
            )
        return _end(failure, row, situation, interrupt, stop, why)

    def _retry(
        self, failure: Failure, row: Row, situation: Situation
    ) -> tuple[Decision | None, StopReason]:
        """A repeat after a wait, or why there is none. The effect is known to be safe here."""
        settings = self.table.settings
        limit = row.retries_read if situation.read_only else row.retries
        most = self.table.upstreams.get(situation.tool.upstream_name)
        if most is not None:
            limit = min(limit, most)
        number = situation.retries + 1
        told = failure.retry_after
        if failure.transient is False or (failure.transient is None and not situation.read_only):
            return None, StopReason.NOT_RETRIABLE
        if not situation.read_only and not settings.retry_not_sent:
            return None, StopReason.NOT_RETRIABLE
        if limit == 0:
            return None, StopReason.NOT_RETRIABLE
        if failure.category is Category.PARSING and _same_twice(failure, situation):
            return None, StopReason.SAME_FAILURE
        if told is not None and told > settings.wait_ceiling:
            return None, StopReason.WAIT_TOO_LONG
        if number > min(limit, settings.retries_ceiling):
            return None, StopReason.RETRIES_EXHAUSTED
        share = chance(situation.seed, number)
        if told is not None:
            late = share * min(settings.late_limit, told * settings.late_share)
            delay = told + (late if row.jitter else 0.0)
            action, rule = Action.RETRY_EXACT, "retry.exact"
            reason = f"the upstream told to wait {told:g} s"
        else:
            spread = 1.0 - row.jitter + 2.0 * row.jitter * share
            delay = row.delay(number) * spread
            action, rule = Action.RETRY_BACKOFF, f"retry.{row.strategy}"
            reason = f"{failure.code} is transient and repeating is safe ({_why_safe(failure, situation)})"
        if situation.deadline is not None and situation.now + delay >= situation.deadline:
            return None, StopReason.DEADLINE
        return Decision(action, delay, reason=reason, rule=rule), StopReason.SUCCEEDED


_WHY = {
    StopReason.NOT_RETRIABLE: "repeating does not cure this",
    StopReason.UNSAFE_EFFECT: "it may have taken effect, so it is not sent again",
    StopReason.RETRIES_EXHAUSTED: "the retries are used up",
    StopReason.WAIT_TOO_LONG: "the wait is longer than is waited here",
    StopReason.DEADLINE: "the next attempt would pass the deadline",
    StopReason.SAME_FAILURE: "the same answer came twice",
    StopReason.RETRY_BUDGET: "the shared retry budget is empty",
    StopReason.DECLINED: "it was not sent",
    StopReason.SUCCEEDED: "",
    StopReason.CANCELLED: "the call was cancelled",
    StopReason.INVALID_ARGUMENTS: "the arguments are wrong",
    StopReason.OBSERVED: "observe mode",
}


def _why(stop: StopReason, failure: Failure, situation: Situation) -> str:
    """Why nothing more is tried, for a person."""
    if stop is StopReason.NOT_RETRIABLE and failure.transient:
        return "the policy allows no retry of it" + ("" if situation.read_only else " on a write")
    return _WHY[stop]


def _cure(failure: Failure, row: Row, situation: Situation) -> Decision | None:
    """Refresh or repair, each once, before any plain repeat."""
    past = situation.deadline is not None and situation.now >= situation.deadline
    if row.refresh and situation.can_refresh and not situation.refreshed and not past:
        return Decision(
            Action.REFRESH_CREDENTIAL,
            reason=f"{failure.code}: renew the credential once and repeat",
            rule="refresh",
        )
    again = situation.repaired or situation.refusals
    if row.repair and situation.can_repair and not again and not past:
        return Decision(
            Action.REPAIR_ARGUMENTS,
            reason="the upstream names what is wrong and one correction fits",
            rule="repair",
        )
    return None


def _probably_done(failure: Failure, situation: Situation) -> bool:
    """ "Already exists" answering a repeat after an unknown effect means probably done by us."""
    return (
        failure.code in ("business.already_exists", "business.conflict")
        and situation.can_verify
        and any(a.failure and a.failure.effect is Effect.UNKNOWN for a in situation.attempts[:-1])
    )


def _same_twice(failure: Failure, situation: Situation) -> bool:
    """The failure before this one looks alike: the format has changed."""
    before = [
        a.failure for a in situation.attempts if a.failure is not None and a.failure is not failure
    ]
    return (
        bool(before) and bool(failure.fingerprint) and before[-1].fingerprint == failure.fingerprint
    )


def _why_safe(failure: Failure, situation: Situation) -> str:
    if situation.effect(failure).safe:
        return f"effect {failure.effect}"
    if situation.read_only:
        return "a read"
    return "idempotent" if situation.idempotent else "the same idempotency key"


def _interrupt(row: Row, situation: Situation) -> Any:
    if row.interrupt_unless_worked and situation.credential_worked:
        return ""
    return row.interrupt


def _end(
    failure: Failure,
    row: Row,
    situation: Situation,
    interrupt: Any,
    stop: StopReason,
    why: str,
) -> Decision:
    """Nothing more is tried: what to suggest, and when it may be tried again."""
    second = failure.refuses_parameters and situation.refusals
    action = row.then[1 if second else 0]
    if (
        failure.category is Category.BUSINESS
        and failure.advice in _ADVICE
        and action is Action.ASK_MODEL
    ):
        action = failure.advice
    retry_at = None
    if failure.retry_after is not None and failure.transient is not False:
        retry_at = situation.now + situation.epoch + failure.retry_after
        if situation.repeatable or situation.effect(failure).safe:
            action = Action.RETRY_LATER
    elif action is Action.RETRY_LATER:
        action = Action.ASK_MODEL if failure.category is not Category.RUNTIME else action
    if stop is StopReason.SAME_FAILURE:
        action = Action.ASK_MODEL
    return Decision(
        action,
        interrupt=interrupt,
        reason=f"{failure.code}: {why}",
        rule=f"end.{stop}",
        stop=stop,
        retry_at=retry_at,
    )
