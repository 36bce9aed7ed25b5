"""Two stretches compared: intervals, and what is beyond chance."""

import io
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.insight.compare import Change, compare
from failwise.insight.intervals import (
    mean_difference,
    newcombe,
    quantile_interval,
    wilson,
)
from failwise.insight.markdown import comparison_markdown
from failwise.insight.render import render_comparison
from failwise.journal.journal import Journal
from failwise.journal.latency import bucket_of
from failwise.journal.reader import Filter
from failwise.vocabulary.errors import UsageError
from tests.insight.day import DAY, OpenBorder, ThatDay, result

BEFORE, AFTER = (DAY, DAY + 43_200), (DAY + 43_200, DAY + 86_400)


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal(":memory:", redactor=OpenBorder(), clock=ThatDay())
    yield made
    made.close()


def fill(journal: Journal, hour: float, good: int, bad: int, **options: Any) -> None:
    code = options.pop("code", "server.internal")
    for _ in range(good):
        journal.put(result(hour=hour, **options))
    for _ in range(bad):
        journal.put(result(codes=(code,), success=False, hour=hour, **options))


def test_intervals_are_those_of_the_papers() -> None:
    """Newcombe's own examples (1998, tables of both papers), to four places."""
    found = wilson(81, 263)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)
    found = wilson(0, 20)
    assert (found.low, round(found.high, 4)) == (0.0, 0.1611)
    assert wilson(20, 20).high == 1.0
    for numbers, low, high in (
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 20), 0.6791, 1.0),
        ((0, 10, 0, 20), -0.1611, 0.2775),
    ):
        difference = newcombe(*numbers)
        assert (round(difference.low, 4), round(difference.high, 4)) == (low, high)
    assert (newcombe(0, 0, 1, 2).low, newcombe(1, 2, 0, 0).high) == (-1.0, 1.0)


@settings(deadline=None, max_examples=60)
@given(st.integers(5, 30), st.integers(5, 30), st.floats(0.05, 0.95))
def test_few_calls_do_not_make_it_cry_wolf(n: int, m: int, share: float) -> None:
    """Where nothing has changed, zero lies outside of the interval in at most 8 of 100 cases, however
    few the calls: counted over every outcome, not drawn."""

    def chances(total: int) -> list[float]:
        return [
            math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(total + 1)
        ]

    wrong = sum(
        one * other
        for k, one in enumerate(chances(n))
        for j, other in enumerate(chances(m))
        if newcombe(k, n, j, m).without_zero
    )
    assert wrong <= 0.08


def test_quantiles_and_means_have_intervals_from_buckets() -> None:
    """They hold the true value in about 95 of 100 draws; too few calls have none."""
    chance = random.Random(3)
    true_p90 = math.exp(3 + 1.2815515655446004)
    held = met = 0
    for _ in range(200):
        buckets: dict[int, int] = {}
        for _ in range(150):
            bucket = bucket_of(chance.lognormvariate(3, 1))
            buckets[bucket] = buckets.get(bucket, 0) + 1
        found = quantile_interval(buckets, 0.9)
        assert found is not None
        held += found.low * 0.98 <= true_p90 <= found.high * 1.02
        spread = mean_difference(buckets, buckets)
        assert spread is not None
        met += spread.low < 0 < spread.high
    assert held >= 184
    assert met == 200
    assert quantile_interval({200: 20}, 0.99) is None
    assert mean_difference({200: 29}, {200: 100}) is None


def test_what_is_beyond_chance_is_told_from_what_is_not(journal: Journal) -> None:
    """A real jump of one code is found and named; a wobble of a rare tool is not."""
    fill(journal, 3, 950, 50, tool="search", ms=50)
    fill(journal, 15, 850, 150, tool="search", ms=50)
    fill(journal, 3, 9, 1, tool="pay", code="business.insufficient_balance")
    fill(journal, 15, 8, 2, tool="pay", code="business.insufficient_balance")
    found = compare(journal, before=BEFORE, after=AFTER)
    total = {one.name: one for one in found.total}
    fault = total["fault_rate"]
    assert (fault.part_before, fault.whole_before, fault.part, fault.whole) == (50, 1010, 150, 1010)
    assert (fault.beyond_chance, fault.direction) == (True, "worse")
    assert fault.interval is not None
    assert fault.interval.low < fault.difference < fault.interval.high
    assert total["success_rate"].direction == "worse"
    assert total["refusal_rate"].beyond_chance is False
    assert total["amplification"].direction is None
    tools = {one.name: one for one in found.tables["tool"]}
    assert found.tables["tool"][0].name == "search"
    assert tools["search"].beyond_chance
    assert (tools["pay"].beyond_chance, tools["pay"].direction) == (False, "same")
    assert {one.name for one in found.beyond_chance if one.direction == "worse"} >= {
        "fault_rate",
        "search",
        "server.internal",
        "server",
    }
    json.dumps(found.to_dict())
    back = compare(journal, before=AFTER, after=BEFORE)
    assert {one.name: one.direction for one in back.total}["fault_rate"] == "better"


def test_latency_and_new_tools(journal: Journal) -> None:
    """Twice as slow is beyond chance; a tool that was not called before cannot be compared."""
    chance = random.Random(5)
    for hour, factor in ((3.0, 1.0), (15.0, 2.0)):
        for _ in range(400):
            journal.put(result(hour=hour, ms=factor * chance.lognormvariate(4, 0.5)))
    fill(journal, 15, 1, 4, tool="new")
    found = compare(journal, before=BEFORE, after=AFTER)
    total = {one.name: one for one in found.total}
    for name in ("mean_ms", "p50_ms", "p90_ms"):
        assert (total[name].beyond_chance, total[name].direction) == (True, "worse"), name
    new = next(one for one in found.tables["tool"] if one.name == "new")
    assert (new.whole_before, new.interval, new.beyond_chance) == (0, None, False)
    assert new.direction is None


def test_a_table_of_nothing_new_rarely_says_so(journal: Journal) -> None:
    """Twenty tools that do not change: held to the stricter confidence, none is accused."""
    chance = random.Random(11)
    for tool in range(20):
        for hour in (3.0, 15.0):
            bad = sum(chance.random() < 0.1 for _ in range(60))
            fill(journal, hour, 60 - bad, bad, tool=f"tool-{tool}")
    found = compare(journal, before=BEFORE, after=AFTER, by="tool")
    assert list(found.tables) == ["tool"]
    assert not any(one.beyond_chance for one in found.tables["tool"])


def test_filters_and_mistakes(journal: Journal) -> None:
    """Only calls that fit; overlapping stretches and odd words are refused."""
    fill(journal, 3, 5, 5, tool="a")
    fill(journal, 15, 5, 0, tool="b")
    found = compare(journal, before=BEFORE, after=AFTER, where=Filter(tool="a"))
    assert (found.calls_before, found.calls, found.where) == (10, 0, {"tool": "a"})
    with pytest.raises(UsageError, match="overlap"):
        compare(journal, before=(DAY, DAY + 50_000), after=AFTER)
    with pytest.raises(UsageError, match="overlap"):
        compare(journal, before=(None, None), after=AFTER)
    with pytest.raises(UsageError, match="say one of tool"):
        compare(journal, before=BEFORE, after=AFTER, by="hour")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="between 0 and 1"):
        compare(journal, before=BEFORE, after=AFTER, confidence=95)


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ("Worse, beyond chance", "within chance", "too few calls", "95.0 % sure")),
        ("zh", ("变差（非偶然）", "偶然范围内", "调用太少", "置信度 95.0 %")),
    ],
)
def test_it_is_shown_in_both_languages(journal: Journal, lang: Any, words: tuple[str, ...]) -> None:
    """On a terminal and as Markdown: the finding in words, intervals beside it."""
    from rich.console import Console

    fill(journal, 3, 200, 10, tool="search")
    fill(journal, 15, 150, 60, tool="search")
    fill(journal, 15, 3, 1, tool="[red]new[/red]")
    found = compare(journal, before=BEFORE, after=AFTER)
    out = io.StringIO()
    render_comparison(found, Console(file=out, width=200), lang=lang)
    text = comparison_markdown(found, lang)
    for word in words:
        assert word in out.getvalue()
        assert word in text
    assert "[red]new[/red]" in out.getvalue()
    empty = compare(journal, before=(DAY - 9, DAY - 5), after=BEFORE)
    assert not any(isinstance(one, Change) and one.beyond_chance for one in empty.total)
    assert "no calls in one" in comparison_markdown(empty)
