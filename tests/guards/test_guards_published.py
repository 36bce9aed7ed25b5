"""Published retry cases of the AWS SDKs, under a policy and guards that express their standard mode.

The whole way is walked: a real HTTP answer, the classifier, the table, the guards; on a clock that
is stepped, so that every delay is seen and none is slept.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import failwise
from failwise.faults import Fault, FaultServer, Reply
from failwise.guards import MemoryGuards, default_settings, parse_settings
from failwise.testing import SteppingClock
from failwise.vocabulary.kinds import StopReason

SHARED = Path(__file__).parents[3] / "shared" / "external" / "retry_policy" / "cases.jsonl"

OUTCOMES = {
    "success": StopReason.SUCCEEDED,
    "max_attempts_exceeded": StopReason.RETRIES_EXHAUSTED,
    "retry_quota_exceeded": StopReason.RETRY_BUDGET,
}

FIRST, SECOND = "standard_v2", "standard_v2.1"


def policy(attempts: int, base: float, cap: float) -> Mapping[str, Any]:
    """Standard mode as a policy: exponential delays, by the class of the failure."""
    ill = {"strategy": "exponential", "base": base, "cap": cap, "retries": attempts - 1}
    ill |= {"retries_read": attempts - 1, "multiplier": 2.0}
    throttled = {**ill, "base": 1.0}
    return {
        "retries_ceiling": max(attempts - 1, 0),
        "network": ill,
        "server": ill,
        "rate_limit": throttled,
    }


def guards(tokens: int, transient_cost: int) -> str:
    """Standard mode as guards: only the quota speaks."""
    return (
        f"[retries]\ncapacity = {tokens}\ntransient_cost = {transient_cost}\nthrottle_cost = 5\n"
        "floor = 1000000\nparallel_floor = 1000000\n"
        "[breaker]\nconsecutive = 1000000\nlone_attempts = 1000000\nminimum = 1000\nsample = 1000\n"
    )


def own_cases() -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """The same rules in cases of our own: quota before and after, delays, why it ended."""

    def response(status: int, outcome: str, quota: int, delay: float | None = None) -> Any:
        expected = {"outcome": outcome, "retry_quota": quota}
        return {
            "response": {"status_code": status},
            "expected": expected if delay is None else {**expected, "delay": delay},
        }

    again = "retry_request"
    yield (
        "cured at the second",
        {},
        [response(503, again, 486, 0.05), response(200, "success", 500)],
    )
    yield (
        "throttled twice",
        {},
        [
            response(429, again, 495, 1.0),
            response(429, again, 490, 2.0),
            response(429, "max_attempts_exceeded", 490),
        ],
    )
    yield (
        "the quota ends before the attempts",
        {"initial_retry_tokens": 30, "max_attempts": 6},
        [
            response(500, again, 16, 0.05),
            response(500, again, 2, 0.1),
            response(500, "retry_quota_exceeded", 2),
        ],
    )
    yield (
        "throttling after a fault is cheap",
        {"initial_retry_tokens": 20},
        [
            response(500, again, 6, 0.05),
            response(429, again, 1, 2.0),
            response(500, "max_attempts_exceeded", 1),
        ],
    )
    yield "a first try that is refused", {}, [response(404, "not retried", 500)]


def shared_cases() -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    """The published ones, where they are at hand; the adaptive limiter is none of ours."""
    if SHARED.is_file():
        for line in SHARED.read_text("utf-8").splitlines():
            case = json.loads(line)
            if case["set"] in (FIRST, SECOND):
                yield case["set"], case["name"], case["given"], case["responses"]


def play(mode: str, given: Mapping[str, Any], responses: Sequence[Mapping[str, Any]]) -> None:
    """Send one call into an upstream that answers so, and compare step by step."""
    clock = SteppingClock()
    tokens = given.get("initial_retry_tokens", 500)
    figures = guards(max(tokens, 0), 5 if mode == FIRST else 14)
    memory = MemoryGuards(clock, parse_settings(figures, base=default_settings()))
    rows = policy(
        given.get("max_attempts", 3),
        given.get("exponential_base", 1) * (1.0 if mode == FIRST else 0.05),
        given.get("max_backoff_time", 20),
    )
    quotas: list[int] = []

    def answer(_request: Any, number: int) -> Reply:
        quotas.append(memory.statistics()[0]["quota"])
        response = responses[number - 1]["response"]
        body = {"__type": response["error_code"]} if "error_code" in response else {"m": 1}
        return Fault.status(response["status_code"], json=body)

    with FaultServer() as server:
        server.route("GET", "/", [answer])
        runtime = failwise.Runtime(":memory:", policy=rows, guards=memory, clock=clock, jitter=0)
        runtime.add(
            failwise.HttpTool("look", "GET", server.url("/"), profile="aws", read_only=True)
        )
        result = runtime.call_sync("look", {})
        runtime.close()
    assert len(quotas) == len(responses), "one request for each response"
    again = [one["expected"] for one in responses[:-1]]
    for number, expected in enumerate(again):
        assert expected["outcome"] == "retry_request"
        assert clock.sleeps[number] == pytest.approx(expected["delay"])
        if "retry_quota" in expected:
            assert quotas[number + 1] == expected["retry_quota"]
    last = responses[-1]["expected"]
    outcome = OUTCOMES.get(last["outcome"])
    assert result.stop_reason == outcome or outcome is None
    assert result.success == (last["outcome"] == "success")
    if "retry_quota" in last:
        assert memory.statistics()[0]["quota"] == last["retry_quota"]
    if "delay" in last:  # a long poll backs off though it is not repeated
        assert clock.sleeps[-1] == pytest.approx(last["delay"])
    elif last["outcome"] != "retry_quota_exceeded":
        assert len(clock.sleeps) == len(again)


@pytest.mark.parametrize(
    ("given", "responses"), [pytest.param(*case[1:], id=case[0]) for case in own_cases()]
)
def test_standard_mode_in_our_own_cases(given: Any, responses: Any) -> None:
    """Cost by class, refund, delays by class, end by quota or by attempts."""
    play(SECOND, given, responses)


@pytest.mark.skipif(not SHARED.is_file(), reason="the published cases are not here")
def test_standard_mode_in_the_published_cases() -> None:
    """Outcome, quota and delay of each published case."""
    cases = list(shared_cases())
    assert len(cases) >= 8
    for mode, name, given, responses in cases:
        try:
            play(mode, given, responses)
        except AssertionError as error:
            raise AssertionError(f"{mode}: {name}: {error}") from error
