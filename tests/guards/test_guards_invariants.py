"""What holds in whatever order things happen, and from however many threads."""

import threading
from concurrent.futures import Future
from typing import Any

from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from failwise.guards import MemoryGuards, default_settings, parse_settings
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

CODES = (
    "network.connection_reset",
    "server.internal",
    "rate_limit.requests",
    "business.conflict",
    "auth.credential_expired",
    "runtime.cancelled",
    "unknown.unclassified",
)
SLOTS = 3


def failure_of(code: str | None, retry_after: float | None = None) -> Failure | None:
    if code is None:
        return None
    return Failure(Category(code.partition(".")[0]), code, retry_after=retry_after)


class GuardsMachine(RuleBasedStateMachine):
    """Callers that ask, wait, give up, answer and repeat, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        figures = f"[concurrency]\nlimit = {SLOTS}\nwaiting = 4\n[memory]\nkeys = 3\n"
        self.guards = MemoryGuards(self, parse_settings(figures, base=default_settings()))
        self.sent: list[Admit] = []
        self.waiting: list[tuple[Admit, Future[Admitted | Refused]]] = []
        self.number = 0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    @rule(
        upstream=st.sampled_from("ab"),
        credential=st.sampled_from([None, "x", "y"]),
        attempt=st.integers(1, 3),
        code=st.sampled_from(CODES),
    )
    def ask(self, upstream: str, credential: str | None, attempt: int, code: str) -> None:
        self.number += 1
        failure = failure_of(code) if attempt > 1 else None
        step = Admit(upstream, credential, f"r{self.number}", attempt, failure)
        reply = self.guards.admit(step)
        if isinstance(reply, Future):
            self.waiting.append((step, reply))
        elif isinstance(reply, Admitted):
            self.sent.append(step)
        else:
            assert reply.code.startswith("runtime.")
            assert reply.wait is None or reply.wait > 0

    @precondition(lambda self: self.sent)
    @rule(
        data=st.data(),
        code=st.sampled_from([None, None, *CODES]),
        told=st.sampled_from([None, 0.5, 20.0]),
        sent=st.sampled_from([True, True, False]),
    )
    def answer(self, data: Any, code: str | None, told: float | None, sent: bool) -> None:
        step = self.sent.pop(data.draw(st.integers(0, len(self.sent) - 1)))
        failure = failure_of(code, told)
        self.guards.release(
            Release(step.upstream, step.credential, step.run_id, step.attempt, failure, sent)
        )
        self.collect()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: Any) -> None:
        _, future = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        assert future.cancel()

    @rule(seconds=st.sampled_from([0.1, 4.0, 29.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    def collect(self) -> None:
        """Whoever's wait has ended is sent or refused."""
        for entry in [entry for entry in self.waiting if entry[1].done()]:
            self.waiting.remove(entry)
            if isinstance(entry[1].result(), Admitted):
                self.sent.append(entry[0])

    @invariant()
    def every_slot_is_accounted_for(self) -> None:
        for row in self.guards.statistics():
            under_way = [step for step in self.sent if step.upstream == row["upstream"]]
            assert row["in_flight"] == len(under_way) <= SLOTS
            assert row["waiting"] == sum(s.upstream == row["upstream"] for s, _ in self.waiting)
            assert row["waiting"] == 0 or row["in_flight"] == SLOTS, "a slot lies idle"
            assert 0 <= row["retrying"] <= row["in_flight"]
            assert 0 <= row["quota"] <= row["quota_capacity"]

    @invariant()
    def those_under_way_are_never_forgotten(self) -> None:
        known = {(row["upstream"], row["credential"]) for row in self.guards.statistics()}
        assert {(step.upstream, step.credential) for step in self.sent} <= known


GuardsMachine.TestCase.settings = examples(max_examples=60, stateful_step_count=40, deadline=None)
TestGuardsMachine = GuardsMachine.TestCase


def test_ten_threads_neither_lose_slots_nor_break_the_quota() -> None:
    """Under real contention every leave is released, the quota stays in its bounds."""

    class Clock:
        def monotonic(self) -> float:
            return 0.0

        time = monotonic

    figures = "[concurrency]\nlimit = 4\n[breaker]\nconsecutive = 1000000\nratio = 1.0\n"
    guards = MemoryGuards(Clock(), parse_settings(figures, base=default_settings()))
    stop = threading.Event()
    wrong: list[dict[str, Any]] = []

    def watch() -> None:
        while not stop.is_set():
            wrong.extend(
                row
                for row in guards.statistics()
                if not (0 <= row["quota"] <= 500 and 0 <= row["in_flight"] <= 4)
            )

    def work(name: str) -> None:
        for number in range(400):
            failure = None
            for attempt in (1, 2):
                reply = guards.admit(Admit("u", None, f"{name}.{number}", attempt, failure))
                if isinstance(reply, Future):
                    reply = reply.result(20)
                if isinstance(reply, Refused):
                    break
                failure = failure_of("network.connection_reset" if number % 3 else None)
                guards.release(Release("u", None, f"{name}.{number}", attempt, failure))
                if failure is None:
                    break

    watcher = threading.Thread(target=watch)
    watcher.start()
    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    watcher.join()
    (row,) = guards.statistics()
    assert not wrong
    assert (row["in_flight"], row["waiting"], row["retrying"]) == (0, 0, 0)
