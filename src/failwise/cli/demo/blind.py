"""For comparison: the same calls on the same faults under a loop that repeats whatever failed."""

import json
from collections.abc import Sequence
from typing import Any

from failwise.cli.demo.scene import Scene, Step
from failwise.cli.demo.world import World
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import CallContext, ToolSpec

REPEATS = 3


@record
class Blind:
    """What the loop did in one scene.

    `sent`: requests, those included that found nobody. `told_done`: effects it took for done.
    """

    sent: int
    effects: int
    told_done: int


def blindly(scenes: Sequence[Scene]) -> dict[str, Blind]:
    """Run the scenes on a server of their own with up to 3 repeats of anything that fails.

    Without waits: what is counted are requests and effects. A success is a status below 400 with a
    JSON body, as ``raise_for_status()`` and ``json()`` have it.
    """
    from failwise.faults import FaultServer
    from failwise.runtime.runtime import Runtime
    from failwise.tools.send import close_clients

    done: dict[str, Blind] = {}
    with FaultServer() as server:
        try:
            for scene in scenes:
                world = World(server, Runtime(":memory:"))
                scene.prepare(world)
                sent, told_done = 0, 0
                for step in scene.steps:
                    for _ in range(scene.copies):
                        number, works = _repeated(world, step)
                        sent += number
                        told_done += step.effect and works
                done[scene.name] = Blind(sent, server.ledger.count(scene.name), told_done)
        finally:
            close_clients()
    return done


def _repeated(world: World, step: Step) -> tuple[int, bool]:
    """How many requests one call took, and whether it seemed to work in the end."""
    tool = world.runtime.tools.get(step.tool)
    try:
        arguments = json.loads(step.arguments)
    except ValueError:
        return 0, False
    if tool is None:
        return 0, False
    for number in range(1, REPEATS + 2):
        if _works(tool, arguments, world):
            return number, True
    return REPEATS + 1, False


def _works(tool: ToolSpec, arguments: dict[str, Any], world: World) -> bool:
    credential = world.credentials[tool.credential]() if tool.credential else None
    try:
        assert tool.call is not None
        answer = tool.call(arguments, CallContext(credential=credential))
        if answer.status >= 400:
            return False
        json.loads(answer.text)
    except Exception:
        return False
    return True
