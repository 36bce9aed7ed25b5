"""What a stretch of records says: rates, shares, latency, retries, and what the runtime was good for.

Every formula is written where its figure is, and together in ``docs/metrics.md``. The counting is
done by the journal, from its rollups where they can answer (`failwise.journal.reader`): a few
questions, and every table of the report is a sum over their rows.

A *call* is a call that somebody asked for. A fallback is a call of its own, as a child: its
requests count, and it counts for its own tool, but not as a further call in the totals.
"""

import datetime
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from failwise.insight.figures import (
    ArgumentErrors,
    Corrections,
    Drag,
    Figures,
    Report,
    Share,
    Worth,
    rate,
)
from failwise.journal.latency import quantiles
from failwise.journal.reader import Filter, Place, Reader, open_reader
from failwise.journal.rollups import DAY, REFUSALS
from failwise.vocabulary.errors import UsageError

By: TypeAlias = Literal[
    "tool", "upstream", "category", "code", "hour", "day", "model", "run", "provider", "arguments"
]
HOURLY: Final = 3 * DAY
"""Seconds up to which a stretch is shown by hour, unless days are asked for; beyond it by day."""
RUNS: Final = 20
"""Runs that are listed: those with the most failures."""
CLUSTERS: Final = 5

_DEFAULT: Final = ("tool", "upstream", "category", "code", "arguments")
_EVERY: Final = (
    "calls", "successes", "first_try", "recovered", "degraded", "refusals", "faults", "repaired",
    "requests", "retried", "retries", "wasted", "duration_ms", "told_waits", "waits_obeyed",
    "waited_ms", "verified", "body_tokens", "fed_tokens",
)  # fmt: skip
_FIGURES: Final = tuple(one.name for one in fields(Figures))[1:13]
_COUNTED: Final = (*(name for name in _FIGURES if name != "faults"), "duration_ms")
_WORTH: Final = (
    "recovered", "degraded", "retries", "wasted", "repaired", "verified", "told_waits",
    "waits_obeyed", "body_tokens", "fed_tokens",
)  # fmt: skip
_SUCCESS: Final = ""

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Latencies: TypeAlias = Mapping[tuple[Any, ...], Mapping[int, int]]


def report(
    journal: Place = None,
    *,
    since: float | None = None,
    until: float | None = None,
    by: By | None = None,
    where: Filter | None = None,
    now: float | None = None,
    clusters: int = CLUSTERS,
) -> Report:
    """Count what a journal holds: its path or URL, one that is open, or None for the usual place.

    `since` (included) and `until` (not included) in epoch seconds. `by` names the only breakdown
    wanted; None gives those by tool, upstream, category, code, arguments, and by hour where the
    stretch is at most three days long, else by day. Hours and days are UTC. `where` keeps to the calls
    that fit. `now` (epoch seconds) is for what is open now. `clusters`: how many of the largest to
    give, 0 for none and no verdict. Raises `ConfigurationError` where there is no journal.
    """
    if by is not None and by not in get_args(By):
        raise UsageError(f"report(by={by!r}): say one of {', '.join(get_args(By))}")
    with open_reader(journal) as reader:
        window = Window(reader, since, until, where or Filter(), by)
        wanted: set[str] = {by} if by else {*_DEFAULT, window.period}
        found = window.report(wanted, now)
        if clusters and where in (None, Filter()):
            from failwise.insight.recorded import clusters as recorded

            seen = recorded(reader, since=since, until=until, brief=True)
            largest = tuple(one for one in seen.clusters if not one.muted)[:clusters]
            found = replace(found, verdict=seen.verdict, clusters=largest)
        return found


class Window:
    """The questions to a journal for one stretch of time and one filter, each asked once."""

    def __init__(
        self,
        reader: Reader,
        since: float | None,
        until: float | None,
        where: Filter,
        by: By | None = None,
    ) -> None:
        self.reader, self.since, self.until, self.where = reader, since, until, where
        self.period: Literal["hour", "day"] = "hour"
        first, last = reader.span(since, until)
        first, last = max(first, since or first), min(last, until or last)
        if by == "day" or (by != "hour" and last - first > HOURLY):
            self.period = "day"
        by_model = ("model",) if by == "model" else ()
        # What rollups cannot answer reads the calls: once for all tables rather than once for each.
        self._timed = not where.rolled_up
        time = (self.period,) if self._timed else ()
        dimensions: tuple[Any, ...] = (*time, "tool", "upstream", *by_model, "asked")
        self._cells: Rows = reader.figures(
            since, until, (*dimensions, "category", "code", "provider"), where, latency=False
        )
        self._latencies = _named(dimensions, reader.latencies(since, until, dimensions, where))
        asked = _asked(self._cells)
        sums = _sums(lambda _: "", asked).get("", dict.fromkeys(_EVERY, 0))
        sums["requests"] = sum(row["requests"] for row in self._cells)
        self.sums: Mapping[str, float] = sums
        self.buckets = _buckets(lambda _: "", _asked(self._latencies)).get("", {})
        self.total = _figures("", sums, self.buckets)

    def report(self, wanted: "set[str]", now: float | None) -> Report:
        """The report with the breakdowns that are wanted."""
        codes = self.shares("code")
        top = tuple(replace(one, example=self._example(one.name)) for one in codes[:3])
        stretches = self.stretches() if wanted & {"hour", "day"} else ()
        arguments = "arguments" in wanted
        return Report(
            self.since,
            self.until,
            self.total,
            self._worth(now),
            self._corrections(),
            top,
            self._drag(),
            tools=self.groups("tool") if "tool" in wanted else (),
            upstreams=self.groups("upstream") if "upstream" in wanted else (),
            models=self.groups("model") if "model" in wanted else (),
            hours=stretches if self.period == "hour" else (),
            days=stretches if self.period == "day" else (),
            runs=self._runs() if "run" in wanted else (),
            categories=self.shares("category") if "category" in wanted else (),
            codes=(*top, *codes[3:]) if "code" in wanted else (),
            providers=self.shares("provider") if "provider" in wanted else (),
            argument_tools=self._argument_errors("tool") if arguments else (),
            argument_parameters=self._argument_errors("parameters") if arguments else (),
            where=said(self.where),
        )

    def groups(self, name: str) -> tuple[Figures, ...]:
        """Figures by tool, upstream or model: fallbacks count for their own."""
        found = self._grouped(lambda row: row[name], self._cells, self._latencies)
        return tuple(sorted(found, key=lambda figures: (-figures.calls, figures.name)))

    def stretches(self) -> tuple[Figures, ...]:
        """By hour or day, named by its beginning in UTC."""
        form = "%Y-%m-%dT%H:00Z" if self.period == "hour" else "%Y-%m-%d"
        by: tuple[Any, ...] = (self.period, "asked")
        question = self.since, self.until, by, self.where
        cells, latencies = self._cells, self._latencies
        if not self._timed:
            cells = self.reader.figures(*question, latency=False, counters=_COUNTED)
            latencies = _named(by, self.reader.latencies(*question))
        found = self._grouped(lambda row: row[self.period], _asked(cells), _asked(latencies))
        return tuple(replace(one, name=moment(float(one.name), form)) for one in found)

    def _grouped(
        self, name: Callable[[Mapping[str, Any]], Any], cells: Rows, latencies: Rows
    ) -> list[Figures]:
        sums, buckets = _sums(name, cells), _buckets(name, latencies)
        return [_figures(str(key), sums[key], buckets.get(key, {})) for key in sorted(sums)]

    def shares(self, name: Literal["category", "code", "provider"]) -> tuple[Share, ...]:
        """The failures by what they were, the most frequent first."""
        ended = _sums(lambda row: row[name], _asked(self._cells))
        met: dict[str, tuple[int, int]] = {}
        for row in self._attempts:
            attempts, cured = met.get(row[name], (0, 0))
            met[row[name]] = attempts + row["attempts"], cured + row["cured"]
        kinds = {key for key, sums in ended.items() if sums["calls"] > sums["successes"]}
        shares = []
        for key in (kinds | set(met)) - {_SUCCESS}:
            sums = ended.get(key, {})
            failed = int(sums.get("calls", 0) - sums.get("successes", 0))
            refusal = bool(sums.get("refusals"))
            if not sums and name != "provider":
                refusal = key.partition(".")[0] in REFUSALS
            shares.append(
                Share(
                    key, failed, rate(failed, self.total.failures), *met.get(key, (0, 0)), refusal
                )
            )
        return tuple(sorted(shares, key=lambda one: (-one.failures, -one.attempts, one.name)))

    @functools.cached_property
    def _attempts(self) -> Rows:
        by: tuple[Any, ...] = ("category", "code", "provider")
        return self.reader.attempts(self.since, self.until, by, self.where)

    def _example(self, code: str) -> str:
        """What the newest failure of a code said; nothing where the records are gone."""
        where = replace(self.where, code=code, asked=True)
        since, until = self.since, self.until
        at = self._last_seen.get(code)
        if self.where == Filter() and at is not None and (until is None or at < until):
            since, until = at, math.nextafter(at, math.inf)  # the one moment is found at once
        for row in self.reader.failures(since, until, 1, where):
            return row["message"] or ""
        return ""

    @functools.cached_property
    def _last_seen(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for row in self.reader.fingerprints(self.since, self.until):
            if row["asked"]:
                found[row["code"]] = max(found.get(row["code"], 0.0), row["last_seen"])
        return found

    def _runs(self) -> tuple[Figures, ...]:
        worst = self.reader.worst_runs(self.since, self.until, self.where, RUNS)
        if not worst:
            return ()
        where = replace(self.where, run=tuple(worst))
        rows = self.reader.figures(self.since, self.until, ("run",), where)
        found = {
            row["run"]: _figures(row["run"], row | {"requests": row["requests"]}, row["latency"])
            for row in rows
        }
        return tuple(found[run] for run in worst if run in found)

    def _drag(self) -> Drag | None:
        total, best = self.total, None
        for tool, sums in _sums(lambda row: row["tool"], _asked(self._cells)).items():
            failures = int(sums["calls"] - sums["successes"])
            if not failures:
                continue
            calls = total.calls - sums["calls"]
            without = (
                rate(total.successes - sums["successes"], calls) if calls else total.success_rate
            )
            points = without - total.success_rate
            drag = Drag(tool, failures, rate(failures, total.failures), without, points)
            if best is None or (drag.points, drag.failures) > (best.points, best.failures):
                best = drag
        return best

    def _worth(self, now: float | None) -> Worth:
        sums = self.sums
        prevented: dict[str, int] = {}
        open_effects = 0
        if self.where == Filter(tool=self.where.tool, run=self.where.run):
            rows = self.reader.prevented(self.since, self.until, where=self.where)
            prevented = {row["state"]: row["calls"] for row in rows}
            effects = self.reader.open_effects(now, limit=1_000_000)
            open_effects = sum(
                self._concerns({"tool": one["tool"], "run": one["run_id"]}) for one in effects
            )
        return Worth(
            **{name: int(sums[name]) for name in _WORTH},
            waited_s=sums["waited_ms"] / 1000,
            prevented=prevented,
            open_effects=open_effects,
        )

    def _concerns(self, row: Mapping[str, Any]) -> bool:
        """It fits what the filter says of tool and run."""
        for name in ("tool", "run"):
            wanted = getattr(self.where, name)
            if wanted is not None and row[name] not in (
                wanted if isinstance(wanted, tuple) else (wanted,)
            ):
                return False
        return True

    def _corrections(self) -> Corrections:
        where = self.where
        if where.of_failures or where.success is not None or where.call_id is not None:
            return Corrections()  # a filter that splits the series
        return Corrections(*self.reader.corrections(self.since, self.until, where))

    def _argument_errors(self, name: Literal["tool", "parameters"]) -> tuple[ArgumentErrors, ...]:
        where = self.where
        if where != Filter(tool=where.tool, model=where.model):
            return ()
        rows = self.reader.argument_errors(self.since, self.until, (name,), where)
        known = [row for row in rows if name == "tool" or row["parameters"] >= 0]
        found = [
            ArgumentErrors(
                str(row[name]), row["calls"], row["wrong"], row["refused"], row["repaired"]
            )
            for row in known
        ]
        if name == "tool":
            found.sort(key=lambda one: (-one.wrong - one.refused, -one.calls, one.name))
        return tuple(found)


def said(where: Filter) -> dict[str, Any]:
    """What a filter says, as data; nothing for no filter."""
    found = {one.name: getattr(where, one.name) for one in fields(Filter)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in found.items()
        if value is not None
    }


def moment(at: float, form: str) -> str:
    """Epoch seconds as text, UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(form)


def _asked(rows: Rows) -> Rows:
    """Without fallbacks."""
    return [row for row in rows if row["asked"]]


def _named(by: Sequence[str], latencies: Latencies) -> Rows:
    return [
        dict(zip(by, key, strict=True)) | {"buckets": buckets} for key, buckets in latencies.items()
    ]


def _sums(
    name: Callable[[Mapping[str, Any]], Any], rows: Iterable[Mapping[str, Any]]
) -> dict[Any, dict[str, float]]:
    """The counters of rows, summed by name."""
    found: dict[Any, dict[str, float]] = {}
    for row in rows:
        key = name(row)
        sums = found.get(key)
        if sums is None:
            found[key] = {counter: row[counter] for counter in _EVERY if counter in row}
        else:
            for counter in sums:
                sums[counter] += row[counter]
    return found


def _buckets(
    name: Callable[[Mapping[str, Any]], Any], rows: Iterable[Mapping[str, Any]]
) -> dict[Any, dict[int, int]]:
    found: dict[Any, dict[int, int]] = {}
    for row in rows:
        counts = found.setdefault(name(row), {})
        for bucket, count in row["buckets"].items():
            counts[bucket] = counts.get(bucket, 0) + count
    return found


def _figures(name: str, sums: Mapping[str, float], buckets: Mapping[int, int]) -> Figures:
    half, most, nearly_all = quantiles(buckets.items(), (0.5, 0.9, 0.99))
    return Figures(
        name,
        **{counter: int(sums[counter]) for counter in _FIGURES},
        mean_ms=rate(sums["duration_ms"], sums["calls"]),
        p50_ms=half,
        p90_ms=most,
        p99_ms=nearly_all,
    )
