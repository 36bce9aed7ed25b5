"""`ToolResult` and what it is made of: attempts, repairs, decisions."""

import datetime
import json
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

from failwise.vocabulary.errors import ToolCallFailed
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, Grade, StopReason, worst_effect
from failwise.vocabulary.records import record

T = TypeVar("T")
Language = Literal["en", "zh"]
Interrupt = Literal["", "run", "credential"]


@record
class Repair:
    """One edit made to the arguments: where (JSON pointer), what, before, after, how sure.

    `before` and `after` are plain JSON values; for a syntax repair they are short excerpts.
    """

    kind: str
    path: str
    before: Any
    after: Any
    grade: Grade

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "grade": self.grade.value,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Repair":
        return cls(data["kind"], data["path"], data["before"], data["after"], Grade(data["grade"]))


@record
class Decision:
    """What to do about a failure, and why.

    `delay` in seconds before `action`. `interrupt` stops the rest of the run: all of it (``run``),
    or the calls that need the same upstream and credential (``credential``). `reason` is for a person, `rule` for a program to count. `stop` is set when nothing more is tried; `retry_at` is
    epoch seconds.
    """

    action: Action
    delay: float = 0.0
    interrupt: Interrupt = ""
    reason: str = ""
    rule: str = ""
    stop: StopReason | None = None
    retry_at: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "action": self.action.value,
            "delay": self.delay,
            "interrupt": self.interrupt,
            "reason": self.reason,
            "rule": self.rule,
            "stop": self.stop.value if self.stop else None,
            "retry_at": self.retry_at,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Decision":
        stop = data.get("stop")
        return cls(
            Action(data["action"]),
            data.get("delay", 0.0),
            data.get("interrupt", ""),
            data.get("reason", ""),
            data.get("rule", ""),
            StopReason(stop) if stop else None,
            data.get("retry_at"),
        )


@record
class Attempt:
    """One request that was sent (or one that a guard refused): when, how long, how it ended.

    `started` in seconds on the call's own clock (0 = the call began), `duration_ms` of this
    attempt alone.
    """

    number: int
    started: float
    duration_ms: float
    failure: Failure | None = None
    decision: Decision | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "started": self.started,
            "duration_ms": self.duration_ms,
            "failure": self.failure.to_dict() if self.failure else None,
            "decision": self.decision.to_dict() if self.decision else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Attempt":
        failure, decision = data.get("failure"), data.get("decision")
        return cls(
            data["number"],
            data["started"],
            data["duration_ms"],
            Failure.from_dict(failure) if failure else None,
            Decision.from_dict(decision) if decision else None,
        )


class ToolResult(Generic[T]):
    """Every tool call, good or bad, in one shape.

    `suggested_action` and `stop_reason` say what to do next and why nothing more was tried.
    `retry_at` is epoch seconds, `duration_ms` the whole call with its waits, `timestamp` epoch
    seconds when the call began. `upstream` is whom the tool calls, as the guards count it; `model` the
    chat model that asked for the call, where its run names one; `parameters` how many the tool's schema
    names. `extra` is the user's own. `retriable`: the same call may be sent
    again by whoever holds this result; `repairable`: other arguments may work. `verified`: a callback was asked whether it happened.
    `interrupts`: this failure stops the rest of its run (``run``), or those of its calls that need
    the same upstream and credential (``credential``).
    """

    __slots__ = (
        "arguments",
        "attempts",
        "call_id",
        "degraded_to",
        "duration_ms",
        "extra",
        "failure",
        "interrupts",
        "model",
        "parameters",
        "parent_id",
        "repairs",
        "retry_at",
        "run_id",
        "stop_reason",
        "success",
        "suggested_action",
        "timestamp",
        "tool_name",
        "upstream",
        "value",
        "verified",
    )

    def __init__(
        self,
        tool_name: str,
        success: bool,
        value: T | None = None,
        failure: Failure | None = None,
        suggested_action: Action | None = None,
        attempts: tuple[Attempt, ...] = (),
        repairs: tuple[Repair, ...] = (),
        degraded_to: str | None = None,
        stop_reason: StopReason = StopReason.SUCCEEDED,
        retry_at: float | None = None,
        duration_ms: float = 0.0,
        timestamp: float = 0.0,
        call_id: str = "",
        run_id: str = "",
        parent_id: str | None = None,
        verified: bool | None = None,
        interrupts: Interrupt = "",
        arguments: Mapping[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
        upstream: str = "",
        model: str | None = None,
        parameters: int | None = None,
    ) -> None:
        self.tool_name = tool_name
        self.success = success
        self.value = value
        self.failure = failure
        self.suggested_action = suggested_action
        self.attempts = attempts
        self.repairs = repairs
        self.degraded_to = degraded_to
        self.stop_reason = stop_reason
        self.retry_at = retry_at
        self.duration_ms = duration_ms
        self.timestamp = timestamp
        self.call_id = call_id
        self.run_id = run_id
        self.parent_id = parent_id
        self.verified = verified
        self.interrupts = interrupts
        self.arguments = arguments
        self.extra = extra if extra is not None else {}
        self.upstream = upstream
        self.model = model
        self.parameters = parameters

    @property
    def sent(self) -> int:
        """How many requests were sent. A first-try success keeps no attempt records."""
        if not self.attempts:
            found = self.verified or "replayed" in self.extra
            succeeded = self.success and self.stop_reason is StopReason.SUCCEEDED
            return 1 if succeeded and not found else 0
        return sum(1 for attempt in self.attempts if attempt.number > 0)

    @property
    def retries(self) -> int:
        """Requests sent minus one."""
        return max(0, self.sent - 1)

    @property
    def effect(self) -> Effect | None:
        """What became of the side effect over all attempts: the worst counts; None for a success."""
        if self.failure is None:
            return None
        effects = [a.failure.effect for a in self.attempts if a.failure]
        return worst_effect(self.failure.effect, *effects)

    @property
    def retriable(self) -> bool:
        """The same call may be sent again, now or at `retry_at`, by whoever holds this result."""
        return self.failure is not None and self.suggested_action in (
            Action.RETRY_BACKOFF,
            Action.RETRY_EXACT,
            Action.RETRY_LATER,
        )

    @property
    def repairable(self) -> bool:
        """Other arguments may work."""
        return self.failure is not None and self.failure.category in (
            Category.MODEL_OUTPUT,
            Category.INVALID_REQUEST,
        )

    def unwrap(self) -> T:
        """The value, or `ToolCallFailed` with this result on it."""
        if not self.success:
            raise ToolCallFailed(self)
        return self.value  # type: ignore[return-value]

    def for_model(self, lang: Language = "en") -> str:
        """What the model should read: a few redacted lines, success too."""
        from failwise.vocabulary.words import for_model

        return for_model(self, lang)

    def for_user(self, lang: Language = "en") -> str:
        """What the person should read: one or two sentences."""
        from failwise.vocabulary.words import for_user

        return for_user(self, lang)

    def __repr__(self) -> str:
        state = "success" if self.success else f"failure={self.failure and self.failure.code}"
        return f"<ToolResult {self.tool_name} {state} sent={self.sent} call_id={self.call_id!r}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data with ``schema: 1``; also the flat names people know. `value` as it is."""
        failure = self.failure
        return {
            "schema": 1,
            "tool_name": self.tool_name,
            "upstream": self.upstream,
            "model": self.model,
            "parameters": self.parameters,
            "success": self.success,
            "value": self.value,
            "failure": failure.to_dict() if failure else None,
            "suggested_action": self.suggested_action.value if self.suggested_action else None,
            "attempts": [attempt.to_dict() for attempt in self.attempts],
            "retries": self.retries,
            "repairs": [repair.to_dict() for repair in self.repairs],
            "degraded_to": self.degraded_to,
            "stop_reason": self.stop_reason.value,
            "retry_at": self.retry_at,
            "retriable": self.retriable,
            "repairable": self.repairable,
            "duration_ms": self.duration_ms,
            "timestamp": self.timestamp,
            "time": datetime.datetime.fromtimestamp(self.timestamp, datetime.UTC).isoformat(),
            "call_id": self.call_id,
            "run_id": self.run_id,
            "parent_id": self.parent_id,
            "verified": self.verified,
            "interrupts": self.interrupts,
            "extra": self.extra,
            "category": failure.category.value if failure else None,
            "http_status": failure.http_status if failure else None,
            "error_code": failure.code if failure else None,
            "error_message": failure.message if failure else None,
            "raw_response": failure.evidence.snippet if failure and failure.evidence else None,
            "retry_after": failure.retry_after if failure else None,
            "effect": self.effect.value if self.effect else None,
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON; a value that is not JSON is given as its text."""
        from failwise.vocabulary.plain import as_json

        return as_json(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ToolResult[Any]":
        """The result again, from `to_dict()`."""
        failure, action = data.get("failure"), data.get("suggested_action")
        return ToolResult(
            data["tool_name"],
            data["success"],
            data.get("value"),
            Failure.from_dict(failure) if failure else None,
            suggested_action=Action(action) if action else None,
            attempts=tuple(Attempt.from_dict(item) for item in data.get("attempts", ())),
            repairs=tuple(Repair.from_dict(item) for item in data.get("repairs", ())),
            degraded_to=data.get("degraded_to"),
            stop_reason=StopReason(data.get("stop_reason", "succeeded")),
            retry_at=data.get("retry_at"),
            duration_ms=data.get("duration_ms", 0.0),
            timestamp=data.get("timestamp", 0.0),
            call_id=data.get("call_id", ""),
            run_id=data.get("run_id", ""),
            parent_id=data.get("parent_id"),
            verified=data.get("verified"),
            interrupts=data.get("interrupts", ""),
            extra=dict(data.get("extra") or {}),
            upstream=data.get("upstream") or "",
            model=data.get("model"),
            parameters=data.get("parameters"),
        )

    @classmethod
    def from_json(cls, text: str) -> "ToolResult[Any]":
        """The result again, from `to_json()`."""
        return cls.from_dict(json.loads(text))
