"""Objects printed inside a text: JSON, Python's repr, JavaScript's console form.

One small reader for all three, since log lines mix and cut them. It never evaluates anything, works
in linear time, and is bounded in depth, in size and in the number of places it tries.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from failwise.vocabulary.records import record

DEPTH_LIMIT: Final = 32
SIZE_LIMIT: Final = 65_536
TRIES: Final = 24

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"[-+]?\d{1,40}(?:\.\d{1,40})?(?:[eE][-+]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_$][\w$-]{0,80}")
_STRING_PREFIX = re.compile(r"[uUbBrR]{1,2}(?=['\"])")
_DOUBLE = re.compile(r'[^"\\]*')
_SINGLE = re.compile(r"[^'\\]*")
_OPENING = re.compile(r"\{|\[(?=\s{0,16}\{)")
_ATOM_END = re.compile(r"[^,}\]\n]{0,512}")
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda name: None)
_CONSTANTS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "undefined": None,
    "NaN": None,
    "nil": None,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_UNICODE = re.compile(r"[0-9a-fA-F]{4}")
_BYTE = re.compile(r"[0-9a-fA-F]{2}")


@record
class Found:
    """An object found in a text: its value, and from where to where it stood."""

    value: Any
    start: int
    end: int


class _Malformed(Exception):
    """Not an object after all."""


def find_objects(text: str, limit: int = 8) -> Iterator[Found]:
    """The objects (and lists of objects) printed in `text`, from left to right, at most `limit`."""
    position = tries = found = 0
    text = text[:SIZE_LIMIT]
    while found < limit and tries < TRIES:
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        tries += 1
        read = _json(text, opening.start())
        if read is not None:
            found += 1
            position = read.end
            yield read
            continue
        reader = _Reader(text, opening.start())
        try:
            value = reader.value(0)
        except (_Malformed, IndexError):
            position = opening.start() + 1
            continue
        position = reader.position
        if value and (isinstance(value, list) or any(isinstance(key, str) for key in value)):
            found += 1
            yield Found(value, opening.start(), reader.position)


def printed_string(text: str, start: int) -> tuple[str, int]:
    """The quoted string that begins at `start`, and where it ends; one that was cut off ends with the text."""
    closed = text.rstrip("\\") + text[start]
    reader = _Reader(closed, start)
    return reader.string(text[start]), min(reader.position, len(text))


def printed_value(text: str) -> Any:
    """The value that a whole text prints, a list of texts included; None where it is none."""
    reader = _Reader(text, 0)
    try:
        value = reader.value(0)
        reader.skip()
    except (_Malformed, IndexError):
        return None
    return value if reader.position == len(text) else None


def _json(text: str, start: int) -> Found | None:
    """An object that is JSON, as most are: the standard library's reader is the quicker one."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Found(value, start, end) if value and _depth(value) <= DEPTH_LIMIT else None


def _depth(value: Any) -> int:
    """How deep objects and lists are nested, looked at no further than matters."""
    level, depth = [value], 0
    while level and depth <= DEPTH_LIMIT:
        depth += 1
        level = [
            inner
            for holder in level
            for inner in (holder.values() if type(holder) is dict else holder)
            if type(inner) is dict or type(inner) is list
        ]
    return depth


class _Reader:
    """Reads one value from `position` on."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def value(self, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise _Malformed
        self.skip()
        char = self.text[self.position]
        if char == "{":
            return self.mapping(depth)
        if char in "[(":
            return self.sequence(depth, "]" if char == "[" else ")")
        if char in "\"'":
            return self.string(char)
        prefix = _STRING_PREFIX.match(self.text, self.position)
        if prefix:
            self.position = prefix.end()
            return self.string(self.text[self.position])
        return self.atom()

    def mapping(self, depth: int) -> dict[str, Any]:
        self.position += 1
        members: dict[str, Any] = {}
        while True:
            self.skip()
            if self.take("}"):
                return members
            key = self.key()
            self.skip()
            if not self.take(":"):
                raise _Malformed
            members[key] = self.value(depth + 1)
            self.skip()
            if not self.take(","):
                self.skip()
                if self.take("}"):
                    return members
                raise _Malformed

    def sequence(self, depth: int, closing: str) -> list[Any]:
        self.position += 1
        items: list[Any] = []
        while True:
            self.skip()
            if self.take(closing):
                return items
            items.append(self.value(depth + 1))
            self.skip()
            if not self.take(","):
                if self.take(closing):
                    return items
                raise _Malformed

    def key(self) -> str:
        char = self.text[self.position]
        prefix = _STRING_PREFIX.match(self.text, self.position)
        if prefix:
            self.position = prefix.end()
            char = self.text[self.position]
        if char in "\"'":
            return self.string(char)
        number = _NUMBER.match(self.text, self.position)
        word = number or _WORD.match(self.text, self.position)
        if word is None:
            raise _Malformed
        self.position = word.end()
        return word.group()

    def string(self, quote: str) -> str:
        plain = _DOUBLE if quote == '"' else _SINGLE
        self.position += 1
        pieces: list[str] = []
        while True:
            run = plain.match(self.text, self.position)
            assert run is not None
            pieces.append(run.group())
            self.position = run.end()
            char = self.text[self.position]
            self.position += 1
            if char == quote:
                return "".join(pieces)
            pieces.append(self.escape())

    def escape(self) -> str:
        char = self.text[self.position]
        self.position += 1
        if char in "ux":
            digits = (_UNICODE if char == "u" else _BYTE).match(self.text, self.position)
            if digits:
                self.position = digits.end()
                return chr(int(digits.group(), 16))
        return _ESCAPES.get(char, char)

    def atom(self) -> Any:
        number = _NUMBER.match(self.text, self.position)
        if number:
            self.position = number.end()
            digits = number.group()
            return float(digits) if set(digits) & set(".eE") else int(digits)
        word = _WORD.match(self.text, self.position)
        if word and word.group() in _CONSTANTS:
            self.position = word.end()
            return _CONSTANTS[word.group()]
        # Anything else (`<Foo object at 0x1>`, `[Object]`, `1,800`) is kept as its text.
        rest = _ATOM_END.match(self.text, self.position)
        if rest is None or not rest.group().strip():
            raise _Malformed
        self.position = rest.end()
        return rest.group().strip()

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.position)
        if space:
            self.position = space.end()

    def take(self, char: str) -> bool:
        if self.text[self.position] == char:
            self.position += 1
            return True
        return False
