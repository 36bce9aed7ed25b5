"""The forms of `waits.toml`: how a wait is told in headers, in fields of a body, in words; compiled."""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from failwise.vocabulary import documents
from failwise.vocabulary.alternation import any_of
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

FILE: Final = "waits.toml"
_AMOUNT: Final = r"\s{0,2}(\d{1,9}(?:\.\d{1,6})?)\s{0,2}"


@record
class Places:
    """Where a wait may stand below one name: here (`units` with their rank), or deeper."""

    units: list[tuple[int, str, str]]
    below: "dict[str, Places]"


Awaited: TypeAlias = tuple[str, Mapping[int, re.Pattern[str]]]
"""A literal, and the forms that are looked for where it stands, by their place in the file."""


@record
class Phrases:
    """The forms of `waits.toml`, compiled. `need` are the literals of which one stands before a wait,
    `some` finds any of them; `before` has for each the forms that wait for it, by their order."""

    before: tuple[Awaited, ...]
    before_ascii: tuple[Awaited, ...]
    need: tuple[str, ...]
    some: re.Pattern[str]
    amount: re.Pattern[str]
    own: re.Pattern[str]
    named: Mapping[str, str]
    spoken: frozenset[str]
    holders: frozenset[str]
    bare_unit: float
    factors: Mapping[str, float]
    fields: Mapping[str, "Places"]
    headers: tuple[tuple[str, str], ...]
    header_names: frozenset[str]
    buckets: tuple[tuple[str, str], ...]


@functools.cache
def phrases() -> Phrases:
    """The forms, read once. Raises `ConfigurationError` naming what is wrong."""

    seconds = {
        "ns": 1e-9,
        "us": 1e-6,
        "ms": 0.001,
        "s": 1.0,
        "m": 60.0,
        "h": 3_600.0,
        "d": 86_400.0,
    }
    _, data = documents.read("failwise.evidence", FILE)
    try:
        factors = {word: seconds[unit] for unit, words in data["units"].items() for word in words}
        units = "|".join(sorted(map(re.escape, factors), key=len, reverse=True))
        awaited: dict[str, dict[int, re.Pattern[str]]] = {}
        for order, row in enumerate(data["before"]):
            form = re.compile(row["pattern"], re.IGNORECASE)
            for literal in row["need"]:
                awaited.setdefault(literal, {})[order] = form
        return Phrases(
            tuple(awaited.items()),
            tuple((literal, forms) for literal, forms in awaited.items() if literal.isascii()),
            tuple(awaited),
            re.compile(any_of(awaited)),
            re.compile(rf"{_AMOUNT}(?:(?:more )?({units})(?![a-z]))?", re.IGNORECASE),
            re.compile("|".join(data["own"]), re.IGNORECASE),
            {name: unit for unit, names in data["named"].items() for name in names},
            frozenset(data["spoken"]),
            frozenset(data["holders"]),
            seconds[data["bare_unit"]],
            factors,
            _places(data["fields"]),
            tuple((row["name"], row["unit"]) for row in data["headers"]),
            frozenset(
                {"ratelimit"}
                | {row["name"] for row in data["headers"]}
                | {row["reset"] for row in data["buckets"]}
            ),
            tuple((row["reset"], row["remaining"]) for row in data["buckets"]),
        )
    except (KeyError, re.error) as error:
        raise ConfigurationError(f"{error}", file=FILE) from error


def _places(rows: list[dict[str, Any]]) -> Mapping[str, Places]:
    """The paths as a tree, so that what a body does not have is not looked for."""
    root = Places([], {})
    for rank, row in enumerate(rows):
        place = root
        for step in row["path"]:
            place = place.below.setdefault(step, Places([], {}))
        place.units.append((rank, ".".join(row["path"]), row["unit"]))
    return root.below
