"""When a call is sent again: the waits of the table, told waits, deadlines: over all three drivers.

Time is virtual and jitter is off, so that every second can be compared. The marks E1, E2, ... are
the acceptance examples of the project.
"""

import logging

import pytest

from failwise import Action, Category, StopReason
from tests.machine.failures import connect_timeout, read_timeout, server_error, too_many
from tests.machine.stages import After, Open

# Retries and their times


def test_connect_timeouts_are_repeated_at_1_2_4_seconds(stage: Open) -> None:
    """E1: a read that never connects is sent at 0, 1, 3, 7 s, then handed to the model."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 1, 3, 7]
    assert (result.success, result.retries) == (False, 3)
    assert result.stop_reason is StopReason.RETRIES_EXHAUSTED
    assert result.suggested_action is Action.ASK_MODEL
    assert [a.decision.delay for a in result.attempts if a.decision][:3] == [1, 2, 4]


def test_exhausted_retries_lead_to_the_fallback(stage: Open) -> None:
    """E1: with a fallback declared, that is what comes after the last retry."""
    it = stage()
    it.tool("search", connect_timeout(), read_only=True, fallback=("cache",))
    cache = it.tool("cache", ["shoes"], read_only=True)
    result = it.call("search", {"query": "shoes"})
    assert cache.times == [7]
    assert cache.sent == [{"query": "shoes"}]
    assert result.value == ["shoes"]
    assert result.degraded_to == "cache"


def test_jitter_spreads_each_wait_by_half(stage: Open) -> None:
    """E1: with the preset's jitter each wait stays within 0.5 to 1.5 of 1, 2, 4 s, and is not exact."""
    it = stage(jitter=None)
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search")
    waits = [b - a for a, b in zip(search.times, search.times[1:], strict=False)]
    assert [0.5 * m <= w <= 1.5 * m for w, m in zip(waits, (1, 2, 4), strict=True)] == [True] * 3
    assert waits != [1, 2, 4]


def test_interactive_gives_two_retries(stage: Open) -> None:
    """E2: `interactive` sends at 0, 1, 3 s."""
    it = stage("interactive")
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 1, 3]
    assert result.retries == 2


def test_interactive_hands_long_waits_back(stage: Open) -> None:
    """`interactive` does not sleep through a told wait above 10 s."""
    it = stage("interactive")
    search = it.tool("search", too_many(11), read_only=True)
    assert it.call("search").stop_reason is StopReason.WAIT_TOO_LONG
    assert search.times == [0]


def test_batch_is_patient(stage: Open) -> None:
    """`batch` sleeps through a wait that `default` hands back, and repeats six times."""
    it = stage("batch")
    patient = it.tool("search", too_many(120), "found", read_only=True)
    assert it.call("search").value == "found"
    assert patient.times == [0, 120]
    slow = it.tool("slow", connect_timeout(), read_only=True)
    it.call("slow")
    assert slow.requests == 7


def test_server_errors_are_repeated_linearly(stage: Open) -> None:
    """E3: a 500 on a read is sent at 0, 2, 6 s."""
    it = stage()
    search = it.tool("search", server_error(), read_only=True)
    result = it.call("search")
    assert search.times == [0, 2, 6]
    assert result.failure
    assert result.failure.category is Category.SERVER


def test_delays_are_capped_at_30_seconds(stage: Open) -> None:
    """E4: with the ceiling raised to 8: 1, 2, 4, 8, 16, 30, 30, 30 s."""
    it = stage({"retries_ceiling": 8, "network": {"retries": 8, "retries_read": 8}})
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search")
    waits = [b - a for a, b in zip(search.times, search.times[1:], strict=False)]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_rows_above_the_ceiling_are_clamped_and_said_once(
    stage: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """E4: with the ceiling left at 3, a row of 8 means 3 retries and one warning."""
    with caplog.at_level(logging.WARNING, "failwise"):
        it = stage({"network": {"retries_read": 8}})
        search = it.tool("search", connect_timeout(), read_only=True)
        it.call("search")
        it.call("search")
    assert search.requests == 8
    assert sum("retries_ceiling" in record.message for record in caplog.records) == 1


def test_a_call_cannot_raise_its_retries_past_the_ceiling(stage: Open) -> None:
    """The ceiling holds for a tool's and a call's own rows too."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    it.call("search", policy={"network": {"retries_read": 9}})
    assert search.requests == 4


# Told waits


@pytest.mark.parametrize("jitter", [0.0, None], ids=["exact", "jitter"])
def test_a_told_wait_is_a_floor(stage: Open, jitter: float | None) -> None:
    """E5: after Retry-After: 3 the second request comes at 3.0 to 3.3 s, never before."""
    it = stage(jitter=jitter)
    search = it.tool("search", too_many(3), "found", read_only=True)
    result = it.call("search")
    assert result.success
    assert search.requests == 2
    assert 3.0 <= search.times[1] <= 3.3
    assert jitter is None or search.times[1] == 3.0


def test_a_told_wait_above_the_ceiling_is_handed_back(stage: Open) -> None:
    """E6: Retry-After: 120 means one request, back at once, with the moment to come again."""
    it = stage()
    search = it.tool("search", too_many(120), read_only=True)
    result = it.call("search")
    assert search.times == [0]
    assert it.clock.monotonic() == 0
    assert result.stop_reason is StopReason.WAIT_TOO_LONG
    assert result.suggested_action is Action.RETRY_LATER
    assert result.retry_at == pytest.approx(it.clock.time() + 120)
    assert result.retriable


def test_a_limit_that_tells_no_wait_is_repeated_at_1_2_4(stage: Open) -> None:
    """E6: a 429 that tells nothing waits 1, 2, 4 s."""
    it = stage()
    search = it.tool("search", too_many(), read_only=True)
    it.call("search")
    assert search.times == [0, 1, 3, 7]


def test_a_write_is_repeated_after_a_limit(stage: Open) -> None:
    """A 429 refused the order before it acted: repeating cannot do it twice."""
    it = stage()
    order = it.tool("order", too_many(3), {"order": 1})
    assert it.call("order").success
    assert order.times == [0, 3]
    assert len(set(order.keys)) == 1


# Time


def test_the_deadline_is_looked_ahead(stage: Open) -> None:
    """A wait that would pass the deadline is not begun: the call comes back at once."""
    it = stage()
    search = it.tool("search", connect_timeout(), read_only=True)
    result = it.call("search", deadline=3)
    assert search.times == [0, 1]
    assert it.clock.monotonic() == 1
    assert result.stop_reason is StopReason.DEADLINE


def test_a_told_wait_past_the_deadline_is_handed_back(stage: Open) -> None:
    """A told wait beyond the deadline is not slept: `retry_at` says when."""
    it = stage()
    search = it.tool("search", too_many(20), read_only=True)
    result = it.call("search", deadline=10)
    assert search.times == [0]
    assert result.stop_reason is StopReason.DEADLINE
    assert result.retry_at == pytest.approx(it.clock.time() + 20)


def test_the_timeout_grows_after_a_read_timeout(stage: Open) -> None:
    """After each read timeout the next attempt may take 1.5 times as long."""
    it = stage()
    search = it.tool("search", After(10, read_timeout()), read_only=True, timeout=10.0)
    it.call("search")
    assert search.limits == [10, 15, 22.5, 33.75]


def test_the_grown_timeout_is_cut_by_the_deadline(stage: Open) -> None:
    """An attempt may never take longer than the time that is left."""
    it = stage()
    search = it.tool("search", After(4, read_timeout()), read_only=True, timeout=10.0)
    it.call("search", deadline=12)
    assert search.times == [0, 5, 11]
    assert search.limits == [10, 7, 1]


def test_a_run_shares_its_deadline(stage: Open) -> None:
    """The calls of a run have one deadline together; one that begins past it is not sent."""
    it = stage()
    step = it.tool("step", After(6, "done"), read_only=True)
    run = it.runtime.run(deadline=10)
    assert it.call_in(run, "step").success
    it.call_in(run, "step")
    late = it.call_in(run, "step")
    assert late.failure
    assert late.failure.code == "runtime.deadline"
    assert step.requests == 2
    assert late.sent == 0
