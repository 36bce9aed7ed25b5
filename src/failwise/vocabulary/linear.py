"""Is a pattern safe on hostile text? Looked at, then tried on texts made against it.

Python's matcher backtracks and cannot be interrupted, so a pattern of somebody else is looked at before
it is used: every repeat has an end, and on texts that nearly match, ever longer ones, the time does not
explode. The texts grow in small steps, so that a bad pattern is found while it is still quick.
"""

import functools
import re
import time
from collections.abc import Iterator
from typing import Any, Final

TEXT_LIMIT: Final = 8_192
"""Characters of a text that patterns are tried on; hardly any reader looks at more."""
LIMIT: Final = 0.25
"""Seconds of processor time that a pattern may take for a text of full length."""
_SOON: Final = 0.05
"""Seconds after which a text that is still short has shown enough."""
_UNBOUNDED: Final = 1_000
_MANY: Final = 8
"""Repeats up to this many are not worth an attack of their own."""
_BRANCHES: Final = 4
_ATTACKS: Final = 40
_SIZES: Final = (
    *range(16, 64, 4),
    96,
    144,
    216,
    324,
    486,
    729,
    1_100,
    1_650,
    2_500,
    4_000,
    TEXT_LIMIT,
)


def endless(pattern: re.Pattern[str]) -> str | None:
    """Why the pattern's look alone forbids it, or None. Quick."""
    if not _unbounded(_parse(pattern)):
        return None
    return (
        "a repeat without an end (*, + or {n,}): write how long it may be, "
        r"such as [^\n]{0,40} or [0-9]{1,20}"
    )


def fault(pattern: re.Pattern[str]) -> str | None:
    """Why the pattern may not be used, or None: looked at, then tried. Some 20 ms for a good one."""
    return endless(pattern) or explosive(pattern)


@functools.lru_cache(1_024)
def explosive(pattern: re.Pattern[str]) -> str | None:
    """Why the pattern may not be used, tried on hostile texts, or None; remembered."""
    for attack in _attacks(_parse(pattern)):
        for size in _SIZES:
            text = attack.made(size)
            began = time.process_time()
            for _ in pattern.finditer(text):
                pass
            took = time.process_time() - began
            if took > (LIMIT if size == TEXT_LIMIT else _SOON + LIMIT * size / TEXT_LIMIT):
                return (
                    f"it takes {took:.2g} s on a hostile text of {size} characters: repeats that "
                    "follow or hold each other must not match the same characters"
                )
    return None


class _Attack:
    """A text that nearly matches: a beginning, something repeated, an end that does not fit."""

    __slots__ = ("body", "head")

    def __init__(self, head: str, body: str) -> None:
        self.head, self.body = head, body or "a"

    def made(self, size: int) -> str:
        body = self.body * (size // len(self.body) + 1)
        return (self.head + body)[: size - 1] + "\x00"


def _parse(pattern: re.Pattern[str]) -> Any:
    """The pattern's tree, as the standard library's own compiler reads it."""
    from re import _parser  # type: ignore[attr-defined]

    return _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)


def _unbounded(tree: Any) -> bool:
    for name, argument in tree:
        if str(name) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            if int(argument[1]) >= _UNBOUNDED or _unbounded(argument[2]):
                return True
        elif any(_unbounded(part) for part in _parts(argument)):
            return True
    return False


def _attacks(tree: Any) -> Iterator[_Attack]:
    """Texts against the pattern: each longer repeat filled up, and beginnings over and over."""
    found = [_Attack("", "a"), _Attack("", " "), _Attack("", _sample(tree))]
    for head, body in _repeats(tree, ""):
        found += [_Attack(head, body), _Attack("", head + body)]
    seen: set[tuple[str, str]] = set()
    for attack in found:
        if (attack.head, attack.body) not in seen and len(seen) < _ATTACKS:
            seen.add((attack.head, attack.body))
            yield attack


def _repeats(tree: Any, head: str) -> Iterator[tuple[str, str]]:
    """Each repeat of many: what comes before it, and one round of it."""
    for item in tree:
        name, argument = item
        if str(name) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            if int(argument[1]) > _MANY:
                for branch in range(_BRANCHES):
                    yield head, _sample(argument[2], branch)
            yield from _repeats(argument[2], head)
        else:
            for part in _parts(argument):
                yield from _repeats(part, head)
        head += _sample([item])


def _parts(argument: Any) -> list[Any]:
    """The sub-patterns of a node's argument."""
    from re import _parser  # type: ignore[attr-defined]

    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, list | tuple):
        return [part for one in argument for part in _parts(one)]
    return []


def _sample(tree: Any, branch: int = 0) -> str:
    """A short text that the pattern may match: the branch of this number, fewest rounds."""
    text = ""
    for name, argument in tree:
        match str(name):
            case "LITERAL":
                text += chr(argument)
            case "NOT_LITERAL":
                text += "a" if argument != ord("a") else "b"
            case "ANY":
                text += "a"
            case "IN":
                text += _of_class(argument)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                text += _sample(argument[2], branch) * min(max(int(argument[0]), 1), 3)
            case "BRANCH":
                text += _sample(argument[1][branch % len(argument[1])], branch)
            case "SUBPATTERN" | "ATOMIC_GROUP":
                parts = _parts(argument)
                text += _sample(parts[0], branch) if parts else ""
            case _:
                pass
    return text


_CLASSES: Final = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}


def _of_class(items: Any) -> str:
    """One character of a class."""
    negated = str(items[0][0]) == "NEGATE"
    if negated:
        return "a"
    for name, argument in items:
        match str(name):
            case "LITERAL":
                return chr(argument)
            case "RANGE":
                return chr(argument[0])
            case "CATEGORY":
                return _CLASSES.get(str(argument), "!")
    return "a"
