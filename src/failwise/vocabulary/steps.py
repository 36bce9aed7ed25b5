"""The machine's nine steps and their replies, the `Call` it is told about, and `Situation`.

The machine is a generator: ``reply = yield from Invoke(...)`` has the reply's type. A driver
performs one step at a time and decides nothing.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, Repair, ToolResult
from failwise.vocabulary.spec import Arguments, ToolSpec

R = TypeVar("R", covariant=True)


class Step(Generic[R]):
    """A question to the world outside. ``reply = yield from Step(...)`` has type R."""

    __slots__ = ()

    def __iter__(self) -> "Generator[AnyStep, Any, R]":
        reply: R = yield self  # type: ignore[misc]
        return reply


@dataclass(slots=True)
class Admit(Step["Admitted | Refused"]):
    """May this request be sent now? `failure` is the one it repeats (None: a first attempt).

    `tool` is asking; guards count by (`upstream`, `credential`).

    `until`: monotonic time up to which the caller can wait for a slot (None: without limit).
    """

    upstream: str
    credential: str | None
    run_id: str
    attempt: int
    failure: Failure | None = None
    until: float | None = None
    tool: str = ""


@dataclass(slots=True)
class Claim(Step["Claimed"]):
    """Note, durably, that this effect is about to be sent. Answered after it is on disk."""

    key: str
    fingerprint: str
    run_id: str
    tool: str
    call_id: str
    arguments: Arguments


@dataclass(slots=True)
class Invoke(Step["Answer"]):
    """Call the tool once. `timeout` in seconds (None: none); `key` is the idempotency key."""

    arguments: Arguments
    timeout: float | None
    attempt: int
    key: str | None


@dataclass(slots=True)
class Settle(Step[None]):
    """Note what became of a claim. Queued, never awaited."""

    key: str
    state: Literal["done", "not_done", "unknown"]
    result: ToolResult[Any] | None = None


@dataclass(slots=True)
class Release(Step[None]):
    """Give the slot back and teach the guards.

    `sent`: False when nothing was sent (a claim was refused, the call cancelled): nothing is learned.
    """

    upstream: str
    credential: str | None
    run_id: str
    attempt: int
    failure: Failure | None
    sent: bool = True


@dataclass(slots=True)
class Wait(Step[None]):
    """Sleep, in seconds.

    `between`: between two attempts of a call that an engine keeps. Nothing is under way, no slot and
    no claim is held: the process may end here, and another one go on.
    """

    seconds: float
    between: bool = False


@dataclass(slots=True)
class Refresh(Step[bool]):
    """Renew a credential; `seen` is the generation the failed attempt used."""

    credential: str
    seen: int


@dataclass(slots=True)
class Ask(Step["Reply"]):
    """Ask a callback: did it happen (verify), may it be changed so (confirm), what should be sent
    instead (fixer)?"""

    who: Literal["verify", "confirm", "fixer"]
    arguments: Arguments
    failure: Failure | None = None
    repairs: tuple[Repair, ...] = ()


@dataclass(slots=True)
class Delegate(Step[ToolResult[Any]]):
    """Run a fallback: a call of its own, as a child."""

    tool: str
    arguments: Arguments


AnyStep: TypeAlias = "Admit | Claim | Invoke | Settle | Release | Wait | Refresh | Ask | Delegate"
Machine: TypeAlias = "Generator[AnyStep, Any, ToolResult[Any]]"


@dataclass(slots=True)
class Admitted:
    """Leave to send, with `generation` of the credential that will be used.

    `worked`: that credential has succeeded with this tool in this run. `refusals`: how often the
    upstream has refused this tool's parameters in this run since the tool last succeeded.
    """

    generation: int = 0
    worked: bool = False
    refusals: int = 0


@dataclass(slots=True)
class Refused:
    """No leave. `code` below ``runtime.``; `wait` seconds until it may be given (None: unknown).

    `hold`: True when waiting that long and asking again is the right thing (a shared cool-down).
    `cause` names the ``tool`` and ``code`` of the failure that stopped a chain.
    """

    code: str
    wait: float | None = None
    hold: bool = False
    reason: str = ""
    cause: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Claimed:
    """``granted``; or another owner's state: ``done`` (with its result), ``in_flight`` (`wait`
    seconds until its lease ends), ``unknown`` (may have happened), ``conflict`` (same key, other
    arguments), ``open`` (another call of this run with the same arguments is unknown: `key`),
    ``unavailable`` (the claim could not be made durable, so nothing may be sent)."""

    state: Literal["granted", "done", "in_flight", "unknown", "conflict", "open", "unavailable"]
    result: ToolResult[Any] | None = None
    wait: float | None = None
    key: str | None = None


@dataclass(slots=True)
class Answer:
    """What came of one invocation: a value, an exception, or the time limit passed.

    `limit` is the time limit that passed, in seconds.
    """

    value: Any = None
    error: BaseException | None = None
    expired: bool = False
    limit: float | None = None


@dataclass(slots=True)
class Reply:
    """A callback's answer: True, False, or None for "don't know"; `value` that it found, or the
    `arguments` that a fixer gave."""

    verdict: bool | None = None
    value: Any = None
    arguments: Arguments | None = None


@record
class Durable:
    """An engine keeps this call: at each wait between two attempts it may be laid down, and taken up
    by another process.

    Waits that are handed back otherwise (`retry_at`) are then waited for: at most `times` of them,
    none longer than `longest_wait` seconds.
    """

    longest_wait: float = 86_400.0
    times: int = 3


class Cancelled(BaseException):
    """Thrown into the machine by a driver: it answers with Settle, Release and a result.

    `control_flow`: the tool raised a signal of its framework (an interrupt, an approval) and will
    be run again by it, so that nothing has happened yet.
    """

    def __init__(self, *, control_flow: bool = False) -> None:
        self.control_flow = control_flow
        super().__init__()


class Call:
    """One call as the machine is told about it. `now` is set by the driver before each send.

    `now` and `deadline` are monotonic seconds of the driver's clock; `epoch` is what to add to get
    wall-clock seconds. `key` identifies the effect, and makes chance a function of the call. What is
    rare stands as a default on the class, so that a call sets only what is its own.
    """

    deadline: float | None = None
    parent_id: str | None = None
    model: str | None = None
    """The chat model that asked for this call, where its run names one."""
    observe = False
    truncated = False
    policy: Mapping[str, Any] | None = None
    delegated: tuple[str, ...] = ()
    can_refresh = False
    can_confirm = False
    can_fix = False
    repair_default = "confirm"
    written_name: str | None = None
    """The tool's name as the model wrote it, where debris hung on it."""
    extra: dict[str, Any] | None = None
    durable: Durable | None = None
    """Set where an engine keeps the call."""
    laid_down = False
    """The process is done with it, the call is not: the engine keeps it up to its next attempt."""
    earlier = 0
    """Attempts that an engine made before this one, and that nobody kept a record of."""

    def __init__(
        self,
        tool: ToolSpec,
        raw: "str | bytes | Mapping[str, Any]",
        call_id: str,
        run_id: str,
        key: str,
        now: float = 0.0,
        epoch: float = 0.0,
    ) -> None:
        self.tool = tool
        self.raw = raw
        self.call_id = call_id
        self.run_id = run_id
        self.key = key
        self.now = self.began = now
        self.epoch = epoch

    @property
    def repair(self) -> str:
        """The mode in force for guessed repairs: ``confirm``, ``auto`` or ``off``."""
        return self.tool.repair or self.repair_default


@record
class Situation:
    """All that a decision may rest on, beside the failure itself."""

    tool: ToolSpec
    read_only: bool
    idempotent: bool
    keyed: bool
    retries: int
    attempts: tuple[Attempt, ...]
    now: float
    epoch: float
    deadline: float | None
    seed: str
    refreshed: bool = False
    repaired: bool = False
    verified_no: bool = False
    can_refresh: bool = False
    can_repair: bool = False
    can_verify: bool = False
    can_fall_back: bool = False
    credential_worked: bool = False
    observe: bool = False
    overrides: Mapping[str, Any] | None = None
    prior: Effect = Effect.NOT_SENT
    """What an earlier owner of this call's claim may have done."""
    refusals: int = 0
    """How often this tool's parameters were refused before, in this run since it last succeeded."""

    @property
    def repeatable(self) -> bool:
        """Sending twice does no harm: a read, an idempotent write, or an honoured key."""
        return self.read_only or self.idempotent or self.keyed

    def effect(self, failure: Failure) -> Effect:
        """What became of the effect over the whole call so far."""
        worst = failure.effect if failure.effect.weight > self.prior.weight else self.prior
        for attempt in self.attempts:
            if attempt.failure is not None and attempt.failure.effect.weight > worst.weight:
                worst = attempt.failure.effect
        return worst
