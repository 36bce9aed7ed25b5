"""`GuardConformance`: what every backend of the guards must do, as tests to inherit.

    import pytest
    pytest.register_assert_rewrite("failwise.testing.guard_conformance")
    from failwise.testing import GuardConformance

    class TestMine(GuardConformance):
        def make_guards(self, clock, settings):
            return MyGuards(clock, settings)

Each test makes guards of its own, on a clock that moves only when told. A backend may answer at
once or with a future; `statistics()` must come after all that was asked before it.
"""

import zlib
from concurrent.futures import Future

from failwise.guards import GuardSettings, default_settings, parse_settings
from failwise.testing.clock import SteppingClock
from failwise.testing.guard_upstream import RESET, THROTTLED, Upstream, WatchedGuards, ill
from failwise.vocabulary.steps import Admitted, Refused


class GuardConformance:
    """Inherit it under a name that begins with ``Test``, and give `make_guards`."""

    patience = 5.0
    """Seconds of real time within which an answer must come."""

    def make_guards(self, clock: SteppingClock, settings: GuardSettings) -> WatchedGuards:
        """Fresh guards without any state, which take their time from `clock`."""
        raise NotImplementedError

    def upstream(self, figures: str = "") -> Upstream:
        """An upstream with these figures (TOML, as in ``[guards]``) over the defaults."""
        clock = SteppingClock()
        clock.now = 1000.1
        settings = parse_settings(figures, base=default_settings())
        return Upstream(self.make_guards(clock, settings), clock, patience=self.patience)

    def slots(self, number: int, waiting: int = 10) -> Upstream:
        return self.upstream(f"[concurrency]\nlimit = {number}\nwaiting = {waiting}\n")

    # The retry quota

    def test_a_retry_costs_by_its_failure_and_gets_it_back_when_it_cures(self) -> None:
        """AWS's figures: 14 after a transient failure, 5 after throttling; a success refunds them."""
        for repeats, cost in ((RESET, 14), (THROTTLED, 5)):
            shop = self.upstream()
            shop.call(repeats)
            assert shop.row()["quota"] == 500
            shop.sent("r", 2, repeats)
            assert shop.row()["quota"] == 500 - cost
            shop.release(attempt=2)
            assert shop.row()["quota"] == 500

    def test_a_retry_that_fails_is_paid_for_and_clean_calls_earn_it_back_singly(self) -> None:
        """A failed retry refunds nothing; a clean first try gives one, never above the capacity."""
        shop = self.upstream()
        shop.call(RESET)
        shop.sent("r", 2, RESET)
        shop.release(RESET, attempt=2)
        for earned in range(20):
            assert shop.row()["quota"] == min(500, 486 + earned)
            shop.call()

    def test_refunds_follow_each_retry_even_when_dear_and_cheap_ones_overlap(self) -> None:
        """Two retries under way, 14 and 5: whichever is cured first gets back what it paid."""
        shop = self.upstream()
        shop.call(RESET, "a")
        shop.call(THROTTLED, "b")
        shop.sent("a", 2, RESET)
        shop.sent("b", 2, THROTTLED)
        shop.release(None, "b", 2)
        assert shop.row()["quota"] == 500 - 14
        shop.release(None, "a", 2)
        assert shop.row()["quota"] == 500

    def test_a_leave_that_was_not_used_costs_and_teaches_nothing(self) -> None:
        """A refused claim, a cancelled call: slot and cost come back, the next may be the probe."""
        shop = self.upstream()
        shop.call(RESET)
        for _ in range(20):
            shop.sent("r", 2, RESET)
            shop.release(None, attempt=2, sent=False)
            shop.sent()
            shop.release(RESET, sent=False)
        row = shop.row()
        assert (row["quota"], row["in_flight"], row["retrying"]) == (500, 0, 0)
        assert row["failures_in_row"] == 1
        shop.open_circuit()
        shop.clock.now += 30
        shop.sent("a")
        shop.release(None, "a", sent=False)
        shop.sent("b")

    def test_an_empty_quota_refuses_retries_and_never_first_attempts(self) -> None:
        """`runtime.retry_budget` until it is reckoned anew; calls themselves go on."""
        shop = self.upstream("[retries]\ncapacity = 20\n")
        shop.call(RESET)
        shop.sent("r", 2, RESET)
        refusal = shop.refused("runtime.retry_budget", "other", 2, RESET)
        assert not refusal.hold
        assert refusal.wait is not None
        assert 0 < refusal.wait <= 5, "half a window"
        shop.sent()

    def test_a_retry_after_an_answer_is_free(self) -> None:
        """All whose credential was renewed go again: the upstream is well."""
        for code in ("auth.credential_expired", "invalid_request.parameter", "business.conflict"):
            shop = self.upstream('[concurrency]\nlimit = "unlimited"\n')
            for number in range(100):
                shop.call(ill(code), f"r{number}")
            for number in range(100):
                shop.sent(f"r{number}", 2, ill(code))
            row = shop.row()
            assert (row["quota"], row["circuit"], row["failures_in_row"]) == (500, "closed", 0)

    def test_a_lone_caller_gets_its_retries(self) -> None:
        """One call's attempts never open the circuit on itself: 1, 2, 4, 8, 16, 30, 30, 30 s."""
        shop = self.upstream()
        shop.call(RESET)
        for attempt, wait in enumerate((1, 2, 4, 8, 16, 30, 30, 30), 2):
            shop.clock.now += wait
            shop.sent("r", attempt, RESET)
            shop.release(RESET, attempt=attempt)

    def test_retries_under_way_are_bounded_by_the_requests_under_way(self) -> None:
        """At most max(3, 20 %): three for a few callers, eight for forty."""
        for under_way, most in ((4, 3), (40, 8)):
            shop = self.upstream()
            for number in range(400):  # enough recent calls that their share does not matter here
                shop.call(run=f"good{number}")
            for number in range(under_way - 1):
                shop.sent(f"r{number}")
            admitted = 0
            while isinstance(shop.admit(f"retry{admitted}", 2, RESET), Admitted):
                admitted += 1
                if admitted < under_way:
                    shop.release(None, f"r{admitted}")
            assert admitted == most

    def test_retries_are_a_tenth_of_calls_when_nothing_succeeds(self) -> None:
        """In a full outage the share of recent calls holds a fleet at 1.1, even without a circuit."""
        shop = self.upstream(
            '[concurrency]\nlimit = "unlimited"\n[retries]\ncapacity = 1000000\n[breaker]\n'
            "consecutive = 1000000\nlone_attempts = 1000000\nratio = 1.0\nsample = 1000\nminimum = 1000\n"
        )
        for number in range(100):
            shop.call(RESET, f"r{number}")
        retries = 0
        while isinstance(shop.admit(f"r{retries}", 2, RESET), Admitted):
            shop.release(RESET, f"r{retries}", 2)
            retries += 1
        assert retries == 10

    # The circuit breaker

    def test_five_failures_in_a_row_open_the_circuit_and_one_probe_closes_it(self) -> None:
        """Refused with the time until a probe; one probe at a time; its success closes."""
        shop = self.upstream()
        shop.open_circuit()
        assert shop.row()["failures_in_row"] == 5
        refusal = shop.refused("runtime.circuit_open")
        assert refusal.wait is not None
        assert 29.9 < refusal.wait <= 30
        assert not refusal.hold
        shop.clock.now += refusal.wait
        shop.sent("probe")
        shop.refused("runtime.circuit_open", "second")
        assert shop.row()["circuit"] == "half_open"
        shop.release(None, "probe")
        assert shop.row()["circuit"] == "closed"
        shop.sent("second")

    def test_each_failed_probe_keeps_the_circuit_open_longer_up_to_five_minutes(self) -> None:
        """30 s times the openings in sequence, capped at 300 s; after long health from the start."""
        shop = self.upstream()
        shop.open_circuit()
        waits = []
        for _ in range(12):
            wait = shop.refused("runtime.circuit_open").wait or 0
            waits.append(round(wait))
            shop.clock.now += wait
            shop.call(RESET)
        assert waits == [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300]
        shop.clock.now += 300
        shop.call()
        shop.clock.now += 301
        shop.open_circuit()
        assert round(shop.row()["opens_in"]) == 30

    def test_half_of_the_last_twenty_opens_once_there_are_ten(self) -> None:
        """Alternating failures never make a row of five, yet open at the tenth outcome."""
        shop = self.upstream()
        outcomes = 0
        while isinstance(shop.call(RESET if outcomes % 2 else None), Admitted):
            outcomes += 1
            shop.clock.now += 10
        assert outcomes == 10

    def test_where_outcomes_come_fast_half_of_a_hundred_opens(self) -> None:
        """Half of ten within a second comes by chance; half of a hundred does not."""
        shop = self.upstream()
        outcomes = 0
        while isinstance(shop.call(RESET if outcomes % 2 else None), Admitted):
            outcomes += 1
            shop.clock.now += 0.1
        assert outcomes == 100

    def test_a_busy_upstream_that_fails_in_part_keeps_its_circuit_closed(self) -> None:
        """A third of many requests fails for minutes: rows of five come by chance, and open nothing.

        When all of them fail it is known at once: a row need not be longer than chance makes it.
        """
        shop = self.upstream()
        longest = row = 0
        for number in range(1500):
            failed = zlib.crc32(b"%d" % number) % 3 == 0
            row = row + 1 if failed else 0
            longest = max(longest, row)
            assert isinstance(shop.call(RESET if failed else None), Admitted)
            shop.clock.now += 0.1
        assert longest >= 5
        outcomes = 0
        while isinstance(shop.call(RESET), Admitted):
            outcomes += 1
        assert 5 < outcomes <= 20

    def test_a_healthy_busy_upstream_that_goes_down_opens_at_five(self) -> None:
        """Where nothing failed before, a row of five is no chance."""
        shop = self.upstream()
        for _ in range(150):
            shop.call()
            shop.clock.now += 0.01
        shop.open_circuit()
        assert shop.row()["failures_in_row"] == 5

    def test_one_bad_call_a_day_is_no_trend(self) -> None:
        """Outcomes before a long silence are forgotten."""
        shop = self.upstream()
        for _ in range(15):
            assert isinstance(shop.call(RESET), Admitted)
            shop.clock.now += 86_400

    def test_only_ill_health_of_the_upstream_feeds_the_circuit(self) -> None:
        """Answers, our own faults and what nobody understands open nothing and cost nothing."""
        for code in (
            "business.not_found", "invalid_request.parameter", "model_output.invalid_json",
            "auth.forbidden", "rate_limit.requests", "parsing.empty", "tool.exception",
            "security.certificate_expired", "runtime.cancelled", "unknown.unclassified",
            "network.pool_timeout",
        ):  # fmt: skip
            shop = self.upstream()
            for _ in range(25):
                assert isinstance(shop.call(ill(code)), Admitted), code
            row = shop.row()
            assert (row["quota"], row["circuit"], row["failure_share"]) == (500, "closed", 0.0), (
                code
            )

    def test_a_probe_that_is_answered_closes_and_one_that_tells_nothing_leaves_it(self) -> None:
        """A sound "no" proves health; after a cancelled probe the next call may be the probe."""
        for code, state in (
            ("business.not_found", "closed"),
            ("auth.forbidden", "closed"),
            ("rate_limit.requests", "closed"),
            ("runtime.cancelled", "open"),
            ("tool.exception", "open"),
            ("server.internal", "open"),
        ):
            shop = self.upstream()
            shop.open_circuit()
            shop.clock.now += 30
            shop.call(ill(code), "probe")
            assert shop.row()["circuit"] == state, code
            if code.startswith(("runtime", "tool")):
                shop.sent("next")

    def test_a_probe_that_never_reports_does_not_lock_the_circuit_for_good(self) -> None:
        """After another opening time a second probe may go."""
        shop = self.upstream()
        shop.open_circuit()
        shop.clock.now += 30
        shop.sent("lost")
        shop.clock.now += shop.refused("runtime.circuit_open", "next").wait or 0
        shop.sent("next")

    def test_requests_sent_before_the_circuit_opened_neither_close_nor_prolong_it(self) -> None:
        """Stragglers are no probes."""
        shop = self.upstream()
        shop.sent("slow")
        shop.sent("slower")
        shop.open_circuit()
        shop.release(None, "slow")
        shop.release(RESET, "slower")
        assert shop.row()["circuit"] == "open"
        assert round(shop.row()["opens_in"]) == 30

    def test_credentials_have_circuits_and_quotas_of_their_own(self) -> None:
        """One tenant's trouble is not another's."""
        shop = self.upstream()
        for _ in range(5):
            shop.sent(credential="a")
            shop.release(RESET, credential="a")
        refusal = shop.admit(credential="a")
        assert isinstance(refusal, Refused)
        shop.sent(credential="b")
        assert [row["credential"] for row in shop.guards.statistics()] == ["a", "b"]

    # The shared cool-down

    def test_one_told_wait_holds_every_caller_until_exactly_then(self) -> None:
        """hold, wait as told; at the very moment the one that was told goes again."""
        shop = self.upstream()
        shop.call(ill("rate_limit.requests", 3.0), "told")
        refusal = shop.refused("runtime.cool_down", "other")
        assert refusal.hold
        assert refusal.wait is not None
        assert abs(refusal.wait - 3.0) < 0.001
        for _ in range(30):
            shop.refused("runtime.cool_down", "other")
            shop.clock.now += 0.1  # thirty tenths are not quite 3.0 in floats
        shop.sent("told", 2, ill("rate_limit.requests", 3.0))
        shop.sent("other")

    def test_a_smaller_wait_told_later_shortens_nothing_nor_does_a_late_success(self) -> None:
        """What was under way when the wait was told cannot lift it; waits are bounded."""
        shop = self.upstream()
        shop.sent("slow")
        shop.sent("slower")
        shop.call(ill("rate_limit.requests", 60))
        shop.release(ill("rate_limit.requests", 1), "slow")
        shop.release(None, "slower")
        assert round(shop.row()["cool_down"]) == 60
        shop.clock.now += 60
        assert isinstance(shop.call(ill("server.overloaded", 1e9)), Admitted)
        assert round(shop.row()["cool_down"]) == 86_400

    def test_a_wait_in_an_answer_to_one_caller_holds_nobody_else(self) -> None:
        """Only throttling and ill health speak to all."""
        for code in ("business.quota_exhausted", "auth.forbidden"):
            shop = self.upstream()
            shop.call(ill(code, 60))
            shop.sent()

    def test_all_who_were_throttled_go_again_after_the_wait(self) -> None:
        """64 callers under one 429: none is sacrificed to the shares, the quota alone pays."""
        shop = self.upstream()
        told = ill("rate_limit.requests", 3)
        for number in range(64):
            shop.sent(f"r{number}")
        for number in range(64):
            shop.release(told, f"r{number}")
        shop.clock.now += 3
        for number in range(64):
            shop.sent(f"r{number}", 2, told)
        assert shop.row()["quota"] == 500 - 64 * 5

    # Slots

    def test_slots_are_given_in_order_of_arrival(self) -> None:
        """A freed slot goes to whoever waited longest, and nobody overtakes."""
        shop = self.slots(1)
        shop.sent("a")
        futures = [shop.waiting(name) for name in "bcd"]
        assert shop.row()["waiting"] == 3
        for number, future in enumerate(futures):
            assert not future.done()
            shop.release(run="abcd"[number])
            assert isinstance(shop.answer(future), Admitted)
        shop.release(run="d")
        row = shop.row()
        assert (row["in_flight"], row["waiting"]) == (0, 0)

    def test_whoever_gives_up_waiting_costs_no_slot(self) -> None:
        """Cancelled futures are passed over; with all cancelled the slot is simply free."""
        shop = self.slots(1)
        shop.sent("a")
        gone, stays, gone_too = (shop.waiting(name) for name in "bcd")
        assert gone.cancel()
        assert gone_too.cancel()
        shop.release(run="a")
        assert isinstance(shop.answer(stays), Admitted)
        assert not stays.cancel(), "a leave once given must be released"
        shop.release(run="c")
        shop.sent("e")

    def test_too_many_waiting_are_refused_and_cancelled_ones_do_not_count(self) -> None:
        """The queue is bounded: `runtime.concurrency`."""
        shop = self.slots(1, waiting=2)
        shop.sent("a")
        first, _ = shop.waiting("b"), shop.waiting("c")
        shop.refused("runtime.concurrency", "d")
        first.cancel()
        shop.waiting("d")

    def test_a_slot_that_comes_free_too_late_goes_to_the_next(self) -> None:
        """`until` is the waiter's limit; it is refused, the one behind it sent."""
        shop = self.slots(1)
        shop.sent("a")
        late, next_one = shop.waiting("b", until=shop.clock.now + 5), shop.waiting("c")
        shop.clock.now += 6
        shop.release(run="a")
        refusal = shop.answer(late)
        assert isinstance(refusal, Refused)
        assert refusal.code == "runtime.concurrency"
        assert isinstance(shop.answer(next_one), Admitted)

    def test_whoever_waited_meets_what_happened_meanwhile(self) -> None:
        """A cool-down told while they waited holds them, and their slot stays free."""
        shop = self.slots(1)
        shop.sent("a")
        future = shop.waiting("b")
        shop.release(ill("rate_limit.requests", 9), "a")
        refusal = shop.answer(future)
        assert isinstance(refusal, Refused)
        assert refusal.code == "runtime.cool_down"
        assert shop.row()["in_flight"] == 0

    def test_a_callback_of_a_waiter_may_come_back_to_the_guards(self) -> None:
        """Futures are answered outside of any lock."""
        shop = self.slots(1)
        shop.sent("a")
        future = shop.waiting("b")
        future.add_done_callback(lambda _: shop.release(run="b"))
        shop.release(run="a")
        shop.answer(future)
        assert shop.row()["in_flight"] == 0

    def test_slots_are_counted_over_all_credentials_of_an_upstream(self) -> None:
        """The limit protects the upstream."""
        shop = self.slots(2)
        shop.sent(credential="a")
        shop.sent(credential="b")
        reply = shop.ask(credential="c")
        shop.guards.statistics()
        assert isinstance(reply, Future)
        assert not reply.done()

    def test_more_releases_than_leaves_free_no_slots(self) -> None:
        """The count never goes below zero."""
        shop = self.slots(1)
        for _ in range(3):
            shop.release()
            shop.call()
            shop.release()
        shop.sent("a")
        shop.waiting("b")

    def test_an_upstream_may_have_figures_of_its_own(self) -> None:
        """A section per upstream overrides what holds for all."""
        shop = self.upstream(
            '[concurrency]\nlimit = 1\n[upstreams."shop".concurrency]\nlimit = 2\n'
        )
        other = Upstream(shop.guards, shop.clock, "other")
        for upstream, most in ((other, 1), (shop, 2)):
            for _ in range(most):
                upstream.sent()
            upstream.waiting("late")
