"""What a failure says of the upstream, and what a repeat after it costs: alike for every backend."""

from typing import Literal, TypeAlias

from failwise.guards.settings import RetryLimits
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category

Meaning: TypeAlias = Literal["good", "ill", "sound", "silent"]
"""What the end of a request tells: a good answer; ill health; a sound refusal, which proves health
and earns nothing; nothing at all."""

ILL = frozenset({Category.NETWORK, Category.SERVER})
"""Categories that tell of an upstream's ill health."""

ANSWERS = frozenset(
    {
        Category.AUTH,
        Category.BUSINESS,
        Category.INVALID_REQUEST,
        Category.MODEL_OUTPUT,
    }
)
"""Categories in which a sound upstream said no. Repeating after one of them costs no budget."""

SOUND = frozenset(ANSWERS - {Category.MODEL_OUTPUT} | {Category.RATE_LIMIT})
"""Categories that prove the upstream was reached and answers."""

OURS = frozenset({"network.pool_timeout"})
"""Codes below an ill category that arise on this side, and say nothing of the upstream."""

_WAIT_TOLD_BY = frozenset({Category.RATE_LIMIT, Category.SERVER, Category.NETWORK})
"""Categories whose told wait holds every caller."""


def meaning_of(failure: Failure | None) -> Meaning:
    """What the end of a request tells (None: it succeeded)."""
    if failure is None:
        return "good"
    if failure.category in ILL and failure.code not in OURS:
        return "ill"
    return "sound" if failure.category in SOUND else "silent"


def told_to_all(failure: Failure | None) -> float:
    """Seconds that the upstream told every caller to wait; 0 where it told none."""
    if failure is None or failure.category not in _WAIT_TOLD_BY:
        return 0.0
    return max(0.0, failure.retry_after or 0.0)


def cost_of(failure: Failure | None, retries: RetryLimits) -> tuple[int, bool]:
    """What a repeat after `failure` pays of the quota, and whether it counts against the shares.

    A repeat after throttling pays the quota only: the upstream itself said when.
    """
    if failure is not None:
        if failure.category in ANSWERS:
            return 0, False
        if failure.category is Category.RATE_LIMIT:
            return retries.throttle_cost, False
    return retries.transient_cost, retries.transient_cost > 0
