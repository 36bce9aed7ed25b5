"""What waits to be said to the server, and what was given leave there."""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from failwise.guards.meaning import cost_of, meaning_of, told_to_all
from failwise.guards.names import Command, Names
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

Verdict: TypeAlias = Admitted | Refused


@dataclass(slots=True)
class Leave:
    """What a leave given by the server has cost there, and whether it is the circuit's probe."""

    paid: int = 0
    transient: bool = False
    probe: str = ""


class Ask:
    """A question for leave. `ticket`: its place in the queue for a slot, once it has one."""

    __slots__ = ("cost", "future", "names", "now", "step", "ticket", "transient")

    def __init__(self, step: Admit, names: Names, now: str) -> None:
        self.step, self.names, self.now = step, names, now
        self.future: Future[Verdict] = Future()
        self.ticket = ""
        if step.attempt > 1:
            self.cost, self.transient = cost_of(step.failure, names.settings.retries)
        else:
            self.cost, self.transient = 0, False

    def command(self, owner: str) -> Command:
        return self.names.command(
            "admit",
            self.now,
            owner,
            self.step.attempt,
            self.cost,
            "1" if self.transient else "",
            self.ticket,
        )


class Tell:
    """A request that has ended. `leave` is None where others gave it: no slot comes back."""

    __slots__ = ("leave", "names", "now", "step")

    def __init__(self, step: Release, names: Names, now: str, leave: Leave | None) -> None:
        self.step, self.names, self.now, self.leave = step, names, now, leave

    def command(self, owner: str) -> Command:
        step, leave = self.step, self.leave or _NONE
        return self.names.command(
            "release",
            self.now,
            owner,
            step.attempt,
            meaning_of(step.failure) if step.sent else "unsent",
            "1" if self.leave is not None else "",
            leave.paid,
            "1" if leave.transient else "",
            leave.probe,
            repr(told_to_all(step.failure)) if step.sent else "0",
        )


_NONE = Leave()


@dataclass(slots=True)
class Held:
    """What this process holds of an upstream's slots, as the server must know it."""

    names: Names
    requests: int = 0
    retries: int = 0

    def command(self, owner: str, now: str, *, waits: bool) -> Command:
        return self.names.command(
            "beat", now, owner, self.requests, self.retries, "1" if waits else ""
        )


@dataclass(slots=True)
class Drop:
    """A caller has given up waiting."""

    ask: Ask


@dataclass(slots=True)
class Barrier:
    """Answered when all that was asked before it is done."""

    reached: "Future[None]"


@dataclass(slots=True)
class Close:
    """The end: give all slots back and stop."""

    reached: "Future[None]"


Item: TypeAlias = Ask | Tell | Drop | Barrier | Close
