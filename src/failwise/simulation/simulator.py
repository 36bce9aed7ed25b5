"""The simulated driver: performs the machine's steps on a virtual clock, and decides nothing."""

import heapq
import itertools
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never

from failwise.effects.claims import StoredClaim, decide_claim, decide_settlement
from failwise.vocabulary.ports import Guards
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Answer,
    Ask,
    Call,
    Cancelled,
    Claim,
    Claimed,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Release,
    Reply,
    Settle,
    Wait,
)


class World(Protocol):
    """What stands outside of the machine. `now` is virtual monotonic seconds."""

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        """How an invocation ends, and how many seconds it takes."""
        ...

    def ask(self, call: Call, step: Ask, now: float) -> Reply:
        """A callback's answer."""
        ...

    def refresh(self, call: Call, step: Refresh, now: float) -> bool:
        """Whether the credential could be renewed."""
        ...

    def delegate(self, call: Call, step: Delegate, now: float) -> tuple[Machine, Call]:
        """The fallback's call and its machine."""
        ...


@dataclass(slots=True)
class _Actor:
    """One call under way in the simulation."""

    machine: Machine
    call: Call
    parent: "_Actor | None" = None
    result: ToolResult[Any] | None = None
    started: bool = False
    steps: list[tuple[float, str]] = field(default_factory=list)


class VirtualClock:
    """Time that the simulator moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_800_000_000.0 + self.now


class Simulator:
    """Many calls on one virtual clock, with real guards and the real rules of claims.

    `guards` may be built on `clock`. `cancel` asks, before each step is performed, whether the call
    is cancelled there, `kill` whether its process dies there (for tests at every step boundary).
    """

    def __init__(
        self,
        world: World,
        *,
        guards: Callable[[VirtualClock], Guards] | None = None,
        cancel: Callable[[Call, int], bool] | None = None,
        kill: Callable[[Call, int], bool] | None = None,
        lease: float = 1e9,
    ) -> None:
        self.world = world
        self.clock = VirtualClock()
        self.guards = guards(self.clock) if guards is not None else None
        self.cancel, self.kill = cancel, kill
        self.lease = lease
        self.claims: dict[str, StoredClaim] = {}
        self.results: list[ToolResult[Any]] = []
        self.held = 0
        self._heap: list[tuple[float, int, _Actor, Any]] = []
        self._order = itertools.count()

    def add(self, machine: Machine, call: Call, at: float = 0.0) -> None:
        """Begin a call at a moment of virtual time."""
        self._push(at, _Actor(machine, call), None)

    def run(self) -> list[ToolResult[Any]]:
        """Let everything happen; the results in the order in which the calls ended."""
        while self._heap:
            at, _, actor, reply = heapq.heappop(self._heap)
            self.clock.now = max(self.clock.now, at)
            self._advance(actor, reply)
        return self.results

    def _push(self, at: float, actor: _Actor, reply: Any) -> None:
        heapq.heappush(self._heap, (at, next(self._order), actor, reply))

    def _advance(self, actor: _Actor, reply: Any) -> None:
        """Send replies until a step takes time, waits, or the call ends."""
        call, machine, clock = actor.call, actor.machine, self.clock
        try:
            while True:
                call.now = clock.now
                if not actor.started:
                    actor.started = True
                    call.began = clock.now
                step = machine.send(reply)
                actor.steps.append((clock.now, type(step).__name__))
                if self.kill is not None and self.kill(call, len(actor.steps)):
                    if isinstance(step, Invoke) and len(actor.steps) % 2:
                        self.world.invoke(call, step, clock.now)  # it died with the request sent
                    return
                if self.cancel is not None and self.cancel(call, len(actor.steps)):
                    if isinstance(step, Settle | Release):
                        self._perform_at_once(step, call)
                    step = machine.throw(Cancelled())
                    while True:
                        self._perform_at_once(step, call)
                        step = machine.send(None)
                match step:
                    case Invoke():
                        answer, seconds = self.world.invoke(call, step, clock.now)
                        if step.timeout is not None and seconds > step.timeout:
                            answer, seconds = Answer(expired=True, limit=step.timeout), step.timeout
                        self._push(clock.now + seconds, actor, answer)
                        return
                    case Wait():
                        self._push(clock.now + step.seconds, actor, None)
                        return
                    case Admit():
                        reply = self._admit(step)
                        if isinstance(reply, Future) and not reply.done():
                            reply.add_done_callback(
                                lambda done: self._push(clock.now, actor, done.result())
                            )
                            return
                        if isinstance(reply, Future):
                            reply = reply.result()
                    case Claim():
                        reply = self._claim(step)
                    case Refresh():
                        reply = self.world.refresh(call, step, clock.now)
                    case Ask():
                        reply = self.world.ask(call, step, clock.now)
                    case Delegate():
                        child, child_call = self.world.delegate(call, step, clock.now)
                        self._push(clock.now, _Actor(child, child_call, actor), None)
                        return
                    case Settle() | Release():
                        self._perform_at_once(step, call)
                        reply = None
                    case _:
                        assert_never(step)
        except StopIteration as stop:
            actor.result = stop.value
            self.results.append(stop.value)
            if actor.parent is not None:
                self._push(clock.now, actor.parent, stop.value)

    def _perform_at_once(self, step: Any, call: Call) -> None:
        if isinstance(step, Release):
            self.held -= 1
            if self.guards is not None:
                self.guards.release(step)
        elif isinstance(step, Settle):
            stored = self.claims.get(step.key)
            if stored is not None and decide_settlement(
                stored, step.state, self.clock.now, holder=stored.generation
            ):
                stored.state = step.state  # type: ignore[misc]
                stored.result = step.result  # type: ignore[misc]

    def _admit(self, step: Admit) -> Any:
        if self.guards is None:
            self.held += 1
            return Admitted()
        answer = self.guards.admit(step)
        if isinstance(answer, Admitted | Future):
            self.held += 1
        return answer

    def _claim(self, step: Claim) -> Claimed:
        now = self.clock.now
        existing = self.claims.get(step.key)
        open_effect = next(
            (
                claim
                for claim in self.claims.values()
                if claim.key != step.key
                and claim.run_id == step.run_id
                and claim.fingerprint == step.fingerprint
                and claim.open_at(now)
            ),
            None,
        )
        answer = decide_claim(existing, open_effect, step, now)
        if answer.state == "granted":
            self.claims[step.key] = StoredClaim(
                step.key,
                step.run_id,
                step.fingerprint,
                step.tool,
                step.call_id,
                "claimed",
                "simulation",
                now,
                now + self.lease,
                existing.generation + 1 if existing else 1,
            )
        return answer


def simulate(machine: Machine, call: Call, world: World, **options: Any) -> ToolResult[Any]:
    """One call in a world of its own; the options are those of `Simulator`."""
    simulator = Simulator(world, **options)
    simulator.add(machine, call)
    return simulator.run()[-1]


def replay(machine: Machine, call: Call, log: "list[tuple[float, Any]]") -> Any:
    """Feed a recorded call's (time, reply) pairs into a fresh machine; the step or result it stands at."""
    step: Any = None
    try:
        for now, reply in log:
            call.now = now
            step = machine.send(reply)
    except StopIteration as stop:
        return stop.value
    return step
