"""Latency buckets."""

import math

from hypothesis import given
from hypothesis import strategies as st

from failwise.journal.latency import bucket_of, middle_of, quantiles


@given(st.floats(min_value=0.002, max_value=1e9))
def test_a_bucket_is_at_most_two_percent_off(duration: float) -> None:
    """Whatever the duration, its bucket's middle is near."""
    assert abs(middle_of(bucket_of(duration)) / duration - 1) <= 0.0201


@given(st.lists(st.floats(min_value=0.01, max_value=1e7), min_size=1), st.sampled_from([0.5, 0.9]))
def test_quantiles_are_within_two_percent(durations: list[float], share: float) -> None:
    """Against the value of the same rank among the sorted durations."""
    counts: dict[int, int] = {}
    for duration in durations:
        counts[bucket_of(duration)] = counts.get(bucket_of(duration), 0) + 1
    exact = sorted(durations)[math.ceil(share * len(durations)) - 1]
    (found,) = quantiles(counts.items(), [share])
    assert abs(found / exact - 1) <= 0.0201


def test_odd_durations_have_a_bucket() -> None:
    """Zero, negative, endless and not a number."""
    assert [bucket_of(d) for d in (0, -1, math.nan)] == [0, 0, 0]
    assert bucket_of(math.inf) == bucket_of(1e15)
    assert quantiles([], [0.5, 0.9]) == (0.0, 0.0)
