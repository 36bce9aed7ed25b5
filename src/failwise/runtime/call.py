"""The machine: the order of things in one call, and nothing else.

Sans-I/O: it yields steps and is sent their replies. What to do about a failure is the policy's;
what a step means is the driver's. Time and chance are told, so a call is a pure function of its log.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from failwise.runtime.state import CallState
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, Grade, StopReason, worst_effect
from failwise.vocabulary.ports import Policy
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult
from failwise.vocabulary.spec import Arguments
from failwise.vocabulary.steps import (
    Admit,
    Answer,
    AnyStep,
    Ask,
    Call,
    Cancelled,
    Claim,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Refused,
    Release,
    Settle,
    Wait,
)


class Reading(Protocol):
    """What the arguments room answers: arguments with the repairs made, or a failure."""

    @property
    def arguments(self) -> Arguments | None: ...
    @property
    def repairs(self) -> tuple[Repair, ...]: ...
    @property
    def failure(self) -> Failure | None: ...


Corrected: TypeAlias = tuple[Arguments, tuple[Repair, ...]]
"""Arguments to send instead, and what was changed."""


@dataclass(slots=True)
class Logic:
    """The pure rooms that the machine consults. None of them does I/O.

    `classify` answers None for a success, and may put the value a body holds into the answer.
    `fix` corrects arguments as an upstream's refusal demands, where one correction fits; `accept`
    takes what a fixer gave in place of what was sent, where it fits the schema and differs.
    `fingerprint` identifies (tool, canonical arguments). `heard` is told of each failed attempt
    with what was decided about it; it must not raise.
    """

    read: Callable[[Call], Reading]
    classify: Callable[[Answer, Call, CallState], Failure | None]
    fix: Callable[[Call, Arguments, Failure], Corrected | None]
    fingerprint: Callable[[str, Mapping[str, Any]], str]
    policy: Policy
    heard: Callable[[Call, Attempt], None] | None = None
    accept: Callable[[Call, Arguments, Arguments], Corrected | None] | None = None


Again = Generator[AnyStep, Any, "ToolResult[Any] | None"]
"""A station of the call: None means "go on", a result ends it."""


def run_call(call: Call, logic: Logic) -> Machine:
    """One call from raw arguments to its result; every path ends in a `ToolResult`."""
    state = CallState(call)
    if logic.heard is not None:
        state.heard = logic.heard
    try:
        reading = logic.read(call)
        if reading.failure is not None:
            return state.refused(reading.failure, logic.policy, StopReason.INVALID_ARGUMENTS)
        state.take(reading.arguments or {}, reading.repairs)
        while True:
            ended = yield from _leave(state, logic)
            if ended is not None:
                return ended
            state.start()
            answer = yield from Invoke(
                state.arguments, state.limit(logic.policy), state.number, state.key
            )
            failure = logic.classify(answer, call, state)
            if failure is None:
                result = state.success(answer.value)
                if state.claimed:
                    yield from _settle(state, "done", result)
                if state.admitted:
                    yield from _release(state, None)
                return result
            state.note(failure)
            yield from _release(state, failure)
            ended = yield from _answer_failure(state, logic)
            if ended is not None:
                return ended
    except Cancelled as signal:
        return (yield from _cancelled(state, signal))


def _leave(state: CallState, logic: Logic) -> Again:
    """Leave to send: the guards', the deadline's, and for an effect the journal's."""
    call = state.call
    if call.observe:
        return None
    for _ in range(_PATIENCE):
        if state.past_deadline:
            return (yield from _stop(state, logic, StopReason.DEADLINE, "runtime.deadline"))
        reply = yield from Admit(
            call.tool.upstream_name,
            call.tool.credential,
            call.run_id,
            state.number + 1,
            state.failure,
            call.deadline,
            call.tool.name,
        )
        if not isinstance(reply, Refused):
            state.admitted = True
            state.generation, state.worked = reply.generation, reply.worked
            state.refusals = reply.refusals
            break
        pause = (reply.wait or 0.0) + state.jitter() * min(1.0, 0.1 * (reply.wait or 0.0))
        if not reply.hold or pause > logic.policy.wait_ceiling or not state.has_time(pause):
            return (yield from _declined(state, logic, reply))
        yield from _pause(state, pause)
    else:
        return (yield from _declined(state, logic, Refused("runtime.concurrency")))
    if state.read_only:
        return None
    if not state.claimed:
        ended = yield from _claim(state, logic)
        if ended is not None:
            return ended
    if state.corrected and state.corrected_key is None:
        return (yield from _claim_correction(state, logic))
    return None


_PATIENCE = 20
"""How often a held caller asks the guards again before it gives up."""


def _claim(state: CallState, logic: Logic) -> Again:
    """Note the effect durably before it is sent; or find that it was sent already."""
    call = state.call
    if state.claimed_arguments is None:
        state.claimed_arguments = state.arguments
        state.fingerprint = logic.fingerprint(call.tool.name, state.arguments)
    arguments = state.claimed_arguments
    while True:
        state.asked = True
        claimed = yield from Claim(
            call.key, state.fingerprint, call.run_id, call.tool.name, call.call_id, arguments
        )
        match claimed.state:
            case "granted":
                state.claimed = True
                return None
            case "done":
                yield from _release(state, None, sent=False)
                return state.replayed(claimed.result)
            case "in_flight":
                pause = min(claimed.wait or 0.5, 0.5)
                if not state.has_time(pause):
                    # Whoever sends this very call may have done it already, and may be dead.
                    mine = claimed.key in (None, call.key)
                    effect = Effect.UNKNOWN if mine else Effect.NOT_SENT
                    failure = state.own_failure("runtime.in_flight", effect, claimed.wait)
                    return (yield from _unclaimed(state, logic, "runtime.in_flight", failure))
                if call.durable is not None and state.polls < _PATIENCE:
                    return (yield from _claim_later(state, logic, claimed.wait or pause))
                yield from Wait(pause)
            case "unavailable":
                return (yield from _unclaimed(state, logic, "runtime.journal_unavailable"))
            case "conflict":
                return (yield from _unclaimed(state, logic, "runtime.key_conflict"))
            case _ if state.repeatable:
                # An honoured key, or an idempotent tool: sent again as the effect it already is.
                state.key = claimed.key or call.key
                state.claimed = True
                state.prior = Effect.UNKNOWN
                return None
            case _:
                return (yield from _open_effect(state, logic, claimed.key or call.key))


def _claim_later(state: CallState, logic: Logic, lease: float) -> Again:
    """Another owner is sending it, or died doing so: its lease is waited for without holding a slot."""
    state.asked = False
    yield from _release(state, None, sent=False)
    pause = min(lease, 0.5 * 2.0**state.polls)
    state.polls += 1
    yield from _pause(state, pause)
    return (yield from _leave(state, logic))


def _claim_correction(state: CallState, logic: Logic) -> Again:
    """Note the corrected arguments too: a later call that sends just these must find them."""
    call = state.call
    key = state.corrected_key = f"{call.key}:corrected"
    fingerprint = logic.fingerprint(call.tool.name, state.arguments)
    claimed = yield from Claim(
        key, fingerprint, call.run_id, call.tool.name, call.call_id, state.arguments
    )
    if claimed.state == "granted":
        return None
    if claimed.state == "unknown" and state.repeatable:
        state.prior = Effect.UNKNOWN
        return None
    state.corrected_key = None
    yield from _settle(state, "not_done", None)
    if claimed.state == "done":
        yield from _release(state, None, sent=False)
        return state.replayed(claimed.result)
    code = _NOT_CLAIMED.get(claimed.state, "runtime.effect_open")
    effect = Effect.UNKNOWN if code == "runtime.effect_open" else Effect.NOT_SENT
    return (yield from _unclaimed(state, logic, code, state.own_failure(code, effect)))


_NOT_CLAIMED = {
    "in_flight": "runtime.in_flight",
    "unavailable": "runtime.journal_unavailable",
    "conflict": "runtime.key_conflict",
}


def _open_effect(state: CallState, logic: Logic, key: str) -> Again:
    """The same call may already have happened: verify, else refuse."""
    failure = state.own_failure("runtime.effect_open", Effect.UNKNOWN)
    if state.call.tool.verify is not None:
        reply = yield from Ask("verify", state.arguments, failure)
        if reply.verdict:
            yield from _release(state, None, sent=False)
            result = state.confirmed(reply.value)
            yield from Settle(key, "done", result)
            return result
        if reply.verdict is False and state.call.tool.verify_final_after is not None:
            pause = state.call.tool.verify_final_after
            if state.has_time(pause):
                yield from Wait(pause)
                reply = yield from Ask("verify", state.arguments, failure)
                if reply.verdict is False:
                    yield from Settle(key, "not_done")
                    return (yield from _claim(state, logic))
    return (yield from _unclaimed(state, logic, "runtime.effect_open", failure))


def _unclaimed(state: CallState, logic: Logic, code: str, failure: Failure | None = None) -> Again:
    """No claim, so nothing is sent: give the slot back and say why."""
    state.asked = False
    yield from _release(state, None, sent=False)
    failure = failure or state.own_failure(code, Effect.NOT_SENT)
    return state.refused(failure, logic.policy, StopReason.DECLINED)


def _declined(state: CallState, logic: Logic, refusal: Refused) -> Again:
    """A guard gave no leave: the first attempt is refused, or no further one is made."""
    reason = (
        StopReason.RETRY_BUDGET if refusal.code == "runtime.retry_budget" else StopReason.DECLINED
    )
    ended = yield from _stop(state, logic, reason, refusal.code, refusal)
    return ended if ended is not None else (yield from _leave(state, logic))


def _stop(
    state: CallState,
    logic: Logic,
    reason: StopReason,
    code: str,
    refusal: Refused | None = None,
) -> Again:
    """Nothing more is sent to this upstream; another tool may still answer.

    None where an engine has waited instead: leave may be asked for again.
    """
    if not (state.failure or state.read_only or state.claimed):
        # "Not sent" holds for this process only: an earlier one may have sent this very call.
        ended = yield from _claim(state, logic)
        if ended is not None:
            return ended
    repeated, retries = state.failure, state.retries
    if state.failure is None:
        own = state.own_failure(code, Effect.NOT_SENT, refusal.wait if refusal else None)
        if refusal and refusal.reason:
            own = replace(own, message=refusal.reason)
        if refusal and refusal.cause:
            own = replace(own, details={**(own.details or {}), "cause": dict(refusal.cause)})
        state.decline(own)
    state.retries = _NO_MORE
    decision = logic.policy.decide(state.failed, state.situation())
    while reason is not StopReason.DEADLINE:
        if decision.action is Action.VERIFY_EFFECT and decision.stop is None:
            ended = yield from _verify(state)
        elif decision.action is Action.FALLBACK:
            ended = yield from _fall_back(state)
        else:
            break
        if ended is not None:
            return ended
        decision = logic.policy.decide(state.failed, state.situation())
    why = refusal.reason or refusal.code if refusal else "the deadline has passed"
    later = decision.retry_at
    if later is None and refusal and refusal.wait is not None:
        later = state.call.now + state.call.epoch + refusal.wait
    said = f"{state.failed.code}: {why}"
    decision = state.carried(replace(decision, stop=reason, reason=said, retry_at=later))
    if decision.stop is not None:
        return (yield from _finish(state, decision))
    state.decide(decision)
    yield from _pause(state, decision.delay)
    state.failure, state.retries = repeated, retries
    return None


_NO_MORE = 1_000_000


def _answer_failure(state: CallState, logic: Logic) -> Again:
    """Do what the policy decides, until it leads to another attempt (None) or to the end."""
    while True:
        correction, can_repair = None, False
        if state.failed.category is Category.INVALID_REQUEST and not state.repaired:
            correction = logic.fix(state.call, state.arguments, state.failed)
            can_repair = correction is not None or (
                state.call.can_fix and state.failed.refuses_parameters
            )
        decision = logic.policy.decide(state.failed, state.situation(can_repair=can_repair))
        decision = state.carried(decision)
        state.decide(decision)
        match decision.action:
            case Action.RETRY_BACKOFF | Action.RETRY_EXACT | Action.RETRY_LATER if (
                decision.stop is None
            ):
                yield from _pause(state, decision.delay)
                state.retries += 1
                return None
            case Action.REFRESH_CREDENTIAL if decision.stop is None:
                state.refreshed = True
                if (yield from Refresh(state.call.tool.credential or "", state.generation)):
                    return None
            case Action.REPAIR_ARGUMENTS if decision.stop is None and can_repair:
                state.repaired = True
                corrected = yield from _corrected(state, logic, correction)
                if corrected is not None:
                    state.corrected = True
                    state.take(*corrected)
                    return None
            case Action.VERIFY_EFFECT if decision.stop is None:
                ended = yield from _verify(state)
                if ended is not None:
                    return ended
            case Action.FALLBACK:
                ended = yield from _fall_back(state)
                if ended is not None:
                    return ended
            case _:
                return (yield from _finish(state, decision))


def _pause(state: CallState, seconds: float) -> Generator[AnyStep, Any, None]:
    """Wait between two attempts. Where an engine keeps the call, its claim is settled before, and made
    again after: whoever goes on then finds what was sent in between."""
    if state.call.durable is None:
        yield from Wait(seconds)
        return
    if state.claimed:
        yield from _settle(state, "not_done" if state.effect.safe else "unknown", None)
        state.corrected_key = None
    yield from Wait(seconds, between=True)


def _corrected(
    state: CallState, logic: Logic, correction: Corrected | None
) -> Generator[AnyStep, Any, Corrected | None]:
    """What to send instead: the fix that follows from the refusal, else what a fixer gives.

    A fix with one reading needs no yes; a guess does, unless the mode is ``auto``. A fixer was
    registered by the user, which is a yes; it is asked where nobody can be asked about a guess.
    """
    call = state.call
    if correction is not None:
        arguments, repairs = correction
        if call.repair == "auto" or all(repair.grade is not Grade.GUESS for repair in repairs):
            return correction
        if call.can_confirm:
            reply = yield from Ask("confirm", arguments, state.failure, repairs)
            return correction if reply.verdict is True else None
    if not call.can_fix or logic.accept is None:
        return None
    reply = yield from Ask("fixer", state.arguments, state.failure)
    given = reply.arguments
    return None if given is None else logic.accept(call, state.arguments, given)


def _verify(state: CallState) -> Again:
    """Ask whether it happened. A "no" means "not yet", unless the tool says when it is final."""
    state.verified = True
    reply = yield from Ask("verify", state.arguments, state.failure)
    final_after = state.call.tool.verify_final_after
    if reply.verdict is False and final_after is not None:
        pause = max(0.0, state.ended + final_after - state.call.now)
        if state.has_time(pause):
            yield from Wait(pause)
            reply = yield from Ask("verify", state.arguments, state.failure)
            if reply.verdict is False:
                state.clear_effects()
    if reply.verdict:
        result = state.confirmed(reply.value)
        yield from _settle(state, "done", result)
        return result
    state.verdict = reply.verdict
    return None


def _fall_back(state: CallState) -> Again:
    """Other tools, in turn; each is a call of its own. A value of the tool's is the last resort."""
    for name in state.fallbacks_left():
        state.tried.append(name)
        state.delegating = True
        child = yield from Delegate(name, state.arguments)
        state.delegating = False
        if child.success:
            # Done through another door: the same call must not be sent through this one later.
            result = state.degraded(child.value, name, child)
            yield from _settle(state, "done", result)
            return result
        if not state.note_child(child):
            return None
    if state.call.tool.fallback_value is not UNSET and not state.value_used:
        state.value_used = True
        result = state.degraded(state.call.tool.fallback_value, "value", None)
        yield from _settle_as_failed(state, result)
        return result
    return None


def _finish(state: CallState, decision: Decision) -> Machine:
    result = state.end(decision)
    yield from _settle_as_failed(state, result)
    return result


def _settle_as_failed(state: CallState, result: ToolResult[Any]) -> Generator[AnyStep, Any, None]:
    """The claim of a failed call: what became of its effect, through whichever door."""
    effect = worst_effect(state.effect, state.child_effect)
    if effect.safe:
        yield from _settle(state, "not_done", None)
    else:
        yield from _settle(state, "done" if effect is Effect.APPLIED else "unknown", result)


def _settle(
    state: CallState, outcome: Any, result: ToolResult[Any] | None
) -> Generator[AnyStep, Any, None]:
    if state.claimed:
        state.claimed = state.asked = False
        if state.corrected_key is not None:
            yield from Settle(state.corrected_key, outcome, result)
        yield from Settle(state.key or state.call.key, outcome, result)


def _release(
    state: CallState, failure: Failure | None, *, sent: bool = True
) -> Generator[AnyStep, Any, None]:
    if state.admitted:
        state.admitted = False
        call = state.call
        yield from Release(
            call.tool.upstream_name,
            call.tool.credential,
            call.run_id,
            state.number if sent else state.number + 1,
            failure,
            sent,
        )


def _cancelled(state: CallState, signal: Cancelled) -> Machine:
    """Close the record: the key was noted before it was asked for, so nothing is left behind."""
    in_flight = state.in_flight and not signal.control_flow
    if in_flight:
        state.note(state.own_failure("runtime.cancelled", Effect.UNKNOWN))
    if state.delegating and not signal.control_flow and not state.read_only:
        state.child_effect = worst_effect(state.child_effect, Effect.UNKNOWN)
    result = state.cancelled(lookup("runtime.cancelled"))
    if state.asked:
        effect = worst_effect(state.effect, state.child_effect)
        outcome = "not_done" if effect.safe else "done" if effect is Effect.APPLIED else "unknown"
        state.claimed = True
        yield from _settle(state, outcome, None if outcome == "not_done" else result)
    yield from _release(state, None, sent=False)
    return result
