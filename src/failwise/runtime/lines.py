"""One structured log line per finished call, for whoever listens to ``failwise.calls``.

Nothing is configured here: the line is made only where the logger's level lets INFO through.
"""

import logging
from typing import Any

from failwise.vocabulary.result import ToolResult

calls = logging.getLogger("failwise.calls")

INFO = logging.INFO


def fields(result: ToolResult[Any]) -> dict[str, Any]:
    """What a line says, as plain data: the names are attributes of the log record."""
    failure, action = result.failure, result.suggested_action
    return {
        "tool": result.tool_name,
        "upstream": result.upstream,
        "success": result.success,
        "category": failure.category.value if failure else None,
        "code": failure.code if failure else None,
        "http_status": failure.http_status if failure else None,
        "effect": result.effect.value if result.effect else None,
        "duration_ms": round(result.duration_ms, 3),
        "attempts": result.sent,
        "retried": result.sent > 1,
        "recovered": bool(result.success and result.attempts and not result.degraded_to),
        "degraded": result.degraded_to is not None,
        "action": action.value if action else None,
        "call_id": result.call_id,
        "run_id": result.run_id,
    }


def write(result: ToolResult[Any]) -> None:
    """Log a finished call."""
    said = fields(result)
    calls.info("%s", _Sentence(result), extra=said)


class _Sentence:
    """The line's text, made only if somebody formats it. No text of the upstream's is in it."""

    __slots__ = ("_result",)

    def __init__(self, result: ToolResult[Any]) -> None:
        self._result = result

    def __str__(self) -> str:
        result = self._result
        failure = result.failure
        said = f"{result.tool_name}: "
        if failure is None:
            said += "ok" if result.degraded_to is None else f"ok through {result.degraded_to}"
        else:
            said += f"failed, {failure.code}"
            if failure.http_status is not None:
                said += f" (HTTP {failure.http_status})"
        said += f" in {result.duration_ms:.0f} ms"
        if result.sent != 1:
            said += f", {result.sent} requests"
        if failure is not None and result.suggested_action is not None:
            said += f"; next: {result.suggested_action.value}"
        return said
