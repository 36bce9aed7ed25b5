"""The validator's errors as violations: which parameter, which rule, what was due, what came."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from failwise.arguments.phrases import phrase, phrases
from failwise.arguments.validators import pointer

LIMIT = 20
"""Violations reported for one call; a call with more is told the first ones."""

_EXCERPT = 80
_PLAIN_RULES = {
    "uniqueItems": "unique_items",
    "not": "not",
    "contains": "contains",
    "propertyNames": "property_names",
    "falseSchema": "forbidden",
    "additionalItems": "extra_items",
    "unevaluatedItems": "extra_items",
}
"""Rules of which there is nothing more to say than that they are broken."""

Redact = Callable[[str, Any], Any]
"""A value and the name it goes by → the same without secrets."""
_RULES = {
    "minimum": "limit",
    "maximum": "limit",
    "exclusiveMinimum": "limit",
    "exclusiveMaximum": "limit",
    "multipleOf": "multiple_of",
    "minLength": "limit",
    "maxLength": "limit",
    "minItems": "limit",
    "maxItems": "limit",
    "minProperties": "limit",
    "maxProperties": "limit",
}


def as_it_is(name: str, value: Any) -> Any:
    """Nothing is hidden."""
    return value


def excerpt(value: Any) -> str:
    """A value as short JSON, for a sentence."""
    if isinstance(value, str) and len(value) > _EXCERPT:
        value = value[:_EXCERPT] + "…"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _EXCERPT + 4 else text[:_EXCERPT] + "…"


def readable(tokens: Sequence[str | int]) -> str:
    """A path as people write it: ``items[0].name``."""
    text = ""
    for token in tokens:
        text += f"[{token}]" if isinstance(token, int) else f".{token}" if text else str(token)
    return text


def violations(errors: Iterable[Any], redact: Redact = as_it_is) -> list[dict[str, Any]]:
    """One entry for each error: ``parameter``, ``path`` (JSON pointer), ``rule``, ``expected``,
    ``got``, and ``text``: for each language what to say after the parameter's name.

    Facts of a rule stand beside it: ``allowed`` (enum), ``types``, ``format``, ``pattern``,
    ``limit``. What came is shown as `redact` gives it.
    """
    found: list[dict[str, Any]] = []
    for error in errors:
        for entry in _entries(error, redact):
            if entry not in found:
                found.append(entry)
            if len(found) >= LIMIT:
                return found
    return found


def _entries(error: Any, redact: Redact) -> list[dict[str, Any]]:
    kind, path, value = error.kind, list(error.instance_path), error.instance
    name = kind.name

    def entry(*given: Any, **facts: Any) -> dict[str, Any]:
        return _entry(*given, redact=redact, **facts)

    if name == "required":
        return [entry([*path, kind.property], "required", "", None)]
    if name in ("additionalProperties", "unevaluatedProperties"):
        return [
            entry([*path, key], "unknown", "", value.get(key) if isinstance(value, dict) else None)
            for key in kind.unexpected
        ]
    if name == "type":
        types = sorted(kind.types)
        return [entry(path, "type", _types(types), value, types=types)]
    if name == "enum":
        options = list(kind.options)
        shown = ", ".join(excerpt(option) for option in options[:20])
        if len(options) > 20:
            shown += ", …"
        return [entry(path, "enum", shown, value, allowed=options[:100])]
    if name == "const":
        expected = kind.expected_value
        return [entry(path, "const", excerpt(expected), value, allowed=[expected])]
    if name == "format":
        due = phrase("format", kind.format, name=kind.format)
        return [entry(path, "format", due, value, format=kind.format)]
    if name == "pattern":
        return [entry(path, "pattern", kind.pattern, value, pattern=kind.pattern)]
    if name in _RULES:
        limit = getattr(kind, _RULES[name])
        return [entry(path, _snake(name), str(limit), value, limit=limit)]
    if name in _PLAIN_RULES:
        return [entry(path, _PLAIN_RULES[name], "", value)]
    if name in ("anyOf", "oneOf") and getattr(kind, "context", None):
        return _branches(path, value, kind.context, redact)
    if name == "oneOf":
        return [entry(path, "one_of", "", value)]
    return [entry(path, "other", name, value)]


def _branches(
    path: list[str | int], value: Any, context: Sequence[Sequence[Any]], redact: Redact
) -> list[dict[str, Any]]:
    """No branch fits: the one that fits best speaks, or the types of all where none comes near."""
    here = [
        [
            error
            for error in branch
            if list(error.instance_path) == path and error.kind.name == "type"
        ]
        for branch in context
    ]
    near = [branch for branch, wrong in zip(context, here, strict=True) if not wrong]
    if near:
        best = min(near, key=len)
        if not best:
            return [_entry(path, "one_of", "", value, redact=redact)]
        return [entry for error in best for entry in _entries(error, redact)]
    types = sorted({name for wrong in here for error in wrong for name in error.kind.types})
    return [_entry(path, "any_of", _types(types), value, redact=redact, types=types)]


def _types(names: Sequence[str]) -> dict[str, str]:
    words, joint = phrases()["type"], phrases()["word"]["or"]
    rows = [words.get(name, {"en": name, "zh": name}) for name in names]
    return {language: joint[language].join(row[language] for row in rows) for language in joint}


def _entry(
    path: Sequence[str | int],
    rule: str,
    expected: "str | dict[str, str]",
    got: Any,
    *,
    redact: Redact,
    **facts: Any,
) -> dict[str, Any]:
    named = next((token for token in reversed(path) if isinstance(token, str)), "")
    got = redact(named, got)
    text = phrase("violation", rule, expected=expected, got=excerpt(got))
    return {
        "parameter": readable(path),
        "path": pointer(list(path)),
        "rule": rule,
        "expected": expected["en"] if isinstance(expected, dict) else expected,
        "got": None if rule == "required" else _bounded(got),
        **facts,
        "text": text,
    }


def _bounded(value: Any) -> Any:
    """The value itself where it is short, else an excerpt."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**40 else excerpt(str(value))
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:200] + "…"
    return excerpt(value)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
