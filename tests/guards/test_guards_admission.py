"""Leave to send, waits and refusals, through `admit` and `release` on a stepping clock."""

import os
import threading
from concurrent.futures import Future

import pytest

from failwise.guards import GuardSettings, MemoryGuards, default_settings, parse_settings
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 1000.1

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.now


def failure(code: str, retry_after: float | None = None) -> Failure:
    return Failure(Category(code.partition(".")[0]), code, retry_after=retry_after)


RESET = failure("network.connection_reset")
THROTTLED = failure("rate_limit.requests")


class Upstream:
    """Short words for the steps towards one upstream."""

    def __init__(self, settings: GuardSettings | None = None, name: str = "shop") -> None:
        self.clock = Clock()
        self.guards = MemoryGuards(self.clock, settings)
        self.name = name

    def admit(
        self,
        run: str = "r",
        attempt: int = 1,
        repeats: Failure | None = None,
        credential: str | None = None,
        until: float | None = None,
    ) -> Admitted | Refused | Future[Admitted | Refused]:
        return self.guards.admit(Admit(self.name, credential, run, attempt, repeats, until))

    def release(
        self,
        outcome: Failure | None = None,
        run: str = "r",
        attempt: int = 1,
        credential: str | None = None,
        sent: bool = True,
    ) -> None:
        self.guards.release(Release(self.name, credential, run, attempt, outcome, sent))

    def call(self, outcome: Failure | None = None, run: str = "r") -> Admitted | Refused:
        reply = self.admit(run)
        assert not isinstance(reply, Future)
        if isinstance(reply, Admitted):
            self.release(outcome, run)
        return reply

    def row(self) -> dict[str, object]:
        (row,) = self.guards.statistics()
        return row

    def open_circuit(self) -> None:
        while isinstance(self.call(RESET), Admitted):
            pass
        assert self.row()["circuit"] == "open"


def limited(text: str) -> GuardSettings:
    return parse_settings(text, base=default_settings())


def code(reply: object) -> str:
    assert isinstance(reply, Refused)
    return reply.code


# The retry quota


@pytest.mark.parametrize(("repeats", "cost"), [(RESET, 14), (THROTTLED, 5)])
def test_a_retry_costs_by_its_failure_and_gets_it_back_when_it_cures(
    repeats: Failure, cost: int
) -> None:
    """AWS's figures: 14 after a transient failure, 5 after throttling; a success refunds them."""
    shop = Upstream()
    shop.call(repeats)
    assert shop.row()["quota"] == 500
    assert isinstance(shop.admit(attempt=2, repeats=repeats), Admitted)
    assert shop.row()["quota"] == 500 - cost
    shop.release(attempt=2)
    assert shop.row()["quota"] == 500


def test_a_retry_that_fails_is_paid_for_and_clean_calls_earn_it_back_singly() -> None:
    """A failed retry refunds nothing; a clean first try gives one, never above the capacity."""
    shop = Upstream()
    shop.call(RESET)
    shop.admit(attempt=2, repeats=RESET)
    shop.release(RESET, attempt=2)
    for earned in range(20):
        assert shop.row()["quota"] == min(500, 486 + earned)
        shop.call()


def test_refunds_follow_each_retry_even_when_dear_and_cheap_ones_overlap() -> None:
    """Two retries under way, 14 and 5: whichever is cured first gets back what it paid."""
    shop = Upstream()
    shop.call(RESET, "a")
    shop.call(THROTTLED, "b")
    shop.admit("a", 2, RESET)
    shop.admit("b", 2, THROTTLED)
    shop.release(None, "b", 2)
    assert shop.row()["quota"] == 500 - 14
    shop.release(None, "a", 2)
    assert shop.row()["quota"] == 500


def test_a_leave_that_was_not_used_costs_and_teaches_nothing() -> None:
    """A refused claim, a cancelled call: slot and cost come back, the next one may be the probe."""
    shop = Upstream()
    shop.call(RESET)
    for _ in range(50):
        assert isinstance(shop.admit(attempt=2, repeats=RESET), Admitted)
        shop.release(None, attempt=2, sent=False)
        assert isinstance(shop.admit(), Admitted)
        shop.release(RESET, sent=False)
    row = shop.row()
    assert (row["quota"], row["in_flight"], row["retrying"]) == (500, 0, 0)
    assert row["failures_in_row"] == 1
    shop.open_circuit()
    shop.clock.now += 30
    assert isinstance(shop.admit("a"), Admitted)
    shop.release(None, "a", sent=False)
    assert isinstance(shop.admit("b"), Admitted)


def test_a_retry_released_under_another_number_blocks_no_later_retries() -> None:
    """What is not matched is dropped when nothing is under way any more."""
    shop = Upstream()
    for number in range(30):
        shop.call(None)
        shop.clock.now += 10
        assert isinstance(shop.admit(f"r{number}", 2, RESET), Admitted)
        shop.release(None, f"other{number}", 1)


def test_an_empty_quota_refuses_retries_and_never_first_attempts() -> None:
    """`runtime.retry_budget` without a wait; calls themselves go on."""
    shop = Upstream(limited("[retries]\ncapacity = 20\n"))
    shop.call(RESET)
    assert isinstance(shop.admit(attempt=2, repeats=RESET), Admitted)
    reply = shop.admit("other", attempt=2, repeats=RESET)
    assert code(reply) == "runtime.retry_budget"
    assert isinstance(reply, Refused)
    assert reply.wait is None
    assert reply.reason
    assert isinstance(shop.admit(), Admitted)


@pytest.mark.parametrize(
    "answer", ["auth.credential_expired", "invalid_request.parameter", "business.conflict"]
)
def test_a_retry_after_an_answer_is_free(answer: str) -> None:
    """A thousand callers whose credential was renewed all go again: the upstream is well."""
    shop = Upstream(limited('[concurrency]\nlimit = "unlimited"\n'))
    for number in range(1000):
        shop.call(failure(answer), f"r{number}")
    for number in range(1000):
        assert isinstance(shop.admit(f"r{number}", 2, failure(answer)), Admitted)
    row = shop.row()
    assert (row["quota"], row["circuit"], row["failures_in_row"]) == (500, "closed", 0)


def test_a_lone_caller_gets_its_three_retries_and_eight_where_it_waits_longer() -> None:
    """One call's attempts never open the circuit on itself: 1, 2, 4, 8, 16, 30, 30, 30 s."""
    shop = Upstream()
    shop.call(RESET)
    for attempt, wait in enumerate((1, 2, 4, 8, 16, 30, 30, 30), 2):
        shop.clock.now += wait
        assert isinstance(shop.admit(attempt=attempt, repeats=RESET), Admitted), attempt
        shop.release(RESET, attempt=attempt)


def test_retries_under_way_are_bounded_by_the_requests_under_way() -> None:
    """At most max(3, 20 %): three for a few callers, eight for forty."""
    for under_way, most in ((4, 3), (40, 8)):
        shop = Upstream()
        for number in range(400):  # enough recent calls that their share does not matter here
            shop.call(run=f"good{number}")
        for number in range(under_way - 1):
            shop.admit(f"r{number}")
        admitted = 0
        while isinstance(shop.admit(f"retry{admitted}", 2, RESET), Admitted):
            admitted += 1
            shop.release(None, f"r{admitted}") if admitted < under_way else None
        assert admitted == most


# The circuit breaker


def test_five_failures_in_a_row_open_the_circuit_and_one_probe_closes_it() -> None:
    """Refused with the time until a probe; one probe at a time; its success closes."""
    shop = Upstream()
    shop.open_circuit()
    reply = shop.admit()
    assert code(reply) == "runtime.circuit_open"
    assert isinstance(reply, Refused)
    assert reply.wait == pytest.approx(30)
    assert not reply.hold
    shop.clock.now += reply.wait or 0
    assert isinstance(shop.admit("probe"), Admitted)
    assert code(shop.admit("second")) == "runtime.circuit_open"
    assert shop.row()["circuit"] == "half_open"
    shop.release(None, "probe")
    assert shop.row()["circuit"] == "closed"
    assert isinstance(shop.admit("second"), Admitted)


def test_each_failed_probe_keeps_the_circuit_open_longer_up_to_five_minutes() -> None:
    """30 s times the openings in sequence, capped at 300 s."""
    shop = Upstream()
    shop.open_circuit()
    waits = []
    for _ in range(12):
        reply = shop.admit()
        assert isinstance(reply, Refused)
        assert reply.wait is not None
        waits.append(round(reply.wait))
        shop.clock.now += reply.wait
        shop.call(RESET)
    assert waits == [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300]


def test_a_circuit_that_opens_again_soon_stays_open_longer_and_after_long_health_not() -> None:
    """Flapping is remembered for the longest opening; after that it is a new story."""
    shop = Upstream()
    shop.open_circuit()
    shop.clock.now += 30
    shop.call()
    shop.open_circuit()
    assert shop.row()["opens_in"] == pytest.approx(60)
    shop.clock.now += 60
    shop.call()
    shop.clock.now += 301
    shop.open_circuit()
    assert shop.row()["opens_in"] == pytest.approx(30)


def test_half_of_the_last_twenty_opens_once_there_are_ten() -> None:
    """Alternating failures never make a row of five, yet open the circuit at the tenth outcome."""
    shop = Upstream()
    outcomes = 0
    while isinstance(shop.call(RESET if outcomes % 2 else None), Admitted):
        outcomes += 1
    assert outcomes == 10


def test_one_bad_call_a_day_is_no_trend() -> None:
    """Outcomes before a long silence are forgotten."""
    shop = Upstream()
    for _ in range(30):
        assert isinstance(shop.call(RESET), Admitted)
        shop.clock.now += 86_400


@pytest.mark.parametrize(
    "answer",
    [
        "business.not_found",
        "invalid_request.parameter",
        "model_output.invalid_json",
        "auth.forbidden",
        "rate_limit.requests",
        "parsing.empty",
        "security.certificate_expired",
        "tool.exception",
        "runtime.cancelled",
        "unknown.unclassified",
        "network.pool_timeout",
    ],
)
def test_only_ill_health_of_the_upstream_feeds_the_circuit(answer: str) -> None:
    """Answers, our own faults and what nobody understands open nothing and cost nothing."""
    shop = Upstream()
    for _ in range(100):
        assert isinstance(shop.call(failure(answer)), Admitted)
    row = shop.row()
    assert (row["quota"], row["circuit"], row["failure_share"]) == (500, "closed", 0.0)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("business.not_found", "closed"),
        ("auth.forbidden", "closed"),
        ("rate_limit.requests", "closed"),
        ("runtime.cancelled", "open"),
        ("tool.exception", "open"),
        ("server.internal", "open"),
    ],
)
def test_a_probe_that_is_answered_closes_and_one_that_tells_nothing_leaves_it(
    answer: str, state: str
) -> None:
    """A sound "no" proves health; after a cancelled probe the next call may be the probe."""
    shop = Upstream()
    shop.open_circuit()
    shop.clock.now += 30
    shop.call(failure(answer), "probe")
    assert shop.row()["circuit"] == state
    if answer.startswith(("runtime", "tool")):
        assert isinstance(shop.admit("next"), Admitted)


def test_a_probe_that_never_reports_does_not_lock_the_circuit_for_good() -> None:
    """After another opening time a second probe may go."""
    shop = Upstream()
    shop.open_circuit()
    shop.clock.now += 30
    shop.admit("lost")
    reply = shop.admit("next")
    assert isinstance(reply, Refused)
    assert reply.wait is not None
    shop.clock.now += reply.wait
    assert isinstance(shop.admit("next"), Admitted)


def test_requests_sent_before_the_circuit_opened_neither_close_nor_prolong_it() -> None:
    """Stragglers are no probes."""
    shop = Upstream()
    shop.admit("slow")
    shop.admit("slower")
    shop.open_circuit()
    shop.release(None, "slow")
    shop.release(RESET, "slower")
    assert shop.row()["circuit"] == "open"
    assert shop.row()["opens_in"] == pytest.approx(30)


def test_credentials_have_circuits_and_quotas_of_their_own() -> None:
    """One tenant's trouble is not another's."""
    shop = Upstream()
    for _ in range(5):
        shop.admit(credential="a")
        shop.release(RESET, credential="a")
    assert code(shop.admit(credential="a")) == "runtime.circuit_open"
    assert isinstance(shop.admit(credential="b"), Admitted)
    assert [row["credential"] for row in shop.guards.statistics()] == ["a", "b"]


# The shared cool-down


def test_one_told_wait_holds_every_caller_until_exactly_then() -> None:
    """hold, wait as told; at the very moment the one that was told goes again."""
    shop = Upstream()
    shop.call(failure("rate_limit.requests", 3.0), "told")
    reply = shop.admit("other")
    assert code(reply) == "runtime.cool_down"
    assert isinstance(reply, Refused)
    assert reply.hold
    assert reply.wait == pytest.approx(3.0)
    for _ in range(30):
        assert code(shop.admit("other")) == "runtime.cool_down"
        shop.clock.now += 0.1  # thirty tenths are not quite 3.0 in floats
    assert isinstance(shop.admit("told", 2, failure("rate_limit.requests", 3.0)), Admitted)
    assert isinstance(shop.admit("other"), Admitted)


def test_a_smaller_wait_told_later_shortens_nothing_nor_does_a_late_success() -> None:
    """What was under way when the wait was told cannot lift it."""
    shop = Upstream()
    shop.admit("slow")
    shop.admit("slower")
    shop.call(failure("rate_limit.requests", 60))
    shop.release(failure("rate_limit.requests", 1), "slow")
    shop.release(None, "slower")
    assert shop.row()["cool_down"] == pytest.approx(60)
    shop.clock.now += 60
    assert isinstance(shop.call(), Admitted)
    shop.call(failure("server.overloaded", 2))
    assert shop.row()["cool_down"] == pytest.approx(2)


@pytest.mark.parametrize("answer", ["business.quota_exhausted", "auth.forbidden"])
def test_a_wait_in_an_answer_to_one_caller_holds_nobody_else(answer: str) -> None:
    """Only throttling and ill health speak to all."""
    shop = Upstream()
    shop.call(failure(answer, 60))
    assert isinstance(shop.admit(), Admitted)


def test_all_who_were_throttled_go_again_after_the_wait() -> None:
    """64 callers under one 429: none is sacrificed to the shares, the quota alone pays."""
    shop = Upstream()
    told = failure("rate_limit.requests", 3)
    for number in range(64):
        shop.admit(f"r{number}")
    for number in range(64):
        shop.release(told, f"r{number}")
    shop.clock.now += 3
    for number in range(64):
        assert isinstance(shop.admit(f"r{number}", 2, told), Admitted)
    assert shop.row()["quota"] == 500 - 64 * 5


# Slots


def slots(number: int, waiting: int = 10) -> Upstream:
    return Upstream(limited(f"[concurrency]\nlimit = {number}\nwaiting = {waiting}\n"))


def waiting(shop: Upstream, run: str, until: float | None = None) -> Future[Admitted | Refused]:
    reply = shop.admit(run, until=until)
    assert isinstance(reply, Future)
    return reply


def test_slots_are_given_in_order_of_arrival() -> None:
    """A freed slot goes to whoever waited longest, and nobody overtakes."""
    shop = slots(1)
    shop.admit("a")
    futures = [waiting(shop, name) for name in "bcd"]
    for number, future in enumerate(futures):
        assert not future.done()
        shop.release(run="abcd"[number])
        assert isinstance(future.result(0), Admitted)
    shop.release(run="d")
    assert shop.row()["in_flight"] == 0


def test_whoever_gives_up_waiting_costs_no_slot() -> None:
    """Cancelled futures are passed over; with all cancelled the slot is simply free."""
    shop = slots(1)
    shop.admit("a")
    gone, stays, gone_too = (waiting(shop, name) for name in "bcd")
    assert gone.cancel()
    assert gone_too.cancel()
    shop.release(run="a")
    assert isinstance(stays.result(0), Admitted)
    assert not stays.cancel(), "a leave once given must be released"
    shop.release(run="c")
    assert isinstance(shop.admit("e"), Admitted)


def test_too_many_waiting_are_refused_and_cancelled_ones_do_not_count() -> None:
    """The queue is bounded: `runtime.concurrency`."""
    shop = slots(1, waiting=2)
    shop.admit("a")
    first, _ = waiting(shop, "b"), waiting(shop, "c")
    assert code(shop.admit("d")) == "runtime.concurrency"
    first.cancel()
    assert isinstance(shop.admit("d"), Future)


def test_a_slot_that_comes_free_too_late_goes_to_the_next() -> None:
    """`until` is the waiter's limit; it is refused, the one behind it sent."""
    shop = slots(1)
    shop.admit("a")
    late, next_one = waiting(shop, "b", until=shop.clock.now + 5), waiting(shop, "c")
    shop.clock.now += 6
    shop.release(run="a")
    assert code(late.result(0)) == "runtime.concurrency"
    assert isinstance(next_one.result(0), Admitted)


def test_whoever_waited_meets_what_happened_meanwhile() -> None:
    """A cool-down told while they waited holds them, and their slot stays free."""
    shop = slots(1)
    shop.admit("a")
    future = waiting(shop, "b")
    shop.release(failure("rate_limit.requests", 9), "a")
    reply = future.result(0)
    assert code(reply) == "runtime.cool_down"
    assert shop.row()["in_flight"] == 0


def test_a_callback_of_a_waiter_may_come_back_to_the_guards() -> None:
    """Futures are answered outside the lock."""
    shop = slots(1)
    shop.admit("a")
    future = waiting(shop, "b")
    future.add_done_callback(lambda _: shop.release(run="b"))
    shop.release(run="a")
    assert shop.row()["in_flight"] == 0


def test_slots_are_counted_over_all_credentials_of_an_upstream() -> None:
    """The limit protects the upstream."""
    shop = slots(2)
    shop.admit(credential="a")
    shop.admit(credential="b")
    assert isinstance(shop.admit(credential="c"), Future)


def test_more_releases_than_leaves_free_no_slots() -> None:
    """The count never goes below zero."""
    shop = slots(1)
    for _ in range(3):
        shop.release()
        shop.call()
        shop.release()
    shop.admit("a")
    assert isinstance(shop.admit("b"), Future)


# Memory, statistics, processes


def test_the_longest_idle_are_forgotten_first_and_those_in_trouble_last() -> None:
    """Ten keys at most; one upstream that is held survives a hundred newcomers."""
    shop = Upstream(limited("[memory]\nkeys = 10\n"), name="held")
    shop.call(failure("rate_limit.requests", 3600))
    shop.name = "busy"
    shop.admit()
    for number in range(100):
        shop.clock.now += 1
        shop.name = f"u{number}"
        shop.call()
    rows = shop.guards.statistics()
    assert len(rows) <= 10
    names = [row["upstream"] for row in rows]
    assert names[0] == "held"
    assert {"busy", "u99"} <= set(names)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_starts_with_free_slots_and_an_open_lock() -> None:
    """The parent's requests are not under way in the child, what was learned stays."""
    shop = slots(1)
    shop.call(failure("rate_limit.requests", 5))
    shop.clock.now += 5
    shop.admit("parent")
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with shop.guards._lock:
            holding.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if isinstance(shop.admit("child"), Admitted) else 2
        finally:
            os._exit(status)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(shop.admit("waits"), Future)


def test_one_leave_object_serves_everybody() -> None:
    """Nothing is made on the good path."""
    shop = Upstream()
    assert shop.admit() is shop.admit()


def test_an_upstream_may_have_figures_of_its_own() -> None:
    """A section per upstream overrides what holds for all."""
    shop = slots(1)
    own = Upstream(limited('[concurrency]\nlimit = 1\n[upstreams."shop".concurrency]\nlimit = 2\n'))
    for upstream, most in ((shop, 1), (own, 2)):
        replies = [upstream.admit() for _ in range(5)]
        assert sum(isinstance(reply, Admitted) for reply in replies) == most
