"""Where something stands in a TOML text, and which part is wrong: errors and explanations name the line."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from failwise.vocabulary.errors import UsageError

_HEADER = re.compile(r"^\s*\[\s*([^\[\]#]+?)\s*\]")


def line_of(text: str, *path: str) -> int | None:
    """The line of a key by its path: ``key =`` below its table's header, else the nearest header.

    Inline tables and dotted keys count for their first part. None where nothing of it is found.
    """
    best, best_depth = None, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _parts(header[1])
            place = table
        else:
            key = _key(line)
            if not key:
                continue
            place = (*table, *key)
        depth = min(len(place), len(path))
        if place[:depth] == path[:depth] and depth > best_depth:
            best, best_depth = number, depth
    return best


def fault_in(
    tables: Mapping[str, Any], check: Callable[[Mapping[str, Any]], object]
) -> tuple[str, ...]:
    """The path to the smallest part that `check` refuses by itself; empty where only the whole is wrong."""
    place: tuple[str, ...] = ()
    part: Any = tables
    while isinstance(part, Mapping):
        for key, value in part.items():
            whole: Any = value
            for name in reversed((*place, key)):
                whole = {name: whole}
            try:
                check(whole)
            except UsageError:
                place, part = (*place, key), value
                break
            except AttributeError:  # not a table where one must be
                return (*place, key)
        else:
            break
    return place


def _key(line: str) -> tuple[str, ...]:
    name, equals, _ = line.partition("=")
    return _parts(name) if equals and not name.lstrip().startswith("#") else ()


def _parts(dotted: str) -> tuple[str, ...]:
    """``policy."connection.reset"`` → its keys."""
    found = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^\s.\"']+)", dotted)
    return tuple(double or single or bare for double, single, bare in found)
