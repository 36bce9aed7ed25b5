"""What is compared: Failwise itself, parts of it switched off, and other people's strategies, as data."""

import functools
from collections.abc import Mapping
from typing import Any, TypeAlias

from failwise.simulation.document import Table
from failwise.simulation.scenario import Scenario
from failwise.vocabulary import documents
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

ANSWERS = ("refused", "error", "unavailable", "throttled", "no", "silent")


@record
class Quota:
    """A bucket of tokens that repeats pay from, as AWS SDKs have it: see ``contenders.toml``."""

    capacity: int
    cost: int
    silent_cost: int
    throttle_cost: int
    gain: int


@record
class Retry:
    """Another library's strategy: see ``contenders.toml`` for each field."""

    name: str
    titles: Mapping[str, str]
    tries: int
    base: float
    throttle_base: float
    multiplier: float
    cap: float
    jitter: str
    repeats: frozenset[str]
    honours_wait: bool
    sends_key: bool
    quota: Quota | None


@record
class Failwise:
    """The real machine, with parts of its policy and guards changed.

    `guarded` false: every request is let through. `jitter` overrides the policy's.
    """

    name: str
    titles: Mapping[str, str]
    policy: Mapping[str, Any]
    guards: Mapping[str, Any]
    guards_shared: bool
    guarded: bool
    jitter: float | None


Contender: TypeAlias = Retry | Failwise


@functools.cache
def _own() -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    return documents.read("failwise.simulation", "contenders.toml")


def contender(name: str, scenario: Scenario) -> Contender:
    """One by its name: the scenario's own, else one that comes with the package.

    Raises `UsageError` where there is none, `ConfigurationError` where it is wrong.
    """
    if name in scenario.contenders:
        return _read(name, scenario.contenders, scenario.file, scenario.text, "contenders.")
    text, own = _own()
    if name not in own:
        known = ", ".join([*own, *scenario.contenders])
        raise UsageError(f"nothing to compare is called {name!r}; known: {known}")
    return _read(name, own, "contenders.toml", text, "")


def names() -> tuple[str, ...]:
    """Those that come with the package."""
    return tuple(_own()[1])


def title(contender: Contender, lang: Language) -> str:
    """What people call it."""
    return contender.titles.get(lang) or contender.titles["en"]


def _read(name: str, data: Mapping[str, Any], file: str, text: str, prefix: str) -> Contender:
    if not isinstance(data[name], Mapping):
        raise Table({}, file, text, prefix + name, None).error("kind", "must be a table")
    table = Table(data[name], file, text, prefix + name, None)
    kind = table.choice("kind", None, ("retry", "failwise"))
    english = table.text("title", name)
    titles = {"en": english, "zh": table.text("title_zh", english)}
    made: Contender
    if kind == "failwise":
        made = Failwise(
            name,
            titles,
            table.free("policy", {}, (Mapping,)),
            table.free("guards", {}, (Mapping,)),
            table.switch("guards_shared", False),
            table.switch("guarded", True),
            table.number("jitter", None, 0.0, 1.0),
        )
    else:
        base = table.number("base", 1.0, 0.0, 3600.0)
        repeats = table.words("repeats", ANSWERS)
        for answer in repeats:
            if answer not in ANSWERS:
                raise table.error("repeats", f"{answer!r}: say some of {', '.join(ANSWERS)}")
        made = Retry(
            name,
            titles,
            table.whole("tries", 3, 1, 1000),
            base,
            table.number("throttle_base", base, 0.0, 3600.0),
            table.number("multiplier", 2.0, 1.0, 100.0),
            table.number("cap", 60.0, 0.0, 86_400.0),
            table.choice("jitter", "none", ("none", "full", "added")),
            frozenset(repeats),
            table.switch("honours_wait", False),
            table.switch("sends_key", False),
            _quota(table.table("quota")) if "quota" in data[name] else None,
        )
    if "quota" not in data[name]:
        table.free("quota", None, (Mapping,))
    table.finish()
    return made


def _quota(table: Table) -> Quota:
    cost = table.whole("cost", 5, 0, 1_000_000)
    quota = Quota(
        table.whole("capacity", 500, 0, 1_000_000_000),
        cost,
        table.whole("silent_cost", cost, 0, 1_000_000),
        table.whole("throttle_cost", cost, 0, 1_000_000),
        table.whole("gain", 1, 0, 1_000_000),
    )
    table.finish()
    return quota
