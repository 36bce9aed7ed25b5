"""Readings of one value where the schema demands another form: each candidate with its kind.

A candidate is no repair yet: it counts only where the schema takes it and no other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from failwise.arguments.dates import READINGS, patterned
from failwise.arguments.decode import same

Candidate = tuple[str, Any]
"""Kind of the repair, and the value it would give."""

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WIDE = str.maketrans("０１２３４５６７８９．－＋", "0123456789.-+")
_INTEGERS = re.compile(r"\s*-?\d{1,18}(?:\s*[,，、]\s*-?\d{1,18}){2,}\s*", re.ASCII)
_GROUPED = re.compile(r"\s*-?\d{1,3}(?:[,，、]\d{3})+\s*", re.ASCII)
_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W_])|(?<=[^\W_])[\s_-]+(?=[^\W\d_])")
_SEPARATED = re.compile(r"[,;，；、|\n]")
_NOTHING = frozenset({"", "null", "none", "undefined"})
_LONGEST_NUMBER = 400


def fold(text: str) -> str:
    """A name without what spelling adds: case, and separators beside a letter (``user_id`` = ``userId``).

    Digits keep what stands between them, and signs at the ends stay: ``A-`` is not ``A``.
    """
    return _BETWEEN.sub("", text.strip()).casefold()


def fold_name(text: str) -> str:
    """A tool's name as `fold`, dots being separators too: providers forbid them in names."""
    return re.sub(r"[\W_]+", "", text.replace("\\_", "_")).casefold()


def nothing(value: Any) -> bool:
    """null, or an empty text, or the word for null: what stands for "not given"."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING)


def number(text: str) -> int | float | None:
    """The one number a text is, in decimal and without loss; None where it is none.

    Thousands separators, units, leading zeros and digits a float cannot hold are refused.
    """
    text = text.strip().translate(_WIDE)
    if len(text) > _LONGEST_NUMBER or _NUMBER.fullmatch(text) is None:
        return None
    exact = Decimal(text)
    if exact == exact.to_integral_value() and exact.adjusted() < _LONGEST_NUMBER:
        return int(exact)
    near = float(text)
    return near if near - near == 0 and Decimal(repr(near)) == exact else None


class Readings:
    """Candidates for one value. `decode_text` reads a text as a JSON value, losslessly, or raises.

    `spellings` maps floats to the texts they were written as (``1.10`` is text, not 1.1).
    """

    def __init__(
        self,
        decode_text: Callable[[str], Any],
        spellings: "dict[float, set[str]] | None" = None,
    ) -> None:
        self._decode_text = decode_text
        self._spellings = spellings or {}

    def of(self, value: Any, errors: Sequence[Any]) -> list[Candidate]:
        """All candidates that the errors of one place call for, each value once."""
        found: list[Candidate] = []
        for error in errors:
            for kind, reading in self._for_error(value, error):
                if not any(same(reading, other) for _, other in found):
                    found.append((kind, reading))
        return found

    def _for_error(self, value: Any, error: Any) -> Iterator[Candidate]:
        kind = error.kind
        name = kind.name
        if name == "type":
            for due in kind.types:
                yield from self.as_type(value, due)
        elif name == "enum":
            yield from self.as_option(value, kind.options)
        elif name == "const":
            yield from self.as_option(value, [kind.expected_value])
        elif not isinstance(value, str):
            return
        elif name == "format":
            reader = READINGS.get(kind.format)
            readings = reader(value) if reader else [value.strip()]
            yield from (("date" if reader else "space", reading) for reading in readings)
        elif name == "pattern":
            yield from (("date", form) for form in patterned(value))
            yield "space", value.strip()

    def as_type(self, value: Any, due: str) -> Iterable[Candidate]:
        """Readings of a value as a JSON Schema type."""
        if isinstance(value, list) and due != "array":
            return [("list_unwrapped", value[0])] if len(value) == 1 else []
        if due == "array":
            return self._as_list(value)
        if due == "string":
            return self._as_text(value)
        if due == "null":
            return [("null_text", None)] if value == "null" else []
        if due == "integer" and isinstance(value, float) and value.is_integer():
            return [("integral_float", int(value))]
        if not isinstance(value, str):
            return []
        if due == "boolean":
            word = value.strip().casefold()
            return [("boolean_text", word == "true")] if word in ("true", "false") else []
        if due in ("integer", "number"):
            read = number(value)
            whole = isinstance(read, int)
            return (
                [("number_text", read)] if read is not None and (whole or due == "number") else []
            )
        if due == "object":
            decoded = self._decoded(value)
            return [("json_text", decoded)] if isinstance(decoded, dict) else []
        return []

    def _as_list(self, value: Any) -> list[Candidate]:
        if value is None:
            return []
        if isinstance(value, str):
            decoded = self._decoded(value)
            if isinstance(decoded, list):
                return [("json_text", decoded)]
            if isinstance(decoded, dict):
                return [("json_text", [decoded]), ("list_wrapped", [value])]
            if _INTEGERS.fullmatch(value) and not _GROUPED.fullmatch(value):
                return [("list_text", [int(part) for part in re.split("[,，、]", value)])]
            if not value.strip() or nothing(value) or _SEPARATED.search(value):
                return []
        return [("list_wrapped", [value])]

    def _as_text(self, value: Any) -> list[Candidate]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return []
        if isinstance(value, int):
            return [("text_number", str(value))]
        spellings = self._spellings.get(value, {repr(value)})
        return [("text_number", spelling) for spelling in sorted(spellings)]

    def as_option(self, value: Any, options: Sequence[Any]) -> Iterator[Candidate]:
        """The allowed values that a value may be, by case, separators and type."""
        if isinstance(value, list | dict | None):
            return
        key = fold(value) if isinstance(value, str) else None
        for option in options:
            if isinstance(option, str):
                if key is not None:
                    if fold(option) == key:
                        yield "enum_spelling", option
                elif isinstance(value, bool):
                    if option.casefold() == str(value).casefold():
                        yield "enum_spelling", option
                elif option == str(value):
                    yield "text_number", option
            elif isinstance(option, bool):
                if key == str(option).casefold():
                    yield "boolean_text", option
            elif isinstance(option, int | float) and isinstance(value, str):
                read = number(value)
                if read is not None and read == option:
                    yield "number_text", option

    def _decoded(self, text: str) -> Any:
        if text.strip()[:1] not in ("{", "[", "("):
            return None
        try:
            return self._decode_text(text)
        except Exception:
            return None
