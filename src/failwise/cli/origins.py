"""Where each value of a policy comes from: preset, file and line, provider, tool.

The value in force is `Table.row`'s; here the same layers are walked once more, only to find who
spoke last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

from failwise.cli.configuration import Configuration
from failwise.cli.places import line_of
from failwise.policy import PRESETS, Row, Settings, Table, load
from failwise.policy.table import checked_layer
from failwise.vocabulary import documents
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import ToolSpec

COLUMNS = tuple(field.name for field in fields(Row))
SETTINGS = tuple(field.name for field in fields(Settings))


@record
class Value:
    """A value in force and its origin, such as ``failwise.toml:12`` or ``preset default:19``."""

    value: Any
    origin: str


@record
class _Source:
    """A text with policy tables: `data` stands below `prefix` in it."""

    name: str
    text: str
    prefix: tuple[str, ...]
    data: Mapping[str, Any]

    def origin(self, *path: str) -> str:
        line = line_of(self.text, *self.prefix, *path)
        return f"{self.name}:{line}" if line is not None else self.name


class Policy:
    """A policy with the origin of each of its values.

    `source` is a preset or a TOML file; without one the section of `configuration`, else the default
    preset. Raises `ConfigurationError`.
    """

    def __init__(self, source: str | None, configuration: Configuration | None) -> None:
        given: Any = source
        if source is None and configuration is not None:
            given = configuration.policy()
        try:
            self.table: Table = load(given)
        except ConfigurationError as error:
            raise (configuration.placed(error) if configuration else error) from error
        self.tools: dict[str, ToolSpec] = {}
        if configuration is not None:
            self.tools = {spec.name: spec for spec in configuration.tools()}
        self._configuration = configuration
        self._sources = list(_sources(given, configuration))

    @property
    def name(self) -> str:
        """The last of its sources: what a person would edit."""
        return self._sources[-1].name

    @cached_property
    def keys(self) -> list[str]:
        """The categories in order, each followed by its codes that have a row of their own."""
        found: list[str] = []
        for category in Category:
            found.append(category.value)
            found += sorted(key for key in self.table.base if key.startswith(f"{category}."))
        return found

    def spoke(self, row: Mapping[str, Value]) -> list[str]:
        """The sources that changed a row of the default preset, in order; else that preset."""
        named = {one.origin.partition(":")[0] for one in row.values()}
        names = [source.name for source in self._sources if source.name in named]
        return names[1:] or names

    @property
    def tool_names(self) -> list[str]:
        """The tools that are known here: declared, or with rows of their own."""
        return sorted({*self.tools, *self.table.tools})

    def settings(self) -> dict[str, Value]:
        """The numbers that hold for the whole policy."""
        values: dict[str, Value] = {}
        for name in SETTINGS:
            origin = next(
                (source.origin(name) for source in reversed(self._sources) if name in source.data),
                "built in",
            )
            values[name] = Value(getattr(self.table.settings, name), origin)
        return values

    def row(self, code: str, tool: str = "") -> dict[str, Value]:
        """What happens after a code (or any of a category), column by column."""
        spec = self.tools.get(tool)
        declared = spec.policy if spec is not None else None
        row = self.table.row(code, tool=tool, overrides=(declared,))
        origins = dict(self._spoken(code, tool, declared))
        return {
            column: Value(_plain(getattr(row, column)), origins.get(column, ""))
            for column in COLUMNS
        }

    def _spoken(
        self, code: str, tool: str, declared: Mapping[str, Any] | None
    ) -> Iterator[tuple[str, str]]:
        """(column, origin) in the order of the layers; the last word counts."""
        names = dict.fromkeys((category_of(code).value, code))
        for name in names:
            for source in self._sources:
                for column in _columns(source.data, name):
                    yield column, source.origin(*name.split(".", 1), column)
        for source in self._sources:
            rows = source.data.get("tools", {}).get(tool, {})
            for name in names:
                for column in _columns(rows, name):
                    yield column, source.origin("tools", tool, *name.split(".", 1), column)
        for name in names:
            for column in _columns(declared or {}, name):
                yield column, self._declaration(tool, name, column)

    def _declaration(self, tool: str, name: str, column: str) -> str:
        assert self._configuration is not None
        file = self._configuration
        line = line_of(file.text, "tools", tool, "policy", *name.split(".", 1), column)
        return f"{file.name}:{line}" if line is not None else file.name


def _columns(tables: Mapping[str, Any], name: str) -> list[str]:
    """The columns that tables give a row, by its dotted name."""
    rows = {key: value for key, value in tables.items() if key in set(Category)}
    return list(checked_layer(rows, source="").get(name, ()))


def _plain(value: Any) -> Any:
    return [str(one) for one in value] if isinstance(value, tuple) else value


def _sources(given: Any, configuration: Configuration | None) -> Iterator[_Source]:
    """The texts a policy is made of, from the default preset to the user's own."""
    if given is None or given in PRESETS:
        yield from _presets(given or "default")
        return
    if isinstance(given, Mapping):
        assert configuration is not None
        yield from _presets(given.get("preset", "default"))
        yield _Source(configuration.name, configuration.text, ("policy",), given)
        return
    text = Path(given).read_text("utf-8")
    data = documents.parsed(text, str(given))
    prefix = ("policy",) if "policy" in data else ()
    data = data.get("policy", data)
    yield from _presets(data.get("preset", "default"))
    yield _Source(str(given), text, prefix, data)


def _presets(name: str) -> Iterator[_Source]:
    text, data = documents.read("failwise.policy", f"presets/{name}.toml")
    if name != "default":
        yield from _presets(data.get("preset", "default"))
    yield _Source(f"preset {name}", text, (), data)
