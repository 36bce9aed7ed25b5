"""The guards in this process's memory: leave to send, a wait, or a refusal."""

import logging
import math
import os
import threading
import weakref
from concurrent.futures import Future
from typing import Any, TypeAlias

from failwise.guards.breaker import TOLERANCE, Breaker
from failwise.guards.load import Load
from failwise.guards.meaning import cost_of, meaning_of, told_to_all
from failwise.guards.settings import GuardSettings, default_settings
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

_log = logging.getLogger("failwise")

Verdict: TypeAlias = Admitted | Refused
_Resolved: TypeAlias = list[tuple[Future[Verdict], Verdict]]

_ADMITTED = Admitted()
"""The one leave that everybody is given: never written to."""


class _Key:
    """What is known of one upstream with one credential."""

    __slots__ = ("breaker", "calm", "held_until", "load", "quota", "retries", "settings", "used")

    def __init__(self, settings: GuardSettings, load: Load, now: float) -> None:
        self.settings = settings
        self.load = load
        self.breaker = Breaker(settings.breaker)
        self.quota = settings.retries.capacity
        self.held_until = -math.inf
        self.retries: dict[tuple[str, int], list[tuple[int, bool]]] = {}
        """Retries under way: what each paid, and whether it counts against the shares. By run and
        attempt, because calls have no name here."""
        self.calm = True
        """No cool-down and a closed circuit: nothing to look at."""
        self.used = now


class MemoryGuards:
    """Retry budget, circuit breaker, shared cool-down and concurrency limit of one process.

    State is kept per upstream and credential; slots and the share of retries per upstream, for all
    credentials together. Serves any number of threads and loops, and survives a fork (the child
    keeps what was learned and forgets the parent's requests under way).

    Per upstream, the guards bound retries in three ways, because each covers what the others
    cannot. The quota holds a long partial failure (a healthy upstream fills it); the parallel
    limit holds a sudden slowness; the share of recent calls holds a full outage, together with the
    circuit: then all callers together send at most 1.1 requests a call, while a lone caller still
    gets three retries. A retry after an answer (`auth`, `business`, `invalid_request`,
    `model_output`: a renewed credential, corrected arguments) costs nothing. One after a throttling
    answer pays the quota only: the upstream itself said when.
    """

    def __init__(self, clock: Clock, settings: GuardSettings | None = None) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic
        self._settings = settings or default_settings()
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str | None], _Key] = {}
        self._loads: dict[str, Load] = {}
        _living.add(self)

    def admit(self, step: Admit) -> "Admitted | Refused | Future[Admitted | Refused]":
        """Leave to send, a refusal, or a future answered once a slot is free (in order of arrival).

        A refusal has the code ``runtime.cool_down`` (`wait` seconds, `hold` true: wait, ask again),
        ``runtime.circuit_open`` (`wait` seconds until a probe may go, at the latest),
        ``runtime.retry_budget`` (`wait` seconds until it is reckoned anew) or ``runtime.concurrency``
        (too many wait already; or `until` had passed when the slot came free).

        Whoever gives up waiting cancels the future. Where `cancel()` answers False the leave was
        given at that very moment: it must be released like any other.
        """
        with self._lock:
            key = self._keys.get((step.upstream, step.credential))
            now = self._monotonic()
            if key is None:
                key = self._remember(step.upstream, step.credential, now)
            key.used = now
            load = key.load
            if now >= load.turn:
                load.turn_over(now)
            if step.attempt == 1 and key.calm and load.in_flight < load.limit and not load.waiting:
                load.in_flight += 1
                load.first += 1
                return _ADMITTED
            refusal = self._closed(key, now)
            if refusal is not None:
                return refusal
            if load.in_flight < load.limit:
                if load.waiting:
                    load.forget_waiting()
                if not load.waiting:
                    return self._let_go(key, step, now)
            return self._queue(key, step)

    def release(self, step: Release) -> None:
        """Give the slot back, learn from `step.failure` (None: success), let the next one go.

        With `sent` false nothing is learned, and a retry gets back what it paid.
        """
        with self._lock:
            key = self._keys.get((step.upstream, step.credential))
            if key is None:
                _log.debug("release without leave: %s", step.upstream)
                return
            load = key.load
            if load.in_flight > 0:
                load.in_flight -= 1
            failure = step.failure
            if failure is None and step.attempt == 1 and key.breaker.clean and step.sent:
                load.succeeded += 1
                load.failures_in_row = 0
                retries = key.settings.retries
                if key.quota < retries.capacity:
                    key.quota = min(key.quota + retries.success_gain, retries.capacity)
            elif step.sent:
                self._learn(key, step, failure)
            else:
                self._undo(key, step)
            if not load.waiting:
                return
            resolved = self._serve(load)
        # Outside the lock: a future's callbacks may come back to us.
        for future, verdict in resolved:
            future.set_result(verdict)

    def learn(self, step: Release) -> None:
        """Learn from a request for which others gave leave: no slot comes back."""
        with self._lock:
            now = self._monotonic()
            key = self._keys.get((step.upstream, step.credential))
            if key is None:
                key = self._remember(step.upstream, step.credential, now)
            if now >= key.load.turn:
                key.load.turn_over(now)
            self._hear(key, step, step.failure, key.settings.retries.success_gain)

    def foresee(self, upstream: str, credential: str | None, held: float, opens: float) -> None:
        """Take over what others know: seconds of cool-down left, seconds until a probe may go."""
        with self._lock:
            now = self._monotonic()
            key = self._keys.get((upstream, credential))
            if key is None:
                key = self._remember(upstream, credential, now)
            key.calm = False
            key.held_until = max(key.held_until, now + held)
            if opens > 0:
                key.breaker.stay_open(now + opens)

    def open_circuits(self) -> dict[str, float]:
        """Upstreams whose circuit is open with some credential: seconds until a probe may go."""
        with self._lock:
            now = self._monotonic()
            waits: dict[str, float] = {}
            for (upstream, _), key in self._keys.items():
                if not key.calm and key.breaker.state == "open":
                    waits[upstream] = max(waits.get(upstream, 0.0), key.breaker.wait(now) or 0.0)
            return waits

    def statistics(self) -> list[dict[str, Any]]:
        """For people: one row per upstream and credential, those in trouble first.

        Waits in seconds from now. Keys: ``upstream``, ``credential``, ``circuit`` (``closed``,
        ``open``, ``half_open``), ``opens_in`` (until a probe may go), ``failures_in_row``,
        ``failure_share``, ``quota``, ``quota_capacity``, ``cool_down`` (seconds left, 0: none),
        ``in_flight``, ``limit`` (None: none), ``waiting``, ``retrying``.
        """
        with self._lock:
            now = self._monotonic()
            keys = sorted(
                self._keys.items(),
                key=lambda item: (item[1].calm, item[0][0], item[0][1] or ""),
            )
            return [
                {
                    "upstream": upstream,
                    "credential": credential,
                    "circuit": key.breaker.state,
                    "opens_in": key.breaker.wait(now) or 0.0,
                    "failures_in_row": key.breaker.failures_in_row,
                    "failure_share": key.breaker.failure_share,
                    "quota": key.quota,
                    "quota_capacity": key.settings.retries.capacity,
                    "cool_down": max(0.0, key.held_until - now),
                    "in_flight": key.load.in_flight,
                    "limit": None if math.isinf(key.load.limit) else int(key.load.limit),
                    "waiting": sum(not future.cancelled() for _, future in key.load.waiting),
                    "retrying": key.load.retrying,
                }
                for (upstream, credential), key in keys
            ]

    def _closed(self, key: _Key, now: float) -> Refused | None:
        """The refusal of a cool-down or an open circuit, if there is one."""
        if key.calm:
            return None
        held = key.held_until - now
        if held > TOLERANCE:
            return Refused(
                "runtime.cool_down",
                held,
                True,
                f"the upstream told all callers to wait {held:.1f} s",
            )
        breaker = key.breaker
        wait = breaker.wait(now)
        if wait is not None:
            return Refused(
                "runtime.circuit_open",
                wait,
                reason=f"circuit {breaker.state.replace('_', '-')}, opened {breaker.openings} times "
                f"in sequence; a probe may go in {wait:.1f} s",
            )
        key.calm = breaker.open_until is None
        return None

    def _let_go(self, key: _Key, step: Admit, now: float) -> Verdict:
        """The last gate: the retry budget. Counts what it lets through."""
        load = key.load
        if not load.in_flight:
            key.retries.clear()  # nothing is under way: whatever is left here was never released
        if step.attempt > 1:
            cost, transient = cost_of(step.failure, key.settings.retries)
            crowded = load.crowded() if transient else None
            if crowded is None and cost > key.quota:
                crowded = f"{key.quota} left of the quota, a retry costs {cost}"
            if crowded is not None:
                return Refused("runtime.retry_budget", max(0.0, load.turn - now), reason=crowded)
            key.quota -= cost
            key.retries.setdefault((step.run_id, step.attempt), []).append((cost, transient))
            if transient:
                load.retries += 1
                load.retrying += 1
        else:
            load.first += 1
        load.in_flight += 1
        if not key.calm:
            key.breaker.sent(step.run_id, step.attempt, now)
        return _ADMITTED

    def _queue(self, key: _Key, step: Admit) -> "Refused | Future[Verdict]":
        load = key.load
        if len(load.waiting) >= key.settings.waiting:
            load.forget_waiting()
            if len(load.waiting) >= key.settings.waiting:
                return Refused(
                    "runtime.concurrency",
                    reason=f"{load.in_flight} requests under way, {len(load.waiting)} callers waiting",
                )
        future: Future[Verdict] = Future()
        load.waiting.append((step, future))
        return future

    def _serve(self, load: Load) -> _Resolved:
        """Answer those at the head of the queue, as far as slots go; the caller sets the results."""
        resolved: _Resolved = []
        now = self._monotonic()
        while load.waiting and load.in_flight < load.limit:
            step, future = load.waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            key = self._keys.get((step.upstream, step.credential))
            if key is None:
                key = self._remember(step.upstream, step.credential, now)
            verdict: Verdict
            if step.until is not None and now > step.until:
                verdict = Refused("runtime.concurrency", reason="no slot came free in time")
            else:
                verdict = self._closed(key, now) or self._let_go(key, step, now)
            resolved.append((future, verdict))
        return resolved

    def _learn(self, key: _Key, step: Release, failure: Failure | None) -> None:
        """Everything but a clean first try of a healthy upstream."""
        gain = key.settings.retries.success_gain
        if step.attempt > 1:
            gain, transient = self._retry_ended(key, step)
            key.load.retrying -= transient
        self._hear(key, step, failure, gain)

    def _hear(self, key: _Key, step: Release, failure: Failure | None, gain: int) -> None:
        """What an attempt's end says of the upstream, whoever gave leave for it."""
        load, breaker, now = key.load, key.breaker, self._monotonic()
        match meaning_of(failure):
            case "good":
                load.succeeded += 1
                load.failures_in_row = 0
                key.quota = min(key.quota + gain, key.settings.retries.capacity)
                breaker.succeeded(step.run_id, step.attempt, now)
            case "ill":
                load.failed(step.attempt)
                breaker.failed(step.run_id, step.attempt, now)
            case "sound":
                load.failures_in_row = 0
                breaker.alive(step.run_id, step.attempt, now)
            case _:
                breaker.unanswered(step.run_id, step.attempt)
        told = told_to_all(failure)
        if told:
            until = now + min(told, key.settings.cool_down_limit)
            key.held_until = max(key.held_until, until)
            key.calm = False
        if breaker.open_until is not None:
            key.calm = False

    def _undo(self, key: _Key, step: Release) -> None:
        """Leave was given, and nothing was sent: as if it had not been asked for."""
        load = key.load
        if step.attempt > 1:
            paid, transient = self._retry_ended(key, step)
            key.quota = min(key.quota + paid, key.settings.retries.capacity)
            load.retrying -= transient
            load.retries = max(0, load.retries - transient)
        else:
            load.first = max(0, load.first - 1)
        key.breaker.unanswered(step.run_id, step.attempt)

    def _retry_ended(self, key: _Key, step: Release) -> tuple[int, bool]:
        """What this retry paid, and whether it counted against the shares."""
        under_way = key.retries.get((step.run_id, step.attempt))
        if not under_way:
            return 0, False
        retry = under_way.pop()
        if not under_way:
            del key.retries[step.run_id, step.attempt]
        return retry

    def _remember(self, upstream: str, credential: str | None, now: float) -> _Key:
        if len(self._keys) >= self._settings.keys:
            self._forget_idle(now)
        settings = self._settings.of(upstream)
        load = self._loads.get(upstream)
        if load is None:
            load = self._loads[upstream] = Load(settings, now)
        load.keys += 1
        key = self._keys[upstream, credential] = _Key(settings, load, now)
        return key

    def _forget_idle(self, now: float) -> None:
        """Make room: a tenth of the keys, the longest idle first, those in trouble last.

        Keys whose upstream has requests under way stay, so that no slot is lost.
        """
        idle = [
            (not key.calm and self._closed(key, now) is not None, key.used, name)
            for name, key in self._keys.items()
            if not key.load.in_flight and not key.load.waiting
        ]
        idle.sort(key=lambda row: row[:2])
        for _, _, name in idle[: max(1, self._settings.keys // 10)]:
            load = self._keys.pop(name).load
            load.keys -= 1
            if not load.keys:
                del self._loads[name[0]]

    def _after_fork(self) -> None:
        """In a child process: the parent's requests are not under way here."""
        self._lock = threading.Lock()
        for load in self._loads.values():
            load.in_flight = load.retrying = 0
            load.waiting.clear()
        for key in self._keys.values():
            key.retries.clear()
            key.breaker.abandon_probe()


_living: "weakref.WeakSet[MemoryGuards]" = weakref.WeakSet()


def _after_fork() -> None:
    for guards in list(_living):
        guards._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
