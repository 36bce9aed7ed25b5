"""Rows that know their columns, and what a database could not do."""

from collections.abc import Mapping, Sequence
from typing import Any

from failwise.vocabulary.errors import FailwiseError


class DatabaseError(FailwiseError):
    """The database could not do it; the message says why, without the URL's secrets."""


class Row(tuple[Any, ...]):
    """A row, by position and by column name."""

    names: Mapping[str, int] = {}

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return tuple.__getitem__(self, self.names[key])
        return tuple.__getitem__(self, key)

    def keys(self) -> list[str]:
        """The column names, so that ``dict(row)`` works."""
        return list(self.names)


def named_rows(names: Sequence[str], found: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows that know their columns."""
    kind = type("Row", (Row,), {"names": {name: place for place, name in enumerate(names)}})
    return [kind(row) for row in found]
