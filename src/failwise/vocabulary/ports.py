"""The ports: what the runtime asks of rooms it does not own.

One rule keeps sync and async alike: a port returns its answer, or a `concurrent.futures.Future`
where it may block. A sync driver asks `.result()`, an async one wraps it.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.result import Attempt, Decision, ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Call,
    Claim,
    Claimed,
    Refused,
    Release,
    Situation,
)


class Clock(Protocol):
    """Time, told from outside: monotonic seconds, wall-clock epoch seconds."""

    def monotonic(self) -> float: ...
    def time(self) -> float: ...


class Claims(Protocol):
    """The durable record of effects about to happen."""

    def claim(self, step: Claim, owner: str, lease: float) -> "Future[Claimed]":
        """Claim an effect. The future is answered once the claim is on disk."""
        ...

    def settle(self, key: str, state: str, result: ToolResult[Any] | None = None) -> None:
        """Note what became of it; queued, never blocks."""
        ...


class Recorder(Protocol):
    """Where finished calls go."""

    def put(self, result: ToolResult[Any]) -> None:
        """Record a finished call. Never blocks, never raises."""
        ...


class Guards(Protocol):
    """Leave to send, a wait, or a refusal. Knows nothing of calls: names and costs only."""

    def admit(self, step: Admit) -> "Admitted | Refused | Future[Admitted | Refused]": ...

    def release(self, step: Release) -> None: ...


class Observer(Protocol):
    """Told of each call's beginning and end, in the caller's own context: what tracing needs.

    What `begin` sets in context variables holds inside the tool. What an observer raises is logged and
    goes no further.
    """

    def begin(self, call: Call) -> Any:
        """A call begins; what is given back comes again with its end."""
        ...

    def end(self, begun: Any, call: Call, result: ToolResult[Any] | None) -> None:
        """It ended: with a result, or with None where a signal (a cancellation) came out of it, or an
        engine keeps it for later (`call.laid_down`)."""
        ...

    def headers(self) -> Mapping[str, str]:
        """What a request sent from this context should carry, such as ``traceparent``."""
        ...


class Policy(Protocol):
    """failure + declarations + history → decision. Pure."""

    @property
    def wait_ceiling(self) -> float:
        """Told waits above this many seconds are handed back."""
        ...

    def timeout(self, tool: ToolSpec, attempts: tuple[Attempt, ...]) -> float | None:
        """Seconds the next attempt may take (None: no limit)."""
        ...

    def decide(self, failure: Failure, situation: Situation) -> Decision: ...
