"""The policy table: rows per category and code, read from TOML, validated, merged by column.

Layers, later ones win column by column: the preset, the file's own rows, ``[providers.NAME.…]``,
``[tools.NAME.…]``, the tool's own declaration, the call's own overrides. In each layer a category's
row comes before its code's row.
"""

import difflib
import functools
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Action, Category
from failwise.vocabulary.records import record

logger = logging.getLogger("failwise")

PRESETS = ("default", "interactive", "batch")

Columns = dict[str, Any]
"""Some columns of a row, checked."""
Layer = dict[str, Columns]
"""Columns by category (``network``) or code (``network.dns``)."""


@record
class Row:
    """One row of the table; the columns are explained on top of ``presets/default.toml``."""

    strategy: str
    base: float
    multiplier: float
    cap: float
    retries: int
    retries_read: int
    jitter: float
    refresh: bool
    repair: bool
    fallback: bool
    interrupt: str
    interrupt_unless_worked: bool
    then: tuple[Action, Action]

    def delay(self, number: int) -> float:
        """Seconds before retry `number` (1, 2, ...), without jitter."""
        if self.strategy == "none":
            return 0.0
        if self.strategy == "fixed":
            delay = self.base
        elif self.strategy == "linear":
            delay = self.base * number
        else:
            delay = self.base * self.multiplier ** min(number - 1, 64)
        return min(delay, self.cap)


@record
class Settings:
    """The numbers that hold for the whole policy; seconds, shares of 1, counts."""

    retries_ceiling: int = 3
    wait_ceiling: float = 30.0
    late_share: float = 0.1
    late_limit: float = 1.0
    retry_not_sent: bool = True
    timeout_growth: float = 1.5


@dataclass(slots=True)
class Table:
    """A policy as loaded: settings, and the layers of rows with where each value comes from."""

    name: str
    settings: Settings
    base: Layer
    providers: dict[str, Layer]
    tools: dict[str, Layer]
    origin: dict[str, str]
    upstreams: dict[str, int] = field(default_factory=dict)
    """Retries at most towards an upstream: 0 where a gateway repeats already."""

    def row(
        self,
        code: str,
        *,
        provider: str | None = None,
        tool: str = "",
        overrides: tuple[Mapping[str, Any] | None, ...] = (),
    ) -> Row:
        """The row in force for a code, after all layers."""
        category = category_of(code).value
        columns: Columns = {}
        for layer in self._layers(provider, tool, overrides):
            columns.update(layer.get(category, ()))
            columns.update(layer.get(code, ()))
        return Row(**columns)

    def _layers(
        self, provider: str | None, tool: str, overrides: tuple[Mapping[str, Any] | None, ...]
    ) -> Iterator[Layer]:
        yield self.base
        if provider and provider in self.providers:
            yield self.providers[provider]
        if tool in self.tools:
            yield self.tools[tool]
        for override in overrides:
            if override:
                yield checked_layer(override, source="policy=")


def load(
    source: "str | Path | Mapping[str, Any] | None" = None, *, jitter: float | None = None
) -> Table:
    """Read a policy: a preset's name, a TOML file's path, or the parsed tables.

    `jitter` overrides that column in every row (0 makes every delay exact). Raises
    `ConfigurationError` with file, line and what to write instead.
    """
    if source is None:
        source = "default"
    if isinstance(source, Mapping):
        table = _build(source, name="policy", text="")
    elif str(source) in PRESETS:
        table = _preset(str(source))
    else:
        table = _file(Path(source))
    if jitter is not None:
        _check("jitter", jitter, _Place("policy", "", "jitter"))
        table = Table(
            table.name,
            table.settings,
            dict(table.base),
            table.providers,
            table.tools,
            table.origin,
            table.upstreams,
        )
        for key, columns in table.base.items():
            table.base[key] = {**columns, "jitter": jitter} if "jitter" in columns else columns
    return table


@functools.cache
def _preset(name: str) -> Table:
    text, data = documents.read("failwise.policy", f"presets/{name}.toml")
    return _build(data, name=f"{name}.toml", text=text)


def _file(path: Path) -> Table:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot be read ({error.strerror}); give a TOML file or one of {', '.join(PRESETS)}",
            file=str(path),
        ) from error
    data = documents.parsed(text, str(path))
    return _build(data.get("policy", data), name=str(path), text=text)


def _build(data: Mapping[str, Any], *, name: str, text: str) -> Table:
    """Lay the rows of `data` over its preset's."""
    place = _Place(name, text, "")
    preset = data.get("preset", None if name == "default.toml" else "default")
    if preset is None:
        table = Table(name, Settings(), {}, {}, {}, {})
    elif isinstance(preset, str) and preset in PRESETS and preset != name.removesuffix(".toml"):
        parent = _preset(preset)
        table = Table(
            name,
            parent.settings,
            dict(parent.base),
            dict(parent.providers),
            dict(parent.tools),
            dict(parent.origin),
            dict(parent.upstreams),
        )
    else:
        raise place.at("preset").error(f"preset = {preset!r}: say one of {', '.join(PRESETS)}")
    given: set[str] = set()
    settings: dict[str, Any] = {f.name: getattr(table.settings, f.name) for f in fields(Settings)}
    for key, value in data.items():
        if key == "preset":
            continue
        if key in settings:
            _check_setting(key, value, place.at(key))
            settings[key] = value
            table.origin[key] = name
        elif key in ("providers", "tools"):
            group = table.providers if key == "providers" else table.tools
            if not isinstance(value, Mapping) or not all(
                isinstance(rows, Mapping) for rows in value.values()
            ):
                raise place.at(key).error(f"{key} holds tables, such as [{key}.NAME.network]")
            for who, tables in value.items():
                group[who] = dict(group.get(who, {}))
                given |= _merge(group[who], tables, place.at(f"{key}.{who}"))
        elif key == "upstreams":
            table.upstreams.update(_upstreams(value, place.at(key)))
        elif key in set(Category):
            given |= _merge(table.base, {key: value}, place)
        else:
            known = [*settings, "preset", "providers", "tools", "upstreams", *Category]
            raise place.at(key).error(f"unknown key {key!r}{_nearest(key, known)}")
    table.settings = Settings(**settings)
    for key in table.base:
        if key in given or key not in table.origin:
            table.origin[key] = name
    _clamp(table, given)
    for category in Category:
        if missing := {f.name for f in fields(Row)} - set(table.base.get(category, ())):
            raise place.at(category).error(f"[{category}] lacks {', '.join(sorted(missing))}")
    return table


def _upstreams(value: Any, place: "_Place") -> dict[str, int]:
    """``[upstreams.NAME] retries = 0`` → the most retries towards each."""
    if not isinstance(value, Mapping):
        raise place.error("upstreams holds tables, such as [upstreams.gateway] retries = 0")
    most = {}
    for name, columns in value.items():
        here = place.at(name)
        if not isinstance(columns, Mapping) or set(columns) != {"retries"}:
            raise here.error(f"[upstreams.{name}] takes one key, retries, a whole number")
        most[name] = _check("retries", columns["retries"], here.at("retries"))
    return most


def _merge(layer: Layer, tables: Mapping[str, Any], place: "_Place") -> set[str]:
    """Lay columns over a layer's; the keys that were given."""
    given = set()
    for key, columns in _flatten(tables, place):
        if "retries" in columns:  # said once, it holds for reads too
            columns.setdefault("retries_read", columns["retries"])
        layer[key] = {**layer.get(key, {}), **columns}
        given.add(key)
    return given


def checked_layer(tables: Mapping[str, Any], *, source: str) -> Layer:
    """Overrides of a tool or call (``{"network": {"retries": 1}}``), checked like a file's rows."""
    layer: Layer = {}
    _merge(layer, tables, _Place(source, "", ""))
    return layer


def checked_overrides(tables: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The overrides of a tool or a call as they are. Raises `ConfigurationError` for wrong ones."""
    if tables is not None:
        if not isinstance(tables, Mapping):
            raise ConfigurationError(
                f"policy={tables!r}: give rows such as {{'network': {{'retries': 1}}}}"
            )
        checked_layer(tables, source="policy=")
    return tables


def _flatten(tables: Mapping[str, Any], place: "_Place") -> Iterator[tuple[str, Columns]]:
    """``{"network": {"retries": 1, "dns": {...}}}`` → (network, ...), (network.dns, ...)."""
    for key, value in tables.items():
        here = place.at(key)
        if category_of(key) is Category.UNKNOWN and key != "unknown":
            raise here.error(f"unknown category {key!r}{_nearest(key, list(Category))}")
        if not isinstance(value, Mapping):
            raise here.error(f"{key} must be a table of columns, such as {{ retries = 1 }}")
        columns: Columns = {}
        for column, setting in value.items():
            if isinstance(setting, Mapping):
                code = {f"{key}.{column}": setting}
                for name, row in code.items():
                    yield name, _columns(row, here.at(column))
            else:
                columns[column] = _check(column, setting, here.at(column))
        if columns:
            yield key, columns


def _columns(row: Mapping[str, Any], place: "_Place") -> Columns:
    return {name: _check(name, value, place.at(name)) for name, value in row.items()}


def _clamp(table: Table, given: set[str]) -> None:
    """Hold every row to the ceiling; a row that the file itself sets too high is told of, once."""
    ceiling = table.settings.retries_ceiling
    for layer in (table.base, *table.providers.values(), *table.tools.values()):
        for key, columns in list(layer.items()):
            for name in ("retries", "retries_read"):
                wanted = columns.get(name, 0)
                if wanted > ceiling:
                    layer[key] = {**layer[key], name: ceiling}
                    if key in given:
                        logger.warning(
                            "policy %s: [%s] %s = %d is above retries_ceiling and counts as %d",
                            table.name, key, name, wanted, ceiling,
                        )  # fmt: skip


@record
class _Place:
    """Where a value stands, so that an error can name the line."""

    file: str
    text: str
    path: str

    def at(self, key: str) -> "_Place":
        return _Place(self.file, self.text, f"{self.path}.{key}" if self.path else key)

    def error(self, reason: str) -> ConfigurationError:
        return ConfigurationError(reason, file=self.file, line=self._line())

    def _line(self) -> int | None:
        """The line of ``path`` in the file: the key below its table's header, else the header."""
        parts = self.path.split(".")
        bare = self.text.replace('"', "").splitlines()
        for size in range(len(parts), -1, -1):
            header = f"[{'.'.join(parts[:size])}]"
            start = 0 if size == 0 else next((n for n, x in enumerate(bare, 1) if x.strip().startswith(header)), None)  # fmt: skip
            if start is None:
                continue
            if size == len(parts):
                return start
            key = ".".join(parts[size:])
            for number, line in enumerate(bare[start:], start + 1):
                if line.lstrip().startswith("["):
                    break
                if re.match(rf"\s*{re.escape(key)}(\s*=|\.)", line):
                    return number
            return start or None
        return None


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, [str(name) for name in known], 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(map(str, known))}"


_STRATEGIES = ("none", "fixed", "linear", "exponential")
_NUMBERS = {"base": 0.0, "multiplier": 1.0, "cap": 0.0, "jitter": 0.0}
_COUNTS = ("retries", "retries_read")
_SWITCHES = ("refresh", "repair", "fallback", "interrupt_unless_worked")


def _check(column: str, value: Any, place: _Place) -> Any:
    """One column's value, checked and in its final form."""
    if column == "strategy":
        if value not in _STRATEGIES:
            raise place.error(f"strategy = {value!r}: say one of {', '.join(_STRATEGIES)}")
    elif column in _NUMBERS:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or value < _NUMBERS[column]
        ):
            raise place.error(f"{column} = {value!r}: say a number, at least {_NUMBERS[column]:g}")
        if column == "jitter" and value > 1:
            raise place.error(f"jitter = {value!r}: say a share from 0 to 1")
        return float(value)
    elif column in _COUNTS:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise place.error(f"{column} = {value!r}: say a whole number, 0 or more")
    elif column in _SWITCHES:
        if not isinstance(value, bool):
            raise place.error(f"{column} = {value!r}: say true or false")
    elif column == "interrupt":
        if value not in ("", "run", "credential"):
            raise place.error(f'interrupt = {value!r}: say "", "run" or "credential"')
    elif column == "then":
        return _then(value, place)
    else:
        raise place.error(
            f"unknown column {column!r}{_nearest(column, [f.name for f in fields(Row)])}"
        )
    return value


def _then(value: Any, place: _Place) -> tuple[Action, Action]:
    names = [value, value] if isinstance(value, str) else value
    try:
        first, second = (Action(name) for name in names)
    except (ValueError, TypeError) as error:
        raise place.error(f"then = {value!r}: say one or two of {', '.join(Action)}") from error
    return first, second


def _check_setting(name: str, value: Any, place: _Place) -> None:
    if name == "retry_not_sent":
        if not isinstance(value, bool):
            raise place.error(f"{name} = {value!r}: say true or false")
    elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise place.error(f"{name} = {value!r}: say a number, 0 or more")
    elif name == "retries_ceiling" and not isinstance(value, int):
        raise place.error(f"{name} = {value!r}: say a whole number")
    elif name == "timeout_growth" and value < 1:
        raise place.error(f"{name} = {value!r}: say a number, at least 1")
