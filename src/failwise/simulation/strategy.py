"""Other libraries' retry strategies as machines: they yield the same steps, so one simulator drives all."""

import random
from typing import Any

from failwise.simulation.answers import Trouble
from failwise.simulation.contenders import Quota, Retry
from failwise.vocabulary.kinds import StopReason
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Answer, Call, Invoke, Machine, Wait


class Bucket:
    """One process's quota of repeats."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self.left = quota.capacity

    def pay(self, kind: str) -> int | None:
        """What a repeat after this kind of answer costs; None where it cannot be paid."""
        quota = self._quota
        cost = {"silent": quota.silent_cost, "throttled": quota.throttle_cost}.get(kind, quota.cost)
        if cost > self.left:
            return None
        self.left -= cost
        return cost

    def succeeded(self, paid: int | None) -> None:
        """A call succeeded: it gets back what its last repeat cost, or gains for a clean first try."""
        gain = self._quota.gain if paid is None else paid
        self.left = min(self._quota.capacity, self.left + gain)


def run_retry(call: Call, strategy: Retry, bucket: Bucket | None, chance: random.Random) -> Machine:
    """One call as the strategy makes it."""
    key = call.key if strategy.sends_key and call.tool.idempotency_key is not None else None
    arguments: dict[str, Any] = call.raw  # type: ignore[assignment]
    paid: int | None = None
    number = 1
    while True:
        answer = yield from Invoke(arguments, call.tool.timeout, number, key)
        kind, told = _kind(answer)
        if kind is None:
            if bucket is not None:
                bucket.succeeded(paid)
            return _result(call, True)
        if kind not in strategy.repeats or number >= strategy.tries:
            return _result(call, False)
        if bucket is not None:
            paid = bucket.pay(kind)
            if paid is None:
                return _result(call, False)
        delay = _delay(strategy, kind, number, chance)
        if told is not None and strategy.honours_wait:
            delay = max(delay, told)
        if call.deadline is not None and call.now + delay >= call.deadline:
            return _result(call, False)
        if delay:
            yield from Wait(delay)
        number += 1


def _kind(answer: Answer) -> tuple[str | None, float | None]:
    if answer.expired:
        return "silent", None
    if isinstance(answer.value, Trouble):
        return answer.value.kind, answer.value.wait
    return None, None


def _delay(strategy: Retry, kind: str, number: int, chance: random.Random) -> float:
    base = strategy.throttle_base if kind == "throttled" else strategy.base
    grown = base * strategy.multiplier ** min(number - 1, 64)
    if strategy.jitter == "added":
        grown += chance.random()
    delay = min(grown, strategy.cap)
    return delay * chance.random() if strategy.jitter == "full" else delay


def _result(call: Call, success: bool) -> ToolResult[Any]:
    reason = StopReason.SUCCEEDED if success else StopReason.RETRIES_EXHAUSTED
    return ToolResult(
        call.tool.name,
        success,
        stop_reason=reason,
        duration_ms=(call.now - call.began) * 1000,
        call_id=call.call_id,
        run_id=call.run_id,
    )
