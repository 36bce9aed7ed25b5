"""Any data as plain JSON of bounded size and depth."""

import json
from collections.abc import Mapping
from typing import Any

LONGEST = 100_000
"""Characters of one text that are looked at."""
_ITEMS = 10_000
_DEPTH = 40


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
        return data if len(data) <= LONGEST else f"<text of {len(data)} characters>"
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
    return text if len(text) <= LONGEST else f"<{type(value).__name__}>"


def json_of(data: Any) -> str:
    """Compact JSON that every engine can keep."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_described)
    # A lone surrogate cannot be stored as UTF-8.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
