"""What repairs made of a call's arguments, as the journal keeps it: redacted first, then cut."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from failwise.journal.bounded import bounded, json_of
from failwise.vocabulary.result import Repair

if TYPE_CHECKING:
    from failwise.journal.rows import Redactor

CHANGE = 300
"""Characters kept of a value before or after a repair, as JSON."""
CHANGES = 20
"""Repairs of a call that are kept."""
_PATH = 200
"""Characters kept of a path."""
_NAMES = 10
"""Names of a path that are looked at, the last ones."""


def changes_json(repairs: Sequence[Repair], redactor: "Redactor") -> str:
    """What repairs made of the arguments, as redacted, bounded JSON: a list of ``kind``, ``path``,
    ``before``, ``after``, ``grade``."""
    return json_of(
        [
            {
                "kind": repair.kind,
                "path": str(redactor.data(repair.path[:_PATH])),
                "before": _changed(repair.path, repair.before, redactor),
                "after": _changed(repair.path, repair.after, redactor),
                "grade": repair.grade.value,
            }
            for repair in repairs[:CHANGES]
        ]
    )


def _changed(path: str, value: Any, redactor: "Redactor") -> Any:
    """A value as it may be kept; what it is called says whether it is a secret."""
    names = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    names = names[-_NAMES:]
    kept: Any = bounded(value)
    for name in reversed(names):
        kept = {name: kept}
    kept = redactor.data(kept)
    for name in names:
        if not isinstance(kept, Mapping) or name not in kept:
            return kept if isinstance(kept, str) else "****"
        kept = kept[name]
    text = json_of(kept)
    return kept if len(text) <= CHANGE else f"{text[:CHANGE]}…"
