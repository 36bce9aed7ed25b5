"""The conformance suite in memory, and what concerns memory only."""

import os
import threading
from concurrent.futures import Future

import pytest

from failwise.guards import GuardSettings, MemoryGuards
from failwise.testing import GuardConformance, SteppingClock
from failwise.testing.guard_upstream import Upstream, ill
from failwise.vocabulary.steps import Admitted


class TestMemoryGuards(GuardConformance):
    """What every backend must do, and a few things that only memory has."""

    def make_guards(self, clock: SteppingClock, settings: GuardSettings) -> MemoryGuards:
        return MemoryGuards(clock, settings)

    def test_a_thousand_whose_credential_was_renewed_all_go_again(self) -> None:
        """Retries after an answer are bounded by nothing."""
        shop = self.upstream('[concurrency]\nlimit = "unlimited"\n')
        expired = ill("auth.credential_expired")
        for number in range(1000):
            shop.call(expired, f"r{number}")
        for number in range(1000):
            shop.sent(f"r{number}", 2, expired)

    def test_a_retry_released_under_another_number_blocks_no_later_retries(self) -> None:
        """What is not matched is dropped when nothing is under way any more."""
        shop = self.upstream()
        for number in range(30):
            shop.call(None)
            shop.clock.now += 10
            shop.sent(f"r{number}", 2, ill())
            shop.release(None, f"other{number}", 1)

    def test_the_longest_idle_are_forgotten_first_and_those_in_trouble_last(self) -> None:
        """Ten keys at most; one upstream that is held survives a hundred newcomers."""
        shop = self.upstream("[memory]\nkeys = 10\n")
        shop.name = "held"
        shop.call(ill("rate_limit.requests", 3600))
        shop.name = "busy"
        shop.sent()
        for number in range(100):
            shop.clock.now += 1
            shop.name = f"u{number}"
            shop.call()
        rows = shop.guards.statistics()
        assert len(rows) <= 10
        names = [row["upstream"] for row in rows]
        assert names[0] == "held"
        assert {"busy", "u99"} <= set(names)

    def test_one_leave_object_serves_everybody(self) -> None:
        """Nothing is made on the good path."""
        shop = self.upstream()
        assert shop.ask() is shop.ask()

    def test_open_circuits_are_told_at_a_glance(self) -> None:
        """Upstream and seconds until a probe; nothing for those that are well."""
        guards = MemoryGuards(SteppingClock())
        shop = Upstream(guards, SteppingClock())
        Upstream(guards, SteppingClock(), "well").call()
        shop.open_circuit()
        assert guards.open_circuits() == {"shop": 30.0}

    def test_what_others_knew_is_taken_over(self) -> None:
        """`foresee`: a fleet's cool-down and open circuit hold here; `learn` needs no slot."""
        clock = SteppingClock()
        guards = MemoryGuards(clock)
        guards.foresee("shop", None, 5.0, -1.0)
        guards.foresee("other", None, 0.0, 20.0)
        shop, other = Upstream(guards, clock), Upstream(guards, clock, "other")
        shop.refused("runtime.cool_down")
        other.refused("runtime.circuit_open")
        clock.now += 20
        shop.sent()
        other.sent("probe")
        other.release(None, "probe")
        assert other.row()["circuit"] == "closed"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    def test_a_forked_child_starts_with_free_slots_and_an_open_lock(self) -> None:
        """The parent's requests are not under way in the child, what was learned stays."""
        shop = self.slots(1)
        shop.call(ill("rate_limit.requests", 5))
        shop.clock.now += 5
        shop.sent("parent")
        assert isinstance(shop.guards, MemoryGuards)
        lock = shop.guards._lock
        holding, done = threading.Event(), threading.Event()

        def hold() -> None:
            with lock:
                holding.set()
                done.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        holding.wait(10)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if isinstance(shop.ask("child"), Admitted) else 2
            finally:
                os._exit(status)
        done.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert isinstance(shop.ask("waits"), Future)
