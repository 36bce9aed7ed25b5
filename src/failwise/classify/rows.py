"""Batches as rows: each row says how its part of the call ended, by an answer or an error of its own.

A row of data may have a column ``error`` as well: a job that was read, a line of a log, a table of a
data base. Rows are outcomes only where the form says so: the errors stand in place of answers.
"""

from collections.abc import Mapping
from typing import Any, Final

from failwise.classify.shape import Body, Shape, empty, first_text, message_of, plain
from failwise.vocabulary.records import MAPPING

ROWS_LIMIT: Final = 1_000
"""Rows that are looked at."""
_PARTS_KEPT: Final = 20
_NAME_AND_ERROR: Final = 2
_ANSWERS: Final = ("response", "result", "output", "value", "data", "body")
_ENDED_BADLY: Final = frozenset({"errored", "expired", "canceled", "cancelled"})
_OF_ERRORS: Final = frozenset(
    {"error", "errors", "message", "msg", "code", "type", "details", "success", "ok", *_ANSWERS}
)
_OF_RECORDS: Final = frozenset(
    {"status", "state", "level", "severity", "time", "timestamp", "@timestamp", "ts", "date", "event", "logger", "stack"}
)  # fmt: skip
"""What jobs and lines of logs have: theirs is data, however it ended."""


def rows_shape(rows: list[Any]) -> Shape | None:
    """S21: rows of which some, or all, hold an error in place of an answer; None where there is no
    such error, or the rows are data."""
    bad: list[Body] = []
    good: list[Body] = []
    first: Body | None = None
    for row in rows[:ROWS_LIMIT]:
        if not isinstance(row, MAPPING):
            return None
        error = _error_of(row) if "error" in row or "custom_id" in row else None
        if error is None:
            good.append(row)
        else:
            bad.append(row)
            first = first or error
    if first is None:
        return None
    if not (_in_place_of_answers(bad, good) or _unlike_the_others(bad, good)):
        return None
    code = first_text(first, ("code", "type", "errorCode", "reason"))
    message = message_of(first) or code
    parts = [dict(row) for row in bad[:_PARTS_KEPT]] if good else []
    status = first.get("status")
    return Shape(
        "S21", True, code, message, parts=parts, status=status if isinstance(status, int) else None
    )


def _error_of(row: Body) -> Body | None:
    """The error of a row: its own, that of the answer it holds, or that of its result."""
    error = row.get("error")
    if isinstance(error, MAPPING) and error:
        return error
    if isinstance(error, str) and plain(error) is not None:
        return {"message": error}
    response = row.get("response")
    if isinstance(response, MAPPING):
        status = response.get("status_code")
        if isinstance(status, int) and 400 <= status <= 599:
            body = response.get("body")
            inner = body.get("error", body) if isinstance(body, MAPPING) else body
            held: Mapping[str, Any] = inner if isinstance(inner, MAPPING) else {"message": inner}
            return {**held, "status": status}
    result = row.get("result")
    if isinstance(result, MAPPING) and result.get("type") in _ENDED_BADLY:
        inner = result.get("error")
        while isinstance(inner, MAPPING) and isinstance(inner.get("error"), MAPPING):
            inner = inner["error"]  # an error of the service, in its envelope
        return inner if isinstance(inner, MAPPING) and inner else {"code": result["type"]}
    return None


def _in_place_of_answers(bad: list[Body], good: list[Body]) -> bool:
    """Every row has room for an answer and for an error, and holds one of the two."""
    for row in bad:
        if is_record(row) or _ANSWER_NAMES.isdisjoint(row):
            return False
        if not empty(row.get("error")) and any(not empty(row.get(name)) for name in _ANSWERS):
            return False
    return all(
        not is_record(row) and any(not empty(row.get(name)) for name in _ANSWERS) for row in good
    )


def _unlike_the_others(bad: list[Body], good: list[Body]) -> bool:
    """The failed rows say what they are about, as the others do, and hold nothing else but the error,
    for which the others have no column; an empty one is fine where there is none besides the name."""
    if not good or any(is_record(row) for row in good):
        return False
    if any("error" in row and len(row) > _NAME_AND_ERROR for row in good):
        return False
    names = good[0].keys()
    return all(
        not is_record(row)
        and all(
            name in _OF_ERRORS or (name in names and isinstance(value, str | int | float))
            for name, value in row.items()
        )
        for row in bad
    )


def is_record(row: Body) -> bool:
    return not _OF_RECORDS.isdisjoint(row) or any(str(name).endswith(("_at", "At")) for name in row)


_ANSWER_NAMES: Final = frozenset(_ANSWERS)
