"""A TOML document read field by field, so that every mistake names its line and what is allowed."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError

T = TypeVar("T")
_MISSING: Any = object()
_HEADER_NOTE = re.compile(r"\]\s*#.*$")


def read_document(text: str, *, file: str) -> "Table":
    """The top of a document. Raises `ConfigurationError` where it is not TOML."""
    return Table(documents.parsed(text, file), file, text, "", None)


class Table:
    """One table of a document. `name` is its last part; every read field is ticked off, and
    `finish` refuses what is left. `place` counts the tables of an array, from 0."""

    def __init__(
        self, data: Mapping[str, Any], file: str, text: str, path: str, place: int | None
    ) -> None:
        self._data, self._file, self._text = data, file, text
        self._path, self._place = path, place
        self._known: list[str] = []
        self.name = path.rpartition(".")[2]

    def error(self, key: str, reason: str) -> ConfigurationError:
        """An error about one field."""
        where = f"[{self._path}] {key}" if self._path else key
        return ConfigurationError(f"{where}: {reason}", file=self._file, line=self._line(key))

    def finish(self) -> None:
        """Refuse fields that nobody asked for."""
        for key in self._data:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, 1)
                told = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(self._known)}"
                raise self.error(key, f"unknown field; {told}")

    @overload
    def number(self, key: str, default: float, lowest: float, highest: float) -> float: ...
    @overload
    def number(
        self, key: str, default: float | None, lowest: float, highest: float
    ) -> float | None: ...
    def number(
        self, key: str, default: float | None, lowest: float, highest: float
    ) -> float | None:
        value: Any = self._take(key, default)
        if key not in self._data:
            return default
        sound = isinstance(value, int | float) and not isinstance(value, bool)
        if not sound or not lowest <= value <= highest:
            raise self.error(key, f"{value!r}: a number from {lowest:g} to {highest:g}")
        return float(value)

    @overload
    def whole(self, key: str, default: int, lowest: int, highest: int) -> int: ...
    @overload
    def whole(self, key: str, default: int | None, lowest: int, highest: int) -> int | None: ...
    def whole(self, key: str, default: int | None, lowest: int, highest: int) -> int | None:
        value: Any = self._take(key, default)
        if key not in self._data:
            return default
        sound = isinstance(value, int) and not isinstance(value, bool)
        if not sound or not lowest <= value <= highest:
            raise self.error(key, f"{value!r}: a whole number from {lowest} to {highest}")
        return int(value)

    def switch(self, key: str, default: bool) -> bool:
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"{value!r}: say true or false")
        return value

    def text(self, key: str, default: str = _MISSING) -> str:
        value = self._take(key, default)
        if not isinstance(value, str) or not value.strip() or len(value) > 200:
            raise self.error(key, f"{value!r}: say a text of at most 200 characters")
        return value

    def words(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._take(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(x, str) for x in value):
            raise self.error(key, f"{value!r}: say a list of names")
        return tuple(value)

    def choice(self, key: str, default: str | None, allowed: tuple[str, ...]) -> Any:
        value = self._take(key, _MISSING if default is None else default)
        if value not in allowed:
            near = difflib.get_close_matches(str(value), allowed, 1)
            told = f"did you mean {near[0]!r}?" if near else f"say one of {', '.join(allowed)}"
            raise self.error(key, f"{value!r}: {told}")
        return value

    def free(self, key: str, default: T, kinds: tuple[type, ...]) -> T | Any:
        """A value that another room reads."""
        value = self._take(key, default)
        if value is not default and not isinstance(value, kinds):
            raise self.error(key, "say a table" + (" or a name" if str in kinds else ""))
        return value

    def table(self, key: str) -> "Table":
        """A table below this one; an empty one where there is none."""
        value = self._take(key, {})
        if not isinstance(value, Mapping):
            raise self.error(key, f"must be a table, [{key}]")
        return Table(value, self._file, self._text, self._below(key), None)

    def named(self, key: str) -> "Iterator[Table]":
        """The tables below one, each with a name of its own: ``[upstreams.shop]``."""
        for name, value in self.table(key)._data.items():
            if not isinstance(value, Mapping):
                raise self.error(key, f"{name} must be a table, [{key}.{name}]")
            yield Table(value, self._file, self._text, f"{self._below(key)}.{name}", None)

    def listed(self, key: str) -> "Iterator[Table]":
        """An array of tables: ``[[events]]``."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(x, Mapping) for x in value):
            raise self.error(key, f"must be an array of tables, [[{key}]]")
        for place, each in enumerate(value):
            yield Table(each, self._file, self._text, self._below(key), place)

    def _below(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _take(self, key: str, default: Any) -> Any:
        self._known.append(key)
        value = self._data.get(key, default)
        if value is _MISSING:
            raise self.error(key, "is missing")
        return value

    def _line(self, key: str) -> int | None:
        """The line of ``key =`` below this table's header, else the header's; at the top, the first
        table of that name."""
        lines = [_HEADER_NOTE.sub("]", line.strip()) for line in self._text.splitlines()]
        start = self._header(lines) if self._path else 0
        if start is None:
            return None
        for number, line in enumerate(lines[start:], start + 1):
            if line.startswith("["):
                break
            if line.partition("=")[0].strip(" \"'") == key:
                return number
        if self._path:
            return start
        tables = (number for number, line in enumerate(lines, 1) if line.startswith("["))
        return next((n for n in tables if lines[n - 1].strip("[]").partition(".")[0] == key), None)

    def _header(self, lines: list[str]) -> int | None:
        """The line of this table's own header."""
        header = f"[{self._path}]" if self._place is None else f"[[{self._path}]]"
        found = [number for number, line in enumerate(lines, 1) if line.replace('"', "") == header]
        place = self._place or 0
        return found[place] if place < len(found) else None
