"""Claims and finished calls to write, a border that hides nothing, a clock that stands."""

from typing import Any

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, StopReason
from failwise.vocabulary.result import Attempt, Decision, ToolResult
from failwise.vocabulary.steps import Claim


class OpenBorder:
    """A redactor that lets everything pass."""

    def text(self, text: str) -> str:
        return text

    def data(self, data: Any) -> Any:
        return data


class StandingClock:
    """Time that stands until it is moved."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


def claim_of(call: str, *, run: str = "run", arguments: str = "a", tool: str = "order") -> Claim:
    return Claim(f"key-{run}-{call}", f"print-{arguments}", run, tool, call, {"what": arguments})


def good(call: str = "c1", **changes: Any) -> ToolResult[Any]:
    values: dict[str, Any] = {
        "duration_ms": 12.5,
        "timestamp": 1_800_000_000.0,
        "call_id": call,
        "run_id": "run",
    }
    return ToolResult("search", True, 1, **(values | changes))


def bad(call: str = "c2", **changes: Any) -> ToolResult[Any]:
    failure = Failure(
        Category.NETWORK,
        "network.read_timeout",
        "no answer within 10 s",
        Effect.UNKNOWN,
        http_status=None,
        rule="stdlib.timeout",
        fingerprint="abc",
        details={"limit": 10},
    )
    decision = Decision(Action.RETRY_BACKOFF, 1.0, reason="a read may be repeated", rule="network")
    attempts = (Attempt(1, 0.0, 10_000, failure, decision), Attempt(2, 11.0, 10_000, failure))
    values: dict[str, Any] = {
        "attempts": attempts,
        "suggested_action": Action.ASK_MODEL,
        "stop_reason": StopReason.RETRIES_EXHAUSTED,
        "duration_ms": 21_000.0,
        "timestamp": 1_800_000_000.0,
        "call_id": call,
        "run_id": "run",
        "arguments": {"query": "shoes"},
    }
    return ToolResult("search", False, None, failure, **(values | changes))
