"""Shapes with lists: errors by field, validation lists, and batches of which some parts failed."""

import re
from collections.abc import Mapping
from typing import Any, Final

from failwise.classify.rows import ROWS_LIMIT, rows_shape
from failwise.classify.searches import incomplete_search
from failwise.classify.shape import (
    CODE_NAMES,
    Body,
    Shape,
    empty,
    first_text,
    good_code,
    is_bad,
    message_of,
    only_envelope,
    plain,
)
from failwise.vocabulary.records import MAPPING


def errors_list(root: Body, status: int | None) -> Shape | None:
    """S10, S11, S12: lists and maps of errors."""
    detail = root.get("detail")
    if (
        isinstance(detail, list)
        and detail
        and isinstance(detail[0], MAPPING)
        and "loc" in detail[0]
    ):
        path = [
            str(part)
            for part in detail[0].get("loc") or ()
            if part not in ("body", "query", "path")
        ]
        return Shape(
            "S12",
            True,
            plain(detail[0].get("type")),
            plain(detail[0].get("msg")),
            ".".join(path) or None,
        )
    errors = root.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], list):
        errors = [_named(errors[0])]
    if isinstance(errors, list) and errors and isinstance(errors[0], Mapping | str):
        first = errors[0] if isinstance(errors[0], MAPPING) else {"message": errors[0]}
        extensions = first.get("extensions")
        code = plain(extensions.get("code")) if isinstance(extensions, MAPPING) else None
        code = code or first_text(first, ("code", "type", "reason", "errorCode", "error"))
        message = first_text(
            first, ("message", "detail", "title", "reason", "error")
        ) or message_of(root)
        if is_bad(status):
            told = plain(first.get("details"))
            if told and message and told not in message:
                message = f"{message}: {told}"
            return Shape(
                "S10",
                None,
                code or plain(root.get("code")),
                message,
                first_text(first, ("field", "parameter", "path")),
            )
        data = root.get("data")
        if message is None or ("data" not in root and not only_envelope(root)):
            return None
        if isinstance(data, MAPPING) and any(not empty(value) for value in data.values()):
            return Shape("S21", True, code, message, parts=list(errors))
        return Shape("S10", True, code, message)
    if isinstance(errors, MAPPING) and errors and (is_bad(status) or _by_field(root, errors)):
        name, texts = next(iter(errors.items()))
        text = texts[0] if isinstance(texts, list) and texts else texts
        failed = None if is_bad(status) else True
        return Shape(
            "S11", failed, plain(root.get("code")), plain(text) or message_of(root), str(name)
        )
    if (
        status in (400, 422)
        and root
        and all(isinstance(v, list) and v and isinstance(v[0], str) for v in root.values())
    ):
        name, texts = next(iter(root.items()))
        return Shape("S11", None, None, plain(texts[0]), str(name))
    data = root.get("data")
    if isinstance(data, MAPPING):
        for inner in data.values():
            if isinstance(inner, MAPPING):
                for key in ("userErrors", "errors"):
                    listed = inner.get(key)
                    if isinstance(listed, list) and listed and isinstance(listed[0], MAPPING):
                        return Shape(
                            "S10", True, first_text(listed[0], ("code",)), message_of(listed[0])
                        )
    return None


def _by_field(root: Body, errors: Body) -> bool:
    """Is it nothing but texts of errors, by the field that each is about?"""
    return only_envelope(root) and all(
        isinstance(texts, list) and texts and isinstance(texts[0], str) for texts in errors.values()
    )


def _named(error: list[Any]) -> Body:
    """An error as a row: its code, its message, and the field that it is about."""
    texts = [part for part in error[:3] if isinstance(part, str)]
    if len(texts) < 2:
        return {}
    return dict(zip(("code", "message", "field"), texts, strict=False))


def batch(root: Body, status: int | None) -> Shape | None:
    """S21: some parts of a batch failed."""
    if is_bad(status):
        return None
    if "_shards" in root or root.get("timed_out") is True:
        searched = incomplete_search(root)
        if searched is not None:
            return searched
    if _PART_NAMES.isdisjoint(root):
        told = root.get("data")
        if isinstance(told, list) and told and all(map(_is_outcome, told[:ROWS_LIMIT])):
            return _parts("S21", told, told_apart=True)
        return _counted(root)
    items = root.get("items")
    if root.get("errors") is True and isinstance(items, list):
        flat = [
            next(iter(item.values())) if isinstance(item, MAPPING) and len(item) == 1 else item
            for item in items
        ]
        return _parts("S21", flat)
    for name in _LISTED_NAMES:
        listed = root.get(name)
        if (
            isinstance(listed, list)
            and listed
            and all(isinstance(item, MAPPING) for item in listed[:50])
        ):
            told_apart = status == _MULTI_STATUS or (name in _OUTCOME_LISTS and _outcomes(listed))
            shape = _parts("S21", listed, told_apart=told_apart)
            if shape is None and name in _OUTCOME_LISTS:
                shape = rows_shape(listed)
            if shape is not None:
                return shape
    beside = any(isinstance(root.get(name), list) for name in _DONE_NAMES)
    for name in (*_LEFT_NAMES, "failed") if beside else _LEFT_NAMES:
        left = root.get(name)
        if left and isinstance(left, (dict, list, Mapping)):
            first = left[0] if isinstance(left, list) and isinstance(left[0], MAPPING) else {}
            return Shape(
                "S21",
                True,
                first_text(first, CODE_NAMES),
                message_of(first) or name,
                parts=list(left),
            )
    counted = _counted(root)
    if counted is not None:
        return counted
    for name in _COUNT_NAMES:
        count = root.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            return Shape("S21", True, None, f"{name}: {count}", parts=[count])
    for name in _ADDRESSEE_NAMES:
        if root.get(name) and good_code(root.get("errcode", 0)):
            return Shape("S21", True, name, f"{name}: {str(root[name])[:80]}", parts=[root[name]])
    return None


_COUNTS: Final = re.compile(
    r"(?:(fail|failed|failures?|errors?|invalid|rejected|失败)|(success|succeeded|ok|sent|created|成功))(?:_?(?:count|num|total|size|cnt)|数|数量|条数|笔数)?",
    re.IGNORECASE,
)
_LISTS: Final = re.compile(
    r"(?:fail|failed|failure|error|invalid|rejected|失败)_?(?:list|items|records|details?|rows|data|ids|列表|明细|记录)",
    re.IGNORECASE,
)
_ENVELOPED: Final = ("data", "result", "Data", "Result", "body")


def _counted(root: Body) -> Shape | None:
    """S21: counts of both ends, and a list of what failed: the report of this very call. Counts
    alone are data, such as those of a job that was looked at."""
    for source in (root, root.get("_shards"), *(root.get(name) for name in _ENVELOPED)):
        if source is None or not isinstance(source, MAPPING) or len(source) > 40:
            continue
        if list not in map(type, source.values()):
            continue  # as most bodies have none
        failed = succeeded = 0
        listed: list[Any] = []
        for name, value in source.items():
            if not isinstance(name, str):
                continue
            count = _COUNTS.fullmatch(name)
            if count is not None and isinstance(value, int) and not isinstance(value, bool):
                failed, succeeded = (value, succeeded) if count[1] else (failed, value)
            elif isinstance(value, list) and value and _LISTS.fullmatch(name):
                listed = value
        if failed > 0 and listed:
            first = listed[0] if isinstance(listed[0], MAPPING) else {}
            parts = listed[:20] if succeeded else []
            message = message_of(first) or message_of(root) or f"{failed} failed"
            return Shape("S21", True, first_text(first, CODE_NAMES), message, parts=parts)
    return None


def lines_shape(text: str) -> Shape | None:
    """S21: an answer of JSON lines, one a part, some of which failed."""
    import json

    parts: list[Any] = []
    outcomes = True
    for line in text.split("\n", ROWS_LIMIT)[:ROWS_LIMIT]:
        if not line.strip():
            continue
        try:
            part = json.loads(line)
        except (ValueError, RecursionError):
            break  # the last one may be cut off
        if not isinstance(part, dict):
            return None
        # Else lines of something else: a log that was read, for example.
        outcomes = outcomes and isinstance(part.get("success", part.get("ok")), bool)
        parts.append(part)
    if len(parts) < 2:
        return None
    return (_parts("S21", parts) if outcomes else None) or rows_shape(parts)


_MULTI_STATUS: Final = 207
_DONE_NAMES: Final = (
    "successful",
    "succeeded",
    "success",
    "sent",
    "delivered",
    "accepted",
    "processed",
    "created",
    "updated",
    "deleted",
    "added",
)  # a `failed` beside a test report's `passed` is data
_LEFT_NAMES: Final = (
    "UnprocessedItems",
    "UnprocessedKeys",
    "Failed",
    "FailedEntries",
    "BatchItemFailures",
    "batchItemFailures",
    "failed_results",
    "failedResults",
    "failed_urls",
)
_LISTED_NAMES: Final = ("responses", "results", "Results", "multistatus", "items", "statuses")
_COUNT_NAMES: Final = ("FailedRecordCount", "FailedEntryCount", "failedRecordCount")
_ADDRESSEE_NAMES: Final = (
    "invaliduser", "invalidparty", "invalid_user_list", "failed_recipients",
)  # fmt: skip
_PART_NAMES: Final = frozenset(
    {*_LISTED_NAMES, *_LEFT_NAMES, "failed", *_COUNT_NAMES, *_ADDRESSEE_NAMES}
)
_FAILED_WORDS: Final = frozenset({"failed", "failure", "error", "aborted", "rejected"})


def _parts(name: str, items: list[Any], *, told_apart: bool = False) -> Shape | None:
    """`told_apart`: the status says that the parts ended differently, so that their words count."""
    failed = [
        item
        for item in items
        if isinstance(item, MAPPING) and (_part_failed(item) or (told_apart and _says_failed(item)))
    ]
    if not failed:
        return None
    error = failed[0].get("error", failed[0])
    source: Body = error if isinstance(error, MAPPING) else {"message": error}
    code = first_text(source, ("type", "code", "errorCode", "reason")) or plain(
        failed[0].get("code")
    )
    message = first_text(source, ("reason", "message", "msg", "description")) or message_of(
        failed[0]
    )
    own = failed[0].get("status")
    if len(failed) == len(items):
        return Shape(name, True, code, message, status=own if isinstance(own, int) else None)
    return Shape(name, True, code, message, parts=[dict(item) for item in failed[:20]])


_OUTCOME_LISTS: Final = frozenset({"responses", "results", "Results", "statuses"})
_OUTCOME_WORDS: Final = frozenset(
    {"ok", "success", "succeeded", "error", "created", "updated", "accepted", "rejected", "sent"}
)  # a job's state is another: failed, running, completed


def _outcomes(items: list[Any]) -> bool:
    """Does every item say how its part of the call ended, and each that did not end well why?"""
    for item in items[:ROWS_LIMIT]:
        word = item.get("status", item.get("result"))
        if not isinstance(word, str) or word.lower() not in _OUTCOME_WORDS:
            return False
        if word.lower() in _FAILED_WORDS and not (item.get("error") or message_of(item)):
            return False
    return True


_OUTCOME_FIELDS: Final = frozenset(
    {"code", "message", "status", "details", "action", "duplicate_field"}
)


def _is_outcome(item: Any) -> bool:
    """Is a row nothing but how its part ended: a code, a message, a status?"""
    return (
        isinstance(item, MAPPING)
        and {"code", "message", "status"} <= item.keys() <= _OUTCOME_FIELDS
        and isinstance(item["status"], str)
    )


def _says_failed(item: Body) -> bool:
    return any(
        isinstance(value, str)
        and value.lower() in _FAILED_WORDS
        and str(name).lower().endswith(("status", "state", "result", "outcome"))
        for name, value in item.items()
    )


def _part_failed(item: Body) -> bool:
    if item.get("success") is False or item.get("ok") is False:
        return True
    status = item.get("status", item.get("statusCode"))
    return isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599


def list_shape(root: Any, status: int | None) -> Shape | None:
    """S14, S21: a list of errors, or of what became of each part (`rows_shape`; under a 207 any)."""
    if not isinstance(root, list) or not root or not isinstance(root[0], MAPPING):
        return None
    first = root[0]
    if status == _MULTI_STATUS:
        return _parts("S21", root[:ROWS_LIMIT], told_apart=True)
    if not is_bad(status):
        rows = rows_shape(root)
        if rows is not None:
            return rows
    if is_bad(status) or {"errorCode", "error"} & first.keys():
        code = first_text(first, ("errorCode", "code", "type"))
        message = message_of(first) or plain(first.get("error"))
        if not (is_bad(status) or all(map(_holds_error, root[:ROWS_LIMIT]))):
            return None  # some have none: rows of data
        listed = len(root) == 1 and message is not None and only_envelope(first)
        return Shape("S14", True if listed else None, code, message) if message or code else None
    return None


def _holds_error(row: Any) -> bool:
    return isinstance(row, MAPPING) and bool(row.get("errorCode") or row.get("error"))


FIELDS: Final = frozenset((*_PART_NAMES, *_ENVELOPED, "_shards", "timed_out", "userErrors"))
"""Fields of the root, beside `KNOWN_NAMES`, that one of these shapes asks for, beside `lists_failures`."""


def lists_failures(field: str) -> bool:
    """Is a field named for the parts that failed (``failList``)?"""
    return _LISTS.fullmatch(field) is not None
