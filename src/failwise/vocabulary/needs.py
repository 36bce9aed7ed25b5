"""What a pattern cannot match without: literals to look for before the pattern is tried.

A pattern of many alternatives is slow to search for, and most texts hold the words of none of them.
So it is taken apart: each alternative alone, with the literals that every match of it has. Looking
for those costs next to nothing, and says no nearly always.
"""

import re
from collections.abc import Iterator, Set
from typing import Any, Final, TypeAlias

Literals: TypeAlias = frozenset[str]
"""One of these stands in every text that matches."""
Asked: TypeAlias = tuple[tuple[str, tuple["Way", ...]], ...]
"""Literals, each with the alternatives to try where it stands in a text."""

_SETS: Final = 3
_MOST: Final = 32
_WORD_START: Final = "(?<![a-z0-9_])"
_QUANTIFIERS: Final = "*+?{"


class Way:
    """One alternative of a pattern, with what must stand in a text before it is tried: most never
    are, and are not even compiled."""

    __slots__ = ("_flags", "_pattern", "_source", "needed")

    def __init__(
        self,
        needed: tuple[tuple[str, ...], ...],
        pattern: re.Pattern[str] | None = None,
        source: str = "",
        flags: int = 0,
    ) -> None:
        self.needed = needed
        self._pattern, self._source, self._flags = pattern, source, flags

    @property
    def pattern(self) -> re.Pattern[str]:
        found = self._pattern
        if found is None:
            found = self._pattern = re.compile(self._source, self._flags)
        return found

    def behind(self, needed: tuple[tuple[str, ...], ...]) -> "Way":
        """The same alternative, tried where these stand."""
        return Way(needed, self._pattern, self._source, self._flags)

    def may_match(self, text: str) -> bool:
        """False where the text lacks what each match has. For a pattern without regard to case, the
        text is to be in lower case."""
        for literals in self.needed:
            for literal in literals:
                if literal in text:
                    break
            else:
                return False
        return True

    def matches(self, text: str) -> bool:
        """Does it match anywhere in the text?"""
        return self.may_match(text) and self.pattern.search(text) is not None

    def last(self, text: str) -> int:
        """Where the last match in the text begins; -1 where there is none."""
        place = -1
        if not self.needed or self.may_match(text):
            for found in self.pattern.finditer(text):
                place = found.start()
        return place


class Ways:
    """A pattern, taken apart: where its alternatives match, it does."""

    __slots__ = ("_always", "_asked")

    def __init__(self, source: str, flags: int = 0) -> None:
        asked: dict[str, list[Way]] = {}
        always = []
        for way in ways(source, flags):
            if not way.needed:
                always.append(way)
                continue
            rest = way.behind(way.needed[1:])
            for literal in way.needed[0]:
                asked.setdefault(literal, []).append(rest)
        self._always = tuple(always)
        self._asked: Asked = tuple((literal, tuple(found)) for literal, found in asked.items())

    def last(self, text: str) -> int:
        """Where the last match of any alternative in the text begins; -1 where there is none."""
        place = -1
        for literal, found in self._asked:
            if literal in text:
                for way in found:
                    last = way.last(text)
                    if last > place:  # noqa: PLR1730 (a call less)
                        place = last
        for way in self._always:
            last = way.last(text)
            place = max(place, last)
        return place

    def matches(self, text: str) -> bool:
        """Does any alternative match anywhere in the text?"""
        for literal, found in self._asked:
            if literal in text:
                for way in found:
                    if way.matches(text):
                        return True
        return any(way.matches(text) for way in self._always)


def whole(pattern: re.Pattern[str]) -> Way:
    """The pattern in one piece, with what each match of it has."""
    needed = required(pattern.pattern, pattern.flags & ~re.UNICODE)
    return Way(tuple(tuple(sorted(literals)) for literals in needed), pattern)


def ways(source: str, flags: int = 0) -> list[Way]:
    """The alternatives of a pattern, each alone; of one without regard to case the whole."""
    if source.startswith("(?") and source[2:3].isalpha():
        flags = re.compile(source, flags).flags & ~re.UNICODE
    if flags & re.IGNORECASE:
        return [Way((), source=source, flags=flags)]
    try:
        return [_way(alternative, flags) for alternative in alternatives(source)]
    except re.error:  # one of them leans on another: ``(?P=name)``
        return [Way((), source=source, flags=flags)]


def alternatives(source: str) -> list[str]:
    """The pattern's alternatives of the outermost level, as they are written.

    The pattern itself where a flag or a group stands for the whole of it (``(?i)``, ``\\1``).
    """
    if source.startswith("(?") and source[2:3].isalpha():
        return [source]
    pieces, depth, start, at = [], 0, 0, 0
    while at < len(source):
        char = source[at]
        if char == "\\":
            if source[at + 1 : at + 2].isdigit():
                return [source]
            at += 1
        elif char == "[":
            at += 2 if source[at + 1 : at + 2] in ("]", "^") else 1
            if source[at - 1 : at + 1] == "^]":
                at += 1
            while at < len(source) and source[at] != "]":
                at += 2 if source[at] == "\\" else 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "|" and depth == 0:
            pieces.append(source[start:at])
            start = at + 1
        at += 1
    return [*pieces, source[start:]]


def _way(source: str, flags: int) -> Way:
    needed = tuple(tuple(sorted(literals)) for literals in required(source, flags))
    source = _literal_first(source)
    # What needs nothing is tried on every text; a mistake in it is to show now.
    return Way(needed, None if needed else re.compile(source, flags), source, flags)


def _literal_first(source: str) -> str:
    """The same, with the edge of a word behind its first letter: for a letter the search can skip."""
    letter = source[len(_WORD_START) : len(_WORD_START) + 1]
    follows = source[len(_WORD_START) + 1 : len(_WORD_START) + 2]
    if (
        source.startswith(_WORD_START)
        and letter.isascii()
        and letter.isalnum()
        and (not follows or follows not in _QUANTIFIERS)
    ):
        return f"{letter}(?<![a-z0-9_]{letter}){source[len(_WORD_START) + 1 :]}"
    return source


def required(source: str, flags: int = 0) -> list[Literals]:
    """Sets of literals of which each match has one; the most telling ones, at most three.

    In lower case for a pattern without regard to case. Empty where nothing can be said, or where
    Python's own parser is not to be had.
    """
    try:
        from re import _parser  # type: ignore[attr-defined]
    except ImportError:
        return []
    found = {
        literals for literals in _of_sequence(_parser.parse(source, flags)) if _tells(literals)
    }
    if flags & re.IGNORECASE:
        found = {frozenset(literal.lower() for literal in literals) for literals in found}
    return sorted(found, key=_rank, reverse=True)[:_SETS]


def _tells(literals: Literals) -> bool:
    return len(literals) <= _MOST and all(len(one) > 1 or not one.isascii() for one in literals)


def _rank(literals: Set[str]) -> tuple[int, int, list[str]]:
    shortest = min(len(one) if one.isascii() else 3 * len(one) for one in literals)
    return shortest, -len(literals), sorted(literals)


def _of_sequence(items: Any) -> Iterator[Literals]:
    """What each part of a sequence requires; letters that follow each other are one literal."""
    run = ""
    for item in _flat(items):
        name, argument = str(item[0]), item[1]
        if name == "LITERAL":
            run += chr(argument)
            continue
        if name in ("AT", "ASSERT", "ASSERT_NOT"):
            continue  # takes no characters: what stands around it still touches
        if run:
            yield frozenset({run})
            run = ""
        if name == "BRANCH":
            yield from _of_branches(argument[1])
        elif name.endswith("_REPEAT") and argument[0] > 0:
            yield from _of_sequence(argument[2])
    if run:
        yield frozenset({run})


def _flat(items: Any) -> Iterator[Any]:
    """The items, those of plain groups in their place."""
    for item in items:
        if str(item[0]) == "SUBPATTERN" and not item[1][1] & re.IGNORECASE:
            yield from _flat(item[1][3])
        else:
            yield item


def _of_branches(branches: Any) -> Iterator[Literals]:
    together: set[str] = set()
    for branch in branches:
        telling = [literals for literals in _of_sequence(branch) if _tells(literals)]
        if not telling:
            return
        together |= max(telling, key=_rank)
    yield frozenset(together)
