"""A guard gives no leave for a write that an earlier process may have sent: "not sent" is not the truth."""

from typing import Any

import pytest

from failwise.policy import TablePolicy
from failwise.runtime.call import run_call
from failwise.simulation import Simulator
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release
from tests.machine import worlds

LOST = worlds.Outcome(0.1, worlds.failure("server.internal", Effect.UNKNOWN, True), 0.05)
DONE = worlds.Outcome(0.1, None, 0.05)


class Door:
    """Guards that are open for one call, and shut after it."""

    def __init__(self, clock: Any) -> None:
        self.calls = 0

    def admit(self, step: Admit) -> Admitted | Refused:
        self.calls += 1
        if self.calls == 1 or step.tool == "spare":
            return Admitted()
        return Refused("runtime.circuit_open", 30.0)

    def release(self, step: Release) -> None: ...


def twice(first: worlds.Outcome, **declared: Any) -> tuple[ToolResult[Any], worlds.ScriptedWorld]:
    """The same call in two lives of its run; in the second one the circuit is open."""
    tools = {"main": ToolSpec("main", **declared), "spare": ToolSpec("spare")}
    rooms = worlds.logic(TablePolicy())
    world = worlds.ScriptedWorld({"main": [first], "spare": [DONE]}, tools, rooms)
    simulator = Simulator(world, guards=Door)
    for at in (0.0, 100.0):
        call = worlds.make_call(tools["main"], now=at)
        simulator.add(run_call(call, rooms), call, at)
    *_, again = simulator.run()
    assert simulator.held == 0
    return again, world


def test_what_was_done_is_answered_although_the_circuit_is_open() -> None:
    """The stored result comes back; nothing is sent and nothing is said to be "not sent"."""
    again, world = twice(DONE)
    assert again.success
    assert again.extra["replayed"]
    assert len(world.sends) == 1


def test_what_may_have_happened_is_said_although_the_circuit_is_open() -> None:
    """The effect stays unknown to whoever asks again."""
    again, world = twice(LOST)
    assert again.failure is not None
    assert again.failure.code == "runtime.effect_open"
    assert again.effect is Effect.UNKNOWN
    assert len(world.sends) == 1


@pytest.mark.parametrize("first", [DONE, LOST])
def test_no_other_door_is_taken_for_it(first: worlds.Outcome) -> None:
    """A fallback would do it a second time."""
    _, world = twice(first, fallback=("spare",))
    assert [name for name, _ in world.sends] == ["main"]


def test_what_was_never_sent_may_go_through_another_door_once() -> None:
    """Refused at its first life: the fallback does it, and a later life of the call is answered by that."""
    tools = {"main": ToolSpec("main", fallback=("spare",)), "spare": ToolSpec("spare")}
    rooms = worlds.logic(TablePolicy())
    world = worlds.ScriptedWorld({"main": [DONE], "spare": [DONE]}, tools, rooms)
    simulator = Simulator(world, guards=Door)
    simulator.guards.calls = 1  # type: ignore[union-attr]
    for at in (0.0, 100.0):
        call = worlds.make_call(tools["main"], now=at)
        simulator.add(run_call(call, rooms), call, at)
    assert all(result.success for result in simulator.run())
    assert [name for name, _ in world.sends] == ["spare"]
