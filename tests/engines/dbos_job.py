"""A process that runs one DBOS workflow, and dies where it is told; forked by `zygote.py`."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dbos._sys_db as store
from dbos import DBOS, SetWorkflowID

from failwise import Runtime
from failwise.connect.dbos import WorkflowRun
from tests.crash.process import POLICY
from tests.engines.tools import add_tools, die, die_at, told


def run(order: Mapping[str, Any]) -> None:
    """One life of a workflow: from where it stands to its end, unless it is killed before.

    `order`: ``id``, ``database`` (URL), ``journal``, ``url`` (of the shop), ``results`` (a file), ``process`` (a file for its number),
    ``calls`` (tool, arguments), ``lease``, ``policy``, and when to die: ``kill`` is a kind of
    `die_at`, or ``recording``, ``recorded`` (before and after the engine keeps what a step
    gave), and a number; or None.
    """
    Path(order["process"]).write_text(str(os.getpid()), "utf-8")
    if order.get("kill"):
        die_at(*order["kill"])
        _die_at_record(*order["kill"])
    policy = order.get("policy") or POLICY
    runtime = Runtime(order["journal"], policy=policy, lease=order["lease"], jitter=0)
    add_tools(runtime, order["url"])
    DBOS(
        config={
            "name": "failwise-test",
            "system_database_url": order["database"],
            "log_level": "ERROR",
            "enable_otlp": False,
        }
    )

    @DBOS.workflow(name="job")
    def job(calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        made = WorkflowRun(runtime)
        return [told(made.call_sync(tool, arguments)) for tool, arguments in calls]

    DBOS.launch()
    with SetWorkflowID(order["id"]):
        handle = DBOS.start_workflow(job, order["calls"])
    results = handle.get_result(polling_interval_sec=0.05)
    steps = [step["function_name"] for step in DBOS.list_workflow_steps(order["id"])]
    with open(order["results"], "w", encoding="utf-8") as file:
        json.dump({"results": results, "steps": steps}, file)
    runtime.close()


def _die_at_record(kind: str, number: int) -> None:
    seen = 0
    real: Callable[..., Any] = store.SystemDatabase.record_operation_result

    def record(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal seen
        seen += 1
        if kind == "recording" and seen == number:
            die()
        done = real(self, *args, **options)
        if kind == "recorded" and seen == number:
            die()
        return done

    store.SystemDatabase.record_operation_result = record
