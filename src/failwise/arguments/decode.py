"""Strict JSON: RFC 8259, and nothing that two programs may read differently.

Duplicate keys, NaN, infinities, numbers out of range and lone surrogates are refused. Integers keep
all their digits.
"""

import json
from collections.abc import Callable
from typing import Any

MAXIMUM_LENGTH = 16 * 1024 * 1024
"""Longest text that is read at all, in characters."""

MAXIMUM_DEPTH = 128
"""Deepest nesting that is read."""


class Malformed(Exception):
    """The text is no JSON value. `position` counts characters from the start of the text.

    `reason`: ``syntax``, ``cut_off``, ``ambiguous``, ``duplicate_key``, ``not_finite``,
    ``surrogate``, ``too_deep``, ``too_long``, ``encoding``, ``several``, ``no_object``, ``empty``.
    """

    def __init__(self, reason: str, position: int | None = None, found: str = "") -> None:
        self.reason, self.position, self.found = reason, position, found
        super().__init__(reason)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Malformed("duplicate_key")
    return value


def _constant(text: str) -> Any:
    raise Malformed("not_finite", found=text)


def read_float(text: str) -> float:
    """A JSON number with a fraction or an exponent. Raises `Malformed` when it is out of range."""
    value = float(text)
    if value - value != 0:
        raise Malformed("not_finite", found=text[:40])
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=read_float
)
scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
"""One value of a text from an index on: ``(value, end)``. Says nothing about surrogates."""

_scan_flat: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder(
    parse_constant=_constant, parse_float=read_float
).scan_once  # type: ignore[attr-defined]


def scan_object(text: str) -> tuple[Any, int]:
    """`scan` from the start, faster for the usual flat object.

    One brace means one object, and as many colons as keys mean that no key stands twice: then
    nothing has to be looked at in Python. Any other text is scanned with care.
    """
    if text.count("{") == 1:
        value, end = _scan_flat(text, 0)
        if value.__class__ is dict and len(value) == text.count(":"):
            return value, end
    return scan(text, 0)


def check_text(text: str) -> None:
    """Raises `Malformed` for a character that no encoding can carry (half a surrogate pair)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Malformed("surrogate", error.start) from None


def check_texts(value: Any) -> None:
    """`check_text` for every key and text within a decoded value."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("surrogate") from None


def decode(text: str) -> Any:
    """The one JSON value of a text.

    Raises `Malformed`.
    """
    if len(text) > MAXIMUM_LENGTH:
        raise Malformed("too_long")
    check_text(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        reason = "cut_off" if error.pos >= len(text.rstrip()) else "syntax"
        raise Malformed(reason, error.pos, text[error.pos : error.pos + 20]) from None
    except RecursionError:
        raise Malformed("too_deep") from None
    except ValueError:
        raise Malformed("not_finite") from None
    if "\\u" in text:
        check_texts(value)
    return value


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is not true, and an integer is not a float."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
