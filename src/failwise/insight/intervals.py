"""How far a figure may be off by chance: intervals that hold for few calls too.

All take the calls for independent of each other. Calls of one outage are not: read the intervals as
the least uncertainty there is.
"""

import functools
import math
from collections.abc import Mapping
from statistics import NormalDist

from failwise.journal.latency import middle_of
from failwise.vocabulary.records import record


@record
class Interval:
    """From `low` to `high`."""

    low: float
    high: float

    @property
    def without_zero(self) -> bool:
        """Zero lies outside."""
        return self.low > 0 or self.high < 0


@functools.cache
def z_of(confidence: float) -> float:
    """Standard deviations to both sides that hold this share of a normal distribution."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(part: int, whole: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share (JASA 22, 1927); of nothing it is all of 0 to 1."""
    if whole <= 0:
        return Interval(0.0, 1.0)
    z = z_of(confidence)
    share, extra = part / whole, z * z / whole
    middle = (share + extra / 2) / (1 + extra)
    reach = z / (1 + extra) * math.sqrt(share * (1 - share) / whole + extra / (4 * whole))
    return Interval(
        0.0 if part == 0 else max(0.0, middle - reach),
        1.0 if part == whole else min(1.0, middle + reach),
    )


def newcombe(
    part: int, whole: int, part_before: int, whole_before: int, confidence: float = 0.95
) -> Interval:
    """The interval of ``part / whole − part_before / whole_before``: Newcombe's hybrid of two score
    intervals (Statistics in Medicine 17, 1998, method 10). Where either whole is 0: −1 to 1."""
    if whole <= 0 or whole_before <= 0:
        return Interval(-1.0, 1.0)
    now, before = part / whole, part_before / whole_before
    after, earlier = wilson(part, whole, confidence), wilson(part_before, whole_before, confidence)
    return Interval(
        now - before - math.hypot(now - after.low, earlier.high - before),
        now - before + math.hypot(after.high - now, before - earlier.low),
    )


def mean_difference(
    buckets: Mapping[int, int], before: Mapping[int, int], confidence: float = 0.95
) -> Interval | None:
    """The interval of the difference of two mean durations (ms), their spread read from latency
    buckets; None for fewer than 30 calls on either side, whose mean says little of anything."""
    spreads = [_mean_and_variance(one) for one in (buckets, before)]
    if any(count < 30 for count, _, _ in spreads):
        return None
    (n, mean, variance), (n_before, mean_before, variance_before) = spreads
    reach = z_of(confidence) * math.sqrt(variance / n + variance_before / n_before)
    return Interval(mean - mean_before - reach, mean - mean_before + reach)


def _mean_and_variance(buckets: Mapping[int, int]) -> tuple[int, float, float]:
    count = sum(buckets.values())
    if not count:
        return 0, 0.0, 0.0
    mean = sum(middle_of(bucket) * n for bucket, n in buckets.items()) / count
    squares = sum(n * (middle_of(bucket) - mean) ** 2 for bucket, n in buckets.items())
    return count, mean, squares / max(1, count - 1)


def quantile_interval(
    buckets: Mapping[int, int], share: float, confidence: float = 0.95
) -> Interval | None:
    """The interval of a quantile (ms) by the ranks that its own may be off; None where there are too
    few calls for it to have one on both sides."""
    count = sum(buckets.values())
    reach = z_of(confidence) * math.sqrt(count * share * (1 - share))
    low, high = math.floor(count * share - reach), math.ceil(count * share + reach) + 1
    if low < 1 or high > count:
        return None
    found: list[float] = []
    seen = 0
    for bucket, n in sorted(buckets.items()):
        seen += n
        while len(found) < 2 and seen >= (low, high)[len(found)]:
            found.append(middle_of(bucket))
    return Interval(found[0], found[1])
