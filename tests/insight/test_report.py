"""The report, against counting by hand."""

import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from failwise.insight.render import render
from failwise.insight.report import report
from failwise.journal.journal import Journal
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Grade, StopReason
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult
from failwise.vocabulary.steps import Claim

DAY = 1_800_000_000.0 // 86_400 * 86_400


class OpenBorder:
    def text(self, text: str) -> str:
        return text

    def data(self, data: Any) -> Any:
        return data


class ThatDay:
    """A clock that stands at the end of the day, so that nothing is too old to be kept."""

    def monotonic(self) -> float:
        return DAY + 86_400

    time = monotonic


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal(":memory:", redactor=OpenBorder(), clock=ThatDay())
    yield made
    made.close()


def failure(code: str, message: str = "") -> Failure:
    return Failure(Category(code.partition(".")[0]), code, message or f"message of {code}")


def result(
    tool: str = "search",
    codes: tuple[str, ...] = (),
    *,
    success: bool = True,
    hour: float = 9,
    ms: float = 10,
    **options: Any,
) -> ToolResult[Any]:
    """A call: one attempt for each of `codes`, and one more that succeeded if `success`."""
    attempts = [
        Attempt(n + 1, n, 5.0, failure(code), Decision(Action.RETRY_BACKOFF, 1.0))
        for n, code in enumerate(codes)
    ]
    if success and codes:
        attempts.append(Attempt(len(codes) + 1, len(codes), 5.0))
    return ToolResult(
        tool,
        success,
        failure=None if success else failure(codes[-1]),
        attempts=tuple(attempts),
        stop_reason=StopReason.SUCCEEDED if success else StopReason.RETRIES_EXHAUSTED,
        duration_ms=ms,
        timestamp=DAY + hour * 3600,
        **options,
    )


def test_a_day_of_records_equals_a_hand_count(journal: Journal) -> None:
    """A day small enough to count on paper: every figure of the report."""
    timeout, limit, no = "network.read_timeout", "rate_limit.requests", "business.not_found"
    for _ in range(4):
        journal.put(result("search", hour=9, ms=10))
    journal.put(result("search", (timeout,), hour=9.5, ms=1000))
    journal.put(result("search", (timeout, timeout), success=False, hour=10, ms=2000))
    journal.put(result("order", (no,), success=False, hour=10.2, ms=50))
    journal.put(result("order", (limit, limit, limit), success=False, hour=10.9, ms=3000))
    degraded = result("order", (timeout,), hour=11, ms=100, degraded_to="search")
    degraded.attempts = degraded.attempts[:1]
    journal.put(degraded)
    journal.put(result("search", hour=11, ms=40, parent_id="the order"))
    journal.put(result("weather", hour=11, ms=20, repairs=(Repair("k", "/a", 1, 2, Grade.UNIQUE),)))
    journal.put(result("weather", hour=30, ms=20))  # the next day

    found = report(journal, since=DAY, until=DAY + 86_400)
    total = found.total
    assert (total.calls, total.successes, total.failures) == (10, 7, 3)
    assert (total.first_try, total.recovered, total.degraded) == (5, 1, 1)
    assert (total.refusals, total.faults, total.repaired) == (1, 2, 1)
    assert total.success_rate == 0.7
    # 5 × 1, then 2, 2, 1, 3, 1, and 1 by the fallback
    assert (total.requests, total.amplification) == (15, 1.5)
    assert (total.retried, total.retry_rate) == (3, 0.3)
    assert (total.retries, total.wasted, total.wasted_rate) == (4, 3, 0.75)
    assert total.mean_ms == pytest.approx((40 + 1000 + 2000 + 50 + 3000 + 100 + 20) / 10)
    assert total.p50_ms == pytest.approx(20, rel=0.02)
    assert total.p90_ms == pytest.approx(2000, rel=0.02)
    assert total.p99_ms == pytest.approx(3000, rel=0.02)

    by_tool = {figures.name: figures for figures in found.tools}
    assert [f.name for f in found.tools] == ["search", "order", "weather"]
    assert (by_tool["search"].calls, by_tool["search"].successes) == (7, 6)
    assert (by_tool["order"].success_rate, by_tool["order"].refusals) == (pytest.approx(1 / 3), 1)

    date = datetime.fromtimestamp(DAY, UTC).date().isoformat()
    assert [(f.name, f.calls, f.successes) for f in found.hours] == [
        (f"{date}T09:00Z", 5, 5),
        (f"{date}T10:00Z", 3, 0),
        (f"{date}T11:00Z", 2, 2),
    ]
    assert found.hours[0].mean_ms == pytest.approx(208)

    assert [(s.name, s.failures, s.attempts, s.cured) for s in found.codes] == [
        (timeout, 1, 4, 2),
        (limit, 1, 3, 0),
        (no, 1, 1, 0),
    ]
    assert [s.refusal for s in found.codes] == [False, False, True]
    assert found.codes[0].share == pytest.approx(1 / 3)
    assert found.codes[2].example == f"message of {no}"
    assert found.top_errors == found.codes[:3]
    assert found.drag is not None
    assert (found.drag.tool, found.drag.failures) == ("order", 2)
    assert found.drag.success_rate_without == pytest.approx(6 / 7)


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
    with pytest.raises(UsageError, match="tool, hour"):
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
    ("lang", "words"), [("en", ("Success", "Drags most")), ("zh", ("成功", "拖累"))]
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
