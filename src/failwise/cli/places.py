"""Where something stands in a TOML text, so that errors and explanations can name the line."""

import re

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


def _key(line: str) -> tuple[str, ...]:
    name, equals, _ = line.partition("=")
    return _parts(name) if equals and not name.lstrip().startswith("#") else ()


def _parts(dotted: str) -> tuple[str, ...]:
    """``policy."connection.reset"`` → its keys."""
    found = re.findall(r"\"([^\"]*)\"|'([^']*)'|([^\s.\"']+)", dotted)
    return tuple(double or single or bare for double, single, bare in found)
