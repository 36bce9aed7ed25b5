"""What one call knows of itself so far, and the results made from it. No steps, no decisions."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from failwise.vocabulary.codes import Code, category_of, lookup
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import (
    Action,
    Category,
    Effect,
    FixBy,
    Layer,
    StopReason,
    worst_effect,
)
from failwise.vocabulary.ports import Policy
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult
from failwise.vocabulary.spec import Arguments, resolve_flag
from failwise.vocabulary.steps import Call, Situation

_CURED_BY_WAITING = (StopReason.WAIT_TOO_LONG, StopReason.RETRY_BUDGET, StopReason.DECLINED)


class CallState:
    """The growing record of one call."""

    # Defaults stand on the class: a good call sets only what is its own.
    arguments: Arguments = {}  # noqa: RUF012 - replaced by `take`, never changed
    repairs: tuple[Repair, ...] = ()
    failure: Failure | None = None
    heard: Callable[[Call, Attempt], None] | None = None
    key: str | None = None
    fingerprint = ""
    number = 0
    retries = 0
    generation = 0
    ended = 0.0
    started = 0.0
    verdict: bool | None = None
    child_effect = Effect.NOT_SENT
    prior = Effect.NOT_SENT
    """What an earlier owner of this claim may have done."""
    read_only = False
    idempotent = False
    admitted = False
    claimed = False
    asked = False
    in_flight = False
    delegating = False
    refreshed = False
    repaired = False
    corrected = False
    corrected_key: str | None = None
    """Under which the corrected arguments are claimed beside the call's own."""
    worked = False
    refusals = 0
    """Earlier refusals of this tool's parameters in this run."""
    verified = False
    value_used = False
    claimed_arguments: Arguments | None = None
    """What the call's own claim was made for; corrected ones are claimed beside it."""
    polls = 0
    """How often another owner's claim was waited for."""
    put_off = 0
    """How often an engine has waited for what is handed back otherwise."""

    def __init__(self, call: Call) -> None:
        self.call = call
        if call.earlier:
            self.number = self.retries = call.earlier
        self.attempts: list[Attempt] = []
        self.tried: list[str] = []

    # What the call is

    def take(self, arguments: Arguments, repairs: tuple[Repair, ...]) -> None:
        """Arguments that will be sent; declarations that depend on them are resolved here, once."""
        self.arguments = arguments
        if repairs:
            self.repairs += repairs
        tool = self.call.tool
        if tool.read_only is True or resolve_flag(tool.read_only, arguments) is True:
            self.read_only = True
        else:
            self.read_only = False
            self.idempotent = resolve_flag(tool.idempotent, arguments) is True
            self.key = self.call.key

    @property
    def keyed(self) -> bool:
        """The upstream honours an idempotency key."""
        return self.call.tool.idempotency_key is not None

    @property
    def repeatable(self) -> bool:
        """Sending twice does no harm."""
        return self.read_only or self.idempotent or self.keyed

    @property
    def failed(self) -> Failure:
        """The last failure; asked for only after there was one."""
        assert self.failure is not None
        return self.failure

    @property
    def effect(self) -> Effect:
        """What became of this tool's own effect over all attempts."""
        effects = [a.failure.effect for a in self.attempts if a.failure is not None]
        return worst_effect(self.prior, *effects)

    # Time

    @property
    def past_deadline(self) -> bool:
        return self.call.deadline is not None and self.call.now >= self.call.deadline

    def has_time(self, seconds: float) -> bool:
        """After this many seconds there is still time to send."""
        return self.call.deadline is None or self.call.now + seconds < self.call.deadline

    def limit(self, policy: Policy) -> float | None:
        """The next attempt's time limit, cut by the deadline."""
        call = self.call
        if not self.attempts:
            limit = call.tool.timeout
        else:
            limit = policy.timeout(call.tool, tuple(self.attempts))
        if call.deadline is None:
            return limit
        remaining = max(0.0, call.deadline - call.now)
        return remaining if limit is None else min(limit, remaining)

    def jitter(self) -> float:
        """A fixed share of 1 for this call's next wait."""
        from failwise.policy.decide import chance

        return chance(self.call.key, self.number + 101)

    # Attempts

    def start(self) -> None:
        self.number += 1
        if self.verified:
            self.verified, self.verdict = False, None
        self.started = self.call.now
        self.in_flight = True

    def note(self, failure: Failure) -> None:
        """Record a failed attempt."""
        now = self.call.now
        self.in_flight = False
        self.ended = now
        self.failure = self._told(failure)
        self.attempts.append(
            Attempt(
                self.number,
                self.started - self.call.began,
                (now - self.started) * 1000,
                self.failure,
            )
        )

    def decline(self, failure: Failure) -> None:
        """Record that the first attempt was not sent (number 0: no request)."""
        self.failure = self._told(failure)
        self.attempts.append(Attempt(0, self.call.now - self.call.began, 0.0, self.failure))

    def decide(self, decision: Decision) -> None:
        """Keep the decision with the attempt that it answers."""
        last = self.attempts[-1]
        self.attempts[-1] = replace(last, decision=decision)
        if self.heard is not None and decision is not last.decision:
            self.heard(self.call, self.attempts[-1])

    def carried(self, decision: Decision) -> Decision:
        """Where an engine keeps the call: to wait, instead of handing back when to try again.

        Only what waiting cures, and where sending was safe all the same: these reasons to stop.
        """
        durable, at = self.call.durable, decision.retry_at
        if durable is None or at is None or decision.stop not in _CURED_BY_WAITING:
            return decision
        seconds = max(0.0, at - self.call.now - self.call.epoch)
        seconds += self.jitter() * min(1.0, 0.1 * seconds)
        longest = seconds > durable.longest_wait or not self.has_time(seconds)
        if longest or self.put_off >= durable.times:
            return decision
        self.put_off += 1
        return replace(
            decision, action=Action.RETRY_LATER, delay=seconds, rule="retry.later", stop=None
        )

    def clear_effects(self) -> None:
        """It certainly did not happen: earlier unknowns are no obstacle any more."""
        self.prior = Effect.NOT_SENT
        self.attempts = [
            replace(a, failure=replace(a.failure, effect=Effect.REJECTED)) if a.failure else a
            for a in self.attempts
        ]
        self.failure = self.attempts[-1].failure

    def _told(self, failure: Failure) -> Failure:
        details = {**(failure.details or {}), "read_only": self.read_only}
        if self.idempotent:
            details["idempotent"] = True
        if self.keyed:
            details["keyed"] = True
        layer = failure.layer
        if self.call.tool.kind == "model" and layer is Layer.TOOL_EXECUTION:
            layer = Layer.TRANSPORT
            if failure.category is Category.MODEL_OUTPUT:
                layer = Layer.MODEL_OUTPUT
        return replace(failure, details=details, layer=layer)

    def own_failure(self, code: str, effect: Effect, wait: float | None = None) -> Failure:
        """A failure of the runtime's own making."""
        entry = lookup(code)
        return Failure(
            category_of(code),
            code,
            entry.meaning["en"] if entry else "",
            effect,
            entry.transient if entry else None,
            entry.fix_by if entry else FixBy.NOBODY,
            retry_after=wait,
            rule=f"runtime.{code.partition('.')[2]}",
            confidence=1.0,
            details={"read_only": self.read_only},
        )

    # Other doors

    def fallbacks_left(self) -> list[str]:
        """Declared fallbacks not tried, and not already on the way here (no cycles)."""
        seen = {*self.tried, *self.call.delegated, self.call.tool.name}
        return [name for name in self.call.tool.fallback if name not in seen]

    @property
    def can_fall_back(self) -> bool:
        from failwise.vocabulary.records import UNSET

        value = self.call.tool.fallback_value is not UNSET and not self.value_used
        return value or bool(self.fallbacks_left())

    def note_child(self, child: ToolResult[Any]) -> bool:
        """A fallback failed too: is it safe to try yet another one?"""
        failure = child.failure
        if failure is None or failure.detail("read_only"):
            return True
        self.child_effect = worst_effect(self.child_effect, child.effect or Effect.NOT_SENT)
        if not self.child_effect.safe:
            self.tried.extend(self.fallbacks_left())
            self.value_used = True
        return self.child_effect.safe

    @property
    def earlier_refusals(self) -> int:
        """How often the parameters were refused before the last failure, in this run and call."""
        refused = [a for a in self.attempts[:-1] if a.failure and a.failure.refuses_parameters]
        return self.refusals + len(refused)

    def situation(self, *, retries: int | None = None, can_repair: bool = False) -> Situation:
        """What the policy may rest on."""
        call = self.call
        return Situation(
            call.tool,
            self.read_only,
            self.idempotent,
            self.keyed,
            self.retries if retries is None else retries,
            tuple(self.attempts),
            call.now,
            call.epoch,
            call.deadline,
            call.key,
            self.refreshed,
            self.repaired,
            self.verdict is False,
            call.can_refresh,
            can_repair,
            call.tool.verify is not None and not self.verified,
            self.can_fall_back,
            self.worked,
            call.observe,
            call.policy,
            self.prior,
            self.earlier_refusals,
        )

    # Results

    def _result(
        self,
        success: bool,
        value: Any,
        failure: Failure | None,
        suggested_action: Action | None = None,
        stop_reason: StopReason = StopReason.SUCCEEDED,
    ) -> ToolResult[Any]:
        call = self.call
        return ToolResult(
            call.tool.name,
            success,
            value,
            failure,
            suggested_action,
            tuple(self.attempts) if self.attempts else (),
            self.repairs,
            None,
            stop_reason,
            None,
            (call.now - call.began) * 1000,
            call.began + call.epoch,
            call.call_id,
            call.run_id,
            call.parent_id,
            None,
            "",
            None if success and self.read_only else self.arguments,
            None if call.extra is None else dict(call.extra),
            call.tool.upstream_name,
            call.model,
            call.tool.parameter_count,
        )

    def success(self, value: Any) -> ToolResult[Any]:
        self.in_flight = False
        if self.attempts:
            now = self.call.now
            self.attempts.append(
                Attempt(self.number, self.started - self.call.began, (now - self.started) * 1000)
            )
        return self._result(True, value, None)

    def confirmed(self, value: Any) -> ToolResult[Any]:
        """A callback found that it had happened."""
        found = None if value is True else value
        result = self._result(True, found, None)
        result.verified = True
        return result

    def replayed(self, result: ToolResult[Any] | None) -> ToolResult[Any]:
        """The result of the same call, done before: handed back, not sent again.

        A person who settled an effect left no result: it is known to have happened, no more.
        """
        call = self.call
        again = self.confirmed(None) if result is None else copy.copy(result)
        again.timestamp = call.began + call.epoch
        again.duration_ms = (call.now - call.began) * 1000
        again.attempts = ()
        again.extra = {**again.extra, "replayed": True}
        return again

    def degraded(self, value: Any, name: str, child: ToolResult[Any] | None) -> ToolResult[Any]:
        """Another tool's answer in place of this one's."""
        result = self._result(True, value, None)
        result.degraded_to = name
        if child is not None:
            for key, item in child.extra.items():
                result.extra.setdefault(key, item)
            result.repairs += child.repairs
        return result

    def refused(self, failure: Failure, policy: Policy, reason: StopReason) -> ToolResult[Any]:
        """Nothing was sent."""
        self.decline(failure)
        decision = policy.decide(self.failed, self.situation(retries=1_000_000))
        return self.end(replace(decision, stop=reason))

    def end(self, decision: Decision) -> ToolResult[Any]:
        """The failed result, with what to do next."""
        self.decide(decision)
        failure = self.failed
        worst = worst_effect(failure.effect, self.effect, self.child_effect)
        if not self.read_only and worst is not failure.effect:
            failure = replace(failure, effect=worst)
        if failure.category is Category.AUTH and failure.fix_by is FixBy.RUNTIME:
            failure = replace(failure, fix_by=FixBy.OPERATOR)  # the runtime could not renew it
        details = dict(failure.details or {})
        details["fallbacks_left"] = self.fallbacks_left()
        if self.call.tool.verify is not None:
            details["verified"] = self.verdict
        action = decision.action
        if action is Action.FALLBACK:
            action = Action.ASK_MODEL
        result = self._result(
            False,
            None,
            replace(failure, details=details),
            action,
            decision.stop or StopReason.NOT_RETRIABLE,
        )
        result.retry_at, result.interrupts = decision.retry_at, decision.interrupt
        if self.call.tool.verify is not None and self.verdict is not None:
            result.verified = self.verdict
        return result

    def cancelled(self, code: Code | None) -> ToolResult[Any]:
        """The record of a cancelled call."""
        effect = worst_effect(self.effect, self.child_effect)
        failure = self.own_failure("runtime.cancelled", effect)
        return self._result(False, None, failure, Action.ABORT, StopReason.CANCELLED)
