"""A dead upstream, with the real guards on a virtual clock: the fleet does not storm."""

import random

import pytest

from failwise.guards import MemoryGuards
from failwise.policy import TablePolicy
from failwise.runtime.call import run_call
from failwise.simulation import Simulator
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Answer, Call, Invoke
from tests.machine import worlds

DEAD = worlds.Outcome(0.2, worlds.failure("server.internal", Effect.UNKNOWN, True))


def outage(callers: int, seconds: float, pause: float) -> tuple[int, int, list[int]]:
    """Calls, requests, and requests of each call, while `callers` call every `pause` seconds."""
    tool = ToolSpec("main", read_only=True)
    rooms = worlds.logic(TablePolicy())
    world = worlds.ScriptedWorld({"main": [DEAD]}, {"main": tool}, rooms)
    simulator = Simulator(world, guards=MemoryGuards)
    calls = 0
    for caller in range(callers):
        for turn in range(int(seconds / pause)):
            at = caller * pause / callers + turn * pause
            call = worlds.make_call(tool, call_id=f"c{caller}-{turn}")
            simulator.add(run_call(call, rooms), call, at)
            calls += 1
    results = simulator.run()
    assert len(results) == calls
    assert simulator.held == 0
    return calls, len(world.sends), [result.sent for result in results]


@pytest.mark.parametrize("pause", [1.0, 5.0, 20.0])
def test_a_fleet_sends_at_most_a_tenth_more_than_its_calls(pause: float) -> None:
    """E27: 64 callers, three minutes, every answer a 500: at most 1.1 requests per call."""
    calls, requests, _ = outage(64, 180.0, pause)
    assert requests <= 1.1 * calls


def test_a_lone_caller_still_gets_its_retries() -> None:
    """One call alone is repeated as the policy says: three requests."""
    _, requests, sent = outage(1, 1.0, 1.0)
    assert requests == 3
    assert sent == [3]


class Unsteady(worlds.ScriptedWorld):
    """A world in which each request fails by chance."""

    chance = random.Random(7)
    share = 0.05

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        self.script["main"] = [DEAD if self.chance.random() < self.share else worlds.Outcome()]
        return super().invoke(call, step, now)


def test_tasks_of_three_calls_survive_five_percent_of_faults() -> None:
    """E30: plainly 86 % of such tasks succeed; here at least 99 %, at 1.1 requests a call or less."""
    tool = ToolSpec("main", read_only=True)
    rooms = worlds.logic(TablePolicy())
    world = Unsteady({"main": [DEAD]}, {"main": tool}, rooms)
    simulator = Simulator(world, guards=MemoryGuards)
    tasks = 2000
    for task in range(tasks):
        for number in range(3):
            call = worlds.make_call(tool, call_id=f"{task}-{number}")
            simulator.add(run_call(call, rooms), call, task * 2.0 + number * 0.5)
    failed = {r.call_id.split("-")[0] for r in simulator.run() if not r.success}
    assert 1 - len(failed) / tasks >= 0.99
    assert len(world.sends) <= 1.1 * 3 * tasks


def test_fifty_at_once_do_not_multiply() -> None:
    """A burst of fifty calls into a dead upstream costs at most 55 requests."""
    calls, requests, _ = outage(50, 0.001, 0.001)
    assert calls == 50
    assert requests <= 55
