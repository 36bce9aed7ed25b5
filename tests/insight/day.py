"""One day of records, small enough to be counted on paper, and what every engine must say of it."""

from typing import Any

import pytest

from failwise.insight.figures import Figures, Report
from failwise.journal.journal import Journal
from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Grade, StopReason
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult
from failwise.vocabulary.steps import Claim

DAY = 1_800_000_000.0 // 86_400 * 86_400
DATE = "2027-01-15"
TIMEOUT, LIMIT, NO = "network.read_timeout", "rate_limit.requests", "business.not_found"
WRONG, REFUSED = "model_output.schema_violation", "invalid_request.parameter"


class OpenBorder:
    """Nothing here is a secret."""

    def text(self, text: str) -> str:
        return text

    def data(self, data: Any) -> Any:
        return data


class ThatDay:
    """A clock that stands in the evening of the day, so that nothing is too old to be kept."""

    def monotonic(self) -> float:
        return DAY + 80_000

    time = monotonic


def failure(code: str, message: str = "", **facts: Any) -> Failure:
    """A failure with a fingerprint of its code."""
    facts.setdefault("fingerprint", f"{abs(hash(code)) % 10**12:012d}")
    return Failure(Category(code.partition(".")[0]), code, message or f"message of {code}", **facts)


def result(
    tool: str = "search",
    codes: tuple[str, ...] = (),
    *,
    success: bool = True,
    hour: float = 9,
    ms: float = 10,
    facts: dict[str, Any] | None = None,
    pauses: tuple[float, ...] = (),
    **options: Any,
) -> ToolResult[Any]:
    """A call: one attempt of 5 ms for each of `codes`, and one more that succeeded if `success`;
    before each but the first `pauses` in seconds, 1 where none is said."""
    attempts, moment = [], 0.0
    for number, code in enumerate(codes):
        met = failure(code, **(facts or {}))
        attempts.append(Attempt(number + 1, moment, 5.0, met, Decision(Action.RETRY_BACKOFF, 1.0)))
        moment += 0.005 + (pauses[number] if number < len(pauses) else 1.0)
    if success and codes:
        attempts.append(Attempt(len(codes) + 1, moment, 5.0))
    return ToolResult(
        tool,
        success,
        failure=None if success else failure(codes[-1], **(facts or {})),
        attempts=tuple(attempts),
        stop_reason=StopReason.SUCCEEDED if success else StopReason.RETRIES_EXHAUSTED,
        duration_ms=ms,
        timestamp=DAY + hour * 3600,
        **options,
    )


def write(journal: Journal) -> None:
    """The day: 14 calls that somebody asked for and one fallback; and one call of the next day."""
    shop: dict[str, Any] = {"upstream": "shop.example", "model": "m-1", "parameters": 3}
    bank: dict[str, Any] = {"upstream": "bank.example", "model": "m-2", "parameters": 6}
    for number in range(4):
        journal.put(result("search", hour=9, ms=10, call_id=f"good-{number}", **shop))
    journal.put(result("search", (TIMEOUT,), hour=9.5, ms=1000, **shop))
    journal.put(result("search", (TIMEOUT, TIMEOUT), success=False, hour=10, ms=2000, **shop))
    said = Excerpt("no such order", "application/json", 4_000, "x" * 400)
    journal.put(
        result("order", (NO,), success=False, hour=10.2, ms=50, facts={"evidence": said}, **bank)
    )
    # Told to wait 2 s twice, and a third time by the last answer: kept, broken, nothing sent after it.
    journal.put(
        result(
            "order",
            (LIMIT, LIMIT, LIMIT),
            success=False,
            hour=10.9,
            ms=3000,
            facts={"retry_after": 2.0},
            pauses=(2.0, 1.5),
            **bank,
        )
    )
    degraded = result("order", (TIMEOUT,), hour=11, ms=100, degraded_to="search", **bank)
    degraded.attempts = degraded.attempts[:1]
    journal.put(degraded)
    journal.put(result("search", hour=11, ms=40, parent_id="the order", **shop))
    fixed = (Repair("k", "/a", 1, 2, Grade.UNIQUE),)
    journal.put(result("weather", hour=11, ms=20, repairs=fixed, parameters=1))
    # The model got it wrong twice, then right; and once its parameters were refused.
    for moment in (12.0, 12.01):
        journal.put(result("order", (WRONG,), success=False, hour=moment, ms=5, run_id="r", **bank))
    journal.put(result("order", hour=12.02, ms=60, run_id="r", verified=True, **bank))
    journal.put(result("order", (REFUSED,), success=False, hour=12.5, ms=30, run_id="r", **bank))
    journal.put(result("weather", hour=30, ms=20, parameters=1))  # the next day

    def claim(call: str, key: str = "") -> None:
        step = Claim(f"key-{key or call}", "same order", "r", "order", call, {"item": "shoes"})
        journal.claim(step).result(20)

    claim("1")
    journal.settle("key-1", "unknown")
    claim("2")  # the same order under a new id, twice
    claim("3")
    claim("1")  # and under its own
    assert journal.flush(20)


def check(found: Report) -> None:
    """What the report of that day must say: every figure counted on paper."""
    total = found.total
    assert (total.calls, total.successes, total.failures) == (14, 8, 6)
    assert (total.first_try, total.recovered, total.degraded) == (6, 1, 1)
    assert (total.refusals, total.faults, total.repaired) == (4, 2, 1)
    assert total.success_rate == pytest.approx(8 / 14)
    # search 4 × 1, 2, 2; order 1, 3, 1; the fallback 1; weather 1; wrong 1, 1; verified 0; refused 1
    assert (total.requests, total.amplification) == (18, pytest.approx(18 / 14))
    assert (total.retried, total.retry_rate) == (3, pytest.approx(3 / 14))
    assert (total.retries, total.wasted, total.wasted_rate) == (4, 3, 0.75)
    durations = [10] * 4 + [1000, 2000, 50, 3000, 100, 20, 5, 5, 60, 30]
    assert total.mean_ms == pytest.approx(sum(durations) / 14)
    assert total.p50_ms == pytest.approx(sorted(durations)[6], rel=0.02)
    assert total.p90_ms == pytest.approx(sorted(durations)[12], rel=0.02)
    assert total.p99_ms == pytest.approx(3000, rel=0.02)

    def counts(groups: tuple[Figures, ...]) -> list[tuple[str, int, int]]:
        return [(one.name, one.calls, one.failures) for one in groups]

    assert counts(found.tools) == [("order", 7, 5), ("search", 7, 1), ("weather", 1, 0)]
    assert counts(found.upstreams) == [
        ("bank.example", 7, 5),
        ("shop.example", 7, 1),
        ("weather", 1, 0),
    ]
    assert counts(found.hours) == [
        (f"{DATE}T09:00Z", 5, 0),
        (f"{DATE}T10:00Z", 3, 3),
        (f"{DATE}T11:00Z", 2, 0),
        (f"{DATE}T12:00Z", 4, 3),
    ]
    assert found.hours[0].mean_ms == pytest.approx(208)
    assert found.hours[2].requests == 2  # the fallback is no call of the hour, nor its request
    kinds = [(one.name, one.failures, one.attempts, one.cured) for one in found.codes]
    assert kinds == [
        (WRONG, 2, 2, 0),
        (TIMEOUT, 1, 4, 2),
        (LIMIT, 1, 3, 0),
        (NO, 1, 1, 0),
        (REFUSED, 1, 1, 0),
    ]
    assert [one.refusal for one in found.codes] == [True, False, False, True, True]
    assert found.codes[0].share == pytest.approx(2 / 6)
    assert [one.name for one in found.top_errors] == [WRONG, TIMEOUT, LIMIT]
    assert found.top_errors[0].example == f"message of {WRONG}"
    shares = {one.name: one.failures for one in found.categories}
    assert shares == {
        "model_output": 2,
        "network": 1,
        "rate_limit": 1,
        "business": 1,
        "invalid_request": 1,
    }
    assert found.drag is not None
    assert (found.drag.tool, found.drag.failures) == ("order", 5)
    assert found.drag.success_rate_without == pytest.approx(6 / 7)
    rounds = found.corrections
    assert (rounds.corrected, rounds.open, rounds.mean_rounds) == (1, 0, 2.0)

    worth = found.worth
    assert (worth.recovered, worth.cured_retries, worth.wasted) == (1, 1, 3)
    assert (worth.told_waits, worth.waits_obeyed, worth.early_requests) == (3, 2, 1)
    assert worth.waited_s == pytest.approx(1 + 1 + 2 + 1.5)
    assert (worth.repaired, worth.verified) == (1, 1)
    assert worth.prevented == {"open": 2, "unknown": 1}
    assert (worth.duplicates_prevented, worth.open_effects) == (3, 1)
    # Of the order that is not there 4,000 bytes like "xxxx": 1,000 tokens; of the others the message.
    messages = [TIMEOUT, LIMIT, WRONG, WRONG, REFUSED]
    assert worth.body_tokens == 1_000 + sum(-(-len(f"message of {c}") // 4) for c in messages)
    assert worth.saved_tokens == worth.body_tokens - worth.fed_tokens
    assert 6 * 40 < worth.fed_tokens < 6 * 225

    def errors(name: str) -> list[tuple[str, int, int, int, int]]:
        groups = getattr(found, name)
        return [(one.name, one.calls, one.wrong, one.refused, one.repaired) for one in groups]

    assert errors("argument_tools") == [
        ("order", 7, 2, 1, 0),
        ("search", 6, 0, 0, 0),
        ("weather", 1, 0, 0, 1),
    ]
    assert errors("argument_parameters") == [
        ("1", 1, 0, 0, 1),
        ("3", 6, 0, 0, 0),
        ("6", 7, 2, 1, 0),
    ]
    assert found.argument_tools[0].error_rate == pytest.approx(3 / 7)
    assert found.verdict is not None
    assert found.verdict.looked == 6
    assert found.clusters[0].code == WRONG
    assert found.clusters[0].count == 2
