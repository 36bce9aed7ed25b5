"""What a stretch of records says: rates, shares, latency, retries, duplicates.

Every formula is written where its figure is, and together in ``docs/metrics.md``. The counting is done
in SQL with GROUP BY, the calls once by tool, hour and latency bucket; the tables are sums over those
counts.

A *call* is a call that somebody asked for. A fallback is a call of its own, as a child: its
requests count, and it counts for its own tool, but not as a further call in the totals.
"""

import datetime
import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import add
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from failwise.insight.figures import REFUSALS, Corrections, Drag, Figures, Report, Share, rate
from failwise.journal.latency import quantiles
from failwise.journal.read import Place, Source, opened
from failwise.vocabulary.errors import UsageError

By: TypeAlias = Literal["tool", "hour", "day", "category", "code", "provider"]

_REFUSED = "category IN (" + ", ".join(f"'{category.value}'" for category in REFUSALS) + ")"
_SHARES = ("category", "code", "provider")


def report(
    journal: Place = None,
    *,
    since: float | None = None,
    until: float | None = None,
    by: By | None = None,
    now: float | None = None,
) -> Report:
    """Count what a journal holds: a `Journal`, the path of one, or None for the usual place.

    `since` (included) and `until` (not included) in epoch seconds. `by` names the only breakdown
    wanted; None gives those by tool, hour, category and code. Hours and days are UTC. `now` (epoch
    seconds) is for what is open now. Raises `ConfigurationError` where there is no journal.
    """
    if by is not None and by not in get_args(By):
        raise UsageError(f"report(by={by!r}): say one of {', '.join(get_args(By))}")
    wanted = (by,) if by else ("tool", "hour", "category", "code")
    with opened(journal) as source:
        window = _Window(source, since, until)
        shares = {name: window.shares(name) for name in _SHARES if name in {*wanted, "code"}}
        return Report(
            since,
            until,
            window.total,
            window.corrections(),
            window.prevented(),
            _open_effects(source, now),
            shares["code"][:3],
            window.drag(),
            tools=window.tools() if "tool" in wanted else (),
            hours=window.stretches(3_600, "%Y-%m-%dT%H:00Z") if "hour" in wanted else (),
            days=window.stretches(86_400, "%Y-%m-%d") if "day" in wanted else (),
            categories=shares.get("category", ()),
            codes=shares["code"] if "code" in wanted else (),
            providers=shares.get("provider", ()),
        )


_HOUR = 3_600
_CUBE = f"""
SELECT tool, CAST(started / {_HOUR} AS INTEGER), parent_id IS NULL, latency_bucket,
  count(*), sum(success),
  sum(success AND degraded_to IS NULL AND failed_attempts = 0),
  sum(success AND degraded_to IS NULL AND failed_attempts > 0),
  sum(success AND degraded_to IS NOT NULL),
  sum(NOT success AND coalesce({_REFUSED}, 0)),
  sum(NOT success AND NOT coalesce({_REFUSED}, 0)),
  sum(repairs > 0), sum(sent), sum(sent > 1), sum(max(sent - 1, 0)),
  sum(CASE WHEN success THEN 0 ELSE max(sent - 1, 0) END),
  sum(duration_ms)
FROM calls WHERE {{where}} GROUP BY 1, 2, 3, 4
"""  # noqa: S608 (constants only)

_CORRECTIONS = """
WITH series AS (
  SELECT run_id, tool, success, category, coalesce(sum(success) OVER (
      PARTITION BY run_id, tool ORDER BY started, id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS part
  FROM calls WHERE {where} AND run_id <> '' AND (run_id, tool) IN (
      SELECT run_id, tool FROM calls WHERE {where} AND category = 'model_output')
), counted AS (
  SELECT sum(NOT success AND category = 'model_output') AS rounds, max(success) AS corrected
  FROM series GROUP BY run_id, tool, part
)
SELECT coalesce(sum(corrected), 0), coalesce(sum(NOT corrected), 0),
  coalesce(avg(CASE WHEN corrected THEN rounds END), 0.0) FROM counted WHERE rounds > 0
"""


class _Cell(NamedTuple):
    """Calls of one tool, hour and latency bucket. `counts` are the columns of `_CUBE`, in the order
    of `Figures`; the last is the sum of durations."""

    tool: str
    hour: int
    asked: bool
    bucket: int
    counts: list[float]


_REQUESTS = 8
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class _Window:
    """The questions, for one stretch of time."""

    def __init__(self, source: Source, since: float | None, until: float | None) -> None:
        self._source = source
        self._between: tuple[float, float] = (
            float("-inf") if since is None else since,
            float("inf") if until is None else until,
        )

    _within = "started >= ? AND started < ?"
    _asked = _within + " AND parent_id IS NULL"

    def _rows(self, sql: str, times: int = 1) -> list[Any]:
        return self._source.rows(sql, self._between * times)

    @functools.cached_property
    def _cube(self) -> list[_Cell]:
        """The calls counted once by tool, hour and bucket: every table is a sum over its cells."""
        return [
            _Cell(tool, hour, bool(asked), bucket, counts)
            for tool, hour, asked, bucket, *counts in self._rows(_CUBE.format(where=self._within))
        ]

    def _figures(self, name: Callable[[_Cell], str], cells: Iterable[_Cell]) -> list[Figures]:
        sums: dict[str, list[float]] = {}
        buckets: dict[str, list[tuple[int, int]]] = {}
        for cell in cells:
            key = name(cell)
            before = sums.get(key)
            counts = cell.counts
            sums[key] = [*map(add, before, counts)] if before else counts
            buckets.setdefault(key, []).append((cell.bucket, int(counts[0])))
        found: list[Figures] = []
        for key, row in sorted(sums.items()):
            values: list[Any] = [key, *map(int, row[:-1]), rate(row[-1], row[0])]
            values += quantiles(buckets[key], (0.5, 0.9, 0.99))
            found.append(Figures(*values))
        return found

    def _asked_cells(self) -> list[_Cell]:
        return [cell for cell in self._cube if cell.asked]

    @functools.cached_property
    def total(self) -> Figures:
        found = self._figures(lambda _: "", self._asked_cells()) or [Figures("")]
        requests = int(sum(cell.counts[_REQUESTS] for cell in self._cube))
        return replace(found[0], requests=requests)

    def tools(self) -> tuple[Figures, ...]:
        found = self._figures(lambda cell: cell.tool, self._cube)
        return tuple(sorted(found, key=lambda figures: (-figures.calls, figures.name)))

    def stretches(self, seconds: int, form: str) -> tuple[Figures, ...]:
        """By hour or day: `seconds` long, named by its beginning in UTC."""

        def name(cell: _Cell) -> str:
            began = cell.hour * _HOUR // seconds * seconds
            return (_EPOCH + datetime.timedelta(seconds=began)).strftime(form)

        return tuple(self._figures(name, self._asked_cells()))

    def shares(self, column: str) -> tuple[Share, ...]:
        ended = self._rows(
            f"SELECT {column}, count(*), max(message), max({_REFUSED}) FROM calls"  # noqa: S608
            f" WHERE {self._asked} AND NOT success AND {column} IS NOT NULL GROUP BY 1"
        )
        met: dict[str, tuple[int, int]] = {}
        if column != "provider":  # attempts do not keep it
            for name, count, cured in self._rows(
                f"SELECT attempts.{column}, count(*), sum(calls.success) FROM attempts"  # noqa: S608
                " JOIN calls ON calls.id = attempts.call WHERE calls.started >= ?"
                f" AND calls.started < ? AND attempts.{column} IS NOT NULL GROUP BY 1"
            ):
                met[name] = count, cured
        failures = self.total.failures
        shares = [
            Share(
                name,
                count,
                rate(count, failures),
                *met.pop(name, (0, 0)),
                bool(refusal),
                text or "",
            )
            for name, count, text, refusal in ended
        ]
        shares += [
            Share(name, 0, 0.0, count, cured, name.partition(".")[0] in REFUSALS)
            for name, (count, cured) in met.items()
        ]
        return tuple(
            sorted(shares, key=lambda share: (-share.failures, -share.attempts, share.name))
        )

    def corrections(self) -> Corrections:
        return Corrections(*self._rows(_CORRECTIONS.format(where=self._asked), 2)[0])

    def prevented(self) -> dict[str, int]:
        found = self._rows(
            "SELECT state, count(*) FROM prevented WHERE at >= ? AND at < ? GROUP BY 1 ORDER BY 1"
        )
        return dict(found)

    def drag(self) -> Drag | None:
        total, best = self.total, None
        for tool in self._figures(lambda cell: cell.tool, self._asked_cells()):
            if not tool.failures:
                continue
            calls = total.calls - tool.calls
            without = rate(total.successes - tool.successes, calls) if calls else total.success_rate
            share = rate(tool.failures, total.failures)
            points = without - total.success_rate
            drag = Drag(tool.name, tool.failures, share, without, points)
            if best is None or (drag.points, drag.failures) > (best.points, best.failures):
                best = drag
        return best


def _open_effects(source: Source, now: float | None) -> int:
    from failwise.journal.read import open_effects

    return len(open_effects(source, now=now, limit=1_000_000))
