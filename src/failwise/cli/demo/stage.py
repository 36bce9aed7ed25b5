"""The performance: every scene on one fault server with one runtime, watched as it happens."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from failwise.cli.demo.blind import Blind, blindly
from failwise.cli.demo.scene import Outcome, Scene, Step
from failwise.cli.demo.world import World
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.steps import Call

if TYPE_CHECKING:
    from failwise.insight.figures import Report

HURRIED = {
    "network": {"base": 0.1, "connection_reset": {"base": 0.1}},
    "server": {"base": 0.1},
    "parsing": {"base": 0.1},
    "unknown": {"base": 0.1},
}
"""The policy of ``--fast``: short delays of our own. A wait that was told is kept all the same."""


class Audience(Protocol):
    """Whoever watches. Called from the loop, in order; not for each of many calls at once.

    `nested`: a call made by another one: a fallback, or what a check asks.
    """

    def scene(self, number: int, total: int, scene: Scene) -> None: ...
    def call(self, step: Step, copies: int) -> None: ...
    def attempt(self, call: Call, attempt: Attempt, *, nested: bool) -> None: ...
    def result(self, result: ToolResult[Any], *, nested: bool) -> None: ...
    def outcome(self, outcome: Outcome) -> None: ...


@record
class Performance:
    """What came of it all. `leaks`: planted secrets found in results, logs or the journal."""

    outcomes: tuple[Outcome, ...]
    report: "Report"
    blind: dict[str, Blind]
    planted: tuple[str, ...]
    leaks: int
    seconds: float


def perform(
    scenes: Sequence[Scene], *, journal: str, fast: bool, audience: Audience | None
) -> Performance:
    """Run the scenes in order. `journal` is the path of the journal to write."""
    began = time.monotonic()
    counts: dict[str, Blind] = {}
    comparison = threading.Thread(target=lambda: counts.update(blindly(scenes)), daemon=True)
    comparison.start()
    with _logged() as lines:
        since = time.time()
        outcomes, planted = asyncio.run(_play(scenes, journal, fast, audience))
        comparison.join()
    from failwise.insight.report import report

    seen = "\n".join([*lines, *(_shown(result) for o in outcomes for result in o.results)])
    leaks = sum(1 for secret in planted if secret in seen or _in_journal(secret, journal))
    return Performance(
        outcomes,
        report(journal, since=since, by="category"),
        counts,
        planted,
        leaks,
        time.monotonic() - began,
    )


async def _play(
    scenes: Sequence[Scene], journal: str, fast: bool, audience: Audience | None
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    from failwise.faults import FaultServer
    from failwise.runtime.runtime import Runtime

    policy = {**HURRIED, "preset": "default"} if fast else None
    outcomes: list[Outcome] = []
    async with FaultServer() as server, Runtime(journal, policy=policy) as runtime:
        world = World(server, runtime)
        stamp = f"{time.time():.3f}"
        crowded = False
        asked: list[str] = []

        def attempt(call: Call, attempt: Attempt) -> None:
            if audience is not None and not crowded:
                audience.attempt(call, attempt, nested=call.call_id not in asked)

        def result(result: ToolResult[Any]) -> None:
            if audience is not None and not crowded:
                audience.result(result, nested=result.call_id not in asked)

        runtime.on_attempt(attempt)
        runtime.on_result(result)
        for number, scene in enumerate(scenes, 1):
            scene.prepare(world)
            if audience is not None:
                audience.scene(number, len(scenes), scene)
            crowded = scene.copies > 1
            results: list[ToolResult[Any]] = []
            began = time.monotonic()
            async with runtime.run(id=f"demo-{stamp}-{scene.name}") as run:
                for place, step in enumerate(scene.steps, 1):
                    if audience is not None:
                        audience.call(step, scene.copies)
                    asked[:] = (f"call_{place}_{copy}" for copy in range(1, scene.copies + 1))
                    made = [(step.tool, step.arguments, call_id) for call_id in asked]
                    results += await run.call_many(made)
            seconds = time.monotonic() - began
            outcome = Outcome(
                scene,
                tuple(results),
                world.requests(scene.name),
                server.ledger.count(scene.name),
                len(server.ledger.duplicates(scene.name)),
                server.connections(scene.connections[0]) if scene.connections else 0,
                seconds,
            )
            outcomes.append(outcome)
            if audience is not None:
                audience.outcome(outcome)
    return tuple(outcomes), tuple(world.planted)


def _shown(result: ToolResult[Any]) -> str:
    """Everything of a result that could be shown or stored."""
    texts = [result.for_model("en"), result.for_model("zh"), result.for_user("en"), repr(result)]
    return "\n".join([json.dumps(result.to_dict(), default=str), *texts])


def _in_journal(secret: str, journal: str) -> bool:
    files = [Path(journal + ending) for ending in ("", "-wal")]
    return any(secret.encode() in file.read_bytes() for file in files if file.exists())


@contextmanager
def _logged() -> Iterator[list[str]]:
    """What the library logs meanwhile, kept instead of printed between the lines."""
    lines: list[str] = []
    handler = _Kept(lines.append)
    logger = logging.getLogger("failwise")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


class _Kept(logging.Handler):
    def __init__(self, keep: Callable[[str], None]) -> None:
        super().__init__()
        self._keep = keep

    def emit(self, record: logging.LogRecord) -> None:
        self._keep(self.format(record))


def leaked(planted: Sequence[str], printed: str) -> int:
    """How many planted secrets stand in what was printed, however it was wrapped."""
    text = "".join(printed.split())
    return sum(1 for secret in planted if secret in text)
