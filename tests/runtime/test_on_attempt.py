"""`Runtime.on_attempt`: every failed attempt is told as soon as it is decided what follows."""

from typing import Any

import pytest

from failwise import Action, Attempt, Runtime, StopReason, ToolError
from failwise.testing import ScriptedTool, SteppingClock
from failwise.vocabulary.steps import Call

Heard = list[tuple[str, int, str, Action, float]]


def unavailable() -> ToolError:
    return ToolError("down", code="server.unavailable", effect="rejected", transient=True)


def listening(runtime: Runtime, clock: SteppingClock) -> Heard:
    heard: Heard = []

    @runtime.on_attempt
    def hear(call: Call, attempt: Attempt) -> None:
        assert attempt.failure is not None
        assert attempt.decision is not None
        action = attempt.decision.action
        heard.append(
            (call.call_id, attempt.number, attempt.failure.code, action, clock.monotonic())
        )

    return heard


async def test_each_failed_attempt_is_told_before_its_wait(
    rt: Runtime, clock: SteppingClock
) -> None:
    """Two failures and a success: two are told, each at the moment it failed."""
    heard = listening(rt, clock)
    rt.add(ScriptedTool("ask", [unavailable(), unavailable(), "fine"], read_only=True))
    result = await rt.call("ask", {}, call_id="call_1")
    assert result.success
    assert heard == [
        ("call_1", 1, "server.unavailable", Action.RETRY_BACKOFF, 0.0),
        ("call_1", 2, "server.unavailable", Action.RETRY_BACKOFF, 2.0),
    ]


def test_what_was_not_sent_has_number_0(rt: Runtime, clock: SteppingClock) -> None:
    """A call refused before it was sent is told as well, once; so under the sync driver."""
    heard = listening(rt, clock)
    result = rt.call_sync("nowhere", {}, call_id="call_1")
    assert result.stop_reason is StopReason.INVALID_ARGUMENTS
    assert heard == [("call_1", 0, "model_output.unknown_tool", Action.ASK_MODEL, 0.0)]


async def test_a_callback_that_raises_goes_no_further(
    rt: Runtime, clock: SteppingClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener's own failure is logged; the call and the other listeners go on."""

    @rt.on_attempt
    def broken(call: Call, attempt: Attempt) -> Any:
        raise RuntimeError("listener")

    heard = listening(rt, clock)
    rt.add(ScriptedTool("ask", [unavailable(), "fine"], read_only=True))
    assert (await rt.call("ask", {})).success
    assert len(heard) == 1
    assert "on_attempt callback" in caplog.text
