"""`SpanConformance`: sums of days and weeks never change what is counted, on any engine."""

from collections.abc import Sequence
from typing import Any

from failwise.journal.journal import Journal
from failwise.journal.reader import By, Filter, Reader, open_reader
from failwise.journal.rollups import DAY, HOUR
from failwise.testing.claim_conformance import PATIENCE, ClaimConformance
from failwise.testing.clock import SteppingClock
from failwise.testing.journal_samples import START, bad, counted, good, many

_GROUPINGS: tuple[tuple[By, ...], ...] = ((), ("tool",), ("day", "category"), ("hour",))
_WHERES = (
    Filter(), Filter(asked=True), Filter(tool="pay"), Filter(success=False), Filter(code="server.internal"),
    Filter(upstream="api.example", asked=True), Filter(model="m-1"),
)  # fmt: skip


class SpanConformance(ClaimConformance):
    """What `JournalConformance` asks about long stretches of time."""

    def _answers(self, reader: Reader) -> list[Any]:
        """What a journal counts in long stretches, in every way that sums could spoil."""
        stretches = (
            (None, None), (START - 20 * DAY, None), (START - 17 * DAY + 5 * HOUR, START - 2 * DAY + 7),
        )  # fmt: skip
        return [
            *(
                _rounded(reader.figures(since, until, by, where))
                for since, until in stretches
                for by in _GROUPINGS
                for where in _WHERES
            ),
            *(
                _by_key(reader.fingerprints(since, until, by, where))
                for since, until in stretches
                for by in ((), ("day",))
                for where in _WHERES
            ),
        ]

    def test_long_stretches_count_the_same_when_summed_up(self) -> None:
        """Day by day, week by week, and again after calls that are recorded late: figures, latencies
        and failures by fingerprint are what they were."""
        clock = SteppingClock(START)
        journal = self.make_journal(clock=clock, retention_days=90)
        results = many(400, seed=5, start=START - 25 * DAY, span=25 * DAY)
        for result in results:
            journal.put(result)
        assert journal.flush(PATIENCE)
        reader, plain = open_reader(journal), Reader(_WithoutSpans(journal))
        wanted = self._answers(plain)
        for steps in (1, 6, 1_000):
            _sum_up(journal, steps)
            assert self._answers(reader) == wanted, steps
        late: list[Any] = [
            good("late", timestamp=START - 9 * DAY),
            bad("later", timestamp=START - 16 * DAY + 3 * HOUR),
        ]
        for result in late:
            journal.put(result)
        assert journal.flush(PATIENCE)
        whole = counted([*results, *late], ())
        for _ in range(2):
            (found,) = reader.figures()
            assert {name: found[name] for name in whole[()]} == whole[()]
            _sum_up(journal, 1_000)

    def test_a_day_is_summed_up_when_it_is_over(self) -> None:
        """What still happens is counted at once; nobody waits for the end of the day."""
        clock = SteppingClock(START)
        journal = self.make_journal(clock=clock)
        reader = open_reader(journal)
        for number in range(5):
            journal.put(good(f"c{number}", timestamp=clock.time()))
            assert journal.flush(PATIENCE)
            _sum_up(journal, 1_000)
            assert [row["calls"] for row in reader.figures()] == [number + 1]
            clock.now += 11 * HOUR


class _WithoutSpans:
    """A journal as whoever may not read its spans sees it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.place = journal.place
        self.write, self.resolve = journal.write, journal.resolve

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        if "FROM spans" in sql:
            raise PermissionError("spans")
        return self._journal.rows(sql, parameters)


def _rounded(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is no whole number depends on the order in which it was added up."""
    return [
        {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _by_key(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def _sum_up(journal: Journal, steps: int) -> None:
    for _ in range(steps):
        if not journal.sum_up():
            return
