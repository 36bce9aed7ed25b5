"""A simulated upstream: a line of requests before a number of servers, and what goes wrong with it."""

import heapq
import math
import random
from collections import deque

from failwise.simulation.answers import GOOD, Ill, Trouble
from failwise.simulation.scenario import Event, UpstreamPlan
from failwise.vocabulary.steps import Answer

NEVER = 1e9
"""Seconds after which an answer comes that does not come."""

_AT_ONCE = 0.005
"""Seconds until a refusal comes: nothing was worked for it."""

_MIX = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1

_P99 = 2.3263478740408408
"""The 99th percentile of the normal distribution, in standard deviations."""


def share_of(task: int) -> float:
    """A share of 1 for a task, evenly spread, the same whenever it is asked for."""
    mixed = task * _MIX & _MASK
    mixed = (mixed ^ mixed >> 32) * _MIX & _MASK
    return (mixed ^ mixed >> 29) / 2**64


class Upstream:
    """Answers requests in order of arrival. Told the time with each; keeps what it really did.

    `effects` counts by task how often a write took effect, `keys` what was done under a key. A
    request whose caller has hung up is worked on all the same, as most real servers do.
    """

    def __init__(self, plan: UpstreamPlan, events: tuple[Event, ...], seed: int) -> None:
        self.plan = plan
        self.effects: dict[int, int] = {}
        self.requests = 0
        self.early = 0
        """Requests that came before a told wait was over."""
        self._events = tuple(event for event in events if event.upstream == plan.name)
        self._chance = random.Random(seed)  # noqa: S311
        self._normal = math.log(plan.median), math.log(plan.p99 / plan.median) / _P99
        self._keys: set[str] = set()
        self._free: list[float] = []
        self._starts: deque[float] = deque()
        self._window = self._used = 0
        self._told_from = self._told_until = 0.0
        self._second_until = -1.0
        self._first_left = {id(e): e.first for e in self._events if e.kind == "second_fault"}

    def receive(
        self, task: int, repeats: bool, write: bool, key: str | None, now: float
    ) -> tuple[Answer, float]:
        """One request: its answer, and after how many seconds it comes."""
        self.requests += 1
        if self._told_from <= now < self._told_until:
            self.early += 1
        speed, errors, rate = 1.0, self.plan.errors, self.plan.rate
        per = self.plan.window
        for event in self._events:
            if not event.start <= now < event.end:
                continue
            match event.kind:
                case "outage":
                    if event.share >= 1.0 or self._chance.random() < event.share:
                        return self._out(event, task, write, key)
                case "brown_out":
                    speed *= event.speed
                case "slow_recovery":
                    done = (now - event.start) / (event.end - event.start)
                    speed *= event.speed + (1.0 - event.speed) * done
                case "rate_limit":
                    rate = math.ceil(event.rate * per)
                case "errors":
                    errors = max(errors, event.share)
                case "second_fault":
                    if self._second_fault(event, repeats, now):
                        return self._failed("error", task, write, key)
        if rate is not None:
            told = self._throttled(rate, per, now)
            if told is not None:
                return told
        if errors and self._chance.random() < errors:
            return self._failed("error", task, write, key)
        if self.plan.refusals and share_of(task) < self.plan.refusals:
            return NO, self._service(1.0)
        seconds = self._line(now, self._service(speed))
        if seconds is None:
            return _UNAVAILABLE, _AT_ONCE
        if write:
            self._do(task, key)
        return GOOD, seconds

    def _out(self, event: Event, task: int, write: bool, key: str | None) -> tuple[Answer, float]:
        if event.how == "refused":
            return _REFUSED, _AT_ONCE
        if event.how == "silent":
            return GOOD, NEVER
        return self._failed("error", task, write, key)

    def _failed(self, kind: Ill, task: int, write: bool, key: str | None) -> tuple[Answer, float]:
        """An error after work was begun: a write may have taken effect before it."""
        if write and self._chance.random() < self.plan.applied:
            self._do(task, key)
        return (_ERROR if kind == "error" else _UNAVAILABLE), self._service(1.0)

    def _second_fault(self, event: Event, repeats: bool, now: float) -> bool:
        """A 500 whose repetition sets off another bug: while it lasts, everybody gets a 500."""
        ill = now < self._second_until
        if repeats:
            self._second_until = max(self._second_until, now + event.lasts)
            return True
        if self._first_left[id(event)]:
            self._first_left[id(event)] -= 1
            return True
        return ill

    def _throttled(self, rate: int, per: float, now: float) -> tuple[Answer, float] | None:
        window = int(now / per)
        if window != self._window:
            self._window, self._used = window, 0
        self._used += 1
        if self._used <= rate:
            return None
        if not self.plan.tells:
            return Answer(Trouble("throttled")), _AT_ONCE
        # Whole seconds, as the header has them, counted from when the answer arrives.
        wait = max(1.0, float(math.ceil((window + 1) * per - now)))
        if now >= self._told_until:
            self._told_from = now + _AT_ONCE  # before that, nobody has heard of it
        self._told_until = max(self._told_until, now + wait)
        return Answer(Trouble("throttled", wait)), _AT_ONCE

    def _service(self, speed: float) -> float:
        mean, spread = self._normal
        return self._chance.lognormvariate(mean, spread) / speed

    def _line(self, now: float, work: float) -> float | None:
        """Seconds until a request that comes now is answered; None where the line is full."""
        free, starts = self._free, self._starts
        if free and free[0] <= now:
            heapq.heapreplace(free, now + work)
            return work
        if len(free) < self.plan.capacity:
            heapq.heappush(free, now + work)
            return work
        while starts and starts[0] <= now:
            starts.popleft()
        if len(starts) >= self.plan.queue:
            return None
        start = free[0]
        starts.append(start)
        heapq.heapreplace(free, start + work)
        return start + work - now

    def _do(self, task: int, key: str | None) -> None:
        """A write takes effect; under a key that is honoured, once."""
        if key is not None:
            if key in self._keys:
                return
            self._keys.add(key)
        self.effects[task] = self.effects.get(task, 0) + 1


_REFUSED = Answer(Trouble("refused"))
_ERROR = Answer(Trouble("error"))
_UNAVAILABLE = Answer(Trouble("unavailable"))
NO = Answer(Trouble("no"))
"""A sound refusal: it is an answer, whoever asks again gets the same."""
