"""What is counted: figures, latencies, attempts, fingerprints, cures, corrections, what was prevented.

Figures come from the rollups where the question allows it, and exactly so: whole hours from the
rollup, the two broken hours at the ends from the calls.
"""

from collections.abc import Sequence
from typing import Any, Literal

from failwise.journal import rollups
from failwise.journal.rollups import DAY, HOUR
from failwise.journal.selection import (
    ATTEMPT_FACTS,
    BY,
    NO_FILTER,
    By,
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
from failwise.journal.source import Source
from failwise.vocabulary.errors import UsageError

ROUNDS = 2_000
"""Wrong calls whose corrections are followed: the newest, and those of the hour in which they begin. It
keeps the cost the same, however many calls there are."""


class Counts:
    """Questions whose answers are counts."""

    source: Source

    def figures(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[By, ...] = (),
        where: Filter | None = None,
        *,
        latency: bool = True,
        counters: Sequence[str] = tuple(rollups.COUNTERS),
    ) -> list[dict[str, Any]]:
        """Counts of calls, one row per group: the values of `by` under their names, then every
        counter of `rollups.COUNTERS` (whole numbers; ``waited_ms`` and ``duration_ms`` floats),
        ``failures`` and ``faults`` (failures that are no refusals), and with `latency` the calls by
        latency bucket, ``{bucket: calls}`` (`failwise.journal.latency.quantiles` reads them).
        `counters`: only these, among them ``calls``, ``successes`` and ``refusals``.

        No calls: no rows. ``by=()`` gives one row at most. Of a success category, code and provider
        are ``""``. Raises `UsageError` for an unknown `by`.
        """
        for name in by:
            if name not in BY:
                raise UsageError(f"figures(by={name!r}): say one of {', '.join(BY)}")
        where = where or NO_FILTER
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        fine = "run" in by or not where.rolled_up
        core = None if fine else whole(since, until, HOUR)
        if core is None:
            stretches: Sequence[tuple[float | None, float | None]] = ((since, until),)
        else:
            self._add_counts(groups, by, rollups.CALLS, where, core, counters)
            stretches = edges(since, until, core)
        for stretch in stretches:
            self._add_counts(groups, by, None, where, stretch, counters)
        if latency:
            buckets = self.latencies(since, until, by, where)
            for key, row in groups.items():
                row["latency"] = buckets.get(key, {})
        for row in groups.values():
            row["failures"] = row["calls"] - row["successes"]
            row["faults"] = row["failures"] - row["refusals"]
        return [groups[key] for key in sorted(groups, key=order_of)]

    def _add_counts(
        self,
        groups: dict[tuple[Any, ...], dict[str, Any]],
        by: tuple[str, ...],
        rollup: rollups.Rollup | None,
        where: Filter,
        between: tuple[float | None, float | None],
        counters: Sequence[str],
    ) -> None:
        named = group_columns(by, rolled_up=rollup is not None)
        if rollup is None:
            sums = ", ".join(f"sum({rollups.COUNTERS[name]}) AS {name}" for name in counters)
            conditions, values = conditions_of(where, between, "started", of_calls)
            table = "calls"
        else:
            sums = rollups.summed(counters)
            conditions, values = conditions_of(where, between, "hour", str)
            table = rollup.table
        columns = [*named, sums]
        sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {conditions}"  # noqa: S608
        sql += grouping(len(named))
        for found in self.source.rows(sql, values):
            row = tuple(found)
            key = key_of(by, row)
            counts = row[len(named) :]
            if not counts[0]:  # engines differ in what the sum of nothing is
                continue
            group = groups.get(key)
            if group is None:
                group = groups[key] = dict(zip(by, key, strict=True)) | dict.fromkeys(counters, 0)
            for name, count in zip(counters, counts, strict=True):
                group[name] += float(count) if name in rollups.REALS else int(count)

    def latencies(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[By, ...] = (),
        where: Filter | None = None,
    ) -> dict[tuple[Any, ...], dict[int, int]]:
        """Calls by latency bucket, ``{bucket: calls}``, by the values of `by`: what `figures` gives as
        ``latency``, without the rest."""
        where = where or NO_FILTER
        fine = "run" in by or not where.rolled_up
        core = None if fine else whole(since, until, HOUR)
        pieces: list[tuple[str, str, tuple[float | None, float | None]]] = []
        if core is None:
            pieces.append(("calls", "started", (since, until)))
        else:
            pieces += [("calls", "started", edge) for edge in edges(since, until, core)]
            days = None if "hour" in by else whole(*core, DAY)
            if days is None:
                pieces.append(("latency_hours", "hour", core))
            else:
                pieces.append(("latency_days", "day", days))
                pieces += [("latency_hours", "hour", edge) for edge in edges(*core, days)]
        groups: dict[tuple[Any, ...], dict[int, int]] = {}
        for table, moment, between in pieces:
            fine = table == "calls"
            period = "day" if table == "latency_days" else "hour"
            named = group_columns(by, rolled_up=not fine, period=period)
            bucket, count = ("latency_bucket", "count(*)") if fine else ("bucket", "sum(calls)")
            conditions, values = conditions_of(where, between, moment, of_calls if fine else str)
            columns = [*named, bucket, f"{count} AS counted"]
            sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {conditions}"  # noqa: S608
            sql += grouping(len(named) + 1)
            last: list[Any] | None = None
            buckets: dict[int, int] = {}
            for *names, number, counted in self.source.rows(sql, values):
                if not counted:
                    continue
                if last is None or names != last:  # rows of one group mostly come together
                    last, buckets = names, groups.setdefault(key_of(by, names), {})
                buckets[number] = buckets.get(number, 0) + int(counted)
        return groups

    def attempts(
        self,
        since: float | None = None,
        until: float | None = None,
        by: tuple[By, ...] = ("code",),
        where: Filter | None = None,
    ) -> list[dict[str, Any]]:
        """Failed attempts, of fallbacks too: the values of `by`, ``attempts``, and ``cured``: those
        whose call succeeded in the end. The moment is that at which the call began; category, code,
        provider, fingerprint, effect, status and text are the attempt's own."""
        for name in by:
            if name not in BY:
                raise UsageError(f"attempts(by={name!r}): say one of {', '.join(BY)}")
        where = where or NO_FILTER
        rolled_up = where.rolled_up and where.success is None and where.asked is None
        fine = not rolled_up or "run" in by or "asked" in by
        core = None if fine else whole(since, until, HOUR)
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        if core is not None:
            conditions, values = conditions_of(where, core, "hour", str)
            named = group_columns(by, rolled_up=True)
            sums = rollups.summed(("attempts", "cured"))
            self._add_attempts(
                groups, by, f"{sums} FROM rollup_attempts", named, conditions, values
            )
        stretches = [(since, until)] if core is None else edges(since, until, core)
        for stretch in stretches:
            conditions, values = conditions_of(
                where, stretch, "attempts.at", ATTEMPT_FACTS.__getitem__
            )
            named = group_columns(by, rolled_up=False, columns=ATTEMPT_FACTS)
            source = "attempts"
            if "calls." in f"{named} {conditions}":
                source += " JOIN calls ON calls.id = attempts.call"
                # Where whoever drops days looks, too.
                within, moments = stretch_of(*stretch, "calls.started")
                conditions, values = f"{conditions} AND {within}", [*values, *moments]
            self._add_attempts(
                groups,
                by,
                f"count(*) AS attempts_met, sum(attempts.success) AS attempts_cured FROM {source}",
                named,
                f"attempts.category IS NOT NULL AND {conditions}",
                values,
            )
        return [groups[key] for key in sorted(groups, key=order_of)]

    def _add_attempts(
        self,
        groups: dict[tuple[Any, ...], dict[str, Any]],
        by: tuple[str, ...],
        what: str,
        named: Sequence[str],
        conditions: str,
        values: Sequence[Any],
    ) -> None:
        sql = f"SELECT {', '.join([*named, what])} WHERE {conditions}{grouping(len(named))}"
        for found in self.source.rows(sql, values):
            row = tuple(found)
            if not row[-2]:
                continue
            key = key_of(by, row)
            group = groups.setdefault(key, dict(zip(by, key, strict=True)))
            group["attempts"] = group.get("attempts", 0) + int(row[-2])
            group["cured"] = group.get("cured", 0) + int(row[-1])

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
    ) -> list[dict[str, Any]]:
        """Failed calls by fingerprint: ``fingerprint``, ``code``, ``category``, ``tool``,
        ``upstream``, ``provider``, ``asked`` (0 or 1), ``calls``, ``first_seen`` and ``last_seen``
        (epoch s), most calls first; with `by` also ``hour`` or ``day``. Counted by whole hours: from the
        beginning of the hour of `since` to the end of that of `until`."""
        keys = [name for name in rollups.FAILURES.keys if name != "hour"]
        named = [*group_columns(by, rolled_up=True), *keys]
        conditions, values = conditions_of(NO_FILTER, floored(since, until), "hour", str)
        sql = (
            f"SELECT {', '.join(named)}, sum(calls) AS counted, min(first_seen) AS first_seen,"  # noqa: S608
            f" max(last_seen) AS last_seen FROM rollup_failures WHERE {conditions}"
            f"{grouping(len(named))}"
        )
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        for found in self.source.rows(sql, values):
            row = tuple(found)
            key = (*key_of(by, row), *row[len(by) : -3])
            group = groups.setdefault(
                key, dict(zip((*by, *keys), key, strict=True)) | {"calls": 0, "first_seen": row[-2]}
            )
            group["calls"] += int(row[-3])
            group["first_seen"] = min(group["first_seen"], row[-2])
            group["last_seen"] = max(group.get("last_seen", row[-1]), row[-1])
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
        conditions, values = stretch_of(*floored(since, until), "hour")
        sql = f"SELECT min(hour) AS first, max(hour) AS last FROM rollup_calls WHERE {conditions}"  # noqa: S608
        first, last = tuple(self.source.rows(sql, values)[0])
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
