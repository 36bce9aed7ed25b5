"""Results as Temporal's errors, tools as its activities; against the SDK's own types and test environment."""

import dataclasses
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import temporalio.api.common.v1
import temporalio.api.failure.v1
from temporalio.activity import _Definition
from temporalio.common import RetryPolicy
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from failwise import Runtime, ToolError, ToolResult, UsageError
from failwise.connect.temporal import as_application_error, retry_policy, tool_activity
from failwise.effects.identity import arguments_fingerprint, effect_key
from failwise.journal.journal import Journal
from failwise.testing import ScriptedTool, SteppingClock
from failwise.vocabulary.steps import Claim

UNAVAILABLE = ToolError("busy", code="server.unavailable", effect="rejected", transient=True)
RESET = ToolError("reset", code="network.connection_reset", effect="unknown", transient=True)
SLOW = ToolError(
    "slow down", code="rate_limit.requests", effect="rejected", transient=True, retry_after=3600
)


class Engine:
    """What a Temporal server does for one activity: attempts, delays, heartbeat details. Each attempt
    is another worker, with a runtime and a clock of its own over one journal."""

    def __init__(self, tool: ScriptedTool, folder: Path, **options: Any) -> None:
        self.tool, self.folder, self.options = tool, folder, options
        self.policy = options.pop("policy", retry_policy())
        self.wall, self.attempt = 1_800_000_000.0, 0
        self.details: list[Any] = []
        self.delays: list[float] = []
        self.keeps_details = True

    async def once(self, **fields: Any) -> Any:
        """One attempt."""
        self.attempt += 1
        clock = SteppingClock()
        clock.now = 100.0 * self.attempt
        clock.epoch = self.wall - clock.now
        self.tool.clock = clock
        journal = Journal(self.folder / "journal.db", clock=clock)
        runtime = Runtime(journal, clock=clock, jitter=0)
        runtime.add(self.tool.spec())
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info,
            **{
                "activity_id": "7",
                "workflow_id": "order-1",
                "workflow_run_id": "run-1",
                "attempt": self.attempt,
                "heartbeat_details": list(self.details) if self.keeps_details else [],
                "retry_policy": self.policy,
                **fields,
            },
        )
        beats: list[Any] = []
        environment.on_heartbeat = lambda *details: beats.append(details)
        activity = tool_activity(runtime, self.tool.name, **self.options)
        try:
            return await environment.run(activity, {"sku": "A-1"})
        finally:
            if beats:
                self.details = await _over_the_wire(list(beats[-1]))
            runtime.close()
            journal.close()

    async def run(self, **fields: Any) -> Any:
        """Attempts until one is final, after the delays that the errors name."""
        while True:
            try:
                return await self.once(**fields)
            except ApplicationError as raised:
                if raised.non_retryable:
                    raise
                error = _failure_over_the_wire(raised)
            assert error.next_retry_delay is not None, "the engine's own backoff would decide"
            assert error.category is ApplicationErrorCategory.BENIGN
            self.delays.append(error.next_retry_delay.total_seconds())
            self.wall += self.delays[-1]


async def _over_the_wire(values: list[Any]) -> list[Any]:
    """Values as they come back from a server."""
    converter = DataConverter.default
    return await converter.decode(await converter.encode(values))


def _failure_over_the_wire(error: ApplicationError) -> ApplicationError:
    """An error as the SDK sends it and reads it."""
    converter = DataConverter.default
    sent = temporalio.api.failure.v1.Failure()
    converter.failure_converter.to_failure(error, converter.payload_converter, sent)
    read = converter.failure_converter.from_failure(sent, converter.payload_converter)
    assert isinstance(read, ApplicationError)
    return read


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    return tmp_path


async def test_the_runtime_decides_the_delays(folder: Path) -> None:
    """2 s, 4 s: each a retry of the engine's with the decided delay; one record of three attempts."""
    tool = ScriptedTool("order", [UNAVAILABLE, UNAVAILABLE, {"id": 1}])
    engine = Engine(tool, folder)
    result = ToolResult.from_dict(await engine.run())
    assert result.success
    assert engine.delays == [2.0, 4.0]
    assert [attempt.number for attempt in result.attempts] == [1, 2, 3]
    assert (result.run_id, result.call_id) == ("order-1/run-1", "7")
    assert tool.requests == engine.attempt == 3


async def test_a_long_wait_is_the_engines(folder: Path) -> None:
    """An hour, told by the upstream: a little added, never less."""
    engine = Engine(ScriptedTool("look", [SLOW, "there"], read_only=True), folder)
    assert ToolResult.from_dict(await engine.run()).value == "there"
    (delay,) = engine.delays
    assert 3600.0 <= delay <= 3601.0


async def test_an_attempt_that_comes_early_sends_nothing(folder: Path) -> None:
    """A server that retries before the time is told the rest of it."""
    tool = ScriptedTool("look", [SLOW, "there"], read_only=True)
    engine = Engine(tool, folder)
    with pytest.raises(ApplicationError):
        await engine.once()
    engine.wall += 1000.0
    with pytest.raises(ApplicationError) as early:
        await engine.once()
    assert early.value.next_retry_delay is not None
    assert early.value.next_retry_delay.total_seconds() == pytest.approx(2600.0, abs=2)
    assert tool.requests == 1


async def test_a_final_failure_is_data_or_an_error(folder: Path) -> None:
    """By default the activity gives the failure; with `raises` it ends the activity for good."""
    tool = ScriptedTool("order", [RESET])
    result = ToolResult.from_dict(await Engine(tool, folder).run())
    assert result.stop_reason == "unsafe_effect"
    engine = Engine(ScriptedTool("order", [RESET]), folder / "other", raises=True)
    (folder / "other").mkdir()
    with pytest.raises(ApplicationError) as final:
        await engine.run()
    assert final.value.type == "network.connection_reset"
    assert final.value.non_retryable
    read = _failure_over_the_wire(final.value)
    assert ToolResult.from_dict(read.details[0]).failure is not None


async def test_a_worker_that_died_is_found_in_the_journal(folder: Path) -> None:
    """An effect that a dead worker may have sent is not sent again: waited for, then reported unknown."""
    tool = ScriptedTool("order", [{"id": 1}])
    engine = Engine(tool, folder)
    journal = Journal(folder / "journal.db", clock=SteppingClock(engine.wall))
    arguments = {"sku": "A-1"}
    fingerprint = arguments_fingerprint("order", arguments)
    key = effect_key("order-1/run-1", "7")
    claim = Claim(key, fingerprint, "order-1/run-1", "order", "7", arguments)
    assert journal.claim(claim, "dead", 5.0).result(5).state == "granted"
    journal.close()
    engine.attempt = 1
    result = ToolResult.from_dict(await engine.run())
    assert result.failure is not None
    assert result.failure.code == "runtime.effect_open"
    assert sum(engine.delays) == pytest.approx(5.0, abs=0.1)
    assert tool.requests == 0


async def test_the_engines_attempt_is_the_calls(folder: Path) -> None:
    """Where no details came along, the attempts that nobody kept count all the same."""
    tool = ScriptedTool("look", [UNAVAILABLE], read_only=True)
    engine = Engine(tool, folder)
    engine.keeps_details = False
    result = ToolResult.from_dict(await engine.run())
    assert result.stop_reason == "retries_exhausted"
    assert [attempt.number for attempt in result.attempts] == [3]
    assert tool.requests == 3


@pytest.mark.parametrize(
    "fields", [{"is_local": True}, {"retry_policy": RetryPolicy(maximum_attempts=1)}]
)
async def test_where_the_engine_does_not_repeat_the_call_waits_itself(
    folder: Path, fields: dict[str, Any]
) -> None:
    """Local activities, and those with one attempt, end in that attempt."""
    tool = ScriptedTool("look", [UNAVAILABLE, "there"], read_only=True)
    engine = Engine(tool, folder)
    assert ToolResult.from_dict(await engine.once(**fields)).value == "there"
    assert tool.requests == 2


async def test_a_policy_that_may_end_earlier_is_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Retries of the engine's own number are warned of."""
    engine = Engine(ScriptedTool("look", ["there"], read_only=True), folder)
    with caplog.at_level(logging.WARNING, "failwise"):
        await engine.once(retry_policy=RetryPolicy(maximum_attempts=4))
        await engine.once(retry_policy=RetryPolicy(maximum_attempts=4))
    assert caplog.text.count("allows 4 attempts") == 1


def test_the_policy_adds_nothing_of_its_own() -> None:
    """Errors name their delay; what is left is a dead worker, after 1 s each time. The SDK takes it."""
    policy = retry_policy()
    assert (policy.initial_interval, policy.backoff_coefficient) == (timedelta(seconds=1), 1.0)
    assert policy.maximum_attempts == 0
    sent = temporalio.api.common.v1.RetryPolicy()
    retry_policy(maximum_attempts=5).apply_to_proto(sent)
    assert sent.maximum_attempts == 5


def test_results_as_errors() -> None:
    """What may be repeated says when; anything else is final; a success is none."""
    with pytest.raises(UsageError, match="a success"):
        as_application_error(ToolResult("look", True, 1))
    runtime = Runtime(":memory:", jitter=0)
    for name, answer in (("look", SLOW), ("order", RESET)):
        runtime.add(ScriptedTool(name, [answer], asynchronous=False, upstream=name).spec())
    later = as_application_error(runtime.call_sync("look", {}))
    assert later.next_retry_delay is not None
    assert timedelta(seconds=3590) < later.next_retry_delay <= timedelta(seconds=3600)
    assert not later.non_retryable
    final = as_application_error(runtime.call_sync("order", {}))
    assert final.non_retryable
    assert final.type == "network.connection_reset"
    assert str(final).startswith("network.connection_reset: order: ")
    runtime.close()


def test_the_activity_is_one_to_the_sdk() -> None:
    """It has a definition, a name, and one parameter."""
    runtime = Runtime(":memory:")
    runtime.add(ScriptedTool("look", [1], read_only=True).spec())
    definition = _Definition.must_from_callable(tool_activity(runtime, "look"))
    assert definition.name == "failwise.look"
    assert definition.is_async
    named = tool_activity(runtime, "look", name="mine")
    assert _Definition.must_from_callable(named).name == "mine"
    with pytest.raises(UsageError, match="register it first"):
        tool_activity(runtime, "nothing")
