"""An effect happens at most once: shared results, claims, replays, open effects, verification."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from failwise import Action, Effect, Runtime, StopReason, ToolError
from failwise.journal.journal import Journal
from failwise.testing import ScriptedTool, SteppingClock, recorded

Make = Callable[..., Runtime]


def lost() -> ToolError:
    return ToolError("reset by peer", code="network.connection_reset")


def claims(rt: Runtime) -> list[tuple[str, str]]:
    """Every claim of the journal as (call id, state)."""
    return [tuple(row) for row in rt.journal.rows("SELECT call_id, state FROM claims")]


# Shared results


async def test_two_identical_calls_at_once_share_one_send(rt: Runtime) -> None:
    """One key, two callers at once: one request, the same result for both."""
    go, started, sent = asyncio.Event(), asyncio.Event(), []

    @rt.tool
    async def order(sku: str) -> str:
        sent.append(sku)
        started.set()
        await go.wait()
        return f"order of {sku}"

    run = rt.run("job")
    first = asyncio.create_task(run.call("order", '{"sku": "x"}', call_id="c1"))
    await started.wait()
    second = asyncio.create_task(run.call("order", '{"sku": "x"}', call_id="c1"))
    await asyncio.sleep(0)
    go.set()
    one, two = await asyncio.gather(first, second)
    assert sent == ["x"]
    assert one.value == two.value == "order of x"
    assert claims(rt) == [("c1", "done")]


async def test_cancelling_one_waiter_cancels_nobody_else(rt: Runtime) -> None:
    """The work has a task of its own: even its first caller may leave."""
    go, started = asyncio.Event(), asyncio.Event()

    @rt.tool
    async def order() -> str:
        started.set()
        await go.wait()
        return "placed"

    run = rt.run("job")
    first = asyncio.create_task(run.call("order", "{}", call_id="c1"))
    await started.wait()
    second = asyncio.create_task(run.call("order", "{}", call_id="c1"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()
    assert (await second).value == "placed"
    assert claims(rt) == [("c1", "done")]


async def test_the_last_waiter_takes_the_work_along(rt: Runtime) -> None:
    """When nobody waits any more the work is cancelled, and its effect noted as unknown."""
    results = recorded(rt)
    started, ended = asyncio.Event(), []

    @rt.tool
    async def order() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return "never"

    run = rt.run("job")
    waiters = [asyncio.create_task(run.call("order", "{}", call_id="c1")) for _ in range(3)]
    await started.wait()
    for waiter in waiters:
        waiter.cancel()
    await asyncio.gather(*waiters, return_exceptions=True)
    assert ended == [True]
    assert claims(rt) == [("c1", "unknown")]
    assert [r.failure.code for r in results if r.failure] == ["runtime.cancelled"]
    assert results[0].effect is Effect.UNKNOWN


def test_identical_calls_of_two_threads_share_one_send(rt: Runtime) -> None:
    """`call_sync` shares too: one thread does the work, the other gets its result."""
    started, go, sent = threading.Event(), threading.Event(), []

    @rt.tool(thread=False)
    def order() -> str:
        sent.append(1)
        started.set()
        assert go.wait(10)
        return "placed"

    run, values = rt.run("job"), []

    def work() -> None:
        values.append(run.call_sync("order", {}, call_id="c1").value)

    one, two = threading.Thread(target=work), threading.Thread(target=work)
    one.start()
    assert started.wait(10)
    two.start()
    while rt._flights[next(iter(rt._flights))].waiters < 2:
        pass
    go.set()
    one.join(10)
    two.join(10)
    assert values == ["placed", "placed"]
    assert sent == [1]


async def test_the_same_key_with_other_arguments_is_refused(rt: Runtime) -> None:
    """One call id stands for one order: other arguments under it are not sent."""
    tool = ScriptedTool("order", ["placed"])
    rt.add(tool)
    run = rt.run("job")
    assert (await run.call("order", {"n": 1}, call_id="c1")).success
    other = await run.call("order", {"n": 2}, call_id="c1")
    assert other.failure
    assert other.failure.code == "runtime.key_conflict"
    assert tool.requests == 1
    assert other.sent == 0
    assert other.effect is Effect.NOT_SENT


async def test_the_same_key_with_other_arguments_at_once_is_refused(rt: Runtime) -> None:
    """Also while the first is still under way."""
    go, started = asyncio.Event(), asyncio.Event()

    @rt.tool
    async def order(n: int) -> int:
        started.set()
        await go.wait()
        return n

    run = rt.run("job")
    first = asyncio.create_task(run.call("order", {"n": 1}, call_id="c1"))
    await started.wait()
    other = await run.call("order", {"n": 2}, call_id="c1")
    go.set()
    assert (await first).value == 1
    assert other.failure
    assert other.failure.code == "runtime.key_conflict"


# Replays


def test_a_done_call_is_handed_back_after_a_restart(make: Make, clock: SteppingClock) -> None:
    """Another process, the same run and call id: the stored result, and nothing sent."""
    first = make(clock=clock)
    first.add(ScriptedTool("order", [{"order": 7}], asynchronous=False))
    assert first.run("job").call_sync("order", {"sku": "x"}, call_id="c1").success
    first.close()
    second = make(clock=clock)
    tool = ScriptedTool("order", [{"order": 8}], asynchronous=False)
    second.add(tool)
    result = second.run("job").call_sync("order", {"sku": "x"}, call_id="c1")
    assert result.success
    assert result.value == {"order": 7}
    assert result.extra["replayed"] is True
    assert tool.requests == 0
    other = second.run("job-2").call_sync("order", {"sku": "x"}, call_id="c1")
    assert other.value == {"order": 8}


def test_a_call_that_certainly_did_not_happen_is_sent_anew(
    make: Make, clock: SteppingClock
) -> None:
    """A refusal before acting leaves nothing behind: the same call may be sent again."""
    tool = ScriptedTool(
        "order",
        [ToolError("sold out", code="business.out_of_stock", effect="rejected"), "placed"],
        asynchronous=False,
    )
    rt = make(clock=clock)
    rt.add(tool)
    run = rt.run("job")
    assert not run.call_sync("order", {}, call_id="c1").success
    assert claims(rt) == [("c1", "not_done")]
    assert run.call_sync("order", {}, call_id="c1").success
    assert claims(rt) == [("c1", "done")]


# Open effects


async def test_the_same_order_under_a_new_id_is_refused(rt: Runtime) -> None:
    """A model that repeats an order of unknown effect under a new id does not order twice."""
    tool = ScriptedTool("order", [lost(), "placed"])
    rt.add(tool)
    run = rt.run("job")
    first = await run.call("order", {"sku": "x", "n": 1}, call_id="c1")
    assert first.stop_reason is StopReason.UNSAFE_EFFECT
    again = await run.call("order", '{"n": 1, "sku": "x"}', call_id="c2")
    assert again.failure
    assert again.failure.code == "runtime.effect_open"
    assert again.suggested_action is Action.ASK_USER
    assert again.effect is Effect.UNKNOWN
    same = await run.call("order", {"sku": "x", "n": 1}, call_id="c1")
    assert same.failure
    assert same.failure.code == "runtime.effect_open"
    assert tool.requests == 1
    assert (await run.call("order", {"sku": "y", "n": 1}, call_id="c3")).success
    assert (await rt.run("job-2").call("order", {"sku": "x", "n": 1}, call_id="c1")).success


async def test_an_open_effect_is_verified_where_that_is_possible(
    make: Make, clock: SteppingClock
) -> None:
    """After a restart the order is looked up: found, so it is handed back and the claim is settled."""
    rt = make(clock=clock)
    rt.add(ScriptedTool("order", [lost()]))
    await rt.run("job").call("order", {"sku": "x"}, call_id="c1")
    await rt.aclose()
    after = make(clock=clock)
    tool = ScriptedTool("order", ["second"], verify=lambda arguments: {"order": 7})
    after.add(tool)
    for call_id in ("c1", "c2"):
        result = await after.run("job").call("order", {"sku": "x"}, call_id=call_id)
        assert result.success
        assert result.value == {"order": 7} or call_id == "c2"
        if call_id == "c1":
            assert result.verified is True
            assert tool.requests == 0
            assert claims(after) == [("c1", "done")]


async def test_an_open_effect_verified_as_final_no_is_sent(rt: Runtime) -> None:
    """`verify_final_after`: then a "no" frees the order, under its own id and under a new one."""
    for call_id in ("c1", "c2"):
        tool = ScriptedTool(
            f"order_{call_id}",
            [lost(), "placed"],
            verify=lambda arguments: False,
            verify_final_after=None,
        )
        rt.add(tool)
        run = rt.run(f"job-{call_id}")
        await run.call(tool.name, {}, call_id="c1")
        spec = rt.tools[tool.name]
        spec.verify_final_after = 20.0  # type: ignore[misc]
        before = rt.clock.monotonic()
        result = await run.call(tool.name, {}, call_id=call_id)
        assert result.value == "placed"
        assert rt.clock.monotonic() - before >= 20
        assert tool.requests == 2


async def test_a_read_needs_no_claim(rt: Runtime) -> None:
    """Reads leave no trace among the effects."""
    rt.add(ScriptedTool("read", ["x"], read_only=True))
    await rt.run("job").call("read", {}, call_id="c1")
    assert claims(rt) == []


async def test_declarations_may_depend_on_the_arguments(rt: Runtime) -> None:
    """`read_only` and `idempotent` as functions; one that raises counts as undeclared."""
    sql = ScriptedTool(
        "sql",
        [lost(), "rows", lost(), "stored", lost(), "never", lost(), "never"],
        read_only=lambda a: a["verb"] == "SELECT",
        idempotent=lambda a: {"PUT": True, "POST": False}[a["verb"]],
    )
    rt.add(sql)
    assert (await rt.call("sql", {"verb": "SELECT"})).success
    assert (await rt.call("sql", {"verb": "PUT"})).success
    assert sql.requests == 4
    posted = await rt.call("sql", {"verb": "POST"})
    assert posted.stop_reason is StopReason.UNSAFE_EFFECT
    assert sql.requests == 5
    sql.answers.insert(5, lost())
    assert (await rt.call("sql", {"verb": "MERGE"})).stop_reason is StopReason.UNSAFE_EFFECT
    assert sql.requests == 6
    assert [call for call, _ in claims(rt)] != []


# Verification


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_verify_that_raises_means_dont_know(rt: Runtime, asynchronous: bool) -> None:
    """A callback that breaks is no answer; the order stays unknown and is not sent again."""

    async def broken_async(arguments: Any) -> None:
        raise ValueError("no database")

    def broken(arguments: Any) -> None:
        raise ValueError("no database")

    tool = ScriptedTool("order", [lost()], verify=broken_async if asynchronous else broken)
    rt.add(tool)
    result = await rt.call("order")
    assert result.stop_reason is StopReason.UNSAFE_EFFECT
    assert result.verified is None
    assert tool.requests == 1


async def test_a_verify_that_hangs_means_dont_know(make: Make, clock: SteppingClock) -> None:
    """It is waited for `callback_timeout` seconds, async and sync, and no longer."""
    rt = make(clock=clock, callback_timeout=0.05)
    go = threading.Event()

    async def hangs(arguments: Any) -> None:
        await asyncio.Event().wait()

    rt.add(ScriptedTool("one", [lost()], verify=hangs))
    rt.add(ScriptedTool("two", [lost()], verify=lambda arguments: go.wait(30)))
    rt.add(
        ScriptedTool("three", [lost()], asynchronous=False, verify=lambda arguments: go.wait(30))
    )
    rt.add(ScriptedTool("four", [lost()], asynchronous=False, verify=hangs))
    try:
        for name in ("one", "two"):
            assert (await rt.call(name)).stop_reason is StopReason.UNSAFE_EFFECT
        for name in ("three", "four"):
            result = await asyncio.to_thread(rt.call_sync, name)
            assert result.stop_reason is StopReason.UNSAFE_EFFECT
    finally:
        go.set()


@pytest.mark.parametrize("driver", ["asyncio", "sync"])
def test_verify_has_the_credential_and_may_call_other_tools(
    make: Make, clock: SteppingClock, driver: str
) -> None:
    """After a restart nothing was sent yet: verify gets the credential, and its own calls are ours."""
    first = make(clock=clock)
    first.credential("shop", "secret-token")
    first.add(ScriptedTool("order", [lost()], credential="shop"))
    first.run("job").call_sync("order", {}, call_id="c1")
    first.close()
    rt, seen = make(clock=clock), []
    results = recorded(rt)
    rt.credential("shop", lambda: "secret-token")
    rt.add(ScriptedTool("find", [{"order": 7}], read_only=True))

    def verify(arguments: Any, context: Any) -> Any:
        seen.append(context.credential)
        return rt.call_sync("find", {})

    rt.add(ScriptedTool("order", ["never"], credential="shop", verify=verify))
    run = rt.run("job", deadline=60)
    if driver == "asyncio":
        result = asyncio.run(run.call("order", {}, call_id="c1"))
    else:
        result = run.call_sync("order", {}, call_id="c1")
    assert result.value == {"order": 7}
    assert seen == ["secret-token"]
    assert (results[0].tool_name, results[0].parent_id, results[0].run_id) == ("find", "c1", "job")


async def test_verify_may_ask_for_the_context(rt: Runtime) -> None:
    """A second parameter gets the call's key and ids."""
    seen: list[Any] = []

    async def verify(arguments: Any, context: Any) -> bool:
        seen.append((arguments, context.idempotency_key, context.call_id, context.run_id))
        return True

    tool = ScriptedTool("order", [lost()], verify=verify)
    rt.add(tool)
    result = await rt.run("job").call("order", {"n": 1}, call_id="c1")
    assert result.success
    assert seen == [({"n": 1}, tool.contexts[0].idempotency_key, "c1", "job")]


async def test_an_unwritable_journal_sends_no_effect(make: Make, tmp_path: Any) -> None:
    """A claim that cannot be made durable means that nothing may be sent; reads go on."""
    journal = Journal(tmp_path / "journal.db")
    journal.close()
    rt = make(journal=journal)
    order, read = ScriptedTool("order", ["placed"]), ScriptedTool("read", ["x"], read_only=True)
    rt.add(order)
    rt.add(read)
    result = await rt.call("order")
    assert result.failure
    assert result.failure.code == "runtime.journal_unavailable"
    assert order.requests == 0
    assert (await rt.call("read")).success


async def test_a_late_answer_is_told_to_whoever_orders_again(make: Callable[..., Runtime]) -> None:
    """A write past its time limit ends late and well. The model, told that it may have happened, orders
    again under a new call id: it is told that it is done, once; an order after that is a new one."""
    runtime = make()
    go_on, ended, orders = threading.Event(), threading.Event(), []

    @runtime.tool(timeout=0.05)
    def order(sku: str) -> str:
        orders.append(sku)
        go_on.wait(30)
        ended.set()
        return "placed"

    with runtime.run("job") as run:
        first = await run.call("order", {"sku": "A-1"}, call_id="call_1")
        assert first.failure is not None
        assert first.effect is Effect.UNKNOWN
        refused = await run.call("order", {"sku": "A-1"}, call_id="call_2")
        assert refused.failure is not None
        assert refused.failure.code == "runtime.effect_open"
        go_on.set()
        ended.wait(30)
        async with asyncio.timeout(30):
            while runtime.journal.rows("SELECT 1 FROM claims WHERE state = 'unknown'"):
                await asyncio.sleep(0.01)
        told = await run.call("order", {"sku": "A-1"}, call_id="call_3")
        assert told.success
        assert told.extra["replayed"]
        assert orders == ["A-1"]
        fresh = await run.call("order", {"sku": "A-1"}, call_id="call_4")
        assert fresh.value == "placed"
        assert orders == ["A-1", "A-1"]
