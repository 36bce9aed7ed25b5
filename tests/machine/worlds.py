"""Random worlds for the machine: faults, late effects, fallbacks with effects, told waits, deadlines."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from failwise.arguments.reader import Reading
from failwise.effects.identity import arguments_fingerprint
from failwise.policy import TablePolicy
from failwise.runtime.call import Logic, run_call
from failwise.simulation import Simulator
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Effect, StopReason
from failwise.vocabulary.ports import Policy
from failwise.vocabulary.result import Decision, ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import (
    Answer,
    Ask,
    Call,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Reply,
    Situation,
)

LATEST = 40.0
"""Seconds after its send by which a late effect has landed."""


class Scripted(Exception):
    """An exception that says which failure it stands for."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def failure(code: str, effect: Effect, transient: bool | None, **more: Any) -> Failure:
    """A failure as a classifier would make it."""
    more.setdefault("fingerprint", code)
    return Failure(category_of(code), code, code, effect, transient, **more)


def classify(answer: Answer, call: Call, state: Any) -> Failure | None:
    """The scripted world's classifier: it says what the world said."""
    if answer.expired:
        return failure("network.read_timeout", Effect.UNKNOWN, True)
    if isinstance(answer.error, Scripted):
        return answer.error.failure
    return None


def logic(policy: Policy) -> Logic:
    """The machine's rooms with a scripted classifier."""
    return Logic(
        lambda call: Reading(dict(call.raw)),
        classify,
        lambda call, arguments, failure: None,
        arguments_fingerprint,
        policy,
    )


@dataclass
class Outcome:
    """How one send ends: what the caller learns, and what really happens, when."""

    seconds: float = 0.1
    failure: Failure | None = None
    happens_after: float | None = None


@dataclass
class Told:
    """A wait that was told, until when nothing may be sent."""

    until: float


@dataclass
class ScriptedWorld:
    """A world with a list of outcomes per tool; the last one repeats."""

    script: dict[str, list[Outcome]]
    tools: dict[str, ToolSpec]
    logic: Logic
    verify_knows: bool = True
    refresh_works: bool = True
    sends: list[tuple[str, float]] = field(default_factory=list)
    effects: list[tuple[str, str, float]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    refreshes: int = 0
    early: int = 0

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        name = call.tool.name
        if any(now < told.until - 1e-9 for told in self.told if name == "main"):
            self.early += 1
        self.sends.append((name, now))
        outcomes = self.script[name]
        number = sum(1 for sent, _ in self.sends if sent == name) - 1
        outcome = outcomes[min(number, len(outcomes) - 1)]
        if outcome.happens_after is not None:
            self.effects.append((name, step.key or "", now + outcome.happens_after))
        if outcome.failure is None:
            return Answer(f"value of {name}"), outcome.seconds
        if outcome.failure.retry_after is not None and name == "main":
            self.told.append(Told(now + outcome.seconds + outcome.failure.retry_after))
        return Answer(error=Scripted(outcome.failure)), outcome.seconds

    def ask(self, call: Call, step: Ask, now: float) -> Reply:
        if not self.verify_knows:
            return Reply(None)
        return Reply(any(name == call.tool.name and at <= now for name, _, at in self.effects))

    def refresh(self, call: Call, step: Refresh, now: float) -> bool:
        self.refreshes += 1
        return self.refresh_works

    def delegate(self, call: Call, step: Delegate, now: float) -> tuple[Machine, Call]:
        child = make_call(
            self.tools[step.tool],
            call_id=f"{call.call_id}:{step.tool}",
            deadline=call.deadline,
            now=now,
            delegated=(*call.delegated, call.tool.name),
        )
        return run_call(child, self.logic), child

    def happened(self, tool: ToolSpec) -> int:
        """How often the effect really happened, through whichever door.

        An honoured key, or idempotence, makes all sends through the first door one; not those
        through another.
        """
        main = [key for name, key, _ in self.effects if name == "main"]
        others = sum(1 for name, _, _ in self.effects if name != "main")
        if tool.idempotent is True:
            return bool(main) + others
        return (len(set(main)) if tool.idempotency_key else len(main)) + others


def make_call(tool: ToolSpec, **more: Any) -> Call:
    """A call of a tool in run "r", beginning at `now` (default 0)."""
    now = more.pop("now", 0.0)
    call_id = more.pop("call_id", "c1")
    call = Call(tool, {"x": 1}, call_id, "r", f"key-{call_id}", now, 1_800_000_000.0)
    for name, value in more.items():
        setattr(call, name, value)
    return call


def random_outcome(chance: random.Random) -> Outcome:
    """One fault of the table, or a success."""
    kind = chance.randrange(13)
    took = chance.choice([0.05, 0.5, 2.0])
    if kind == 0:
        return Outcome(took, None, took)
    if kind == 1:
        return Outcome(took, failure("network.connect_refused", Effect.NOT_SENT, True))
    if kind == 2:
        return Outcome(3.0, failure("network.read_timeout", Effect.UNKNOWN, True), 1.0)
    if kind == 3:
        return Outcome(3.0, failure("network.read_timeout", Effect.UNKNOWN, True))
    if kind == 4:
        late = chance.uniform(3.0, LATEST)
        return Outcome(3.0, failure("network.read_timeout", Effect.UNKNOWN, True), late)
    if kind == 5:
        return Outcome(
            took, failure("server.internal", Effect.UNKNOWN, True), chance.choice([None, took])
        )
    if kind in (6, 7):
        told = chance.choice([0.0, 1.0, 3.0, 20.0, 120.0])
        return Outcome(
            took, failure("rate_limit.requests", Effect.REJECTED, True, retry_after=told)
        )
    if kind == 8:
        told = chance.choice([None, 2.0, 45.0])
        return Outcome(took, failure("server.unavailable", Effect.UNKNOWN, True, retry_after=told))
    if kind == 9:
        return Outcome(took, failure("parsing.truncated", Effect.APPLIED, True), took)
    if kind == 10:
        return Outcome(took, failure("auth.credential_expired", Effect.REJECTED, False))
    if kind == 11:
        return Outcome(
            took,
            failure("network.connection_reset", Effect.UNKNOWN, True),
            chance.choice([None, 0.1]),
        )
    return Outcome(took, failure("business.conflict", Effect.REJECTED, False))


@dataclass
class Played:
    """A world after its call: what the invariants look at."""

    world: ScriptedWorld
    result: ToolResult[Any]
    simulator: Simulator
    call: Call
    ended: float

    @property
    def repeatable(self) -> bool:
        return self.call.tool.read_only is True or self.call.tool.idempotent is True


def play(seed: int, policy: Policy, **options: Any) -> Played:
    """One random world, played through."""
    chance = random.Random(seed)
    nature = chance.choice(
        ["undeclared", "undeclared", "undeclared", "read", "idempotent", "keyed"]
    )
    verify = chance.choice([None, None, lambda arguments: None])
    final = LATEST + 5 if verify and chance.random() < 0.3 else None
    fallback = chance.choice([(), (), ("other",)])
    main = ToolSpec(
        "main",
        read_only=True if nature == "read" else None,
        idempotent=True if nature == "idempotent" else None,
        idempotency_key="Key" if nature == "keyed" else None,
        verify=verify,
        verify_final_after=final,
        fallback=fallback,
        timeout=chance.choice([None, 2.5, 10.0]),
        credential="shop",
    )
    other = ToolSpec("other", read_only=chance.choice([True, None]))
    rooms = logic(policy)
    script = {
        "main": [random_outcome(chance) for _ in range(chance.randrange(1, 6))],
        "other": [random_outcome(chance) for _ in range(2)],
    }
    if other.read_only or nature == "read":
        for outcome in script["other"]:
            outcome.happens_after = None
    if nature == "read":
        for outcome in script["main"]:
            outcome.happens_after = None
    world = ScriptedWorld(
        script,
        {"main": main, "other": other},
        rooms,
        verify_knows=chance.random() < 0.85,
        refresh_works=chance.random() < 0.7,
    )
    call = make_call(
        main,
        deadline=chance.choice([None, None, 5.0, 12.0, 60.0]),
        can_refresh=chance.random() < 0.6,
    )
    call.key = f"key-{seed}"
    simulator = Simulator(world, **options)
    simulator.add(run_call(call, rooms), call)
    result = simulator.run()[-1]
    return Played(world, result, simulator, call, simulator.clock.now)


def broken_invariants(played: Played) -> set[str]:
    """Which of the promises this world saw broken."""
    broken = set()
    call, world = played.call, played.world
    if not isinstance(played.result, ToolResult):
        broken.add("no result")
    if call.tool.read_only is not True and world.happened(call.tool) > 1:
        broken.add("second effect")
    if world.early:
        broken.add("told wait broken")
    if call.deadline is not None:
        if any(at >= call.deadline for _, at in world.sends):
            broken.add("sent past deadline")
        if played.ended > call.deadline + 1e-9:
            broken.add("past deadline")
    if played.simulator.held:
        broken.add("slot lost")
    if any(claim.state == "claimed" for claim in played.simulator.claims.values()):
        broken.add("claim left open")
    return broken


class _Changed:
    """A policy with one rule broken."""

    def __init__(self) -> None:
        self.true = TablePolicy()

    @property
    def wait_ceiling(self) -> float:
        return self.true.wait_ceiling

    def timeout(self, tool: ToolSpec, attempts: Any) -> float | None:
        return self.true.timeout(tool, attempts)

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        return self.true.decide(failure, situation)


class ResendAfterNo(_Changed):
    """Takes verify's "no" for "it did not happen"."""

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        decision = super().decide(failure, situation)
        if (
            situation.verified_no
            and decision.stop is StopReason.UNSAFE_EFFECT
            and situation.retries < 2
        ):
            return Decision(Action.RETRY_BACKOFF, 1.0)
        return decision


class FallBackAfterUnknown(_Changed):
    """Goes through another door although the first may have opened."""

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        decision = super().decide(failure, situation)
        if decision.stop is StopReason.UNSAFE_EFFECT and situation.can_fall_back:
            return Decision(Action.FALLBACK, stop=decision.stop)
        return decision


class EffectIgnored(_Changed):
    """Asks only whether it is transient."""

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        return super().decide(failure, replace(situation, keyed=True))


class JitterUnderToldWait(_Changed):
    """Spreads a told wait both ways."""

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        decision = super().decide(failure, situation)
        if decision.action is Action.RETRY_EXACT:
            share = 0.5 + random.Random(situation.seed + str(situation.retries)).random()
            return replace(decision, delay=decision.delay * share)
        return decision


class DeadlineNotLookedAhead(_Changed):
    """Sleeps first and looks at the deadline afterwards."""

    def decide(self, failure: Failure, situation: Situation) -> Decision:
        return super().decide(failure, replace(situation, deadline=None))
