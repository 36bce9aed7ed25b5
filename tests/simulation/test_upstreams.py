"""The simulated upstream: a line before servers, limits, faults; and the strategies of others."""

import random
from dataclasses import replace
from typing import Any

import pytest

from failwise.simulation import load, parse
from failwise.simulation.answers import GOOD, Judge, Trouble
from failwise.simulation.contenders import Retry, contender
from failwise.simulation.scenario import Event, UpstreamPlan
from failwise.simulation.strategy import Bucket, run_retry
from failwise.simulation.upstream import NEVER, Upstream, share_of
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Answer, Call, Invoke, Wait

PLAN = UpstreamPlan("shop", 0.1, 0.1, 1, 2, None, 1.0, True, 0.0, 0.0, 0.5, 0.0)
EVENT = Event("outage", "shop", 10.0, 20.0, 1.0, "refused", 1.0, 1, 5.0, 1)


def upstream(*events: Event, **changes: Any) -> Upstream:
    return Upstream(replace(PLAN, **changes), events, 1)


def ask(shop: Upstream, now: float, task: int = 1, **about: Any) -> tuple[str, float]:
    """The kind of the answer and how long it takes."""
    answer, seconds = shop.receive(
        task, about.get("repeats", False), about.get("write", False), about.get("key"), now
    )
    value = answer.value
    return (value.kind if isinstance(value, Trouble) else "good"), seconds


def test_requests_stand_in_line_and_a_full_line_refuses() -> None:
    """One server, a line of two: the second and third wait their turn, the fourth gets a 503."""
    shop = upstream()
    assert ask(shop, 0.0) == ("good", pytest.approx(0.1))
    assert ask(shop, 0.0) == ("good", pytest.approx(0.2))
    assert ask(shop, 0.0) == ("good", pytest.approx(0.3))
    assert ask(shop, 0.0)[0] == "unavailable"
    assert ask(shop, 0.25) == ("good", pytest.approx(0.15))
    assert ask(shop, 9.0) == ("good", pytest.approx(0.1))


def test_service_times_have_the_median_and_tail_that_were_asked_for() -> None:
    """10,000 draws: within 5 % of the median, within 15 % of the 99th percentile."""
    shop = upstream(p99=0.5, capacity=1_000_000)
    drawn = sorted(ask(shop, number)[1] for number in range(10_000))
    assert drawn[5_000] == pytest.approx(0.1, rel=0.05)
    assert drawn[9_900] == pytest.approx(0.5, rel=0.15)


def test_an_outage_begins_and_ends() -> None:
    """Refused at once; or silence without end; or a 500."""
    for how, kind in (("refused", "refused"), ("silent", "good"), ("error", "error")):
        shop = upstream(replace(EVENT, how=how))
        assert ask(shop, 9.99)[0] == "good"
        answer, seconds = ask(shop, 10.0)
        assert answer == kind
        assert (seconds == NEVER) == (how == "silent")
        assert ask(shop, 20.0)[0] == "good"


def test_a_brown_out_slows_and_a_recovery_speeds_up() -> None:
    """Half the speed takes twice as long; a recovery goes from its speed to the usual."""
    slow = upstream(replace(EVENT, kind="brown_out", speed=0.5))
    assert ask(slow, 15.0)[1] == pytest.approx(0.2)
    back = upstream(replace(EVENT, kind="slow_recovery", speed=0.2))
    assert ask(back, 10.0)[1] == pytest.approx(0.5)
    assert ask(back, 15.0)[1] == pytest.approx(0.1 / 0.6)
    assert ask(back, 20.0)[1] == pytest.approx(0.1)


def test_a_rate_limit_says_until_when_and_counts_who_comes_early() -> None:
    """Two a second: the third is told to wait, and whoever comes before that is early."""
    shop = upstream(replace(EVENT, kind="rate_limit", rate=2), capacity=100)
    assert [ask(shop, 10.1)[0] for _ in range(3)] == ["good", "good", "throttled"]
    answer, _ = shop.receive(1, False, False, None, 10.2)
    assert isinstance(answer.value, Trouble)
    assert answer.value.wait == 1.0
    assert shop.early == 1
    assert ask(shop, 11.3)[0] == "good"
    assert shop.early == 1


def test_a_second_fault_is_set_off_by_a_repetition_only() -> None:
    """One 500 by chance; without a repetition all is well, with one everybody fails for a while."""
    event = replace(EVENT, kind="second_fault", lasts=2.0)
    quiet = upstream(event, capacity=100)
    assert [ask(quiet, 11.0 + at)[0] for at in range(3)] == ["error", "good", "good"]
    loud = upstream(event, capacity=100)
    assert ask(loud, 11.0)[0] == "error"
    assert ask(loud, 11.5, repeats=True)[0] == "error"
    assert ask(loud, 12.0, task=2)[0] == "error"
    assert ask(loud, 13.6, task=3)[0] == "good"


def test_effects_are_counted_by_task_and_once_for_a_key() -> None:
    """Two sends of a write are two effects; under an honoured key they are one."""
    shop = upstream(capacity=100)
    for _ in range(2):
        ask(shop, 0.0, task=1, write=True)
        ask(shop, 0.0, task=2, write=True, key="k")
    assert shop.effects == {1: 2, 2: 1}


def test_a_refusal_is_the_same_whenever_it_is_asked_for() -> None:
    """A sound "no" belongs to the task, so that repeating does not cure it."""
    shop = upstream(refusals=0.1, capacity=1_000_000)
    first = [ask(shop, 0.0, task)[0] for task in range(1000)]
    assert [ask(shop, 1.0, task)[0] for task in range(1000)] == first
    assert first.count("no") == pytest.approx(100, abs=30)
    assert sum(share_of(task) for task in range(10_000)) == pytest.approx(5_000, rel=0.03)


def test_answers_are_judged_by_the_real_classifier() -> None:
    """What a simulated 500, 503, 429, refusal and silence mean is not written down a second time."""
    judge = Judge()
    codes = {
        kind: judge.failure(Answer(Trouble(kind)), False)
        for kind in ("refused", "error", "unavailable", "throttled", "no")
    }
    codes["silent"] = judge.failure(Answer(expired=True), False)
    assert judge.failure(GOOD, True) is None
    assert {kind: found.code for kind, found in codes.items() if found} == {
        "refused": "network.connect_refused",
        "error": "server.internal",
        "unavailable": "server.unavailable",
        "throttled": "rate_limit.requests",
        "no": "business.not_found",
        "silent": "network.timeout",
    }
    assert codes["refused"] is not None
    assert codes["refused"].effect is Effect.NOT_SENT
    told = judge.failure(Answer(Trouble("throttled", 7.0)), True)
    assert told is not None
    assert told.retry_after == 7.0


def strategy(name: str) -> Retry:
    found = contender(name, load("outage"))
    assert isinstance(found, Retry)
    return found


def play(
    name: str, kinds: list[Any], bucket: Bucket | None = None
) -> tuple[int, list[float], bool]:
    """Requests, waits and success of one call that gets these answers in turn."""
    call = Call(ToolSpec("search", read_only=True, timeout=1.0), {"task": 1}, "c", "r", "k")
    machine = run_retry(call, strategy(name), bucket, random.Random(1))
    sent, waits, reply = 0, [], None
    try:
        while True:
            step = machine.send(reply)
            if isinstance(step, Invoke):
                kind = kinds[sent]
                sent += 1
                reply = GOOD if kind is None else Answer(Trouble(kind))
            elif isinstance(step, Wait):
                waits.append(step.seconds)
                reply = None
    except StopIteration as stop:
        return sent, waits, stop.value.success


@pytest.mark.parametrize(
    ("name", "kinds", "sent", "most", "success"),
    [
        ("blanket", ["error", "error", "error"], 3, [], False),
        ("blanket", ["no", "no", "no"], 3, [], False),
        ("exponential", ["error", "error", None], 3, [(1, 2), (2, 3)], True),
        ("aws_standard", ["error", "error", "error"], 3, [(0, 1), (0, 2)], False),
        ("aws_standard", ["no"], 1, [], False),
        ("aws_standard_2026", ["error", "throttled", None], 3, [(0, 0.05), (0, 2)], True),
        ("no_retry", ["error"], 1, [], False),
    ],
)
def test_the_strategies_of_others_do_as_they_are_documented(
    name: str, kinds: list[Any], sent: int, most: list[tuple[float, float]], success: bool
) -> None:
    """Tries, the bounds of each wait, and what is repeated at all."""
    really, waits, ended = play(name, kinds)
    assert (really, ended) == (sent, success)
    assert len(waits) == len(most)
    for wait, (lowest, highest) in zip(waits, most, strict=True):
        assert lowest <= wait <= highest


def test_the_quota_of_aws_is_that_of_its_specification() -> None:
    """500 tokens; 5 a retry, 10 after a timeout; a cured call gets its last cost back, a clean one 1."""
    quota = strategy("aws_standard").quota
    assert quota is not None
    bucket = Bucket(quota)
    assert play("aws_standard", ["error", "error", "error"], bucket)[0] == 3
    assert bucket.left == 490
    assert play("aws_standard", ["error", None], bucket)[2]
    assert bucket.left == 490
    play("aws_standard", [None], bucket)
    assert bucket.left == 491
    assert (bucket.pay("silent"), bucket.left) == (10, 481)
    bucket.left = 4
    assert play("aws_standard", ["error"], bucket) == (1, [], False)


def test_a_world_of_many_upstreams() -> None:
    """Each tool calls its own upstream; what happens to one does not touch the other."""
    from failwise.simulation import compare

    scenario = parse(
        """
        seconds = 120
        [agents]
        count = 20
        think = 1.0
        [[tools]]
        name = "search"
        upstream = "index"
        [[tools]]
        name = "order"
        upstream = "shop"
        write = true
        [upstreams.index]
        price = 1.0
        [upstreams.shop]
        [[events]]
        kind = "outage"
        upstream = "shop"
        """
    )
    (outcome,) = compare(scenario)
    assert 0.4 < outcome.success_rate < 0.6
    assert outcome.duplicates == 0
    assert outcome.money == pytest.approx(outcome.successes)
