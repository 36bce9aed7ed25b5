"""A runtime whose guards are a fleet's: by URL, by environment, sync and async."""

import asyncio
import time
from pathlib import Path

import pytest

import failwise
from failwise.guards import MemoryGuards
from failwise.guards.shared import ValkeyGuards
from failwise.testing import ScriptedTool, SteppingClock
from tests.guards.valkey import fresh


def told(seconds: float) -> failwise.ToolError:
    return failwise.ToolError(
        "slow down", code="rate_limit.requests", effect="rejected", retry_after=seconds
    )


@pytest.mark.parametrize("driver", ["sync", "async"])
async def test_a_refusal_says_until_when_and_costs_no_request(valkey: str, driver: str) -> None:
    """One runtime is told to wait; the other, in the same fleet, does not send."""
    one, two = (
        failwise.Runtime(":memory:", guards=valkey),
        failwise.Runtime(":memory:", guards=valkey),
    )
    assert isinstance(two._guards, ValkeyGuards)
    tools = []
    for runtime in (one, two):
        tool = ScriptedTool(
            "look", [told(3600)], asynchronous=driver == "async", read_only=True, upstream=driver
        )
        runtime.add(tool.spec())
        tools.append(tool)

    async def call(runtime: failwise.Runtime) -> failwise.ToolResult[object]:
        if driver == "async":
            return await runtime.call("look", {})
        return await asyncio.to_thread(runtime.call_sync, "look", {})

    first = await call(one)
    assert first.stop_reason is failwise.StopReason.WAIT_TOO_LONG
    await asyncio.to_thread(one._guards.statistics)  # type: ignore[attr-defined]
    second = await call(two)
    assert second.failure is not None
    assert second.failure.code == "runtime.cool_down"
    assert second.retry_at is not None
    assert 3500 < second.retry_at - time.time() < 3700
    assert (tools[0].requests, tools[1].requests) == (1, 0)
    await one.aclose()
    two.close()


def test_many_calls_at_once_share_round_trips(valkey: str) -> None:
    """Two hundred tasks, each through the guards and back, no slot left behind."""
    guards = fresh(valkey, failwise.runtime.clock.SystemClock(), None)  # type: ignore[attr-defined]
    runtime = failwise.Runtime(":memory:", guards=guards)
    tool = ScriptedTool("look", ["fine"], read_only=True)
    runtime.add(tool.spec())

    async def all_of_them() -> list[failwise.ToolResult[object]]:
        return await asyncio.gather(*(runtime.call("look", {}) for _ in range(200)))

    assert all(result.success for result in asyncio.run(all_of_them()))
    (row,) = guards.statistics()
    assert (row["in_flight"], row["quota"], row["waiting"]) == (0, 500, 0)
    guards.close()
    runtime.close()


def test_the_environment_names_the_server_and_memory_can_be_asked_for(
    valkey: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FAILWISE_GUARDS, unless the program says otherwise; the file's figures go along."""
    from failwise.cli.configuration import load

    monkeypatch.setenv("FAILWISE_GUARDS", valkey)
    with failwise.Runtime(":memory:") as runtime:
        assert isinstance(runtime._guards, ValkeyGuards)
    with failwise.Runtime(":memory:", guards="memory") as runtime:
        assert isinstance(runtime._guards, MemoryGuards)
    file = tmp_path / "failwise.toml"
    file.write_text("[guards.concurrency]\nlimit = 3\n", "utf-8")
    guards = load(file)._guards
    assert isinstance(guards, ValkeyGuards)
    assert guards._settings.concurrency == 3


def test_a_url_that_cannot_work_is_said_when_the_runtime_is_made() -> None:
    """Not at the first call."""
    with pytest.raises(failwise.UsageError, match="redis://"):
        failwise.Runtime(":memory:", guards="amqp://localhost")


def test_a_stepped_clock_is_the_guards_clock_too(valkey: str) -> None:
    """Where time is injected, the server is told it: a cool-down ends when the clock says so."""
    clock = SteppingClock()
    runtime = failwise.Runtime(":memory:", guards=valkey, clock=clock, jitter=0)
    tool = ScriptedTool("look", [told(20), "fine"], clock=clock, read_only=True, upstream="stepped")
    runtime.add(tool.spec())
    result = asyncio.run(runtime.call("look", {}))
    assert result.success
    assert tool.times[1] - tool.times[0] == pytest.approx(20, abs=0.1)
    runtime.close()


async def test_a_thousand_concurrent_401s_make_one_refresh(valkey: str) -> None:
    """Every caller succeeds with two requests, whoever counts."""
    guards = fresh(valkey, failwise.runtime.clock.SystemClock(), None)  # type: ignore[attr-defined]
    runtime = failwise.Runtime(":memory:", guards=guards)
    refreshes: list[int] = []

    @runtime.tool(read_only=True, credential="shop")
    async def look(context: failwise.CallContext) -> str:
        await asyncio.sleep(0)
        if context.credential != "new":
            raise failwise.ToolError("expired", code="auth.credential_expired", effect="rejected")
        return "fine"

    async def refresh() -> str:
        refreshes.append(1)
        await asyncio.sleep(0.01)
        return "new"

    runtime.credential("shop", "old", refresh=refresh)
    results = await asyncio.gather(*(runtime.call("look", {}) for _ in range(1000)))
    assert all(result.success for result in results)
    assert len(refreshes) == 1
    await asyncio.to_thread(guards.close)
    await runtime.aclose()
