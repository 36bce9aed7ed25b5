"""`failwise.testing`, which users' tests stand on: stepped time, scripted tools, kept calls."""

import asyncio
import threading
from typing import Any

import pytest

from failwise import Runtime, ToolError
from failwise.testing import Expire, ScriptedTool, SteppingClock, recorded


def test_time_moves_only_when_moved() -> None:
    """A sleep returns at once and moves the time; nothing else does."""
    clock = SteppingClock(epoch=1000.0)
    assert (clock.monotonic(), clock.time()) == (0.0, 1000.0)
    clock.sleep(2.5)
    asyncio.run(clock.sleep_async(1.5))
    clock.advance(6)
    assert (clock.monotonic(), clock.time()) == (10.0, 1010.0)
    assert clock.sleeps == [2.5, 1.5]


async def test_alarms_go_off_in_order_once() -> None:
    """An alarm rings when the time passes it, the earliest first, and never when it was taken down."""
    clock, rung = SteppingClock(), []
    loop = asyncio.get_running_loop()
    for at in (3, 1, 2):
        clock.alarm(loop, at, lambda at=at: rung.append(at))
    cancelled = clock.alarm(loop, 1, lambda: rung.append("no"))
    cancelled.cancel()
    cancelled.cancel()
    clock.advance(2)
    clock.advance(2)
    clock.advance(2)
    assert rung == [1, 2, 3]


def test_the_clock_serves_threads() -> None:
    """Many threads sleeping on one clock lose no second."""
    clock = SteppingClock()
    threads = [
        threading.Thread(target=lambda: [clock.sleep(1) for _ in range(200)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert clock.monotonic() == 1600
    assert len(clock.sleeps) == 1600


async def test_a_wait_that_nothing_limits_is_said() -> None:
    """`expire` on a tool without a time limit would hang a test for ever: it raises."""
    with pytest.raises(RuntimeError, match="no timeout"):
        await SteppingClock().expire()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_script_is_played_in_order_and_its_last_answer_repeats(asynchronous: bool) -> None:
    """Values, exceptions (instances and types), functions of the arguments; what was asked is kept."""
    clock = SteppingClock()
    tool = ScriptedTool(
        "read",
        [1, ToolError("no", code="business.not_found"), KeyError, lambda arguments: arguments["n"]],
        clock=clock,
        after=0.5,
        asynchronous=asynchronous,
        read_only=True,
    )
    with Runtime(":memory:", clock=clock) as rt:
        results = recorded(rt)
        rt.add(tool)
        for n in range(5):
            rt.call_sync("read", {"n": n})
    assert [r.value for r in results] == [1, None, None, 3, 4]
    assert [r.failure.code for r in results if r.failure] == [
        "business.not_found",
        "tool.exception",
    ]
    assert tool.requests == 5
    assert tool.sent == [{"n": n} for n in range(5)]
    assert tool.times == [0, 0.5, 1, 1.5, 2]
    assert [context.attempt for context in tool.contexts] == [1] * 5


async def test_an_answer_that_never_comes() -> None:
    """`Expire()`: the tool's time limit passes at once, by the clock."""
    clock = SteppingClock()
    tool = ScriptedTool("read", [Expire(), "late"], clock=clock, read_only=True, timeout=30)
    async with Runtime(":memory:", clock=clock, jitter=0) as rt:
        rt.add(tool)
        result = await rt.call("read")
    assert result.value == "late"
    assert tool.times == [0, 31]


async def test_two_that_never_answer_at_once() -> None:
    """Several hanging tools on one clock each come to their own limit."""
    clock = SteppingClock()
    async with Runtime(":memory:", clock=clock, jitter=0, policy={"retry_not_sent": False}) as rt:
        for name, limit in (("slow", 30), ("quick", 10)):
            rt.add(ScriptedTool(name, [Expire()], clock=clock, timeout=limit))
        results = await rt.call_many(["slow", "quick"])
    codes: list[Any] = [r.failure.category.value for r in results if r.failure]
    assert codes == ["network", "network"]
    assert clock._alarms == []
