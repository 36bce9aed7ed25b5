"""The report from ClickHouse: the real engine, inside the process (chDB)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from failwise.insight.charts import charts, series
from failwise.insight.compare import compare
from failwise.insight.report import report
from failwise.journal.journal import Journal
from failwise.journal.reader import Filter
from tests.insight import day
from tests.insight.day import DAY, OpenBorder, ThatDay


@pytest.fixture
def journal(folder: Path, tmp_path: Path) -> Iterator[Journal]:
    made = Journal(
        f"chdb:///{folder}?database=report",
        claims=tmp_path / "claims.db",
        redactor=OpenBorder(),
        clock=ThatDay(),
        retention_days=36_000,
        figures_days=36_000,
    )
    yield made
    made.close()


def test_a_day_of_records_equals_a_hand_count(journal: Journal) -> None:
    """E29 on ClickHouse: every figure, filters that need the calls, charts and a comparison."""
    day.write(journal)
    day.check(report(journal, since=DAY, until=DAY + 86_400, now=DAY + 86_400))
    found = report(journal, where=Filter(text="OF BUSINESS"))
    assert [(one.name, one.failures, one.attempts) for one in found.codes] == [(day.NO, 1, 1)]
    (run,) = report(journal, by="run").runs
    assert (run.name, run.calls, run.failures) == ("r", 4, 3)
    halves = compare(journal, before=(DAY, DAY + 39_600), after=(DAY + 39_600, DAY + 86_400))
    assert (halves.calls_before, halves.calls) == (8, 6)
    assert len(charts(series(journal))) == 4
