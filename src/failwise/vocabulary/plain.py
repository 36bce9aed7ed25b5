"""Any value as JSON text: what a tool gave back, for a model, a record, a terminal. Never raises."""

import json
from typing import Any

_LONGEST = 1_000_000
"""Characters of a response's text that are looked at."""


def as_json(value: Any) -> str:
    """`value` as JSON. Data classes, models, enums and times become their data; a response of an
    HTTP client or an MCP result becomes what it holds; anything else becomes its text.
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        # Keys that are no texts, a value that holds itself, or one nested without end.
        return json.dumps(_text(value), ensure_ascii=False)


def as_text(value: Any) -> str:
    """`value` for a reader: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    held = _held(value)
    return held if isinstance(held, str) else as_json(value)


def _plain(value: Any) -> Any:
    """What the JSON encoder asks for a value that it does not know."""
    held = _held(value)
    if held is not value:
        return held
    try:
        if hasattr(value, "model_dump"):
            return value.model_dump(mode="json")
        if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            return {name: getattr(value, name) for name in value.__dataclass_fields__}
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if isinstance(value, set | frozenset):
            return sorted(value, key=repr)
    except Exception:  # somebody else's property or method: its failing is no failure of the call
        return _text(value)
    return _text(value)


def _held(value: Any) -> Any:
    """The body of an HTTP response, the content of an MCP result; else the value itself."""
    try:
        if hasattr(value, "headers") and (
            hasattr(value, "status_code") or hasattr(value, "status")
        ):
            body = value.text if isinstance(getattr(value, "text", None), str) else None
            if body is None:
                raw = getattr(value, "_body", None)
                body = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else None
            if body is None:
                return value
            try:
                return json.loads(body) if len(body) <= _LONGEST else body[:_LONGEST]
            except ValueError:
                return body
        content = getattr(value, "content", None)
        if isinstance(content, list) and (hasattr(value, "is_error") or hasattr(value, "isError")):
            return "\n".join(str(getattr(part, "text", part)) for part in content)
    except Exception:
        return value
    return value


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
