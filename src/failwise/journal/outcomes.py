"""What became of calls that failed: by fingerprint, what was tried, what was corrected, what was
prevented."""

from typing import Any, Literal

from failwise.journal import rollups, spans
from failwise.journal.pieces import Piece, Pieces
from failwise.journal.rollups import HOUR
from failwise.journal.selection import (
    NO_FILTER,
    Filter,
    conditions_of,
    edges,
    floored,
    group_columns,
    grouping,
    key_of,
    of_calls,
    order_of,
    stretch_of,
    whole,
)
from failwise.vocabulary.errors import UsageError

ROUNDS = 2_000
"""Wrong calls whose corrections are followed: the newest, and those of the hour in which they begin. It
keeps the cost the same, however many calls there are."""


class Outcomes(Pieces):
    """Questions about what failed."""

    def argument_errors(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[Literal["tool", "model", "parameters", "hour", "day"], ...] = ("tool",),
        where: Filter | None = None,
    ) -> list[dict[str, Any]]:
        """What became of the arguments of calls that somebody asked for: the values of `by` (of
        ``parameters``, how many the tool's schema names, -1 is "unknown"), ``calls``, ``wrong``
        (could not be used), ``refused`` (by the upstream) and ``repaired``. Of a filter only `tool`
        and `model` can be said; others raise `UsageError`."""
        where = where or NO_FILTER
        if where != Filter(tool=where.tool, model=where.model):
            raise UsageError("argument errors can be filtered by tool and model only")
        names = {"tool": "tool", "model": "model"}
        counters = tuple(rollups.ARGUMENTS.sums)
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        core = whole(since, until, HOUR)
        pieces = [] if core is None else [(rollups.ARGUMENTS.table, "hour", core, True)]
        stretches = [(since, until)] if core is None else edges(since, until, core)
        pieces += [("calls", "started", stretch, False) for stretch in stretches]
        for table, moment, between, rolled_up in pieces:
            conditions, values = conditions_of(where, between, moment, names.get)
            named = group_columns(by, rolled_up=True)
            sums = rollups.summed(counters)
            if not rolled_up:
                conditions += f" AND {rollups.ARGUMENTS.condition}"
                keys = rollups.ARGUMENTS.keys
                named = group_columns(by, rolled_up=False, columns=keys)
                sums = ", ".join(f"sum({what})" for what in rollups.ARGUMENTS.sums.values())
            sql = f"SELECT {', '.join([*named, sums])} FROM {table} WHERE {conditions}"  # noqa: S608
            for found in self.source.rows(sql + grouping(len(named)), values):
                row = tuple(found)
                key, counts = key_of(by, row), row[len(by) :]
                if not counts[0]:
                    continue
                group = groups.setdefault(
                    key, dict(zip(by, key, strict=True)) | dict.fromkeys(counters, 0)
                )
                for name, count in zip(counters, counts, strict=True):
                    group[name] += int(count)
        return [groups[key] for key in sorted(groups, key=order_of)]

    def fingerprints(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[Literal["hour", "day"], ...] = (),
        where: Filter | None = None,
    ) -> list[dict[str, Any]]:
        """Failed calls by fingerprint: ``fingerprint``, ``code``, ``category``, ``tool``,
        ``upstream``, ``provider``, ``asked`` (0 or 1), ``calls``, ``first_seen`` and ``last_seen``
        (epoch s), most calls first; with `by` also ``hour`` or ``day``. Counted by whole hours: from the
        beginning of the hour of `since` to the end of that of `until`. A filter by model, run, call,
        effect, status or text reads the calls."""
        keys = [name for name in rollups.FAILURES.keys if name != "hour"]
        where = where or NO_FILTER
        first, last = floored(since, until)
        if where.rolled_up_by_fingerprint:
            pieces = self.pieces(spans.FAILURES, (first, last), by)
            counted, seen = "sum(calls)", ("first_seen", "last_seen")
        else:
            within, moments = stretch_of(first, last, "started")
            pieces = [Piece("calls", f"{within} AND success = 0", moments, "")]
            counted, seen = "count(*)", ("started", "started")
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        for piece in pieces:
            named = group_columns(by, rolled_up=bool(piece.period), period=piece.period or "hour")
            columns = keys if piece.period else [rollups.FAILURES.keys[name] for name in keys]
            spelled = str if piece.period else of_calls
            sql, values = piece.select(
                [
                    *named,
                    *columns,
                    f"{counted} AS counted",
                    f"min({seen[0]}) AS first_seen",
                    f"max({seen[1]}) AS last_seen",
                ],
                where,
                spelled,
            )
            sql += grouping(len(named) + len(columns))
            for found in self.source.rows(sql, values):
                row = tuple(found)
                key = (*key_of(by, row), *row[len(by) : -3])
                group = groups.get(key)
                if group is None:
                    group = dict(zip((*by, *keys), key, strict=True))
                    groups[key] = group | {"calls": 0, "first_seen": row[-2], "last_seen": row[-1]}
                    group = groups[key]
                group["calls"] += int(row[-3])
                group["first_seen"] = min(group["first_seen"], row[-2])
                group["last_seen"] = max(group["last_seen"], row[-1])
        return sorted(groups.values(), key=lambda group: (-group["calls"], group["first_seen"]))

    def cures(self, since: float | None = None, until: float | None = None) -> list[dict[str, Any]]:
        """What was tried after failed attempts, and how often the call succeeded in the end:
        ``fingerprint``, ``code``, ``action``, ``tried``, ``cured``."""
        conditions, values = stretch_of(since, until, "at")
        found = self.source.rows(
            "SELECT coalesce(fingerprint, '') AS met, code, action, count(*) AS tried,"  # noqa: S608
            " sum(success) AS cured FROM attempts"
            f" WHERE action IS NOT NULL AND code IS NOT NULL AND {conditions}"
            " GROUP BY 1, 2, 3 ORDER BY 4 DESC",
            values,
        )
        return [
            {
                "fingerprint": row["met"],
                "code": row["code"],
                "action": row["action"],
                "tried": int(row["tried"]),
                "cured": int(row["cured"]),
            }
            for row in found
        ]

    def corrections(
        self,
        since: float | None = None,
        until: float | None = None,
        where: Filter | None = None,
    ) -> tuple[int, int, float]:
        """Series of wrong calls of one tool in one run, up to its next success: how many ended in a
        success, how many are open, and the mean rounds of the former (docs/metrics.md). Where there are
        more than `ROUNDS` wrong calls, of the newest."""
        where = where or NO_FILTER
        if where.rolled_up:
            first = self._rounds_since(since, until, where)
            if first is None:
                return 0, 0, 0.0
            since = first if since is None else max(since, first)
        within, values = conditions_of(where, (since, until), "started", of_calls)
        within += " AND parent_id IS NULL"
        row = self.source.rows(_CORRECTIONS.format(where=within), [*values, *values])[0]
        corrected, open_ones, mean = tuple(row)
        return int(corrected or 0), int(open_ones or 0), float(mean or 0.0)

    def _rounds_since(
        self, since: float | None, until: float | None, where: Filter
    ) -> float | None:
        """The hour in which the newest `ROUNDS` wrong calls begin; None where there are none."""
        conditions, values = conditions_of(where, floored(since, until), "hour", str)
        first, seen = None, 0
        for hour, wrong in self.source.rows(
            f"SELECT hour, sum(rounds) AS wrong FROM rollup_calls WHERE {conditions}"  # noqa: S608
            " AND rounds > 0 GROUP BY hour ORDER BY hour DESC",
            values,
        ):
            first, seen = float(hour), seen + int(wrong)
            if seen >= ROUNDS:
                break
        return first

    def span(self, since: float | None = None, until: float | None = None) -> tuple[float, float]:
        """From when to when there are figures, in whole hours, inside these bounds; (0, 0): none."""
        within, values = stretch_of(*floored(since, until), "hour")
        ends = []
        for end in ("min", "max"):  # one by one: an index has either at once, but not both
            sql = f"SELECT {end}(hour) AS found FROM rollup_calls WHERE {within}"  # noqa: S608
            ends.append(self.source.rows(sql, values)[0][0])
        first, last = ends
        return (first, last + HOUR) if first else (0, 0)

    def worst_runs(
        self,
        since: float | None = None,
        until: float | None = None,
        where: Filter | None = None,
        limit: int = 20,
    ) -> list[str]:
        """The runs with the most failures, those first; fallbacks are not counted."""
        from dataclasses import replace

        wanted = replace(where or NO_FILTER, success=False, asked=True)
        conditions, values = conditions_of(wanted, (since, until), "started", of_calls)
        found = self.source.rows(
            f"SELECT run_id, count(*) AS failed FROM calls WHERE {conditions} AND run_id <> ''"  # noqa: S608
            " GROUP BY run_id ORDER BY failed DESC, run_id LIMIT ?",
            [*values, limit],
        )
        return [row[0] for row in found]

    def prevented(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[Literal["tool", "state", "run"], ...] = ("state",),
        where: Filter | None = None,
    ) -> list[dict[str, Any]]:
        """Sends that the claims prevented: the values of `by`, then ``calls``. Of a filter only `tool`
        and `run` can be said; others raise `UsageError`."""
        where = where or NO_FILTER
        if where != Filter(tool=where.tool, run=where.run):
            raise UsageError("what was prevented can be filtered by tool and run only")
        conditions, values = conditions_of(where, (since, until), "at", of_calls)
        named = [{"run": "run_id AS run"}.get(name, name) for name in by]
        found = self.source.rows(
            f"SELECT {', '.join([*named, 'count(*) AS calls'])} FROM prevented"  # noqa: S608
            f" WHERE {conditions}{grouping(len(named))}",
            values,
        )
        rows = [dict(row) | {"calls": int(row["calls"])} for row in found]
        return sorted(
            (row for row in rows if row["calls"]),
            key=lambda row: order_of(tuple(row[name] for name in by)),
        )


_CORRECTIONS = """
WITH series AS (
  SELECT run_id, tool, success, category, coalesce(sum(success) OVER (
      PARTITION BY run_id, tool ORDER BY started, id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS part
  FROM calls WHERE {where} AND run_id <> '' AND (run_id, tool) IN (
      SELECT run_id, tool FROM calls WHERE {where} AND success = 0 AND category = 'model_output')
), counted AS (
  SELECT sum(CASE WHEN success = 0 AND category = 'model_output' THEN 1 ELSE 0 END) AS rounds,
    max(success) AS corrected
  FROM series GROUP BY run_id, tool, part
)
SELECT sum(corrected) AS corrected, sum(1 - corrected) AS open_ones,
  avg(CASE WHEN corrected = 1 THEN rounds END) AS mean FROM counted WHERE rounds > 0
"""
