"""Which tables answer for which part of the time."""

from collections.abc import Callable, Sequence
from typing import Any

from failwise.journal import spans
from failwise.journal.selection import Filter, conditions_of, stretch_of
from failwise.journal.source import Source
from failwise.vocabulary.records import record


@record
class Piece:
    """A table that answers for a part of the time: rows that fulfil `condition` with its `values`;
    `period` is the column that says when, none for the calls themselves."""

    table: str
    condition: str
    values: Sequence[Any]
    period: str

    def select(
        self, columns: Sequence[str], where: Filter, spelled: Callable[[str], str | None]
    ) -> tuple[str, list[Any]]:
        """A question to it, without its grouping."""
        more, values = conditions_of(where, (None, None), self.period or "started", spelled)
        return (
            f"SELECT {', '.join(columns)} FROM {self.table} WHERE {self.condition} AND {more}",  # noqa: S608
            [*self.values, *values],
        )


class Pieces:
    """The tables of one journal that hold counts."""

    source: Source
    _without_spans = False

    def pieces(self, sums: spans.Sums, within: spans.Bounds, by: Sequence[str]) -> list[Piece]:
        """The tables that answer for a stretch of whole hours: weeks and days that are summed up, and
        the rollup."""
        parts = spans.Parts(rest=(within,))
        if "hour" not in by:
            parts = spans.parts(self.good_spans(), within, weeks="day" not in by)
        found = [Piece(sums.table, when, [], period) for when, period in parts.spans]
        for rest in parts.rest:
            when, moments = stretch_of(*rest, "hour")
            found.append(Piece(sums.rollup.table, when, moments, "hour"))
        return found

    def good_spans(self) -> list[tuple[int, int]]:
        """The spans that are good: (days, day). None where this engine has no spans, or they may not
        be read."""
        if self._without_spans:
            return []
        try:
            found = self.source.rows("SELECT days, day FROM spans")
        except Exception:
            self._without_spans = True
            return []
        return [(int(days), int(day)) for days, day in found]
