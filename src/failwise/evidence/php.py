"""Arrays and objects as PHP prints them: ``print_r`` and ``var_dump``, which people paste and pages show."""

import re
from typing import Any, Final

from failwise.evidence.literals import DEPTH_LIMIT, SIZE_LIMIT, Found

_OPENING: Final = re.compile(
    r"(?:Array|[\w\\]{1,80} Object)\s{0,8}\((?=\s{0,64}\[)|(?:array|object)\(\w{1,80}\)(?:#\d{1,9})? ?(?:\(\d{1,9}\) ?)?\{(?=\s{0,64}\[)"
)
_KEY: Final = re.compile(
    r"\s{0,256}\[\"?([\w.:-]{1,120})\"?(?::[\w:\"]{1,60})?\]\s?=>[ \t]?\s{0,256}"
)
_NESTED: Final = re.compile(
    r"(?:Array|[\w\\]{1,80} Object)\s{0,256}\(|(?:array|object)\(\w{1,80}\)(?:#\d{1,9})? ?(?:\(\d{1,9}\) ?)?\{"
)
_END: Final = re.compile(r"\s{0,256}[)}]")
_STRING: Final = re.compile(r"string\((\d{1,7})\) ?\"")
_SCALAR: Final = re.compile(r"(?:int|float|bool|enum)\(([^()\n]{0,80})\)|(NULL)\b")
_PRINTED: Final = re.compile(r"[^\n]{0,4096}?(?=\n|\s\[[\w.:-]{1,120}\] =>|\s{1,4}\)(?:\s|$)|$)")
_WORDS: Final = {"true": True, "false": False, "NULL": None, "null": None}
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_FIELDS: Final = 200


class _Malformed(Exception):
    """Not a dump after all."""


def find_dump(text: str) -> Found | None:
    """The first dump in a text, as a mapping; None where there is none. Never evaluates anything."""
    text = text[:SIZE_LIMIT]
    opening = _OPENING.search(text)
    if opening is None:
        return None
    try:
        value, end = _fields(text, opening.end(), 0)
    except _Malformed:
        return None
    return Found(value, opening.start(), end) if value else None


def _fields(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    if depth > DEPTH_LIMIT:
        raise _Malformed
    fields: dict[str, Any] = {}
    while len(fields) < _FIELDS:
        end = _END.match(text, position)
        if end is not None:
            return fields, end.end()
        key = _KEY.match(text, position)
        if key is None:
            if position >= len(text.rstrip()):
                return fields, len(text)  # cut off behind its last field
            raise _Malformed
        fields[key[1]], position = _value(text, key.end(), depth)
    return fields, position


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    nested = _NESTED.match(text, position)
    if nested is not None:
        return _fields(text, nested.end(), depth + 1)
    told = _STRING.match(text, position)
    if told is not None:
        return _string(text, told.end(), int(told[1]))
    scalar = _SCALAR.match(text, position)
    if scalar is not None:
        return _scalar(scalar[1] if scalar[2] is None else "NULL"), scalar.end()
    printed = _PRINTED.match(text, position)
    if printed is None:
        raise _Malformed
    return _scalar(printed[0].strip()), printed.end()


def _string(text: str, start: int, size: int) -> tuple[str, int]:
    """A string whose size in bytes is told, which pastes have often changed: then up to its quote."""
    taken = text[start : start + size].encode()[:size].decode("utf-8", "ignore")
    end = start + len(taken)
    if text[end : end + 1] != '"':
        end = text.find('"', start)
        if end < 0:
            raise _Malformed
    return text[start:end], end + 1


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.fullmatch(text) else text
