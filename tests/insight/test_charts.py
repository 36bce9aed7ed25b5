"""The charts: their data counted by hand, and SVG that everyone can read."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from failwise.insight.charts import charts, series
from failwise.journal.journal import Journal
from failwise.journal.reader import Filter
from tests.insight import day
from tests.insight.day import DAY, OpenBorder, ThatDay, result

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal(":memory:", redactor=OpenBorder(), clock=ThatDay(), retention_days=36_500)
    yield made
    made.close()


def test_the_data_is_that_of_the_day(journal: Journal) -> None:
    """By hour on a short stretch: calls, failures by category, requests, quantiles, heat."""
    day.write(journal)
    found = series(journal, until=DAY + 86_400)
    assert [(at - DAY) / 3600 for at in found.steps] == [9, 10, 11, 12]
    assert found.width == 3_600
    assert found.calls == (5, 3, 2, 4)
    assert found.failed == (0, 3, 0, 3)
    assert found.requests == (6, 6, 3, 3)  # those of the fallback too
    assert found.failures["model_output"] == (0, 0, 0, 2)
    assert found.failures["network"] == (0, 1, 0, 0)
    assert next(iter(found.failures)) == "model_output"
    assert found.latency["p50"][0] == pytest.approx(10, rel=0.02)
    assert found.latency["p99"][1] == pytest.approx(3000, rel=0.02)
    assert found.heat[int(DAY), 10] == (3, 3)
    assert not found.weekdays
    assert series(journal, until=DAY + 86_400, where=Filter(tool="order")).calls == (0, 2, 1, 4)


def test_long_stretches_are_shown_by_day_and_week(journal: Journal) -> None:
    """More than three days by day, more than 480 by week; the heat map of long ones by weekday."""
    for number in range(40):
        journal.put(result(hour=24 * number + 10))
    found = series(journal)
    assert (found.width, len(found.steps), sum(found.calls)) == (86_400, 40, 40)
    assert found.weekdays
    assert sum(calls for calls, _ in found.heat.values()) == 40
    assert {hour for _, hour in found.heat} == {10}
    journal.put(result(hour=24 * 600))
    found = series(journal)
    assert (found.width, sum(found.calls)) == (7 * 86_400, 41)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_chart_is_sound_and_accessible(journal: Journal, lang: Any) -> None:
    """They parse, have a title and a description with the figures in it, read in light and dark, tell
    series apart without colour, and ask nothing of anybody."""
    day.write(journal)
    made = charts(series(journal), lang)
    assert list(made) == ["failures.svg", "hours.svg", "latency.svg", "requests.svg"]
    for name, text in made.items():
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        title, told = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert title.text
        assert told is not None
        assert any(character.isdigit() for character in told.text or ""), name
        assert "prefers-color-scheme: dark" in text
        assert "<script" not in text
        assert text.count("http") == 1  # the name space
    assert "model_output: 2" in made["failures.svg"]
    areas = {
        one.get("fill")
        for one in ElementTree.fromstring(made["failures.svg"]).iter(f"{SVG}path")
        if "area" in (one.get("class") or "")
    }
    assert len(areas) == 5  # a hatching each
    dashes = [
        one.get("stroke-dasharray")
        for one in ElementTree.fromstring(made["latency.svg"]).iter(f"{SVG}path")
        if "line" in (one.get("class") or "")
    ]
    assert len(set(dashes)) == 3
    cells = ElementTree.fromstring(made["hours.svg"])
    assert sum("cell" in (one.get("class") or "") for one in cells.iter(f"{SVG}rect")) == 2 * 24
    assert "100" in "".join(cells.itertext())  # percent, in the cell of ten o'clock


def test_a_journal_without_calls_has_empty_charts(journal: Journal) -> None:
    """Nothing divides by zero; they say that there is nothing."""
    for text in charts(series(journal)).values():
        ElementTree.fromstring(text)
        assert "No calls in this period." in text


def test_names_from_outside_stay_text(journal: Journal) -> None:
    """A category that somebody else recorded is shown, not obeyed."""
    bad = result(codes=("server.internal",), success=False)
    assert bad.failure is not None
    object.__setattr__(bad.failure, "category", _Odd())
    journal.put(bad)
    text = charts(series(journal))["failures.svg"]
    assert "<script>" not in text
    ElementTree.fromstring(text)


class _Odd:
    value = "<script>alert(1)</script>"
