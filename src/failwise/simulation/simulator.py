"""The simulated driver: performs the machine's steps on a virtual clock, and decides nothing."""

import heapq
import itertools
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol, assert_never

from failwise.effects.claims import StoredClaim
from failwise.simulation.claims import SimulatedClaims
from failwise.vocabulary.ports import Guards
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Answer,
    AnyStep,
    Ask,
    Call,
    Cancelled,
    Claim,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Refused,
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
    steps: int = 0


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
    `finished` is told of every call that ends, fallbacks apart, and may add others; results are kept
    only where there is no `finished`.
    """

    def __init__(
        self,
        world: World,
        *,
        guards: Callable[[VirtualClock], Guards] | None = None,
        cancel: Callable[[Call, int], bool] | None = None,
        kill: Callable[[Call, int], bool] | None = None,
        finished: Callable[[Call, ToolResult[Any]], None] | None = None,
        lease: float = 1e9,
    ) -> None:
        self.world = world
        self.clock = VirtualClock()
        self.guards = guards(self.clock) if guards is not None else None
        self.cancel, self.kill, self.finished = cancel, kill, finished
        self.results: list[ToolResult[Any]] = []
        self.held = 0
        self._claims = SimulatedClaims(lease)
        self._heap: list[tuple[float, int, _Actor | Callable[[], None], Any]] = []
        self._order = itertools.count()

    @property
    def claims(self) -> dict[str, StoredClaim]:
        """Every claim that was made, by its key."""
        return self._claims.by_key

    def add(self, machine: Machine, call: Call, at: float = 0.0) -> None:
        """Begin a call at a moment of virtual time."""
        self._push(at, _Actor(machine, call), None)

    def at(self, moment: float, happens: Callable[[], None]) -> None:
        """Let something else happen at a moment of virtual time: an agent wakes, a test looks."""
        heapq.heappush(self._heap, (moment, next(self._order), happens, None))

    def run(self) -> list[ToolResult[Any]]:
        """Let everything happen; the results in the order in which the calls ended."""
        heap, clock, advance, pop = self._heap, self.clock, self._advance, heapq.heappop
        while heap:
            at, _, actor, reply = pop(heap)
            clock.now = max(clock.now, at)
            if isinstance(actor, _Actor):
                advance(actor, reply)
            else:
                actor()
        return self.results

    def _push(self, at: float, actor: _Actor, reply: Any) -> None:
        heapq.heappush(self._heap, (at, next(self._order), actor, reply))

    def _advance(self, actor: _Actor, reply: Any) -> None:
        """Send replies until a step takes time, waits, or the call ends."""
        call, machine, clock = actor.call, actor.machine, self.clock
        try:
            while True:
                call.now = clock.now
                if not actor.steps:
                    call.began = clock.now
                step = machine.send(reply)
                actor.steps += 1
                if self.kill is not None and self.kill(call, actor.steps):
                    if isinstance(step, Invoke) and actor.steps % 2:
                        self.world.invoke(call, step, clock.now)  # it died with the request sent
                    return
                if self.cancel is not None and self.cancel(call, actor.steps):
                    self._cancel(machine, call, step)
                match step:
                    case Invoke():
                        answer, seconds = self.world.invoke(call, step, clock.now)
                        if step.timeout is not None and seconds > step.timeout:
                            answer, seconds = Answer(expired=True, limit=step.timeout), step.timeout
                        self._push(clock.now + seconds, actor, answer)
                        return
                    case Admit():
                        reply = self._admit(step)
                        if isinstance(reply, Future):
                            if not reply.done():
                                self._queue(step, actor, reply)
                                return
                            reply = reply.result()
                            self.held += isinstance(reply, Admitted)
                    case Release() | Settle():
                        self._perform_at_once(step)
                        reply = None
                    case Wait():
                        self._push(clock.now + step.seconds, actor, None)
                        return
                    case Claim():
                        reply = self._claims.claim(step, clock.now)
                    case Refresh():
                        reply = self.world.refresh(call, step, clock.now)
                    case Ask():
                        reply = self.world.ask(call, step, clock.now)
                    case Delegate():
                        child, child_call = self.world.delegate(call, step, clock.now)
                        self._push(clock.now, _Actor(child, child_call, actor), None)
                        return
                    case _:
                        assert_never(step)
        except StopIteration as stop:
            if self.finished is None:
                self.results.append(stop.value)
            if actor.parent is not None:
                self._push(clock.now, actor.parent, stop.value)
            elif self.finished is not None:
                self.finished(call, stop.value)

    def _cancel(self, machine: Machine, call: Call, step: AnyStep) -> NoReturn:
        """The call is cancelled at this step: let the machine close its record."""
        if isinstance(step, Settle | Release):
            self._perform_at_once(step)
        step = machine.throw(Cancelled())
        while True:  # until the machine stops, which `_advance` takes for the end of the call
            self._perform_at_once(step)
            step = machine.send(None)

    def _queue(self, step: Admit, actor: _Actor, leave: "Future[Admitted | Refused]") -> None:
        """Wait for a slot, but no longer than the caller can."""

        def answered(done: "Future[Admitted | Refused]") -> None:
            if done.cancelled():
                reason = "no slot became free before the deadline"
                self._push(self.clock.now, actor, Refused("runtime.concurrency", reason=reason))
                return
            if isinstance(done.result(), Admitted):
                self.held += 1
            self._push(self.clock.now, actor, done.result())

        leave.add_done_callback(answered)
        if step.until is not None:
            self.at(step.until, partial(_give_up, leave))

    def _perform_at_once(self, step: AnyStep) -> None:
        if isinstance(step, Release):
            self.held -= 1
            if self.guards is not None:
                self.guards.release(step)
        elif isinstance(step, Settle):
            self._claims.settle(step, self.clock.now)

    def _admit(self, step: Admit) -> "Admitted | Refused | Future[Admitted | Refused]":
        answer = Admitted() if self.guards is None else self.guards.admit(step)
        if isinstance(answer, Admitted):
            self.held += 1
        return answer


def _give_up(leave: "Future[Admitted | Refused]") -> None:
    """Wait for a slot no longer; where the leave was given already, nothing changes."""
    leave.cancel()


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
