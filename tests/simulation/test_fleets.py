"""Whole fleets: what is promised of Failwise in trouble, beside what other strategies do there."""

from dataclasses import replace
from typing import Any

import pytest

from failwise.simulation import Outcome, Scenario, built_in, compare, load, parse
from failwise.simulation.contenders import contender
from failwise.simulation.fleet import Fleet
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Call

QUICK = {
    "outage": (40, 2400.0),
    "brown_out": (100, 450.0),
    "slow_recovery": (60, 1000.0),
    "rate_limit": (60, 1400.0),
    "deploy": (60, 1800.0),
    "second_fault": (64, 600.0),
    "loop": (1, 300.0),
    "large_fleet": (1000, 900.0),
    "steady": (100, 600.0),
}
"""Agents and seconds at which a scenario shows the same in a second or two."""


def small(name: str) -> Scenario:
    agents, seconds = QUICK[name]
    return load(name).scaled(agents).lasting(seconds)


def outcomes(scenario: Scenario, *names: str) -> list[Outcome]:
    return compare(scenario, names)


@pytest.mark.parametrize("name", built_in())
def test_what_holds_in_every_scenario(name: str) -> None:
    """At most 1.1 requests a call, no effect done twice, none hidden, every call counted; and of a
    fleet with shared guards not one request comes before a told wait is over."""
    own, shared = outcomes(small(name), "failwise", "failwise_shared")
    for outcome in (own, shared):
        assert outcome.calls > 50
        assert outcome.per_call <= 1.1
        assert outcome.per_call_in_trouble is None or outcome.per_call_in_trouble <= 1.1
        assert outcome.duplicates == 0
        assert outcome.unreported == 0
        assert sum(outcome.timeline.requests) <= outcome.requests
        assert outcome.successes <= outcome.calls
    assert shared.early == 0


def test_sixty_four_callers_and_a_retry_that_sets_off_a_second_fault() -> None:
    """E27: three minutes in which repeating makes it worse. At most 1.1 requests a call from us, some
    three from those without guards; and our callers get more good answers than theirs."""
    ours, blanket, exponential = outcomes(
        load("second_fault"), "failwise", "blanket", "exponential"
    )
    assert ours.per_call_in_trouble is not None
    assert ours.per_call_in_trouble <= 1.1
    for other in (blanket, exponential):
        assert other.per_call_in_trouble is not None
        assert other.per_call_in_trouble > 2.5
        assert ours.successes > other.successes


LONE = """
seconds = 180
[agents]
count = 1
think = 60.0
[upstreams.shop]
[[events]]
kind = "outage"
how = "error"
"""


def test_a_lone_caller_still_gets_its_two_retries() -> None:
    """E27: nobody else burdens the upstream, so its first failing call is repeated as the policy says."""
    requests: list[int] = []

    class Noting(Fleet):
        def _finished(self, call: Call, result: ToolResult[Any]) -> None:
            requests.append(call.requests)  # type: ignore[attr-defined]
            super()._finished(call, result)

    scenario = parse(LONE)
    Noting(scenario, contender("failwise", scenario)).play()
    assert requests[0] == 3


def test_an_agent_that_asks_again_and_again_is_not_passed_on() -> None:
    """A model told to "try again": hundreds of requests in three minutes, or a handful."""
    ours, blanket = outcomes(load("loop"), "failwise", "blanket")
    assert blanket.per_call_in_trouble is not None
    assert ours.per_call_in_trouble is not None
    assert blanket.requests > 350
    assert ours.per_call_in_trouble < 0.1


def test_a_brown_out_does_not_outlive_its_cause() -> None:
    """Without guards the repeats keep the upstream full for ever; with them it is well in a minute or
    two. The guards are what does it, not the policy's delays."""
    ours, blanket, bare = outcomes(small("brown_out"), "failwise", "blanket", "without_guards")
    assert ours.recovers
    assert ours.recovery is not None
    assert ours.recovery < 150
    assert not blanket.recovers
    assert not bare.recovers
    assert ours.goodput > 1.5 * blanket.goodput


def test_few_errors_are_cured_and_cost_little() -> None:
    """One per cent of errors: nearly all reads are cured, for one per cent more requests. Writes are not
    repeated: others do effects twice here, or hide some that happened."""
    ours, blanket, nothing = outcomes(load("deploy").scaled(60), "failwise", "blanket", "no_retry")
    assert blanket.duplicates > 5
    assert nothing.unreported > 2
    assert (ours.duplicates, ours.unreported) == (0, 0)
    failed, unrepeated = 1 - ours.success_rate, 1 - nothing.success_rate
    assert failed < 0.4 * unrepeated
    assert ours.per_call <= 1.02


def test_told_waits_are_kept_and_pay_off() -> None:
    """A third of the rate with Retry-After: others burn requests on refusals, we wait and get through."""
    shared, blanket = outcomes(small("rate_limit"), "failwise_shared", "blanket")
    assert shared.early == 0
    assert blanket.early > 1000
    assert shared.success_rate > 0.98 > blanket.success_rate


def test_after_an_outage_the_probes_open_the_door() -> None:
    """Ten minutes out: next to nothing is sent meanwhile, and all are back within one open time."""
    ours, shared = outcomes(small("outage"), "failwise", "failwise_shared")
    for outcome in (ours, shared):
        assert outcome.per_call_in_trouble is not None
        assert outcome.per_call_in_trouble < 0.1
        assert outcome.recovers
        assert outcome.recovery is not None
        assert outcome.recovery <= 300 + outcome.timeline.step


def test_the_same_seed_gives_the_same_figures() -> None:
    """A simulation is a function of its scenario; another seed is another run of it."""
    scenario = small("second_fault")
    first, again = (outcomes(scenario, "failwise")[0].to_dict() for _ in range(2))
    assert first == again
    assert outcomes(replace(scenario, seed=2), "failwise")[0].to_dict() != first


def test_callers_of_an_open_arrival_do_not_wait_for_their_turn() -> None:
    """With `arrivals` the calls come at their rate, however slow the answers are."""
    scenario = small("brown_out")
    (outcome,) = outcomes(scenario, "no_retry")
    expected = scenario.agents.arrivals
    assert expected is not None
    assert outcome.calls / scenario.seconds == pytest.approx(expected, rel=0.05)


def test_what_a_scenario_says_of_policy_and_guards_is_in_force() -> None:
    """``[policy]`` and ``[guards]`` are those of a configuration file; a contender's lie above them."""
    text = """
    seconds = 120
    [agents]
    count = 4
    think = 5.0
    [upstreams.shop]
    errors = 1.0
    [policy.server]
    retries = 0
    [contenders.patient]
    kind = "failwise"
    guarded = false
    [contenders.patient.policy.server]
    retries = 1
    base = 0.1
    """
    plain, patient = outcomes(parse(text), "failwise", "patient")
    assert plain.requests <= plain.calls
    assert patient.requests == 2 * patient.calls


def test_a_deadline_ends_the_wait_for_a_slot() -> None:
    """One slot, slow answers, many callers: whoever has no slot in time is told so, and nothing hangs."""
    text = """
    seconds = 60
    [agents]
    count = 20
    think = 1.0
    deadline = 2.0
    [upstreams.shop]
    median = 1.0
    p99 = 1.0
    [guards.concurrency]
    limit = 1
    """
    (outcome,) = outcomes(parse(text), "failwise")
    assert outcome.calls > 200
    assert outcome.declined > 50
    assert outcome.p99 <= 2.0
    assert outcome.waiting <= 2.0 * outcome.calls
