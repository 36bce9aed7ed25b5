"""The Celery application that real workers run; told by the environment where everything is."""

import json
import os
from pathlib import Path
from typing import Any

import httpx
from celery import Celery
from celery.signals import task_prerun

from failwise import HttpTool, Runtime
from failwise.connect.celery import tool_task
from failwise.runtime import execution
from tests.engines.tools import add_tools, die_at

URL = os.environ["ENGINE_URL"]
KILL = Path(os.environ["ENGINE_KILL"])
POLICY = {"wait_ceiling": 0.3, "server": {"strategy": "linear", "base": 0.4}}

app = Celery("engine", broker=os.environ["ENGINE_BROKER"], backend=os.environ["ENGINE_BROKER"])
app.conf.update(
    task_default_queue=os.environ["ENGINE_QUEUE"],
    broker_transport_options={"visibility_timeout": float(os.environ["ENGINE_VISIBILITY"])},
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


class Stubborn(app.Task):  # type: ignore[misc,name-defined]
    """A base class that repeats everything: for tools it is overruled."""

    autoretry_for = (Exception,)
    retry_kwargs = {"max_retries": 5, "countdown": 0}  # noqa: RUF012


runtime = Runtime(os.environ["ENGINE_JOURNAL"], policy=POLICY, lease=1.0, jitter=0)
add_tools(runtime, URL)
runtime.add(HttpTool("see", "GET", f"{URL}/see/{{name}}", timeout=30))
runtime.add(HttpTool("ask", "POST", f"{URL}/ask/{{name}}", timeout=30))
for tool in ("look", "plain", "keyed", "verified", "final", "see", "ask"):
    tool_task(app, runtime, tool)
tool_task(app, runtime, "see", name="raising.see", raises=True, base=Stubborn)

_real = (execution.run_call, httpx.Client.send)
_armed: list[Any] = []


@task_prerun.connect  # type: ignore[untyped-decorator]
def _arm(task: Any, **_: Any) -> None:
    """Die where a file says so, once: whoever comes after finds no file."""
    if _armed != [task.request.root_id]:
        execution.run_call, httpx.Client.send = _real  # type: ignore[method-assign]
    if KILL.exists():
        order = json.loads(KILL.read_text("utf-8"))
        KILL.unlink()
        _armed[:] = [task.request.root_id]
        die_at(*order)
