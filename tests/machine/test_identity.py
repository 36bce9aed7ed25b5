"""Crashes, restarts and repeated orders: what was claimed is never done a second time."""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.policy import TablePolicy
from failwise.runtime.call import Logic, run_call
from failwise.simulation import Simulator
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Answer, Call, Invoke
from tests.machine import worlds

LEASE = 20.0
POLICY = TablePolicy()


@dataclass
class WatchedWorld(worlds.ScriptedWorld):
    """A world that looks, when an effect is first sent, for one like it whose fate nobody knows."""

    simulator: Simulator | None = None
    blind: list[str] = field(default_factory=list)
    begun: set[str | None] = field(default_factory=set)

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        assert self.simulator is not None
        for key, claim in self.simulator.claims.items():
            alike = claim.tool == call.tool.name and step.key not in (key, *self.begun)
            if alike and claim.open_at(now) and not call.tool.idempotent:
                self.blind.append(f"{step.key} beside {key}")
        self.begun.add(step.key)
        return super().invoke(call, step, now)


def history(seed: int, rooms: Logic) -> tuple[WatchedWorld, ToolSpec]:
    """A job of several tries: call ids repeat, processes die between any two steps, ids change."""
    chance = random.Random(seed)
    nature = chance.choice(["undeclared", "undeclared", "keyed", "idempotent"])
    verify = chance.choice([None, lambda arguments: None])
    tool = ToolSpec(
        "main",
        idempotent=True if nature == "idempotent" else None,
        idempotency_key="Key" if nature == "keyed" else None,
        verify=verify,
        verify_final_after=worlds.LATEST + 5 if verify and chance.random() < 0.5 else None,
        fallback=chance.choice([(), ("other",)]),
        timeout=chance.choice([None, 2.5]),
    )
    other = ToolSpec("other", read_only=True)
    outcomes = [worlds.random_outcome(chance) for _ in range(chance.randrange(1, 8))]
    world = WatchedWorld(
        {"main": outcomes, "other": [worlds.Outcome()]},
        {"main": tool, "other": other},
        rooms,
        verify_knows=chance.random() < 0.8,
    )
    simulator = world.simulator = Simulator(world, lease=LEASE)
    dies: dict[str, int] = {}
    simulator.kill = lambda call, step: dies.get(call.call_id) == step
    at = 0.0
    for _ in range(chance.randrange(2, 5)):
        call_id = chance.choice(["c1", "c1", "c2"])
        call = worlds.make_call(tool, call_id=call_id)
        dies.clear()
        if chance.random() < 0.5:
            dies[call_id] = chance.randrange(1, 8)
        simulator.add(run_call(call, rooms), call, at)
        simulator.run()
        at = simulator.clock.now + chance.choice([0.0, 1.0, LEASE + 1])
    return world, tool


def broken(world: WatchedWorld, tool: ToolSpec) -> set[str]:
    """The promises that this history saw broken."""
    seen = set()
    of_key = Counter(key for name, key, _ in world.effects if name == "main")
    if tool.idempotency_key is None and not tool.idempotent and max(of_key.values(), default=0) > 1:
        seen.add("twice under one key")
    assert world.simulator is not None
    happened = {key for name, key, _ in world.effects if name == "main"}
    for key, claim in world.simulator.claims.items():
        if claim.state == "not_done" and key in happened:
            seen.add("claimed not to have happened")
    if world.blind:
        seen.add("sent beside an open effect")
    return seen


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**48))
def test_no_history_does_an_effect_twice(seed: int) -> None:
    """Killed anywhere, run again, ordered again under a new id: never twice, never blindly."""
    world, tool = history(seed, worlds.logic(POLICY))
    assert broken(world, tool) == set()


class ForgetfulLogic:
    """Fingerprints that differ every time, as if the open effect of another id were not known."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, tool: str, arguments: object) -> str:
        self.count += 1
        return f"{tool}-{self.count}"


def test_a_forgotten_fingerprint_is_noticed() -> None:
    """The test of the test: without fingerprints an order is sent beside its open twin."""
    rooms = worlds.logic(POLICY)
    rooms.fingerprint = ForgetfulLogic()
    assert any("sent beside an open effect" in broken(*history(seed, rooms)) for seed in range(500))


@pytest.mark.parametrize("seed", range(3))
def test_histories_are_reproducible(seed: int) -> None:
    """The same seed gives the same sends."""
    first, second = (history(seed, worlds.logic(POLICY))[0] for _ in range(2))
    assert first.sends == second.sends
