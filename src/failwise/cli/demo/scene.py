"""A scene of the demonstration: what is asked, what must come of it, and whether it did."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from failwise.cli.demo.world import World

AMPLIFICATION = 1.1
"""Requests per call that an upstream in full outage may get at most."""


@record
class Wanted:
    """What one call must come to. None: anything.

    `met`: the codes of its failed attempts in order; `requests` as the result counts them.
    `repaired`: some argument was corrected.
    """

    success: bool | None = True
    code: str | None = None
    met: tuple[str, ...] | None = None
    requests: int | None = 1
    repaired: bool = False
    degraded_to: str | None = None
    verified: bool | None = None


@record
class Step:
    """One tool call as the model wrote it. `effect`: it asks for something to be done."""

    tool: str
    arguments: str
    wanted: Wanted = field(default_factory=Wanted)
    effect: bool = False


@record
class Scene:
    """Some calls of one run against one misbehaving upstream.

    `prepare` registers routes and tools. Goals: exactly `requests` at the server (or, with
    `outage`, at most 1.1 for each call), `unreached` attempts that ended before there was a
    request (refused, TLS), `effects` on the ledger, between `least_seconds` and `seconds` long.
    `connections`: how many one kind of TLS peer may have accepted. `copies` of the step are sent at
    once. `told`: what the model saw is shown at the end.
    """

    name: str
    prepare: Callable[["World"], None]
    steps: tuple[Step, ...]
    requests: int = 0
    unreached: int = 0
    effects: int = 0
    seconds: float = 15.0
    least_seconds: float = 0.0
    connections: tuple[str, int] | None = None
    copies: int = 1
    outage: bool = False
    told: bool = False

    @property
    def calls(self) -> int:
        """How many calls the model makes."""
        return len(self.steps) * self.copies

    @property
    def most(self) -> int:
        """How many requests may be sent, those included that find nobody."""
        if self.outage:
            return int(self.calls * AMPLIFICATION + 1e-9)
        return self.requests + self.unreached


@record
class Goal:
    """One requirement and what was found. `call` is the number of the scene's call, from 1."""

    name: str
    wanted: Any
    got: Any
    met: bool
    call: int = 0

    def to_dict(self) -> dict[str, Any]:
        data = {"goal": self.name, "wanted": self.wanted, "got": self.got, "met": self.met}
        return {**data, "call": self.call} if self.call else data


@record
class Outcome:
    """What a scene came to. `requests`, `effects` as the server counted them; `seconds` of clock."""

    scene: Scene
    results: tuple[ToolResult[Any], ...]
    requests: int
    effects: int
    repeated: int
    connections: int
    seconds: float

    @property
    def unreached(self) -> int:
        """Attempts that ended before there was a request: nobody listens, or TLS failed."""
        return sum(
            1
            for result in self.results
            for attempt in result.attempts
            if attempt.number > 0
            and attempt.failure is not None
            and attempt.failure.effect is Effect.NOT_SENT
        )

    @property
    def sent(self) -> int:
        """Requests sent, those included that found nobody."""
        return self.requests + self.unreached

    @property
    def asked(self) -> int:
        """Distinct effects that the model asked for."""
        asked = {(step.tool, step.arguments) for step in self.scene.steps if step.effect}
        return len(asked)

    @property
    def told_done(self) -> int:
        """Distinct effects that the model was told to be done."""
        return len(self._distinct(lambda result: result.success))

    @property
    def refused(self) -> int:
        """Distinct effects that certainly did not happen: the upstream said no, or nothing was sent."""
        safe = self._distinct(lambda result: result.effect is not None and result.effect.safe)
        other = self._distinct(lambda result: result.effect is None or not result.effect.safe)
        return len(safe - other)

    def _distinct(self, test: Callable[[ToolResult[Any]], bool]) -> set[tuple[str, str]]:
        return {
            (step.tool, step.arguments)
            for step, result in zip(self.scene.steps, self.results, strict=False)
            if step.effect and test(result)
        }

    @property
    def due(self) -> int:
        """Effects that must be on the ledger: asked for and not refused."""
        return self.asked - self.refused

    @property
    def goals(self) -> list[Goal]:
        """Every goal of the scene with what was found."""
        return list(_goals(self))

    @property
    def missed(self) -> list[Goal]:
        return [goal for goal in self.goals if not goal.met]


def _goals(outcome: Outcome) -> Iterator[Goal]:
    scene = outcome.scene
    steps = [step for step in scene.steps for _ in range(scene.copies)]
    calls = scene.calls
    yield _equal("calls", calls, len(outcome.results))
    for number, (step, result) in enumerate(zip(steps, outcome.results, strict=False), 1):
        yield from _call_goals(number if calls > 1 else 0, step.wanted, result)
    if scene.outage:
        met = outcome.requests <= scene.most
        yield Goal("requests", f"<= {scene.most}", outcome.requests, met)
    else:
        yield _equal("requests", scene.requests, outcome.requests)
    yield _equal("unreached", scene.unreached, outcome.unreached)
    yield _equal("effects", scene.effects, outcome.effects)
    yield _equal("due", outcome.due, outcome.effects)
    yield _equal("told_done", outcome.effects, outcome.told_done)
    yield _equal("repeated", 0, outcome.repeated)
    if scene.connections is not None:
        yield _equal("connections", scene.connections[1], outcome.connections)
    seconds = round(outcome.seconds, 3)
    met = scene.least_seconds <= outcome.seconds <= scene.seconds
    yield Goal("seconds", f"{scene.least_seconds:g} - {scene.seconds:g}", seconds, met)


def _call_goals(number: int, wanted: Wanted, result: ToolResult[Any]) -> Iterator[Goal]:
    pairs: list[tuple[str, Any, Any]] = [
        ("success", wanted.success, result.success),
        ("code", wanted.code, result.failure.code if result.failure else None),
        ("sent", wanted.requests, result.sent),
        ("degraded_to", wanted.degraded_to, result.degraded_to),
        ("verified", wanted.verified, result.verified),
    ]
    if wanted.met is not None:
        met = [attempt.failure.code for attempt in result.attempts if attempt.failure]
        pairs.append(("met", list(wanted.met), met))
    if wanted.success is not None:
        pairs.append(("repaired", wanted.repaired, bool(result.repairs)))
    optional = ("success", "sent", "verified")
    for name, due, got in pairs:
        free = name in optional and due is None
        free = free or (name == "code" and due is None and wanted.success is not True)
        if not free:
            yield _equal(name, due, got, number)


def _equal(name: str, wanted: Any, got: Any, call: int = 0) -> Goal:
    return Goal(name, wanted, got, wanted == got, call)


def missed(outcomes: Sequence[Outcome]) -> list[tuple[Outcome, Goal]]:
    """Every goal that was missed, with its scene."""
    return [(outcome, goal) for outcome in outcomes for goal in outcome.missed]
