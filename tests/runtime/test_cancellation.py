"""Cancellation and interruption at every point of a call; callers that wait for a slot."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from failwise import CallContext, Effect, Runtime, StopReason, ToolError
from failwise.guards import MemoryGuards
from failwise.guards.settings import default_settings, parse_settings
from failwise.journal.journal import Journal
from failwise.testing import ScriptedTool, SteppingClock, recorded
from failwise.vocabulary.steps import Claim, Claimed
from tests.runtime.observed import in_flight, states

Make = Callable[..., Runtime]


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
