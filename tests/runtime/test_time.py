"""Time limits, work that ends late, and cancellation at every point of a call."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from failwise import CallContext, Category, Effect, Runtime, StopReason, ToolError
from failwise.guards import MemoryGuards
from failwise.guards.settings import default_settings, parse_settings
from failwise.journal.journal import Journal
from failwise.runtime import background
from failwise.testing import Expire, ScriptedTool, SteppingClock, recorded
from failwise.vocabulary.steps import Claim, Claimed

Make = Callable[..., Runtime]


def in_flight(rt: Runtime) -> int:
    """Slots held, over all upstreams."""
    return sum(row["in_flight"] for row in rt._guards.statistics())  # type: ignore[attr-defined]


def states(rt: Runtime) -> list[str]:
    """The states of all claims."""
    return [row[0] for row in rt.journal.rows("SELECT state FROM claims ORDER BY claimed_at")]


class WatchedJournal(Journal):
    """A journal that says when an effect was settled as done."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.done = threading.Event()

    def settle(self, key: str, state: str, result: Any = None) -> None:
        super().settle(key, state, result)
        if state == "done":
            self.done.set()


# Limits


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


# Cancellation


class Trap:
    """A place where a call stands still until it is cancelled."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def stand(self, *_: Any) -> Any:
        self.reached.set()
        await asyncio.Event().wait()


class TrapClock(SteppingClock):
    """A clock on which a wait never ends, once a trap is set."""

    trap: Trap | None = None

    async def sleep_async(self, seconds: float) -> None:
        if self.trap is not None:
            await self.trap.stand()
        await super().sleep_async(seconds)


class SlowClaims(Journal):
    """A journal whose claims are on disk, but whose answer to the caller is held back."""

    reached: Callable[[], Any] | None = None

    def claim(self, step: Claim, owner: str | None = None, lease: float = 60) -> "Future[Claimed]":
        written = super().claim(step, owner, lease)
        if self.reached is None:
            return written
        written.result(10)
        self.reached()
        held: Future[Claimed] = Future()
        held.set_running_or_notify_cancel()
        return held


def refused() -> ToolError:
    return ToolError("x", code="network.connect_refused", effect="not_sent")


@pytest.mark.parametrize(
    ("point", "state", "effect"),
    [
        ("slot", None, Effect.NOT_SENT),
        ("claim", "not_done", Effect.NOT_SENT),
        ("credential", "unknown", Effect.UNKNOWN),
        ("invoke", "unknown", Effect.UNKNOWN),
        ("thread", "unknown", Effect.UNKNOWN),
        ("wait", "not_done", Effect.NOT_SENT),
        ("refresh", "not_done", Effect.REJECTED),
        ("verify", "unknown", Effect.UNKNOWN),
        ("fallback", "unknown", Effect.UNKNOWN),  # it may have happened through the other door
    ],
)
@pytest.mark.parametrize("named", [True, False], ids=["shared", "alone"])
async def test_cancelled_at_every_point(
    tmp_path: Path, point: str, state: str | None, effect: Effect, named: bool
) -> None:
    """Wherever it is cancelled: CancelledError after the record, claim and record agree, no slot lost."""
    clock = TrapClock()
    journal = SlowClaims(tmp_path / "journal.db")
    guards = MemoryGuards(
        clock, parse_settings("[concurrency]\nlimit = 1", base=default_settings())
    )
    rt = Runtime(journal, clock=clock, jitter=0, guards=guards, callback_timeout=30)
    results, trap, go = recorded(rt), Trap(), threading.Event()
    loop = asyncio.get_running_loop()
    answers: dict[str, Any] = {
        "wait": refused(),
        "refresh": ToolError("x", code="auth.credential_expired", effect="rejected"),
        "verify": ToolError("x", code="network.read_timeout"),
        "fallback": ToolError("x", code="tool.exception", effect="rejected", transient=False),
    }

    async def perform(arguments: Any, context: Any) -> Any:
        if point == "invoke":
            await trap.stand()
        if point in answers:
            raise answers[point]
        return "done"

    def perform_sync() -> None:
        loop.call_soon_threadsafe(trap.reached.set)
        go.wait(30)

    if point == "thread":
        rt.add(perform_sync, name="order", credential="shop", upstream="u")
    else:
        rt.add(
            spec_of(
                perform,
                verify=trap.stand if point == "verify" else None,
                fallback=("other",) if point == "fallback" else (),
            )
        )

    async def stand() -> None:
        await trap.stand()

    rt.add(stand, name="other")
    rt.credential(
        "shop",
        trap.stand if point == "credential" else "secret-1",
        refresh=trap.stand if point == "refresh" else None,
    )
    if point == "wait":
        clock.trap = trap
    if point == "claim":
        journal.reached = trap.reached.set
    holder = None
    if point == "slot":
        rt.add(stand, name="holder", upstream="u", read_only=True)
        holder = asyncio.create_task(rt.call("holder"))
        await trap.reached.wait()
    where = rt.run("job") if named else rt
    task = asyncio.create_task(where.call("order", {}, call_id="c1"))
    await trap.reached.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if holder is not None:
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)
    parents = [r for r in results if r.tool_name == "order"]
    assert [r.failure.code for r in parents if r.failure] == ["runtime.cancelled"]
    assert parents[0].stop_reason is StopReason.CANCELLED
    assert parents[0].effect is effect
    rows = journal.rows("SELECT state FROM claims WHERE call_id = 'c1'")
    assert [row[0] for row in rows] == ([] if state is None else [state])
    assert len(journal.rows("SELECT * FROM calls WHERE tool = 'order'")) == 1
    go.set()
    while point == "thread" and in_flight(rt):
        await asyncio.to_thread(lambda: None)
    assert in_flight(rt) == 0
    for stray in list(rt._tasks):
        stray.cancel()
    await asyncio.gather(*rt._tasks, return_exceptions=True)
    rt.close()
    journal.close()


def spec_of(call: Any, **declarations: Any) -> Any:
    """The tool "order" of upstream u, with the credential "shop"."""
    from failwise import ToolSpec

    return ToolSpec("order", call_async=call, credential="shop", upstream="u", **declarations)


@pytest.mark.parametrize(
    ("point", "state"),
    [("invoke", "unknown"), ("wait", "not_done"), ("refresh", "not_done"), ("fallback", "unknown")],
)
def test_interrupted_at_every_point(tmp_path: Path, point: str, state: str) -> None:
    """Ctrl-C in `call_sync`: it comes out after the record, claim and record agree, no slot lost."""

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    clock = SteppingClock()
    if point == "wait":
        clock.sleep = stop  # type: ignore[method-assign]
    rt = Runtime(tmp_path / "journal.db", clock=clock, jitter=0)
    results = recorded(rt)
    answer: Any = {
        "invoke": KeyboardInterrupt(),
        "wait": refused(),
        "refresh": ToolError("x", code="auth.credential_expired", effect="rejected"),
        "fallback": ToolError("x", code="tool.exception", effect="rejected", transient=False),
    }[point]
    rt.credential("shop", "secret-1", refresh=stop if point == "refresh" else None)
    rt.add(
        ScriptedTool(
            "order",
            [answer],
            asynchronous=False,
            credential="shop",
            fallback=("other",) if point == "fallback" else (),
        )
    )
    rt.add(ScriptedTool("other", [KeyboardInterrupt()], asynchronous=False))
    with pytest.raises(KeyboardInterrupt):
        rt.run("job").call_sync("order", {}, call_id="c1")
    assert [r.stop_reason for r in results][-1] is StopReason.CANCELLED
    rows = rt.journal.rows("SELECT state FROM claims WHERE call_id = 'c1'")
    assert [row[0] for row in rows] == [state]
    assert in_flight(rt) == 0
    rt.close()


async def test_cancelled_after_any_number_of_ticks(make: Make) -> None:
    """However many turns of the loop it was given: nothing held, no claim left under way."""
    rt = make()
    sent = []

    @rt.tool(timeout=5)
    async def order(n: int) -> int:
        sent.append(n)
        for _ in range(3):
            await asyncio.sleep(0)
        return n

    run = rt.run("job")
    for ticks in range(40):
        task = asyncio.create_task(run.call("order", {"n": ticks}, call_id=f"c{ticks}"))
        for _ in range(ticks % 8):
            await asyncio.sleep(0)
        if ticks >= 8:
            await asyncio.to_thread(rt.journal.flush)  # lets claims be answered in between
            for _ in range(ticks // 8):
                await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert in_flight(rt) == 0
        assert "claimed" not in states(rt)
    rows = rt.journal.rows("SELECT call_id, state FROM claims")
    unsent = [row[0] for row in rows if row[1] == "not_done"]
    assert not [call_id for call_id in unsent if int(call_id[1:]) in sent]
    assert (await run.call("order", {"n": 99}, call_id="c99")).success


async def test_an_outer_timeout_counts_as_cancellation(make: Make) -> None:
    """`asyncio.timeout` around a call works as ever, also inside our own limit."""
    rt = make()
    results = recorded(rt)

    limit = asyncio.timeout(None)

    @rt.tool(timeout=60)
    async def order() -> None:
        limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with limit:
            await rt.call("order")
    assert results[0].stop_reason is StopReason.CANCELLED
    assert states(rt) == ["unknown"]


async def test_a_task_group_that_fails_closes_its_calls(make: Make) -> None:
    """A sibling's error cancels the others; their records are closed all the same."""
    rt = make()
    results, started = recorded(rt), asyncio.Event()

    @rt.tool
    async def order() -> None:
        started.set()
        await asyncio.Event().wait()

    async def fails() -> None:
        await started.wait()
        raise LookupError("sibling")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(rt.call("order"))
            group.create_task(fails())

    with pytest.raises(ExceptionGroup):
        await both()
    assert [r.stop_reason for r in results] == [StopReason.CANCELLED]
    assert in_flight(rt) == 0


async def test_a_caller_in_the_queue_gives_way(make: Make, clock: SteppingClock) -> None:
    """A cancelled caller that waited for a slot takes none; the next one gets it."""
    guards = MemoryGuards(
        clock, parse_settings("[concurrency]\nlimit = 1", base=default_settings())
    )
    rt, go, started = make(guards=guards, clock=clock), asyncio.Event(), asyncio.Event()

    @rt.tool(read_only=True)
    async def read(n: int) -> int:
        started.set()
        await go.wait()
        return n

    first = asyncio.create_task(rt.call("read", {"n": 1}))
    await started.wait()
    second, third = (asyncio.create_task(rt.call("read", {"n": n})) for n in (2, 3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    go.set()
    assert ((await first).value, (await third).value) == (1, 3)
    assert in_flight(rt) == 0


async def test_the_time_left_counts_from_the_send(make: Make, clock: SteppingClock) -> None:
    """Waiting for a slot does not eat the attempt's own time."""
    guards = MemoryGuards(
        clock, parse_settings("[concurrency]\nlimit = 1", base=default_settings())
    )
    rt, go, started = make(guards=guards, clock=clock), asyncio.Event(), asyncio.Event()
    left: list[float | None] = []

    @rt.tool(read_only=True, timeout=10)
    async def read(context: CallContext) -> None:
        left.append(context.remaining)
        started.set()
        await go.wait()

    first = asyncio.create_task(rt.call("read"))
    await started.wait()
    second = asyncio.create_task(rt.call("read"))
    await asyncio.sleep(0)
    clock.advance(4)
    go.set()
    await asyncio.gather(first, second)
    assert left == [10, 10]


@pytest.mark.parametrize("driver", ["asyncio", "sync"])
async def test_no_slot_before_the_deadline(make: Make, driver: str) -> None:
    """A caller waits for a slot until its deadline, not until somebody else is done."""
    settings = parse_settings("[concurrency]\nlimit = 1", base=default_settings())
    rt, go, started = make(), asyncio.Event(), asyncio.Event()
    rt._guards_made = MemoryGuards(rt.clock, settings)

    @rt.tool(read_only=True)
    async def read() -> None:
        started.set()
        await go.wait()

    first = asyncio.create_task(rt.call("read"))
    await started.wait()
    if driver == "asyncio":
        second = await rt.call("read", {}, deadline=0.05)
    else:
        second = await asyncio.to_thread(rt.call_sync, "read", {}, deadline=0.05)
    assert second.failure
    assert second.failure.code in ("runtime.concurrency", "runtime.deadline")
    assert second.sent == 0
    go.set()
    assert (await first).success
    assert in_flight(rt) == 0


async def test_many_cancelled_together(make: Make) -> None:
    """Cancelling `call_many` cancels and closes each of its calls."""
    rt = make()
    results, started = recorded(rt), asyncio.Event()

    @rt.tool
    async def order(n: int) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(rt.call_many([("order", {"n": n}) for n in range(5)]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(results) == 5
    assert in_flight(rt) == 0
    assert "claimed" not in states(rt)
