"""A finished call as rows: redacted first, then cut, never the other way round."""

import json
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from failwise.journal.latency import bucket_of
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import StopReason
from failwise.vocabulary.result import Attempt, ToolResult

MESSAGE = 300
"""Characters kept of a message."""
ARGUMENTS = 4_000
"""Characters kept of arguments, as JSON."""
FAILURE = 8_000
"""Characters kept of a failure, as JSON."""
RESULT = 64_000
"""Characters kept of the value of a settled effect, as JSON."""
IDENTITY = 200
"""Characters kept of an id or name. Ids are kept as they are: they link records."""
_TEXT = 100_000
_ITEMS = 10_000
_DEPTH = 40

CALL = (
    "INSERT INTO calls (id, call_id, run_id, parent_id, tool, started, duration_ms,"
    " latency_bucket, success, stop_reason, sent, failed_attempts, repairs, degraded_to, verified,"
    " retry_at, action, category, code, http_status, effect, retry_after, provider, fingerprint,"
    " rule, message, failure, arguments)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
ATTEMPT = (
    "INSERT INTO attempts (call, position, number, started, duration_ms, category, code,"
    " http_status, effect, message, failure_rule, action, delay, reason, rule)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_NO_FAILURE = (None,) * 10
_PLAIN_REST = (0, 0, None, None, None, None, *_NO_FAILURE, None)


Plain: TypeAlias = tuple[str, str, str, str | None, float, float]
"""A call that simply worked: tool, call id, run id, parent id, start (epoch s), duration (ms)."""


def plain(result: ToolResult[Any]) -> "ToolResult[Any] | Plain":
    """What has to wait in the queue for a finished call: of a plain success only what its row says.

    The result and its value, which may be large, are then not kept alive by the journal.
    """
    if (
        result.failure is None
        and not result.attempts
        and not result.repairs
        and result.arguments is None
        and result.degraded_to is None
        and result.verified is None
        and result.success
    ):
        return (
            result.tool_name,
            result.call_id,
            result.run_id,
            result.parent_id,
            result.timestamp,
            result.duration_ms,
        )
    return result


class Redactor(Protocol):
    """The border that everything crosses before it is stored."""

    def text(self, text: str) -> str: ...
    def data(self, data: Any) -> Any: ...


def call_row(number: int, result: "ToolResult[Any] | Plain", redactor: Redactor) -> tuple[Any, ...]:
    """The values of `CALL` for one finished call; `number` is the row's id."""
    if isinstance(result, tuple):
        tool, call_id, run_id, parent_id, timestamp, duration_ms = result
        return (
            number,
            call_id[:IDENTITY],
            run_id[:IDENTITY],
            parent_id,
            tool[:IDENTITY],
            timestamp,
            duration_ms,
            bucket_of(duration_ms),
            1,
            StopReason.SUCCEEDED.value,
            1,
            *_PLAIN_REST,
        )
    attempts = result.attempts
    failure = result.failure
    return (
        number,
        result.call_id[:IDENTITY],
        result.run_id[:IDENTITY],
        result.parent_id,
        result.tool_name[:IDENTITY],
        result.timestamp,
        result.duration_ms,
        bucket_of(result.duration_ms),
        1 if result.success else 0,
        result.stop_reason.value,
        result.sent,
        sum(1 for attempt in attempts if attempt.failure is not None) if attempts else 0,
        len(result.repairs),
        result.degraded_to,
        result.verified,
        result.retry_at,
        result.suggested_action.value if result.suggested_action else None,
        *(_NO_FAILURE if failure is None else _failure_columns(result, failure, redactor)),
        arguments_json(result.arguments, redactor) if result.arguments is not None else None,
    )


def attempt_rows(number: int, result: ToolResult[Any], redactor: Redactor) -> list[tuple[Any, ...]]:
    """The values of `ATTEMPT`: none when there is nothing to say but "first try, fine"."""
    attempts = result.attempts
    if not attempts or (len(attempts) == 1 and attempts[0].failure is None):
        return []
    return [_attempt_row(number, at, attempt, redactor) for at, attempt in enumerate(attempts)]


def _attempt_row(
    number: int, position: int, attempt: Attempt, redactor: Redactor
) -> tuple[Any, ...]:
    failure, decision = attempt.failure, attempt.decision
    return (
        number,
        position,
        attempt.number,
        attempt.started,
        attempt.duration_ms,
        failure.category.value if failure else None,
        failure.code[:IDENTITY] if failure else None,
        failure.http_status if failure else None,
        failure.effect.value if failure else None,
        message(failure.message, redactor) if failure else None,
        failure.rule[:IDENTITY] if failure else None,
        decision.action.value if decision else None,
        decision.delay if decision else None,
        message(decision.reason, redactor) if decision else None,
        decision.rule[:IDENTITY] if decision else None,
    )


def _failure_columns(
    result: ToolResult[Any], failure: Failure, redactor: Redactor
) -> tuple[Any, ...]:
    effect = result.effect
    return (
        failure.category.value,
        failure.code[:IDENTITY],
        failure.http_status,
        effect.value if effect else None,
        failure.retry_after,
        failure.provider,
        failure.fingerprint[:IDENTITY],
        failure.rule[:IDENTITY],
        message(failure.message, redactor),
        failure_json(failure, redactor),
    )


def message(text: str, redactor: Redactor) -> str:
    """A message, redacted, then cut to `MESSAGE` characters."""
    return redactor.text(text if len(text) <= _TEXT else text[:_TEXT])[:MESSAGE]


def _named(text: str | None, redactor: Redactor) -> str | None:
    return redactor.text(str(text)[:_TEXT])[:IDENTITY] if text is not None else None


def arguments_json(arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """Arguments as redacted, bounded JSON; what is too long is kept as the start of its text."""
    text = _json(redactor.data(bounded(arguments)))
    if len(text) <= ARGUMENTS:
        return text
    return _json({"truncated": True, "length": len(text), "text": text[: ARGUMENTS - 100]})


def failure_data(failure: Failure, redactor: Redactor) -> dict[str, Any]:
    """A failure as redacted data that `Failure.from_dict` reads: facts only, no rendered words."""
    evidence = failure.evidence
    open_part = redactor.data(
        {
            "message": failure.message[:_TEXT],
            "details": bounded(failure.details) if failure.details else None,
            "likely_causes": list(failure.likely_causes),
            "remedies": dict(failure.remedies) if failure.remedies else None,
            "meaning": dict(failure.meaning) if failure.meaning else None,
            "evidence": None
            if evidence is None
            else {
                "message": evidence.message,
                "content_type": evidence.content_type,
                "length": evidence.length,
                "snippet": evidence.snippet,
                "title": evidence.title,
            },
        }
    )
    open_part["message"] = str(open_part["message"])[:MESSAGE]
    fixed = {
        "category": failure.category.value,
        "code": failure.code,
        "effect": failure.effect.value,
        "transient": failure.transient,
        "fix_by": failure.fix_by.value,
        "layer": failure.layer.value,
        "advice": failure.advice.value if failure.advice else None,
        "http_status": failure.http_status,
        "retry_after": failure.retry_after,
        "provider": failure.provider,
        "provider_code": _named(failure.provider_code, redactor),
        "request_id": _named(failure.request_id, redactor),
        "confidence": failure.confidence,
        "samples": failure.samples,
        "rule": failure.rule,
        "fingerprint": failure.fingerprint,
    }
    whole = open_part | fixed
    return {name: value for name, value in whole.items() if value not in (None, [], {}, "")}


def failure_json(failure: Failure, redactor: Redactor) -> str:
    """A failure as redacted, bounded JSON; details give way first."""
    data = failure_data(failure, redactor)
    text = _json(data)
    for name in ("details", "likely_causes", "meaning", "remedies", "evidence"):
        if len(text) <= FAILURE:
            break
        data.pop(name, None)
        text = _json(data)
    return text


def result_json(result: ToolResult[Any], redactor: Redactor) -> str:
    """What is kept of a settled effect, for whoever asks for it again: redacted, bounded."""
    failure = result.failure
    value = redactor.data(bounded(result.value))
    if len(_json(value)) > RESULT:
        value = {"truncated": True, "text": _json(value)[:MESSAGE]}
    return _json(
        {
            "tool_name": result.tool_name,
            "success": result.success,
            "value": value,
            "failure": failure_data(failure, redactor) if failure else None,
            "suggested_action": result.suggested_action.value if result.suggested_action else None,
            "degraded_to": result.degraded_to,
            "stop_reason": result.stop_reason.value,
            "duration_ms": result.duration_ms,
            "timestamp": result.timestamp,
            "call_id": result.call_id,
            "run_id": result.run_id,
            "verified": result.verified,
        }
    )


def result_from_json(text: str | None, tool: str) -> ToolResult[Any] | None:
    """The kept result again; a text that cannot be read still says that it was done."""
    if text is None:
        return None
    try:
        return ToolResult.from_json(text)
    except (ValueError, KeyError, TypeError):
        return ToolResult(tool, True, None, stop_reason=StopReason.SUCCEEDED)


def bounded(data: Any, depth: int = _DEPTH) -> Any:
    """Plain JSON data of bounded size. What is too large is named, never cut: a secret cut in two
    would pass the border."""
    budget = [_ITEMS]
    return _bounded(data, depth, budget)


def _bounded(data: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if data is None or isinstance(data, (bool, int, float)):
        return data if not isinstance(data, int) or -(2**63) <= data < 2**63 else f"{data:x}"[:64]
    if isinstance(data, str):
        return data if len(data) <= _TEXT else f"<text of {len(data)} characters>"
    if isinstance(data, (bytes, bytearray)):
        return f"<{len(data)} bytes>"
    if depth == 0 or budget[0] <= 0:
        return "<more>"
    if isinstance(data, Mapping):
        kept: dict[str, Any] = {}
        for key, value in data.items():
            if budget[0] <= 0:
                kept["..."] = "<more>"
                break
            kept[str(key)] = _bounded(value, depth - 1, budget)
        return kept
    if isinstance(data, (list, tuple, set, frozenset)):
        items: list[Any] = []
        for value in data:
            if budget[0] <= 0:
                items.append("<more>")
                break
            items.append(_bounded(value, depth - 1, budget))
        return items
    return _described(data)


def _described(value: Any) -> str:
    try:
        text = str(value)
    except Exception:
        return f"<{type(value).__name__}>"
    return text if len(text) <= _TEXT else f"<{type(value).__name__}>"


def _json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_described)
    # A lone surrogate cannot be stored as UTF-8.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
