"""Two stretches of records side by side: what has changed, and whether it is beyond chance.

Every rate has Wilson's interval, every difference of rates Newcombe's. A table looks at many
differences at once, so each is held to a stricter confidence, ``1 − (1 − confidence) / differences``
(Bonferroni): of tables in which nothing has changed, at most 5 in 100 say of anything that it did.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, Literal, TypeAlias, get_args

from failwise.insight.figures import rate
from failwise.insight.intervals import (
    Interval,
    mean_difference,
    newcombe,
    quantile_interval,
    wilson,
)
from failwise.insight.report import Window, said
from failwise.journal.reader import Filter, Place, open_reader
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

Direction: TypeAlias = Literal["better", "worse", "same"]
Stretch: TypeAlias = tuple[float | None, float | None]
By: TypeAlias = Literal["tool", "upstream", "model", "category", "code", "provider"]

CONFIDENCE: Final = 0.95
_BY: Final = ("tool", "category", "code")
_RATES: Final = (
    # name, counter, of, more is
    ("success_rate", "successes", "calls", "better"),
    ("first_try_rate", "first_try", "calls", "better"),
    ("recovered_rate", "recovered", "calls", ""),
    ("degraded_rate", "degraded", "calls", ""),
    ("fault_rate", "faults", "calls", "worse"),
    ("refusal_rate", "refusals", "calls", ""),
    ("retry_rate", "retried", "calls", "worse"),
)
_QUANTILES: Final = (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99))


@record
class Change:
    """One figure before and after. Of a rate, `part` of `whole` calls; of a duration in ms the wholes
    are the calls it is over.

    `interval` is that of ``after − before`` at the confidence of its table; None where too little
    is known for one. `beyond_chance`: zero lies outside of it (for quantiles: the two intervals do not
    touch). `direction` says what that means where it means something; ``same`` where it is not
    beyond chance.
    """

    name: str
    before: float
    after: float
    part_before: int | None = None
    whole_before: int = 0
    part: int | None = None
    whole: int = 0
    interval_before: Interval | None = None
    interval_after: Interval | None = None
    interval: Interval | None = None
    beyond_chance: bool = False
    direction: Direction | None = "same"

    @property
    def difference(self) -> float:
        """after − before"""
        return self.after - self.before

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; intervals as [low, high]."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            found[one.name] = [value.low, value.high] if isinstance(value, Interval) else value
        return found | {"difference": self.difference}


@record
class Comparison:
    """What has changed from one stretch (`before`, epoch seconds from and until) to another.

    `total` has the rates, the durations and the requests a call; `tools`, `upstreams` and `models` the
    failures of each, a part of its calls; `categories`, `codes` and `providers` those of each kind, a
    part of all calls. What is beyond chance stands first.
    """

    before: Stretch
    after: Stretch
    where: Mapping[str, Any]
    calls_before: int
    calls: int
    confidence: float
    total: tuple[Change, ...]
    tables: Mapping[str, tuple[Change, ...]]

    @property
    def beyond_chance(self) -> tuple[Change, ...]:
        """All changes that chance does not explain."""
        every = (*self.total, *(one for table in self.tables.values() for one in table))
        return tuple(one for one in every if one.beyond_chance)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data with ``schema: 1``."""
        return {
            "schema": 1,
            "before": dict(zip(("since", "until"), self.before, strict=True)),
            "after": dict(zip(("since", "until"), self.after, strict=True)),
            "where": dict(self.where),
            "calls_before": self.calls_before,
            "calls": self.calls,
            "confidence": self.confidence,
            "total": [one.to_dict() for one in self.total],
            "by": {name: [one.to_dict() for one in table] for name, table in self.tables.items()},
        }


def compare(
    journal: Place = None,
    *,
    before: Stretch,
    after: Stretch,
    by: By | None = None,
    where: Filter | None = None,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare two stretches of a journal, each ``(since, until)`` in epoch seconds.

    `by` names the only breakdown wanted; None gives those by tool, category and code. `confidence` is
    that of a whole table. Raises `ConfigurationError` where there is no journal, `UsageError` for
    stretches that overlap or a confidence that is none.
    """
    if by is not None and by not in get_args(By):
        raise UsageError(f"compare(by={by!r}): say one of {', '.join(get_args(By))}")
    if not 0 < confidence < 1:
        raise UsageError(f"compare(confidence={confidence!r}): say a share between 0 and 1")
    if _overlap(before, after):
        raise UsageError("the two stretches overlap: a call must not be counted on both sides")
    where = where or Filter()
    with open_reader(journal) as reader:
        windows = [
            Window(reader, *stretch, where, "model" if by == "model" else None)
            for stretch in (before, after)
        ]
        tables: dict[str, tuple[Change, ...]] = {
            name: _table(name, windows[0], windows[1], confidence)
            for name in ((by,) if by else _BY)
        }
    return Comparison(
        before,
        after,
        said(where),
        windows[0].total.calls,
        windows[1].total.calls,
        confidence,
        _total(windows[0], windows[1], confidence),
        tables,
    )


def _overlap(one: Stretch, other: Stretch) -> bool:
    """They have a moment in common."""
    endless = float("inf")
    first = max(-endless if each[0] is None else each[0] for each in (one, other))
    last = min(endless if each[1] is None else each[1] for each in (one, other))
    return first < last


def _total(before: Window, after: Window, confidence: float) -> tuple[Change, ...]:
    strict = 1 - (1 - confidence) / (len(_RATES) + len(_QUANTILES) + 1)
    found = [
        _rate_change(
            name,
            (getattr(before.total, part), getattr(before.total, whole)),
            (getattr(after.total, part), getattr(after.total, whole)),
            strict,
            more,
        )
        for name, part, whole, more in _RATES
    ]
    found.append(
        Change(
            "amplification",
            before.total.amplification,
            after.total.amplification,
            whole_before=before.total.calls,
            whole=after.total.calls,
            direction=None,
        )
    )
    buckets, earlier = after.buckets, before.buckets
    spread = mean_difference(buckets, earlier, strict)
    beyond = spread is not None and spread.without_zero
    found.append(
        Change(
            "mean_ms",
            before.total.mean_ms,
            after.total.mean_ms,
            interval=spread,
            beyond_chance=beyond,
            direction=_direction(after.total.mean_ms - before.total.mean_ms, "worse", beyond),
            whole_before=before.total.calls,
            whole=after.total.calls,
        )
    )
    for name, share in _QUANTILES:
        one, other = (quantile_interval(each, share, strict) for each in (earlier, buckets))
        apart = bool(one and other and (other.low > one.high or other.high < one.low))
        was, now = getattr(before.total, name), getattr(after.total, name)
        found.append(
            Change(
                name,
                was,
                now,
                interval_before=one,
                interval_after=other,
                beyond_chance=apart,
                direction=_direction(now - was, "worse", apart),
                whole_before=before.total.calls,
                whole=after.total.calls,
            )
        )
    return tuple(found)


def _failures(window: Window, name: By) -> dict[str, tuple[int, int]]:
    """Failures by name, and of how many calls."""
    match name:
        case "tool" | "upstream" | "model":
            return {one.name: (one.failures, one.calls) for one in window.groups(name)}
        case _:
            shares = window.shares(name)
            return {one.name: (one.failures, window.total.calls) for one in shares if one.failures}


def _table(name: By, before: Window, after: Window, confidence: float) -> tuple[Change, ...]:
    was, now = _failures(before, name), _failures(after, name)
    # A kind of failure that is not there was met in no call; a tool that is not there was not called.
    kinds = name in ("category", "code", "provider")
    none_before = (0, before.total.calls if kinds else 0)
    none_after = (0, after.total.calls if kinds else 0)
    names = sorted({*was, *now})
    strict = 1 - (1 - confidence) / max(1, len(names))
    changes = [
        _rate_change(one, was.get(one, none_before), now.get(one, none_after), strict, "worse")
        for one in names
    ]
    return tuple(
        sorted(changes, key=lambda one: (not one.beyond_chance, -abs(one.difference), one.name))
    )


def _rate_change(
    name: str, before: tuple[int, int], after: tuple[int, int], confidence: float, more: str
) -> Change:
    interval = newcombe(*after, *before, confidence)
    beyond = interval.without_zero
    known = bool(before[1] and after[1])
    was, now = rate(*before), rate(*after)
    return Change(
        name,
        was,
        now,
        *before,
        *after,
        interval_before=wilson(*before, confidence),
        interval_after=wilson(*after, confidence),
        interval=interval if known else None,
        beyond_chance=beyond,
        direction=_direction(now - was, more, beyond) if known else None,
    )


def _direction(difference: float, more: str, beyond: bool) -> Direction | None:
    """What a difference means; `more` says what a higher figure is, "" for neither."""
    if not beyond:
        return "same"
    if not more:
        return None
    return "better" if (difference > 0) == (more == "better") else "worse"
