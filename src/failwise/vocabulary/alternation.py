"""Many literals → one pattern, quick to search for: their common beginnings are looked at once."""

import re
from collections.abc import Iterable, Mapping
from typing import Any


def any_of(literals: Iterable[str]) -> str:
    """A pattern that matches each of the literals, the longest one where several do; nothing where
    there are none."""
    tree: dict[str, Any] = {}
    for literal in literals:
        branch = tree
        for character in literal:
            branch = branch.setdefault(character, {})
        branch[""] = {}
    return _branches(tree) if tree else "(?!)"


def _branches(tree: Mapping[str, Any]) -> str:
    found = [
        re.escape(character) + _branches(rest)
        for character, rest in sorted(tree.items())
        if character
    ]
    if not found:
        return ""
    if "" in tree:  # a literal ends here, and others go on
        return f"(?:{'|'.join(found)})?"
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"
