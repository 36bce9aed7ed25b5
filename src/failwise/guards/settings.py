"""The guards' figures as typed records, read from TOML and validated at load."""

import functools
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

UNLIMITED = "unlimited"


@record
class RetryLimits:
    """How many repeats an upstream may be burdened with: see `defaults.toml` for each figure."""

    capacity: int
    transient_cost: int
    throttle_cost: int
    success_gain: int
    floor: int
    first_share: float
    success_share: float
    window: float
    parallel_share: float
    parallel_floor: int


@record
class BreakerLimits:
    """When the circuit opens and for how long: see `defaults.toml` for each figure."""

    consecutive: int
    chance: float
    lone_attempts: int
    ratio: float
    sample: int
    minimum: int
    busy_sample: int
    busy_seconds: float
    open_seconds: float
    open_limit: float
    memory: float


@record
class SharedLimits:
    """How guards in a Redis or Valkey server are asked: see `defaults.toml` for each figure."""

    slow: float
    connect: float
    probe: float
    poll: float
    lease: float
    keep: float


@record
class GuardSettings:
    """All figures of the guards. `concurrency` is None where it is not limited.

    `upstreams` holds the complete settings of those that have values of their own.
    """

    retries: RetryLimits
    breaker: BreakerLimits
    cool_down_limit: float
    concurrency: int | None
    waiting: int
    keys: int
    shared: SharedLimits
    upstreams: Mapping[str, "GuardSettings"]

    def of(self, upstream: str) -> "GuardSettings":
        """The settings that hold for one upstream."""
        return self.upstreams.get(upstream, self)


# section → name → (lowest, highest, whole number)
_RANGES: Mapping[str, Mapping[str, tuple[float, float, bool]]] = {
    "retries": {
        "capacity": (0, 1_000_000, True),
        "transient_cost": (0, 1_000_000, True),
        "throttle_cost": (0, 1_000_000, True),
        "success_gain": (0, 1_000_000, True),
        "floor": (0, 1_000_000, True),
        "first_share": (0, 10, False),
        "success_share": (0, 10, False),
        "window": (0.1, 3600, False),
        "parallel_share": (0, 1, False),
        "parallel_floor": (0, 1_000_000, True),
    },
    "breaker": {
        "consecutive": (1, 1_000_000, True),
        "chance": (1e-12, 1, False),
        "lone_attempts": (1, 1_000_000, True),
        "ratio": (0.01, 1, False),
        "sample": (1, 1000, True),
        "minimum": (1, 1000, True),
        "busy_sample": (1, 10_000, True),
        "busy_seconds": (0.001, 3600, False),
        "open_seconds": (0.001, 86_400, False),
        "open_limit": (0.001, 86_400, False),
        "memory": (1, 86_400, False),
    },
    "cool_down": {"limit": (0, 31_536_000, False)},
    "concurrency": {"limit": (1, 1_000_000, True), "waiting": (0, 1_000_000, True)},
    "memory": {"keys": (1, 10_000_000, True)},
    "shared": {
        "slow": (0.001, 10, False),
        "connect": (0.001, 60, False),
        "probe": (0.01, 3600, False),
        "poll": (0.001, 10, False),
        "lease": (0.1, 3600, False),
        "keep": (1, 31_536_000, False),
    },
}


@functools.cache
def default_settings() -> GuardSettings:
    """The figures of `defaults.toml`, read once."""
    text, data = documents.read("failwise.guards", "defaults.toml")
    return read_settings(data, file="guards/defaults.toml", text=text)


def parse_settings(
    text: str, *, file: str = "", base: GuardSettings | None = None
) -> GuardSettings:
    """Settings from TOML text; what it leaves out comes from `base`.

    Raises `ConfigurationError` naming file, line, field, and what is allowed there.
    """
    return read_settings(documents.parsed(text, file), file=file, text=text, base=base)


def read_settings(
    data: Mapping[str, Any],
    *,
    file: str = "",
    text: str = "",
    base: GuardSettings | None = None,
) -> GuardSettings:
    """Settings from a mapping, for example the section ``[guards]`` of a larger file.

    `text` is that file's text, for the line numbers of errors.
    """
    reader = _Reader(file, text)
    own = dict(data)
    upstreams = own.pop("upstreams", {})
    settings = reader.settings((), own, base)
    if not isinstance(upstreams, Mapping):
        raise reader.error(("upstreams",), "must be a table of upstream names")
    each = {
        name: reader.settings(("upstreams", name), rows, settings)
        for name, rows in upstreams.items()
    }
    return _with_upstreams(settings, each)


def _with_upstreams(
    settings: GuardSettings, upstreams: Mapping[str, GuardSettings]
) -> GuardSettings:
    values = {f.name: getattr(settings, f.name) for f in fields(settings)}
    return GuardSettings(**(values | {"upstreams": {**settings.upstreams, **upstreams}}))


class _Reader:
    """Reads one file's tables and knows where each value stands in it."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._lines = file, text.splitlines()

    def settings(
        self, path: tuple[str, ...], data: Any, base: GuardSettings | None
    ) -> GuardSettings:
        if not isinstance(data, Mapping):
            raise self.error(path, "must be a table")
        for section in data:
            if section not in _RANGES:
                raise self.error(
                    (*path, str(section)),
                    f"unknown section; those there are: {', '.join(_RANGES)}, upstreams",
                )
        values = {
            section: self._section((*path, section), data.get(section, {}), section, base)
            for section in _RANGES
        }
        breaker = BreakerLimits(**values["breaker"])
        if breaker.minimum > breaker.sample:
            raise self.error(
                (*path, "breaker", "minimum"),
                f"{breaker.minimum} is more than the {breaker.sample} outcomes of `sample`",
            )
        return GuardSettings(
            retries=RetryLimits(**values["retries"]),
            breaker=breaker,
            cool_down_limit=values["cool_down"]["limit"],
            concurrency=values["concurrency"]["limit"],
            waiting=values["concurrency"]["waiting"],
            keys=values["memory"]["keys"],
            shared=SharedLimits(**values["shared"]),
            upstreams=base.upstreams if base is not None and not path else {},
        )

    def _section(
        self, path: tuple[str, ...], data: Any, section: str, base: GuardSettings | None
    ) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise self.error(path, "must be a table")
        ranges = _RANGES[section]
        for name in data:
            if name not in ranges:
                raise self.error(
                    (*path, str(name)), f"unknown field; those there are: {', '.join(ranges)}"
                )
        values = _section_of(base, section) if base is not None else {}
        for name, (lowest, highest, whole) in ranges.items():
            if name in data:
                place = (*path, name)
                values[name] = self._number(place, data[name], lowest, highest, whole)
            elif base is None:
                raise self.error(path, f"`{name}` is missing")
        return values

    def _number(
        self, path: tuple[str, ...], value: Any, lowest: float, highest: float, whole: bool
    ) -> float | int | None:
        if value == UNLIMITED and path[-2:] == ("concurrency", "limit"):
            return None
        right = isinstance(value, int) if whole else isinstance(value, int | float)
        if not right or isinstance(value, bool) or not lowest <= value <= highest:
            kind = "a whole number" if whole else "a number"
            raise self.error(path, f"{value!r}: must be {kind} from {lowest:g} to {highest:g}")
        number: float = value
        return number

    def error(self, path: tuple[str, ...], reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"[guards] {'.'.join(path)}: {reason}", file=self._file, line=self._line(path)
        )

    def _line(self, path: tuple[str, ...]) -> int | None:
        """The line of a field: the first `name =` after its table's header, else the header."""
        header: int | None = None
        section, name = (path[-2] if len(path) > 1 else ""), path[-1]
        for number, line in enumerate(self._lines, 1):
            plain = line.strip().replace('"', "").replace("'", "")
            if plain.startswith("["):
                title = plain.strip("[] ").split("]")[0]
                inside = title == ".".join(path[:-1]) or title.endswith("." + section)
                inside = inside or (bool(section) and title == section and len(path) == 2)
                if title == ".".join(path) or title == name:
                    return number
                header = number if inside else None
            elif header is not None and plain.partition("=")[0].strip() == name:
                return number
        return header


def _section_of(settings: GuardSettings, section: str) -> dict[str, Any]:
    match section:
        case "retries" | "breaker" | "shared":
            part = getattr(settings, section)
            return {f.name: getattr(part, f.name) for f in fields(part)}
        case "cool_down":
            return {"limit": settings.cool_down_limit}
        case "concurrency":
            return {"limit": settings.concurrency, "waiting": settings.waiting}
        case _:
            return {"keys": settings.keys}
