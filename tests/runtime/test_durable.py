"""Calls that an engine keeps: laid down at a wait, taken up by another process, nothing done twice."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise import Runtime, ToolError, ToolResult
from failwise.effects.identity import arguments_fingerprint, effect_key
from failwise.journal.journal import Journal
from failwise.runtime.durable import LaidDown, go_on, go_on_async
from failwise.testing import ScriptedTool, SteppingClock
from failwise.vocabulary.kinds import Action, Effect, StopReason
from failwise.vocabulary.steps import Claim, Durable

UNAVAILABLE = ToolError("busy", code="server.unavailable", effect="rejected", transient=True)
RESET = ToolError("reset", code="network.connection_reset", effect="unknown", transient=True)


def told(seconds: float) -> ToolError:
    """A rate limit that names its wait."""
    return ToolError(
        "slow down", code="rate_limit.requests", effect="rejected", transient=True, retry_after=seconds
    )  # fmt: skip


class Processes:
    """Lives of one job: each has its own runtime and clock, all have one journal and one wall time."""

    def __init__(self, folder: Path | None, **options: Any) -> None:
        self.place = ":memory:" if folder is None else str(folder / "journal.db")
        self.wall = 1_800_000_000.0
        self.options = options
        self.waits: list[float] = []
        self.lives = 0
        self._open: list[Runtime] = []
        self._shared: Journal | None = None

    def runtime(self, tool: ScriptedTool, *more: ScriptedTool) -> Runtime:
        """A process just started: its monotonic clock is its own."""
        self.lives += 1
        clock = SteppingClock()
        clock.now = 1000.0 * self.lives
        clock.epoch = self.wall - clock.now
        self.clock = clock
        if self._shared is None or self.place != ":memory:":
            self._shared = Journal(self.place, clock=clock)
        runtime = Runtime(self._shared, jitter=0, clock=clock, **self.options)
        for each in (tool, *more):
            each.clock = clock
            runtime.add(each.spec())
        self._open.append(runtime)
        return runtime

    def live(
        self,
        tool: ScriptedTool,
        *more: ScriptedTool,
        durable: Durable | None = None,
        arguments: dict[str, Any] | None = None,
        deadline: float | None = None,
        anew: bool = True,
    ) -> ToolResult[Any]:
        """The call to its end, each piece of it in a process of its own (`anew`) or all in one."""
        kept, runtime = None, self.runtime(tool, *more)
        while True:
            run = runtime.run(id="job", deadline=deadline)
            outcome = go_on(
                run, tool.name, (arguments or {},), {"call_id": "c"}, durable or Durable(), kept
            )
            if not isinstance(outcome, LaidDown):
                return outcome
            json.loads(outcome.kept)
            self.waits.append(outcome.seconds)
            self.wall = outcome.until
            assert self.clock.time() + outcome.seconds == pytest.approx(outcome.until)
            kept = outcome.kept
            if anew:
                runtime = self.runtime(tool, *more)
            else:
                self.clock.advance(outcome.seconds)

    def close(self) -> None:
        for runtime in self._open:
            runtime.close()
        if self._shared is not None:
            self._shared.close()


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    processes.close()


def shape(result: ToolResult[Any]) -> Any:
    """What a result says, times apart."""
    return (
        result.success,
        result.value,
        result.stop_reason,
        result.suggested_action,
        result.retry_at is not None,
        [
            (a.number, a.failure and a.failure.code, a.decision and round(a.decision.delay, 6))
            for a in result.attempts
        ],
    )


def test_every_wait_between_attempts_is_the_engines(lives: Processes) -> None:
    """A write refused twice is sent three times, from three processes; its attempts are one record."""
    tool = ScriptedTool("order", [UNAVAILABLE, UNAVAILABLE, {"id": 1}], asynchronous=False)
    result = lives.live(tool)
    assert result.success
    assert lives.waits == [2.0, 4.0]
    assert tool.requests == lives.lives == 3
    assert [attempt.number for attempt in result.attempts] == [1, 2, 3]
    assert [round(attempt.started) for attempt in result.attempts] == [0, 2, 6]
    assert [context.attempt for context in tool.contexts] == [1, 2, 3]
    assert len({context.idempotency_key for context in tool.contexts}) == 1


def test_a_finished_effect_is_not_sent_again(lives: Processes) -> None:
    """The engine that lost the answer asks again from the beginning: the journal gives it."""
    tool = ScriptedTool("order", [{"id": 1}], asynchronous=False)
    first, again = lives.live(tool), lives.live(tool)
    assert first.success
    assert again.success
    assert again.value == {"id": 1}
    assert again.extra["replayed"]
    assert tool.requests == 1


def _dead(lives: Processes, tool: str, arguments: dict[str, Any], lease: float) -> None:
    """A claim of a process that died while it was sending."""
    journal = Journal(lives.place, clock=SteppingClock(lives.wall))
    claim = Claim(
        effect_key("job", "c"),
        arguments_fingerprint(tool, arguments),
        "job",
        tool,
        "c",
        arguments,
    )
    assert journal.claim(claim, "dead", lease).result(5).state == "granted"
    journal.close()


def test_what_was_in_flight_at_a_crash_is_unknown(lives: Processes) -> None:
    """Its lease is waited for, longer each time and holding no slot; then it is reported, not sent."""
    tool = ScriptedTool("order", [{"id": 1}], asynchronous=False)
    _dead(lives, "order", {}, 20.0)
    result = lives.live(tool)
    assert tool.requests == 0
    assert result.failure is not None
    assert result.failure.code == "runtime.effect_open"
    assert result.effect is Effect.UNKNOWN
    assert lives.waits == pytest.approx([0.5, 1.0, 2.0, 4.0, 8.0, 4.5], abs=0.01)


def test_what_was_in_flight_is_verified_where_somebody_can(lives: Processes) -> None:
    """`verify` found it: the call is done, and nothing is sent."""
    tool = ScriptedTool(
        "order", [{"id": 1}], asynchronous=False, verify=lambda arguments: {"id": 7}
    )
    _dead(lives, "order", {}, 1.0)
    result = lives.live(tool)
    assert result.success
    assert result.verified
    assert result.value == {"id": 7}
    assert tool.requests == 0


def test_an_honoured_key_is_sent_again_after_a_crash(lives: Processes) -> None:
    """With a key that the upstream honours, the effect in flight is sent again under the same key."""
    tool = ScriptedTool("order", [{"id": 1}], asynchronous=False, idempotency_key="Idempotency-Key")
    _dead(lives, "order", {}, 1.0)
    assert lives.live(tool).success
    assert [context.idempotency_key for context in tool.contexts] == [effect_key("job", "c")]


def test_an_unknown_effect_with_a_key_goes_on_after_the_wait(lives: Processes) -> None:
    """Between the attempts the claim is open, not held; the next process takes it up."""
    tool = ScriptedTool(
        "order", [RESET, UNAVAILABLE, {"id": 1}], asynchronous=False, idempotency_key="Key"
    )
    result = lives.live(tool)
    assert result.success
    assert tool.requests == 3
    assert lives.waits == [5.0, 4.0]


def test_an_unknown_effect_without_a_key_ends(lives: Processes) -> None:
    """Nothing to wait for: it may have happened."""
    tool = ScriptedTool("order", [RESET], asynchronous=False)
    result = lives.live(tool)
    assert result.stop_reason is StopReason.UNSAFE_EFFECT
    assert tool.requests == 1
    assert lives.waits == []


def test_a_wait_that_is_handed_back_otherwise_is_waited_for(lives: Processes) -> None:
    """An hour told by the upstream: a little added, never less; the decision says so."""
    tool = ScriptedTool("look", [told(3600), "there"], asynchronous=False, read_only=True)
    result = lives.live(tool)
    assert result.success
    (wait,) = lives.waits
    assert 3600.0 <= wait <= 3601.0
    decision = result.attempts[0].decision
    assert decision is not None
    assert (decision.action, decision.stop) == (Action.RETRY_LATER, None)
    assert decision.delay == pytest.approx(wait)


def test_waits_that_are_too_long_or_too_many_are_handed_back(lives: Processes) -> None:
    """`longest_wait` and `times` bound them; then the result says when, as without an engine."""
    tool = ScriptedTool("look", [told(3600)], asynchronous=False, read_only=True)
    result = lives.live(tool, durable=Durable(times=2))
    assert tool.requests == 3
    assert result.stop_reason is StopReason.WAIT_TOO_LONG
    assert result.suggested_action is Action.RETRY_LATER
    lives.waits.clear()
    result = lives.live(tool, durable=Durable(longest_wait=600.0))
    assert lives.waits == []
    assert result.retry_at == pytest.approx(lives.wall + 3600)


def test_another_tool_is_asked_before_a_long_wait(lives: Processes) -> None:
    """Waiting an hour is the last resort."""
    tool = ScriptedTool(
        "look", [told(3600)], asynchronous=False, read_only=True, fallback=("cache",)
    )
    cache = ScriptedTool("cache", ["old"], asynchronous=False, read_only=True)
    result = lives.live(tool, cache)
    assert result.degraded_to == "cache"
    assert lives.waits == []


def test_another_tool_that_failed_is_not_asked_again(lives: Processes) -> None:
    """What the other tool said before the long wait is kept with the call."""
    tool = ScriptedTool(
        "look",
        [told(3600), "there"],
        asynchronous=False,
        read_only=True,
        fallback=("cache",),
        upstream="a",
    )
    gone = ToolError("gone", code="business.not_found", effect="rejected", transient=False)
    cache = ScriptedTool("cache", [gone], asynchronous=False, read_only=True, upstream="b")
    result = lives.live(tool, cache)
    assert result.value == "there"
    assert (tool.requests, cache.requests) == (2, 1)


def test_an_open_circuit_is_waited_for(tmp_path: Path) -> None:
    """A guard that says until when is asked again then; no request is lost to it."""
    shut = ScriptedTool("look", [UNAVAILABLE], asynchronous=False, read_only=True, upstream="u")
    good = ScriptedTool("see", ["there"], asynchronous=False, read_only=True, upstream="u")
    lives = Processes(tmp_path)
    runtime = lives.runtime(shut, good)
    while not any(upstream["circuit"] == "open" for upstream in runtime.upstreams()):
        runtime.call_sync("look", {})
    sent, kept = shut.requests + good.requests, None
    for _ in range(5):
        outcome = go_on(runtime.run(id="job"), "see", ({},), {"call_id": "c"}, Durable(), kept)
        if not isinstance(outcome, LaidDown):
            break
        assert shut.requests + good.requests == sent
        kept = outcome.kept
        lives.clock.advance(outcome.seconds)
    assert isinstance(outcome, ToolResult)
    assert outcome.success
    assert good.requests == 1
    lives.close()


def test_the_deadline_goes_on_while_nobody_runs(lives: Processes) -> None:
    """A wait beyond it is not begun; the time of earlier processes counts."""
    tool = ScriptedTool("look", [told(20), told(20), "there"], asynchronous=False, read_only=True)
    result = lives.live(tool, deadline=30.0)
    assert result.stop_reason is StopReason.DEADLINE
    assert len(lives.waits) == 1
    assert tool.requests == 2


def test_another_policy_begins_anew(lives: Processes, caplog: pytest.LogCaptureFixture) -> None:
    """Where the machine would have gone another way, it says so and starts over, counting what was sent."""
    tool = ScriptedTool("order", [UNAVAILABLE, {"id": 1}], asynchronous=False)
    runtime = lives.runtime(tool)
    down = go_on(runtime.run(id="job"), "order", ({},), {"call_id": "c"}, Durable())
    assert isinstance(down, LaidDown)
    lives.options = {"policy": {"server": {"retries": 0}}}
    with caplog.at_level(logging.WARNING, "failwise"):
        other = lives.runtime(tool)
        result = go_on(other.run(id="job"), "order", ({},), {"call_id": "c"}, Durable(), down.kept)
    assert "begins anew" in caplog.text
    assert isinstance(result, ToolResult)
    assert result.success
    assert tool.requests == 2
    assert tool.contexts[-1].attempt == 2


@pytest.mark.parametrize("kept", ['{"form": 99}', "[]", '"x"'])
def test_an_unknown_form_begins_anew(lives: Processes, kept: str) -> None:
    """What another version kept is no reason to fail."""
    tool = ScriptedTool("look", ["there"], asynchronous=False, read_only=True)
    runtime = lives.runtime(tool)
    result = go_on(runtime.run(id="job"), "look", ({},), {"call_id": "c"}, Durable(), kept)
    assert isinstance(result, ToolResult)
    assert result.success


def test_corrected_arguments_stay_corrected(lives: Processes) -> None:
    """A fixer's answer is kept with the call: it is asked once, and both forms are claimed again."""
    asked = []

    def fixer(tool: str, arguments: dict[str, Any], failure: Any) -> dict[str, Any]:
        asked.append(arguments)
        return {"size": 100}

    refused = ToolError(
        "size: too large", code="invalid_request.parameter", effect="rejected", transient=False
    )
    tool = ScriptedTool(
        "order",
        [refused, UNAVAILABLE, {"id": 1}],
        asynchronous=False,
        schema={"type": "object", "properties": {"size": {"type": "integer"}}},
    )
    lives.options = {"fixer": fixer}
    result = lives.live(tool, arguments={"size": 500})
    assert result.success
    assert len(asked) == 1
    assert tool.sent == [{"size": 500}, {"size": 100}, {"size": 100}]


def test_attempts_that_nobody_kept_count(lives: Processes) -> None:
    """The engine's own attempt becomes the call's: numbers go on, and retries are used up."""
    tool = ScriptedTool("look", [UNAVAILABLE], asynchronous=False, read_only=True)
    runtime = lives.runtime(tool)
    outcome = go_on(
        runtime.run(id="job"), "look", ({},), {"call_id": "c"}, Durable(), None, earlier=2
    )
    assert isinstance(outcome, ToolResult)
    assert [attempt.number for attempt in outcome.attempts] == [3]
    assert outcome.stop_reason is StopReason.RETRIES_EXHAUSTED


def test_whoever_listens_hears_of_each_attempt_once(lives: Processes) -> None:
    """What is told again to the machine is told to nobody else, and the call is recorded once."""
    tool = ScriptedTool("look", [UNAVAILABLE, UNAVAILABLE, 1], asynchronous=False, read_only=True)
    heard, ended, kept = [], [], None
    while True:
        runtime = lives.runtime(tool)
        runtime.on_attempt(lambda call, attempt: heard.append(attempt.number))
        runtime.on_result(ended.append)
        outcome = go_on(runtime.run(id="job"), "look", ({},), {"call_id": "c"}, Durable(), kept)
        if not isinstance(outcome, LaidDown):
            break
        kept, lives.wall = outcome.kept, outcome.until
    assert heard == [1, 2]
    assert len(ended) == 1


async def test_async_tools_are_kept_alike(lives: Processes) -> None:
    """The asyncio driver lays calls down too, and a cancelled one leaves its effect unknown."""
    tool = ScriptedTool("order", [UNAVAILABLE, {"id": 1}])
    down = await go_on_async(
        lives.runtime(tool).run(id="job"), "order", ({},), {"call_id": "c"}, Durable()
    )
    assert isinstance(down, LaidDown)
    lives.wall = down.until
    done = await go_on_async(
        lives.runtime(tool).run(id="job"), "order", ({},), {"call_id": "c"}, Durable(), down.kept
    )
    assert isinstance(done, ToolResult)
    assert done.success
    assert tool.requests == 2


ANSWERS = st.sampled_from([UNAVAILABLE, RESET, told(1.0), told(20.0), told(100.0), {"id": 1}])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ANSWERS, min_size=1, max_size=6),
    st.sampled_from([{"read_only": True}, {}, {"idempotent": True}, {"idempotency_key": "Key"}]),
)
def test_where_it_runs_makes_no_difference(answers: list[Any], declared: dict[str, Any]) -> None:
    """A call over many processes ends as the same call in one, attempt for attempt; and where no wait
    was handed back, as a call that no engine keeps."""
    results = []
    for anew in (True, False):
        lives = Processes(None)
        tool = ScriptedTool("order", answers, asynchronous=False, **declared)
        results.append((shape(lives.live(tool, anew=anew)), tool.requests, lives.waits))
        lives.close()
    lives = Processes(None)
    tool = ScriptedTool("order", answers, asynchronous=False, **declared)
    plain = lives.runtime(tool).run(id="job").call_sync("order", {}, call_id="c")
    lives.close()
    assert results[0] == results[1]
    if max(results[0][2], default=0) <= 30 and plain.stop_reason is not StopReason.WAIT_TOO_LONG:
        assert results[0][0] == shape(plain)
