"""``mode="off"``: the tool is called with what was given, and nothing is judged, repeated or kept."""

from collections.abc import Generator, Mapping
from typing import Any

from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, StopReason
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Answer, AnyStep, Call, Invoke


def bare(call: Call) -> Generator[AnyStep, Any, ToolResult[Any]]:
    """Switched off: the tool is called with what was given, and nothing else happens."""
    import json

    raw = call.raw
    try:
        arguments = dict(raw) if isinstance(raw, Mapping) else dict(json.loads(raw or "{}"))
        answer = yield from Invoke(arguments, call.tool.timeout, 1, None)
        error = answer.error
    except (ValueError, TypeError) as reason:
        answer, error = Answer(error=reason), reason
    expired = TimeoutError(f"no answer within {answer.limit} s") if answer.expired else None
    error = error or expired
    if error is None:
        held = answer.value.value if hasattr(answer.value, "expects_json") else answer.value
        return ToolResult(
            call.tool.name,
            True,
            held,
            call_id=call.call_id,
            run_id=call.run_id,
            upstream=call.tool.upstream_name,
        )
    from failwise.redaction import default

    failure = Failure(
        Category.TOOL,
        "tool.exception",
        default().text(f"{type(error).__name__}: {error}")[:300],
        rule="off",
        exception=error,
    )
    return ToolResult(
        call.tool.name,
        False,
        None,
        failure,
        stop_reason=StopReason.OBSERVED,
        call_id=call.call_id,
        run_id=call.run_id,
        upstream=call.tool.upstream_name,
    )
