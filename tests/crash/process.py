"""The process that is killed: a real runtime, a real journal file, real HTTP; run by `zygote.py`.

Nothing of the product is changed for it. Its machine is counted from outside, step by step, and its
HTTP client watched; where the order says so, the process ends itself with SIGKILL.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

from failwise import HttpTool, Runtime
from failwise.journal.journal import Journal
from failwise.runtime import execution
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Call

QUICK = {"base": 0.001, "cap": 0.002}
POLICY = {
    "network": {**QUICK, "connection_reset": QUICK},
    "server": QUICK,
    "rate_limit": QUICK,
}
"""The default policy at a thousandth of its delays."""


def run(order: Mapping[str, Any]) -> None:
    """One life of a job: from its first call to its last, unless it is killed before.

    `order`: ``run``, ``journal``, ``url``, ``results`` (a file, one line a finished call), ``later``
    (seconds by which this process's clock is ahead), ``calls``, ``deadline``, and when to die:
    ``kill`` is ``["step", n]``, ``["sent", n]``, ``["answered", n]``, ``["after", ms]`` or None.
    """
    kind, number = order.get("kill") or ("never", 0)
    if kind == "step":
        execution.run_call = _dying_at_step(execution.run_call, number)
    elif kind in ("sent", "answered"):
        httpx.Client.send = _dying_at_request(httpx.Client.send, kind, number)  # type: ignore[method-assign]
    elif kind == "after":
        threading.Timer(number / 1000, _die).start()
    clock = Ahead(order["later"])
    journal = Journal(order["journal"], clock=clock)
    runtime = Runtime(journal, policy=POLICY, lease=order.get("lease", 60.0), clock=clock)
    _add_tools(runtime, order["url"])
    with open(order["results"], "a", encoding="utf-8") as results:

        def note(result: ToolResult[Any]) -> None:
            failure = result.failure
            line = {
                "call_id": result.call_id,
                "success": result.success,
                "code": failure.code if failure else None,
                "effect": result.effect.value if result.effect else None,
                "sent": result.sent,
                "replayed": "replayed" in result.extra,
                "stop": result.stop_reason.value,
            }
            results.write(json.dumps(line) + "\n")
            results.flush()

        with runtime.run(id=order["run"], deadline=order.get("deadline")) as job:
            done: dict[str, ToolResult[Any]] = {}
            for call_id, tool, arguments, only_after_failure_of in order["calls"]:
                before = done.get(only_after_failure_of)
                if only_after_failure_of and (before is None or before.success):
                    continue
                done[call_id] = job.call_sync(tool, arguments, call_id=call_id)
                note(done[call_id])
    runtime.close()
    journal.close()


class Ahead:
    """The system's clock, so many seconds ahead: leases of earlier processes are over."""

    def __init__(self, seconds: float) -> None:
        self._ahead = seconds

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time() + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        raise NotImplementedError

    def alarm(self, loop: Any, seconds: float, callback: Callable[[], Any]) -> Any:
        raise NotImplementedError


def _add_tools(runtime: Runtime, url: str) -> None:
    def placed(arguments: dict[str, Any]) -> bool:
        """Was it placed? Asked of the server itself."""
        place = f"{url}/placed/{arguments['order']}"
        answer = httpx.get(place, timeout=5.0, verify=False, trust_env=False)
        return bool(answer.json()["placed"])

    times: dict[str, Any] = {"timeout": 0.25, "read_timeout": 0.25}
    runtime.add(HttpTool("look", "GET", f"{url}/look", **times))
    runtime.add(HttpTool("plain", "POST", f"{url}/plain", **times))
    runtime.add(
        HttpTool("keyed", "POST", f"{url}/keyed", idempotency_key="Idempotency-Key", **times)
    )
    runtime.add(HttpTool("verified", "POST", f"{url}/verified", verify=placed, **times))
    runtime.add(
        HttpTool(
            "final",
            "POST",
            f"{url}/final",
            verify=placed,
            verify_final_after=0.02,
            **times,
        )
    )


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying_at_step(real: Callable[..., Any], number: int) -> Callable[..., Any]:
    """The machine as it is, and death before the step of this number is performed."""
    seen = 0

    def run_call(call: Call, logic: Any) -> Iterator[Any]:
        nonlocal seen
        machine = real(call, logic)
        reply = None
        while True:
            try:
                step = machine.send(reply)
            except StopIteration as stop:
                return stop.value
            seen += 1
            if seen == number:
                _die()
            reply = yield step

    return run_call


def _dying_at_request(
    real: Callable[..., httpx.Response], kind: str, number: int
) -> Callable[..., httpx.Response]:
    """Death while a request is under way, or with its answer in hand."""
    seen = 0

    def send(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        nonlocal seen
        seen += request.method == "POST"
        mine = request.method == "POST" and seen == number
        if mine and kind == "sent":
            # The server holds its answers back for longer than this.
            threading.Timer(0.003, _die).start()
        try:
            return real(client, request, **options)
        finally:
            if mine:
                _die()

    return send
