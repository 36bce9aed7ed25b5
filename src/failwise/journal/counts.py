"""What is counted: figures, latencies, attempts.

Figures come from the rollups where the question allows it, and exactly so: whole days and weeks that
are over from their sums, other whole hours from the rollup, the two broken hours at the ends from the
calls.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from failwise.journal import rollups, spans
from failwise.journal.pieces import Piece, Pieces
from failwise.journal.rollups import DAY, HOUR
from failwise.journal.selection import (
    ATTEMPT_FACTS,
    BY,
    NO_FILTER,
    By,
    Filter,
    conditions_of,
    edges,
    group_columns,
    grouping,
    key_of,
    of_calls,
    order_of,
    stretch_of,
    whole,
)
from failwise.vocabulary.errors import UsageError


class Counts(Pieces):
    """Questions whose answers are counts."""

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
        stretches: Sequence[spans.Bounds] = ((since, until),)
        if core is not None:
            stretches = edges(since, until, core)
            for piece in self.pieces(spans.CALLS, core, by):
                self._add_counts(groups, by, piece, where, counters)
        for stretch in stretches:
            within, moments = stretch_of(*stretch, "started")
            calls = Piece("calls", within, moments, "")
            self._add_counts(groups, by, calls, where, counters)
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
        piece: Piece,
        where: Filter,
        counters: Sequence[str],
    ) -> None:
        if piece.period:
            named = group_columns(by, rolled_up=True, period=piece.period)
            sums = rollups.summed(counters)
        else:
            named = group_columns(by, rolled_up=False)
            sums = ", ".join(f"sum({rollups.COUNTERS[name]}) AS {name}" for name in counters)
        spelled = str if piece.period else of_calls
        sql, values = piece.select([*named, sums], where, spelled)
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
        groups: dict[tuple[Any, ...], dict[int, int]] = {}
        for piece in self._latency_pieces(since, until, by, where):
            if piece.period:
                named = group_columns(by, rolled_up=True, period=piece.period)
                columns = [*named, "bucket", "sum(calls) AS counted"]
                sql, values = piece.select(columns, where, str)
            else:
                named = group_columns(by, rolled_up=False)
                columns = [*named, "latency_bucket", "count(*) AS counted"]
                sql, values = piece.select(columns, where, of_calls)
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

    def _latency_pieces(
        self, since: float | None, until: float | None, by: tuple[By, ...], where: Filter
    ) -> Iterator[Piece]:
        fine = "run" in by or not where.rolled_up
        core = None if fine else whole(since, until, HOUR)
        for stretch in ((since, until),) if core is None else edges(since, until, core):
            yield Piece("calls", *stretch_of(*stretch, "started"), "")
        if core is None:
            return
        rest: Sequence[spans.Bounds] = (core,)
        wanted = {name for name in rollups.DIMENSIONS if getattr(where, name) is not None}
        if (wanted | set(by)) - {"day"} <= set(spans.LATENCIES.keys) and where.success is None:
            parts = spans.parts(self.good_spans(), core, weeks="day" not in by)
            for condition, period in parts.spans:
                yield Piece(spans.LATENCIES.table, condition, [], period)
            rest = parts.rest
        for stretch in rest:
            days = None if "hour" in by else whole(*stretch, DAY)
            hours = (stretch,) if days is None else edges(*stretch, days)
            if days is not None:
                yield Piece("latency_days", *stretch_of(*days, "day"), "day")
            for one in hours:
                yield Piece("latency_hours", *stretch_of(*one, "hour"), "hour")

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
