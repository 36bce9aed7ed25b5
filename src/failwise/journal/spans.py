"""Spans: sums of whole days and weeks that are over, so that a question over a month reads tens of rows
where it would read an hour's rows seven hundred times.

They are made from the rollups afterwards, a day in a short transaction of its own, newest first: what
was recorded before there were spans gets them in passing, and writing a call costs nothing more. The
table ``spans`` says which are good. A call that is recorded late takes its day's and week's line out of
it, in the transaction that writes the call; the day is then summed up anew, and read from the rollups
until then. Readers so see the same counts with spans and without.

| table | one row for |
| --- | --- |
| ``spans`` | a day (`days` 1) or week (7) whose sums are good; weeks are those of the epoch, from Thursday |
| ``span_calls`` | such a span and what ``rollup_calls`` has a row for |
| ``span_failures`` | such a span and what ``rollup_failures`` has a row for |
| ``span_latencies`` | such a span, tool, upstream, asked and bucket: no more, or a day had a row a call |
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from failwise.journal import rollups
from failwise.journal.rollups import DAY, HOUR, Rollup
from failwise.vocabulary.records import record

WEEK: Final = 7 * DAY
SLACK: Final = HOUR
"""Seconds after its end that a day is given for calls that began in it."""
BACK: Final = 400
"""Days that are summed up: what is older is read from the rollups."""
EVERY: Final = 300.0
"""Seconds between two looks whether another day is over."""

Question = Callable[[str, Sequence[Any]], Sequence[Any]]
Statement = tuple[str, Sequence[Any]]


@record
class Sums:
    """A table of sums: the rows of `rollup`, by `keys` of it."""

    table: str
    rollup: Rollup
    keys: tuple[str, ...]

    def statement(self, days: int, day: int) -> str:
        """What sums a span up; of a week from its days, which must be there."""
        sums = tuple(self.rollup.sums)
        ends = {name: end for name, (end, _) in (self.rollup.ends or {}).items()}
        what = [*self.keys, *(f"sum({name})" for name in sums)]
        what += [f"{end}({name})" for name, end in ends.items()]
        if days == 1:
            source, within = self.rollup.table, f"{self.rollup.period} >= {day}"
            within += f" AND {self.rollup.period} < {day + DAY}"
        else:
            source, within = self.table, f"days = 1 AND day >= {day} AND day < {day + days * DAY}"
        positions = ", ".join(str(place + 3) for place in range(len(self.keys)))
        return (
            f"INSERT INTO {self.table} (days, day, {', '.join((*self.keys, *sums, *ends))})"  # noqa: S608
            f" SELECT {days}, {day}, {', '.join(what)} FROM {source} WHERE {within}"
            f" GROUP BY {positions}"
        )


CALLS = Sums("span_calls", rollups.CALLS, tuple(rollups.DIMENSIONS))
FAILURES = Sums("span_failures", rollups.FAILURES, tuple(rollups.FAILURES.keys)[1:])
LATENCIES = Sums("span_latencies", rollups.LATENCY_DAYS, ("tool", "upstream", "asked", "bucket"))
ALL: Sequence[Sums] = (CALLS, FAILURES, LATENCIES)


def following(ask: Question, now: float) -> tuple[int, int] | None:
    """The span to sum up next, (days, day); None where all that is over is summed up."""
    end = int((now - SLACK) // DAY) * DAY
    found = ask("SELECT min(hour) FROM rollup_calls", ())[0][0]
    if found is None:
        return None
    first = max(int(found // DAY) * DAY, end - BACK * DAY)
    good = {(int(days), int(day)) for days, day in ask("SELECT days, day FROM spans", ())}
    for day in range(end - DAY, first - 1, -DAY):
        if (1, day) not in good:
            return 1, day
    for week in range(end // WEEK * WEEK - WEEK, -(-first // WEEK) * WEEK - 1, -WEEK):
        if (7, week) not in good:
            return 7, week
    return None


def summing(days: int, day: int) -> list[str]:
    """What sums a span up, in one transaction while nobody adds to its rollups."""
    statements: list[str] = []
    for one in ALL:
        statements.append(f"DELETE FROM {one.table} WHERE days = {days} AND day = {day}")  # noqa: S608
        statements.append(one.statement(days, day))
    statements.append(f"DELETE FROM spans WHERE days = {days} AND day = {day}")  # noqa: S608
    statements.append(f"INSERT INTO spans (days, day) VALUES ({days}, {day})")  # noqa: S608
    return statements


def reopening(hours: Collection[int]) -> list[str]:
    """What says, in the transaction that writes calls of these hours, that their spans are no longer
    good."""
    days = sorted({hour // DAY * DAY for hour in hours})
    weeks = sorted({hour // WEEK * WEEK for hour in hours})
    return [
        f"DELETE FROM spans WHERE days = {size} AND day IN ({', '.join(map(str, some))})"  # noqa: S608
        for size, some in ((1, days), (7, weeks))
        if some
    ]


def expired(before: float) -> list[str]:
    """What removes the spans that ended before a moment (epoch s)."""
    tables = ("spans", *(one.table for one in ALL))
    return [f"DELETE FROM {table} WHERE day + days * {DAY} <= {before:.0f}" for table in tables]  # noqa: S608


Bounds = tuple[float | None, float | None]


@record
class Parts:
    """A stretch of time in parts: `weeks` and `days` that are summed up, by their beginning, and the
    `rest`, stretches in order."""

    weeks: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    rest: tuple[Bounds, ...] = ()

    @property
    def spans(self) -> Sequence[tuple[str, str]]:
        """The spans as conditions over their tables, and the column that says when they begin."""
        found: list[tuple[str, str]] = []
        for size, some in ((7, self.weeks), (1, self.days)):
            if some:
                found.append((f"days = {size} AND day IN ({', '.join(map(str, some))})", "day"))
        return found


def parts(good: Iterable[tuple[int, int]], within: Bounds, *, weeks: bool) -> Parts:
    """The parts of a stretch that begins and ends with an hour. `good`: the spans that are good, as
    (days, day); `weeks`: whole weeks may be taken together."""
    first, last = within
    fitting = [
        (days, day)
        for days, day in good
        if (first is None or day >= first) and (last is None or day + days * DAY <= last)
    ]
    whole = sorted(day for days, day in fitting if days == 7) if weeks else []
    taken = {day + place * DAY for day in whole for place in range(7)}
    single = sorted(day for days, day in fitting if days == 1 and day not in taken)
    rest: list[Bounds] = []
    at = first
    for begin, end in sorted(
        [*((day, day + WEEK) for day in whole), *((day, day + DAY) for day in single)]
    ):
        if at is None or at < begin:
            rest.append((at, begin))
        at = end
    if last is None or at is None or at < last:
        rest.append((at, last))
    return Parts(tuple(whole), tuple(single), tuple(rest))
