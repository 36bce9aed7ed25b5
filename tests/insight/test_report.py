"""The report, against counting by hand."""

import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from failwise.insight.markdown import report_markdown
from failwise.insight.render import render
from failwise.insight.report import report
from failwise.journal.journal import Journal
from failwise.journal.reader import Filter
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim
from tests.insight import day
from tests.insight.day import DATE, DAY, OpenBorder, ThatDay, result


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal(":memory:", redactor=OpenBorder(), clock=ThatDay())
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """A journal of each engine that is here."""
    place: Any = tmp_path / "journal.db"
    if request.param == "postgresql":
        place = request.getfixturevalue("postgres")
    made = Journal(place, redactor=OpenBorder(), clock=ThatDay())
    yield made
    made.close()


def test_a_day_of_records_equals_a_hand_count(anywhere: Journal) -> None:
    """E29: a day small enough to count on paper, every figure of the report, on every engine."""
    day.write(anywhere)
    day.check(report(anywhere, since=DAY, until=DAY + 86_400, now=DAY + 86_400))
    # Broken hours at both ends are counted from the calls: the same without the first half hour.
    found = report(anywhere, since=DAY + 9.25 * 3_600, until=DAY + 12.2 * 3_600)
    assert (found.total.calls, found.total.successes) == (9, 4)
    assert [(one.name, one.calls) for one in found.hours] == [
        (f"{DATE}T09:00Z", 1),
        (f"{DATE}T10:00Z", 3),
        (f"{DATE}T11:00Z", 2),
        (f"{DATE}T12:00Z", 3),
    ]
    assert {one.name: one.attempts for one in found.codes} == {
        day.TIMEOUT: 4,
        day.LIMIT: 3,
        day.NO: 1,
        day.WRONG: 2,
    }


def test_every_breakdown_and_filter_counts_the_same_calls(anywhere: Journal) -> None:
    """By model and run; only calls that fit, from rollups or not, on every engine."""
    day.write(anywhere)

    def ask(**said: Any) -> Any:
        return report(anywhere, since=DAY, until=DAY + 86_400, where=Filter(**said))

    models = report(anywhere, until=DAY + 86_400, by="model").models
    assert [(one.name, one.calls, one.failures) for one in models] == [
        ("m-1", 7, 1),
        ("m-2", 7, 5),
        ("", 1, 0),
    ]
    (run,) = report(anywhere, by="run").runs
    assert (run.name, run.calls, run.failures, run.requests) == ("r", 4, 3, 3)
    days = report(anywhere, by="day").days
    assert [(one.name, one.calls) for one in days] == [(DATE, 14), ("2027-01-16", 1)]

    found = ask(tool="order")
    assert (found.total.calls, found.total.requests, found.total.failures) == (7, 8, 5)
    assert (found.worth.prevented, found.worth.open_effects) == ({"open": 2, "unknown": 1}, 1)
    assert found.corrections.corrected == 1
    assert (found.verdict, found.clusters) == (None, ())
    assert found.where == {"tool": "order"}
    assert [one.name for one in found.argument_tools] == ["order"]

    assert ask(upstream="shop.example").total.calls == 6
    network = ask(category="network")
    assert (network.total.calls, network.total.failures) == (1, 1)
    assert [(one.attempts, one.cured) for one in network.codes] == [(4, 2)]
    text = ask(text="OF BUSINESS")
    assert [(one.name, one.failures, one.attempts) for one in text.codes] == [(day.NO, 1, 1)]
    assert text.total.p50_ms == pytest.approx(50, rel=0.02)
    assert (text.worth.prevented, text.argument_tools) == ({}, ())
    both = ask(run="r", code=(day.WRONG, day.REFUSED))
    assert (both.total.calls, both.total.refusals) == (3, 3)
    assert ask(tool="none").total.calls == 0


def test_correction_rounds(journal: Journal) -> None:
    """A series ends with the next success of the same tool in the same run."""
    wrong = ("model_output.schema_violation",)

    def put(tool: str, run: str, outcomes: str) -> None:
        for at, outcome in enumerate(outcomes):
            made = result(tool, wrong, success=False, run_id=run, hour=at)
            if outcome == "+":
                made = result(tool, run_id=run, hour=at)
            if outcome == "x":
                made = result(tool, ("server.internal",), success=False, run_id=run, hour=at)
            journal.put(made)

    put("search", "one", "+--+-+")  # two rounds, then one
    put("search", "two", "---")  # never
    put("order", "one", "-x-+")  # two: the fault between is none
    put("order", "two", "+x+")
    put("order", "", "-+")  # outside of any run
    found = report(journal).corrections
    assert (found.corrected, found.open) == (3, 1)
    assert found.mean_rounds == pytest.approx(5 / 3)


def test_duplicates_prevented_and_open_effects(journal: Journal) -> None:
    """What the claims refused to send, by reason; what is open now."""

    def claim(call: str, fingerprint: str = "f") -> str:
        step = Claim(f"key-{call}", fingerprint, "run", "order", call, {})
        return journal.claim(step).result(5).state

    claim("1")
    journal.settle("key-1", "unknown")
    assert [claim("2"), claim("1"), claim("3"), claim("1", "g")] == [
        "open",
        "unknown",
        "open",
        "conflict",
    ]
    found = report(journal)
    assert dict(found.prevented) == {"conflict": 1, "open": 2, "unknown": 1}
    assert (found.duplicates_prevented, found.open_effects) == (4, 1)


CODES = [
    "network.read_timeout",
    "server.internal",
    "business.not_found",
    "auth.forbidden",
    "model_output.invalid_json",
]
CALLS = st.builds(
    result,
    st.sampled_from(["search", "order", "pay"]),
    st.lists(st.sampled_from(CODES), min_size=1, max_size=4).map(tuple),
    success=st.booleans(),
    hour=st.floats(0, 23.9),
    ms=st.floats(0.1, 60_000),
    degraded_to=st.sampled_from([None, None, "cache"]),
    run_id=st.sampled_from(["", "a", "b"]),
    parent_id=st.sampled_from([None, None, None, "parent"]),
) | st.builds(
    result,
    st.sampled_from(["search", "order", "pay"]),
    hour=st.floats(0, 23.9),
    ms=st.floats(0.1, 60_000),
    run_id=st.sampled_from(["", "a", "b"]),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(CALLS, max_size=40))
def test_any_records_equal_a_plain_count(results: list[ToolResult[Any]]) -> None:
    """The SQL against loops over the results themselves."""
    journal = Journal(":memory:", redactor=OpenBorder(), clock=ThatDay())
    try:
        for made in results:
            journal.put(made)
        found = report(journal)
    finally:
        journal.close()
    asked = [r for r in results if r.parent_id is None]
    total = found.total
    good = [r for r in asked if r.success]
    bad = [r for r in asked if not r.success]
    degraded = [r for r in good if r.degraded_to]
    clean = [r for r in good if not r.degraded_to and not any(a.failure for a in r.attempts)]
    refused = {"business", "auth", "model_output", "invalid_request"}

    assert (total.calls, total.successes) == (len(asked), len(good))
    assert (total.degraded, total.first_try) == (len(degraded), len(clean))
    assert total.recovered == len(good) - len(degraded) - len(clean)
    assert total.refusals == sum(1 for r in bad if r.failure and r.failure.category in refused)
    assert total.faults == len(bad) - total.refusals
    assert total.requests == sum(r.sent for r in results)
    assert total.retried == sum(1 for r in asked if r.retries)
    assert total.retries == sum(r.retries for r in asked)
    assert total.wasted == sum(r.retries for r in bad)
    durations = sorted(r.duration_ms for r in asked)
    if durations:
        assert total.mean_ms == pytest.approx(sum(durations) / len(durations))
        for share, value in ((0.5, total.p50_ms), (0.9, total.p90_ms), (0.99, total.p99_ms)):
            exact = durations[math.ceil(share * len(durations)) - 1]
            assert value == pytest.approx(exact, rel=0.0201)
    codes = Counter(r.failure.code for r in bad if r.failure)
    assert {s.name: s.failures for s in found.codes if s.failures} == codes
    assert sum(s.share for s in found.codes) == pytest.approx(1 if bad else 0)
    met = Counter(a.failure.code for r in results for a in r.attempts if a.failure)
    assert {s.name: s.attempts for s in found.codes} == met
    hours = Counter(int(r.timestamp // 3600) for r in asked)
    assert [f.calls for f in found.hours] == [hours[hour] for hour in sorted(hours)]
    assert {f.name: f.calls for f in found.tools} == Counter(r.tool_name for r in results)

    series, rounds = [], {}
    for made in sorted(enumerate(asked), key=lambda pair: (pair[1].timestamp, pair[0])):
        call = made[1]
        place = call.run_id, call.tool_name
        if not call.run_id:
            continue
        if call.success:
            if rounds.get(place):
                series.append(rounds[place])
            rounds[place] = 0
        elif call.failure and call.failure.category is Category.MODEL_OUTPUT:
            rounds[place] = rounds.get(place, 0) + 1
    assert found.corrections.corrected == len(series)
    assert found.corrections.open == sum(1 for count in rounds.values() if count)
    if series:
        assert found.corrections.mean_rounds == pytest.approx(sum(series) / len(series))
    json.dumps(found.to_dict())


def test_only_the_breakdown_asked_for(journal: Journal) -> None:
    """`by` leaves out the others, and a wrong one says what there is."""
    journal.put(result("search", ("server.internal",), success=False))
    found = report(journal, by="day")
    assert (len(found.days), found.tools, found.hours, found.codes) == (1, (), (), ())
    assert len(found.top_errors) == 1
    with pytest.raises(UsageError, match="tool, upstream"):
        report(journal, by="colour")  # type: ignore[arg-type]


def test_a_file_is_read_while_it_is_written(tmp_path: Path) -> None:
    """By path, from another connection; where there is none it says so and makes none."""
    with pytest.raises(ConfigurationError):
        report(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    journal = Journal(tmp_path / "journal.db", redactor=OpenBorder(), clock=ThatDay())
    journal.put(result())
    journal.flush()
    assert report(tmp_path / "journal.db").total.calls == 1
    journal.close()


@pytest.mark.parametrize(
    ("lang", "words"),
    [("en", ("Success", "Drags most", "Waits obeyed")), ("zh", ("成功", "拖累", "遵守的等待"))],
)
def test_it_is_shown_in_both_languages(journal: Journal, lang: Any, words: tuple[str, ...]) -> None:
    """Every figure has its words; nothing recorded is read as markup."""
    from rich.console import Console

    journal.put(result("[red]search[/red]"))
    journal.put(result("order", ("business.not_found",), success=False))
    journal.put(result("order", ("model_output.invalid_json",), success=False, run_id="r"))
    out = io.StringIO()
    console = Console(file=out, width=200)
    render(report(journal), console, lang=lang)
    text = out.getvalue()
    assert all(
        word in text for word in (*words, "[red]search[/red]", "business.not_found", "33.3 %")
    )


def test_an_empty_journal_is_said_to_be_empty(journal: Journal) -> None:
    """Zero divided by zero is no rate; nothing raises."""
    from rich.console import Console

    out = io.StringIO()
    found = report(journal)
    assert (found.total.success_rate, found.drag, found.top_errors) == (0.0, None, ())
    render(found, Console(file=out))
    assert "No calls" in out.getvalue()
    json.dumps(found.to_dict())


def test_markdown_shows_what_was_recorded_as_text(journal: Journal) -> None:
    """A table a breakdown; names and messages become neither links nor markup nor columns."""
    journal.put(result("a|b"))
    bad = result("order", ("business.not_found",), success=False)
    assert bad.failure is not None
    bad.failure.message = "[click](http://x.example) <b>bold</b> `code` | pipe\nnext *line*"  # type: ignore[misc]
    journal.put(bad)
    text = report_markdown(report(journal))
    assert text.startswith("# Failwise report\n")
    assert "| a\\|b |" in text
    assert (
        "\\[click\\]\\(http://x.example\\) \\<b\\>bold\\</b\\> \\`code\\` \\| pipe next \\*line\\*"
        in text
    )
    widths = {}
    for block in text.split("\n\n"):
        rows = [row for row in block.splitlines() if row.startswith("|")]
        if rows:
            widths[rows[0]] = {row.replace("\\|", "").count("|") for row in rows}
    assert len(widths) >= 5
    assert all(len(counts) == 1 for counts in widths.values())
