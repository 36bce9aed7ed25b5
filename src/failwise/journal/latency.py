"""Logarithmic latency buckets: one small integer a call, from which any engine makes quantiles.

Bucket 0 holds everything up to a microsecond; each further one is 4 % wider than the one before.
A quantile read from the middle of its bucket is at most 2 % off (the square root of 1.04).
"""

import math
from collections.abc import Iterable, Sequence

GROWTH = 1.04
SMALLEST_MS = 0.001
_SCALE = 1 / math.log(GROWTH)


def bucket_of(duration_ms: float) -> int:
    """The bucket of a duration in milliseconds."""
    if not duration_ms > SMALLEST_MS:
        return 0
    if duration_ms == math.inf:
        return bucket_of(1e15)
    return 1 + int(math.log(duration_ms / SMALLEST_MS) * _SCALE)


def middle_of(bucket: int) -> float:
    """The duration, in milliseconds, that stands for a bucket: its geometric middle."""
    return SMALLEST_MS * GROWTH ** (bucket - 0.5) if bucket > 0 else SMALLEST_MS


def quantiles(counts: Iterable[tuple[int, int]], shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles in milliseconds from (bucket, count) pairs; nothing counted gives zeros.

    The quantile q of n values is the value of rank ⌈q·n⌉, counted from 1.
    """
    rows = sorted(counts)
    total = sum(count for _, count in rows)
    found: list[float] = []
    for share in shares:
        rank, seen, value = max(1, math.ceil(share * total)), 0, 0.0
        for bucket, count in rows:
            seen += count
            if seen >= rank:
                value = middle_of(bucket)
                break
        found.append(value)
    return tuple(found)
