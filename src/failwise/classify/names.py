"""Names of fields brought back to those that the shapes know: ``apiErrorMsg`` → ``message``.

Services name the same three or four fields in ever new ways, and in their own language. The names stand
in ``rules/names.toml``.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from failwise.classify.shape import KNOWN_NAMES, MESSAGE_NAMES, Body, empty
from failwise.classify.tables import read_toml
from failwise.vocabulary.records import MAPPING

_FIELDS: Final = 40
"""An object of more fields is no envelope."""
_NAME: Final = 40
_SEPARATORS: Final = re.compile(r"[\s_.\-]{1,40}")


def renamed(root: Body) -> dict[str, Any] | None:
    """The same object under the names that shapes look for; None where it has them already.

    A field that has the known name stays; of two that mean the same the first with a value counts.
    """
    if not 0 < len(root) <= _FIELDS:
        return None
    changes: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    for name, value in root.items():
        theirs = known(str(name))
        if theirs is None:
            kept[name] = value
        elif empty(root.get(theirs)) and empty(changes.get(theirs)):
            changes[theirs] = _within(theirs, value)
    return {**kept, **changes} if changes else None


def _within(name: str, value: Any) -> Any:
    """An error, or errors, have names of their own inside."""
    if name == "error" and isinstance(value, MAPPING):
        return renamed(value) or value
    if name == "errors" and isinstance(value, list):
        return [(renamed(one) or one) if isinstance(one, MAPPING) else one for one in value[:8]]
    return value


@functools.lru_cache(maxsize=4_096)
def known(name: str) -> str | None:
    """The name that the shapes look for, or None: it is that already, or means something else."""
    if name in KNOWN_NAMES or len(name) > _NAME:
        return None
    bare = _bare(name)
    whole, compound = _names()
    found = whole.get(bare)
    if found is None and (match := compound.fullmatch(bare)) is not None:
        found = match.lastgroup
    return found


def _bare(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


@functools.cache
def _names() -> tuple[Mapping[str, str], re.Pattern[str]]:
    _, data = read_toml("names.toml")
    whole = {_bare(name): "message" for name in MESSAGE_NAMES if len(name) > 1}
    whole |= {_bare(name): known for known, names in data["whole"].items() for name in names}
    before = "|".join(sorted(map(re.escape, data["before"]), key=len, reverse=True))
    after = "|".join(
        f"(?P<{known}>{'|'.join(map(re.escape, names))})" for known, names in data["after"].items()
    )
    return whole, re.compile(f"(?:{before}){{1,3}}(?:{after})")
