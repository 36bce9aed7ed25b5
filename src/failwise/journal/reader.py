"""`Reader`: every question that reports, clusters and dashboards ask of a journal, on every engine.

Rows are plain dictionaries. The questions stand in `counts`, `outcomes`, `records` and `names`.
"""

import os
from typing import TypeAlias

from failwise.journal.counts import Counts
from failwise.journal.names import ClusterName, Names
from failwise.journal.outcomes import Outcomes
from failwise.journal.records import Cursor, Records, loaded
from failwise.journal.selection import By, Filter
from failwise.journal.source import Source

__all__ = [
    "By", "ClusterName", "Cursor", "Filter", "Place", "Reader", "Source", "loaded", "open_reader",
]  # fmt: skip


class Reader(Counts, Outcomes, Records, Names):
    """Questions to one journal. `source` is closed with it where `open_reader` opened it.

    `since` (included) and `until` (not included) are epoch seconds, None for no bound, everywhere.
    """

    def __init__(self, source: Source, *, close: bool = False) -> None:
        self.source = source
        self._close = close

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sum_up(self) -> bool:
        """Sum up one day or week that is over, so that questions over long stretches are quick; True
        when there is more. Raises what the source raises where it may only be read."""
        summing = getattr(self.source, "sum_up", None)
        return summing is not None and bool(summing())

    def close(self) -> None:
        """Close the connection, if it is this reader's own."""
        closing = getattr(self.source, "close", None)
        if self._close and closing is not None:
            closing()


Place: TypeAlias = "str | os.PathLike[str] | Source | Reader | None"
"""Where a journal is: its path or URL, None for the usual place, or one that is open."""


def open_reader(place: Place = None, claims: "str | os.PathLike[str] | None" = None) -> Reader:
    """A reader of the journal at a path or URL (None: ``FAILWISE_JOURNAL``, else
    ``.failwise/journal.db``), of a `Journal` that is open, or the reader itself. Use it in ``with``.
    `claims`: where claims are kept beside ClickHouse, as for `Journal`.

    An older journal is brought to the present schema first. Raises `ConfigurationError` where there
    is no journal, or one of a newer Failwise.
    """
    if isinstance(place, Reader):
        return place
    if place is None or isinstance(place, (str, os.PathLike)):
        from failwise.journal.read import File

        return Reader(File(place, claims), close=True)
    return Reader(place)
