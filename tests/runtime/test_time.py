"""Time limits, and work that ends after them."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from failwise import Category, Effect, Runtime, StopReason, ToolError
from failwise.journal.journal import Journal
from failwise.runtime import background
from failwise.testing import Expire, ScriptedTool, SteppingClock
from tests.runtime.observed import in_flight, states

Make = Callable[..., Runtime]


class WatchedJournal(Journal):
    """A journal that says when an effect was settled as done."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.done = threading.Event()

    def settle(self, key: str, state: str, result: Any = None) -> None:
        super().settle(key, state, result)
        if state == "done":
            self.done.set()


async def test_an_async_tool_past_its_time(rt: Runtime, clock: SteppingClock) -> None:
    """A tool that never answers is cancelled at its limit; a read is asked again, with more time."""
    tool = ScriptedTool("read", [Expire(), "found"], clock=clock, read_only=True, timeout=10)
    rt.add(tool)
    result = await rt.call("read")
    assert result.value == "found"
    assert tool.times == [0, 11]
    failure = result.attempts[0].failure
    assert failure
    assert (failure.category, failure.effect) == (Category.NETWORK, Effect.UNKNOWN)
    assert "10" in failure.message
    assert clock._alarms == []


async def test_a_write_past_its_time_is_unknown(rt: Runtime, clock: SteppingClock) -> None:
    """It may have happened: one request, nothing held, and the claim stays open."""
    tool = ScriptedTool("order", [Expire()], clock=clock, timeout=10)
    rt.add(tool)
    result = await rt.call("order")
    assert result.stop_reason is StopReason.UNSAFE_EFFECT
    assert tool.requests == 1
    assert states(rt) == ["unknown"]


async def test_an_alarm_is_armed_only_for_a_tool_that_suspends(
    rt: Runtime, clock: SteppingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timers are lazy, and each one that was armed is taken down: none leaks."""
    armed = []
    alarm = clock.alarm

    def counted(*arguments: Any) -> Any:
        armed.append(1)
        return alarm(*arguments)

    monkeypatch.setattr(clock, "alarm", counted)

    @rt.tool(read_only=True, timeout=5)
    async def at_once() -> int:
        return 1

    @rt.tool(read_only=True, timeout=5)
    async def suspends() -> int:
        await asyncio.sleep(0)
        return 1

    @rt.tool(read_only=True, timeout=5)
    async def breaks() -> int:
        await asyncio.sleep(0)
        raise ToolError("no", code="business.not_found")

    for _ in range(50):
        await rt.call("at_once")
    assert not armed
    for name in ("suspends", "breaks"):
        await rt.call(name)
    assert len(armed) == 2
    assert clock._alarms == []


async def test_a_tool_that_ends_in_the_moment_of_its_alarm(
    rt: Runtime, clock: SteppingClock
) -> None:
    """Where a tool answers the alarm with a value, the value counts and no cancellation lingers."""

    @rt.tool(read_only=True, timeout=5)
    async def stubborn() -> str:
        try:
            await clock.expire()
        except asyncio.CancelledError:
            return "just in time"
        return "never"

    assert (await rt.call("stubborn")).value == "just in time"
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_tool_that_breaks_on_its_alarm_is_past_its_time(
    rt: Runtime, clock: SteppingClock
) -> None:
    """What a tool raises while it is cancelled for its time is not the reason."""

    @rt.tool(timeout=5)
    async def messy() -> None:
        try:
            await clock.expire()
        finally:
            raise ValueError("cleaning up failed")

    result = await rt.call("messy")
    assert result.failure
    assert result.failure.category is Category.NETWORK
    await asyncio.sleep(0)


async def test_a_timeout_of_the_tools_own_is_its_own(rt: Runtime) -> None:
    """A `TimeoutError` that a tool raises is an answer, not our limit."""

    @rt.tool(timeout=60, thread=False)
    def own() -> None:
        raise TimeoutError("the database took too long")

    result = await rt.call("own")
    assert result.failure
    assert result.failure.category is Category.NETWORK
    assert isinstance(result.failure.exception, TimeoutError)


@pytest.mark.parametrize("driver", ["sync", "asyncio"])
def test_a_sync_tool_past_its_time(make: Make, tmp_path: Path, driver: str) -> None:
    """It returns in time, the work keeps its slot, and what came of it is settled when it ends."""
    journal = WatchedJournal(tmp_path / "watched.db")
    rt = make(journal=journal)
    go = threading.Event()

    @rt.tool(timeout=0.05)
    def order() -> str:
        assert go.wait(30)
        return "placed"

    result = rt.call_sync("order") if driver == "sync" else asyncio.run(rt.call("order"))
    assert result.failure
    assert result.failure.effect is Effect.UNKNOWN
    assert in_flight(rt) == 1
    assert states(rt) == ["unknown"]
    go.set()
    assert journal.done.wait(10)
    assert states(rt) == ["done"]
    assert in_flight(rt) == 0
    journal.close()


def test_late_work_that_failed_safely_is_not_done(make: Make, tmp_path: Path) -> None:
    """Late news that the upstream refused before acting frees the effect."""
    journal = Journal(tmp_path / "journal.db")
    rt = make(journal=journal)
    go, ended = threading.Event(), threading.Event()
    settled: list[str] = []
    settle = journal.settle

    def watch(key: str, state: str, result: Any = None) -> None:
        settle(key, state, result)
        settled.append(state)
        if len(settled) == 2:
            ended.set()

    journal.settle = watch  # type: ignore[method-assign]

    @rt.tool(timeout=0.05)
    def order() -> None:
        assert go.wait(30)
        raise ToolError("sold out", code="business.out_of_stock", effect="rejected")

    rt.call_sync("order")
    go.set()
    assert ended.wait(10)
    assert settled == ["unknown", "not_done"]
    assert states(rt) == ["not_done"]
    assert in_flight(rt) == 0
    journal.close()


@pytest.mark.parametrize("driver", ["sync", "asyncio"])
def test_a_tool_that_found_no_thread_was_not_sent(
    make: Make, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    """Threads that late tools hold do not make the next order unknown: it never began."""
    rt, go = make(policy={"retry_not_sent": False}), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(background, "pool", lambda: pool)
        busy = pool.submit(go.wait, 30)

        @rt.tool(timeout=0.05)
        def order() -> str:
            raise AssertionError("it never begins")

        result = rt.call_sync("order") if driver == "sync" else asyncio.run(rt.call("order"))
        go.set()
        busy.result(10)
    assert result.failure
    assert result.failure.code == "network.pool_timeout"
    assert result.effect is Effect.NOT_SENT
    assert states(rt) == ["not_done"]


def test_many_calls_do_not_wait_for_the_threads_they_hold(make: Make) -> None:
    """`call_many_sync` of timed sync tools, more than there are threads, even nested: no deadlock."""
    rt = make()

    @rt.tool(read_only=True, timeout=30)
    def leaf(n: int) -> int:
        return n

    @rt.tool(read_only=True, timeout=30)
    def branch(n: int) -> int:
        return sum(r.unwrap() for r in rt.call_many_sync([("leaf", {"n": i}) for i in range(n)]))

    results = rt.call_many_sync([("leaf", {"n": n}) for n in range(300)])
    assert [r.value for r in results] == list(range(300))
    assert [r.value for r in rt.call_many_sync([("branch", {"n": 4})] * 20)] == [6] * 20


async def test_thread_false_runs_where_it_is_called(rt: Runtime) -> None:
    """``thread=False``: a quick sync tool costs no thread; else it has one of its own."""
    where: list[str] = []

    @rt.tool(thread=False, read_only=True)
    def quick() -> None:
        where.append(threading.current_thread().name)

    @rt.tool(read_only=True)
    def slow() -> None:
        where.append(threading.current_thread().name)

    await rt.call("quick")
    await rt.call("slow")
    assert where[0] == threading.current_thread().name
    assert where[1] != where[0]
