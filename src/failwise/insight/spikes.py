"""Is this many more than usual? A test that knows how little it has seen.

The baseline is a row of counts of equal periods. What is expected of the next stretch follows a
negative binomial distribution: the rate is not known, only estimated from those counts (a Gamma
posterior with Jeffreys' prior; Gelman et al., Bayesian Data Analysis, 2.6), and failures come in
bursts, so that their variance is above their mean (moment estimate of the dispersion). With a long and
even baseline it becomes Poisson's.
"""

import math
from collections.abc import Sequence
from typing import Final

from failwise.vocabulary.records import record

_STEPS: Final = 300
_TINY: Final = 1e-300
_PRECISE: Final = 1e-12


@record
class Expected:
    """What a baseline makes one expect: `mean` of the count, `shape` of the negative binomial
    (smaller: more spread)."""

    mean: float
    shape: float

    def chance_of(self, count: int) -> float:
        """The chance that `count` or more happen although nothing has changed."""
        if count <= 0:
            return 1.0
        # P(X >= k) of a negative binomial is the regularised incomplete beta function I_p(k, r).
        share = self.mean / (self.mean + self.shape)
        return _beta_share(float(count), self.shape, share)


def expected(baseline: Sequence[int], period: float, length: float) -> Expected:
    """What `length` seconds should bring, by the counts of earlier periods of `period` seconds each.

    No period at all: nothing is known, and any count is possible.
    """
    if not baseline:
        return Expected(0.5, 0.5)
    total = sum(baseline)
    span = len(baseline) * period
    shape = total + 0.5
    mean = shape * length / span
    average = total / len(baseline)
    if len(baseline) > 2 and average > 0:
        variance = sum((count - average) ** 2 for count in baseline) / (len(baseline) - 1)
        excess = variance - average
        if excess > 0:
            # The dispersion of one period; a longer stretch averages bursts out.
            spread = average**2 / excess * max(length / period, 1.0)
            shape = 1.0 / (1.0 / shape + 1.0 / spread)
    return Expected(mean, shape)


def _beta_share(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (NIST DLMF 8.17.22)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return min(1.0, front * _fraction(a, b, x) / a)
    return min(1.0, max(0.0, 1.0 - front * _fraction(b, a, 1.0 - x) / b))


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    found = d
    for step in range(1, _STEPS + 1):
        for term in (
            step * (b - step) * x / ((a + 2 * step - 1.0) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1.0)),
        ):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / c
            c = c if abs(c) > _TINY else _TINY
            found *= d * c
        if abs(d * c - 1.0) < _PRECISE:
            break
    return found
