"""Fields that may speak of a failure: an object without any of them is data, whatever it holds.

What a tool gives back is mostly data, and judging it costs many times what it costs to look at the
names of its fields. So the names are told apart here: those by which a shape, or a provider's profile,
finds a failure, and all others.
"""

from collections.abc import Collection
from itertools import islice
from typing import Any, Final

from failwise.classify import batches, calls, envelopes, names, opened, shape, shapes, wrappers
from failwise.classify.rows import ROWS_LIMIT

_LONGEST: Final = 64
_REMEMBERED: Final = 4_096
_FEW: Final = 64
"""Of more fields, rows or parts none is read with care: a single mark among them is enough for a look."""
_DEPTH: Final = 4

_HOLDERS: Final = frozenset(
    {"items", "results", "Results", "responses", "data", "Data", "result", "Result", "body"}
)
"""Around an answer: as good as what they hold."""
_WEAK: Final = frozenset({"title", "description", "text", "info", "type", "kind", "object", "category", "timestamp"})  # fmt: skip
"""Of an error only where nothing else than an error's fields stands beside them."""
_MARKED: Final = frozenset(
    {
        *shape.KNOWN_NAMES,
        *shapes.FIELDS,
        *envelopes.FIELDS,
        *batches.FIELDS,
        *calls.FIELDS,
        *opened.FIELDS,
        "jsonrpc",
        "isError",
        "is_error",
    }
)


class Marks:
    """Tells objects apart by the names of their fields; names seen before are remembered."""

    __slots__ = ("_data", "_marked")

    def __init__(self) -> None:
        self._data: set[Any] = set()
        self._marked: set[Any] = set()

    def none_in(self, value: dict[Any, Any], depth: int = 0) -> bool:
        """Is there nothing in an object that could speak of a failure? False proves nothing."""
        known = self._data
        if len(value) == 1:
            ((name, held),) = value.items()
            if calls.may_be_call(held) or (held.__class__ is dict and wrappers.is_around(name)):
                return False
        if known.issuperset(value):
            return True
        if depth > _DEPTH:
            return False
        if len(value) > _FEW:
            # Names of one's own are looked for in small objects only; profiles look at the first fields.
            return _MARKED.isdisjoint(value) and not any(
                isinstance(name, str) and _profiles_ask_for(name) for name in islice(value, _FEW)
            )
        data = weak = False
        for name, held in value.items():
            if name in known:
                data = True
            elif name in _HOLDERS:
                if not self.none_in_any(held, depth):
                    return False
            elif name in _WEAK:
                weak = True
            elif self._is_data(name):
                data = True
            else:
                return False
        return data or not weak

    def none_in_any(self, held: Any, depth: int = 0) -> bool:
        """The same for an object, the rows of a list, a number or nothing; a text may be an answer."""
        kind = held.__class__
        if kind is list or kind is tuple:
            return self._none_in_each(held, depth)
        if kind is dict:
            # A GraphQL answer holds errors in the answer of each part.
            return self.none_in(held, depth + 1) and self._none_in_each(held.values(), depth)
        return held is None or kind is int or kind is float

    def _none_in_each(self, parts: Collection[Any], depth: int) -> bool:
        few = len(parts) <= _FEW
        for part in islice(parts, ROWS_LIMIT):
            if part.__class__ is dict and not (
                self.none_in(part, depth + 1) if few else _MARKED.isdisjoint(part)
            ):
                return False
        return True

    def is_data(self, name: object) -> bool:
        """Is it the name of a field that no shape and no profile asks for?"""
        return name in self._data or self._is_data(name)

    def _is_data(self, name: object) -> bool:
        if name in self._marked:
            return False
        if not isinstance(name, str):
            return True
        if len(name) > _LONGEST:
            return False
        marked = (
            name in _MARKED
            or names.known(name) is not None
            or name.endswith("_status")
            or batches.lists_failures(name)
            or _profiles_ask_for(name)
        )
        seen = self._marked if marked else self._data
        if len(seen) >= _REMEMBERED:
            seen.clear()
        seen.add(name)
        return not marked


def _profiles_ask_for(name: str) -> bool:
    from failwise.profiles.library import Profiles

    return Profiles.default().asks_for(name)


MARKS: Final = Marks()
"""Remembers for all: what a name means is the same everywhere."""
