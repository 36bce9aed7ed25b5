"""Days that are summed up: in older files, beside writers, and when they are wrong."""

import itertools
import os
import random
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_samples import OpenBorder

from failwise.journal import rollups, rows, schema, spans
from failwise.journal.checking import check
from failwise.journal.journal import Journal
from failwise.journal.read import File
from failwise.journal.reader import Reader, open_reader
from failwise.journal.rollups import DAY
from failwise.testing.clock import SteppingClock
from failwise.testing.journal_samples import START, bad, good, many
from failwise.vocabulary.errors import ConfigurationError


def _version_3(path: Path, results: list[Any]) -> None:
    """A file as it was before there were spans."""
    columns = rows.CALL_COLUMNS[:-1]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, str(path), schema.MIGRATIONS[:3])
        connection.executemany(
            f"INSERT INTO calls ({', '.join(columns)}) VALUES ({','.join('?' * len(columns))})",
            [rows.call_row(n, one, OpenBorder())[:-1] for n, one in enumerate(results, 1)],
        )
        for rollup in rollups.ALL:
            connection.execute(rollup.insert())


def test_an_older_file_gets_its_sums_day_by_day(tmp_path: Path) -> None:
    """It is open at once; each step is one day or week; what is counted never changes."""
    path, now = tmp_path / "old.db", time.time()
    _version_3(path, many(300, seed=9, start=now - 21 * DAY, span=19 * DAY))
    with open_reader(path) as reader:
        assert reader.good_spans() == []
        before = _told(reader)
        seen = 0
        while reader.sum_up():
            assert len(reader.good_spans()) == seen + 1
            seen += 1
        sizes = [size for size, _ in reader.good_spans()]
        assert (sizes.count(1) >= 20, sizes.count(7) >= 1) == (True, True)
        assert _told(reader) == before


def _told(reader: Reader) -> Any:
    """What is counted, without sums whose last digits depend on their order."""
    days = reader.figures(None, None, ("day",))
    for row in days:
        del row["duration_ms"], row["waited_ms"]
    return days, reader.latencies(), reader.fingerprints()


def test_an_older_file_that_may_only_be_read_says_so(tmp_path: Path) -> None:
    """Where it cannot be brought forward it is not read wrongly."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    path = tmp_path / "old.db"
    _version_3(path, [good()])
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ConfigurationError, match="copy it to a place that can be written"):
            File(path)
    finally:
        tmp_path.chmod(0o700)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Where a journal may be."""
    if request.param == "sqlite":
        return tmp_path / "journal.db"
    return request.getfixturevalue("postgres")


def test_calls_that_come_meanwhile_are_counted(place: Any) -> None:
    """Two writers add to days that a third sums up at the same time: nothing is lost or doubled."""
    clock = SteppingClock(START)
    options: dict[str, Any] = {"redactor": OpenBorder(), "clock": clock, "retention_days": 90}
    journals = [Journal(place, **options) for _ in range(2)]
    ended = threading.Event()

    def add(number: int) -> None:
        chance = random.Random(number)
        for call in range(150):
            at = START - chance.randrange(1, 9) * DAY
            journals[number].put((bad if call % 3 == 0 else good)(f"{number}-{call}", timestamp=at))
            if call % 10 == 0:
                journals[number].flush(30)

    def sum_up() -> None:
        with closing(Journal(place, **options)) as third:
            while not ended.is_set():
                third.sum_up()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    summing = threading.Thread(target=sum_up)
    for thread in (summing, *threads):
        thread.start()
    for thread in threads:
        thread.join(60)
    ended.set()
    summing.join(60)
    assert all(journal.flush(30) for journal in journals)
    with open_reader(journals[0]) as reader:
        for _ in range(2):
            assert [row["calls"] for row in reader.figures()] == [300]
            assert sum(row["calls"] for row in reader.fingerprints()) == 100
            assert sum(reader.latencies()[()].values()) == 300
            while journals[0].sum_up():
                pass
    for journal in journals:
        journal.close()


def test_a_day_that_lacks_calls_is_found(tmp_path: Path) -> None:
    """`failwise journal check` compares days with their hours."""
    path = tmp_path / "journal.db"
    with closing(Journal(path, redactor=OpenBorder(), retention_days=90)) as journal:
        journal.put(good(timestamp=time.time() - 3 * DAY))
        while journal.sum_up():
            pass
        with closing(File(path)) as source:
            assert check(source) == []
            journal.write([("UPDATE span_calls SET calls = 0 WHERE days = 1", ())])
            (found,) = check(source)
    assert (found.what, found.text) == ("counts", "span_calls lacks 1 calls in 1 days")


@given(
    good=st.sets(st.tuples(st.sampled_from([1, 7]), st.integers(0, 40))),
    first=st.none() | st.integers(0, 40 * 24),
    length=st.none() | st.integers(1, 40 * 24),
    weeks=st.booleans(),
)
def test_parts_cover_a_stretch_once(
    good: set[tuple[int, int]], first: int | None, length: int | None, weeks: bool
) -> None:
    """Weeks, days and the rest together are the stretch, without gap or overlap, whatever is good."""
    known = {(days, day * days * DAY) for days, day in good}
    since = None if first is None else float(first * 3_600)
    until = None if length is None else (since or 0.0) + length * 3_600
    found = spans.parts(known, (since, until), weeks=weeks)
    pieces: list[tuple[float, float]] = [
        *((float(day), float(day + spans.WEEK)) for day in found.weeks),
        *((float(day), float(day + DAY)) for day in found.days),
        *(
            (float("-inf") if one is None else one, float("inf") if other is None else other)
            for one, other in found.rest
        ),
    ]
    pieces.sort()
    assert pieces[0][0] == (float("-inf") if since is None else since)
    assert pieces[-1][1] == (float("inf") if until is None else until)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(pieces))
    assert weeks or not found.weeks
