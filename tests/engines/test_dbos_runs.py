"""`WorkflowRun` in its three places: async workflows, a step of the user's own, and where it does not belong."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS

from failwise import HttpTool, Runtime, UsageError
from failwise.connect.dbos import WorkflowRun
from failwise.faults import Fault, FaultServer


class Inside:
    """DBOS in this process, and a tool `see` of an upstream."""

    def __init__(self, upstream: FaultServer, runtime: Runtime) -> None:
        self.upstream, self.runtime = upstream, runtime
        runtime.add(HttpTool("see", "GET", upstream.url("/see"), timeout=30))


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    with FaultServer() as upstream, Runtime(tmp_path / "journal.db", jitter=0) as runtime:
        DBOS.destroy(destroy_registry=True)
        config: Any = {
            "name": "failwise-test",
            "system_database_url": f"sqlite:///{tmp_path}/dbos.sqlite",
            "log_level": "ERROR",
        }
        DBOS(config=config)
        yield Inside(upstream, runtime)
        DBOS.destroy(destroy_registry=True)


async def test_async_workflows(inside: Inside) -> None:
    """`await run.call(...)`, several calls in their order, a plan, a deadline."""
    inside.upstream.route("GET", "/see", [Fault.status(503), Fault.json(1)])

    @DBOS.workflow()
    async def job() -> list[Any]:
        run = WorkflowRun(inside.runtime, deadline=600)
        one = await run.call("see", {})
        two, three = await run.call_many([("see", {}), ("see", {})])
        planned = await run.plan([{"id": "a", "tool": "see"}, {"id": "b", "tool": "see"}])
        assert run.deadline is not None
        return [(each.call_id, each.value) for each in (one, two, three, *planned)]

    DBOS.launch()
    handle = await DBOS.start_workflow_async(job)
    names = ["call-1", "call-2", "call-3", "a", "b"]
    assert [tuple(each) for each in await handle.get_result()] == [(name, 1) for name in names]
    steps = await DBOS.list_workflow_steps_async(handle.workflow_id)
    assert [step["function_name"] for step in steps][:4] == [
        "failwise.begin", "failwise.see", "DBOS.sleep", "failwise.see",
    ]  # fmt: skip


def test_inside_a_step_of_the_users_own(inside: Inside, caplog: pytest.LogCaptureFixture) -> None:
    """The call is part of the step. Where DBOS repeats that step, it is said once, the attempts go on from
    the engine's, and a write keeps its key."""
    inside.upstream.route("GET", "/see", Fault.status(503))
    inside.runtime.add(HttpTool("ask", "POST", inside.upstream.url("/ask"), timeout=30))
    inside.upstream.route("POST", "/ask", Fault.effect("ask", Fault.json({"id": 1})))
    numbers: list[list[int]] = []
    asked: list[Any] = []

    @DBOS.workflow()
    def job() -> str:
        run = WorkflowRun(inside.runtime)

        @DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.01)
        def step() -> str:
            asked.append(run.call_sync("ask", {}))
            result = run.call_sync("see", {})
            numbers.append([attempt.number for attempt in result.attempts])
            return str(result.unwrap())

        return step()

    DBOS.launch()
    with (
        caplog.at_level("WARNING", "failwise"),
        pytest.raises(Exception, match=r"retries|unavailable"),
    ):
        job()
    assert caplog.text.count("repeated by DBOS up to 3 times") == 1
    assert numbers == [[1, 2, 3], [2, 3], [3]], "the two kinds of retries have multiplied"
    assert inside.upstream.count("/see") == 6
    assert inside.upstream.ledger.count("ask") == 1
    assert [each.call_id for each in asked] == ["step-1-1"] * 3


def test_misuse_is_said(inside: Inside) -> None:
    """A run belongs into a workflow, one for each, one call after the other."""
    with pytest.raises(UsageError, match="inside a function decorated"):
        WorkflowRun(inside.runtime)
    inside.upstream.route("GET", "/see", Fault.json(1, delay=0.2))
    kept: list[WorkflowRun] = []

    @DBOS.workflow()
    async def at_once() -> str:
        run = WorkflowRun(inside.runtime)
        kept.append(run)
        both = await asyncio.gather(
            run.call("see", {}), run.call("see", {}), return_exceptions=True
        )
        return str(both[1])

    @DBOS.workflow()
    def other() -> str:
        return str(kept[0].call_sync("see", {}))

    DBOS.launch()

    async def start() -> str:
        said: str = await (await DBOS.start_workflow_async(at_once)).get_result()
        return said

    assert "one after the other" in asyncio.run(start())
    with pytest.raises(UsageError, match="make one in each"):
        other()
