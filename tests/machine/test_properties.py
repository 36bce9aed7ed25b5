"""The machine under random worlds, and the proof that these tests notice a broken rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.policy import TablePolicy
from failwise.vocabulary.result import ToolResult
from tests.machine import worlds

POLICY = TablePolicy()


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**48))
def test_promises_hold_in_every_world(seed: int) -> None:
    """Never a second effect, never early, never past the deadline, always a result, nothing left held."""
    assert worlds.broken_invariants(worlds.play(seed, POLICY)) == set()


@pytest.mark.parametrize(
    ("policy", "promise"),
    [
        (worlds.ResendAfterNo(), "second effect"),
        (worlds.FallBackAfterUnknown(), "second effect"),
        (worlds.EffectIgnored(), "second effect"),
        (worlds.JitterUnderToldWait(), "told wait broken"),
        (worlds.DeadlineNotLookedAhead(), "past deadline"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_broken_rule_is_noticed(policy: worlds._Changed, promise: str) -> None:
    """Each deliberately broken rule is caught by the very invariant it breaks."""
    caught = sum(
        promise in worlds.broken_invariants(worlds.play(seed, policy)) for seed in range(3000)
    )
    assert caught > 0
    unbroken = sum(
        bool(worlds.broken_invariants(worlds.play(seed, POLICY))) for seed in range(3000)
    )
    assert unbroken == 0


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**48), st.integers(1, 14))
def test_cancelled_at_any_step(seed: int, step: int) -> None:
    """Wherever a call is cancelled: a result, no slot lost, and claim and record agree."""
    played = worlds.play(seed, POLICY, cancel=lambda call, n: call.call_id == "c1" and n == step)
    assert isinstance(played.result, ToolResult)
    assert played.simulator.held == 0
    for claim in played.simulator.claims.values():
        assert claim.state != "claimed"
        if claim.state == "not_done" and not played.repeatable:
            assert not [
                e
                for e in played.world.effects
                if e[1] == claim.key and played.result.failure is None
            ]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**48))
def test_same_log_same_call(seed: int) -> None:
    """The same evidence, history and policy give the same verdict and decisions, every time."""
    first, second = worlds.play(seed, TablePolicy()), worlds.play(seed, TablePolicy())
    assert first.world.sends == second.world.sends
    assert first.result.to_dict() == second.result.to_dict()


def test_worlds_are_rich() -> None:
    """The random worlds do reach retries, verification, fallbacks, refusals and every stop reason."""
    seen: set[str] = set()
    for seed in range(2000):
        result = worlds.play(seed, POLICY).result
        seen.add(result.stop_reason.value)
        seen.update(k for k in ("degraded_to", "verified") if getattr(result, k))
        if result.retries:
            seen.add("retried")
    assert {
        "succeeded", "not_retriable", "unsafe_effect", "retries_exhausted", "wait_too_long", "deadline",
        "degraded_to", "verified", "retried",
    } <= seen  # fmt: skip
