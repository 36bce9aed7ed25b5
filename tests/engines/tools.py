"""The shop's tools, and how a process is told to die; shared by the processes of all engines."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from failwise import HttpTool, Runtime
from failwise.runtime import execution
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Call


def add_tools(runtime: Runtime, url: str) -> None:
    """The tools of `tests.crash.shop`, patient enough for a busy machine."""

    def placed(arguments: dict[str, Any]) -> bool:
        """Was it placed? Asked of the server itself."""
        answer = httpx.get(f"{url}/placed/{arguments['order']}", timeout=30.0, trust_env=False)
        return bool(answer.json()["placed"])

    keyed: dict[str, Any] = {"idempotency_key": "Idempotency-Key"}
    final: dict[str, Any] = {"verify": placed, "verify_final_after": 0.1}
    runtime.add(HttpTool("look", "GET", f"{url}/look", timeout=30))
    runtime.add(HttpTool("plain", "POST", f"{url}/plain", timeout=30))
    runtime.add(HttpTool("keyed", "POST", f"{url}/keyed", timeout=30, **keyed))
    runtime.add(HttpTool("verified", "POST", f"{url}/verified", timeout=30, verify=placed))
    runtime.add(HttpTool("final", "POST", f"{url}/final", timeout=30, **final))


def told(result: ToolResult[Any]) -> dict[str, Any]:
    """What a test wants to know of a result."""
    return {
        "tool": result.tool_name,
        "call_id": result.call_id,
        "run_id": result.run_id,
        "success": result.success,
        "code": result.failure.code if result.failure else None,
        "effect": result.effect.value if result.effect else None,
        "stop": result.stop_reason.value,
        "verified": result.verified,
        "attempts": [attempt.number for attempt in result.attempts],
        "delays": [a.decision.delay for a in result.attempts if a.decision],
    }


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(kind: str, number: int) -> None:
    """Before the machine's step of this number (``step``), with the POST of this number under way
    (``sent``), or with its answer in hand (``answered``)."""
    if kind == "step":
        execution.run_call = _dying_at_step(execution.run_call, number)
    elif kind in ("sent", "answered"):
        real = httpx.Client.send
        httpx.Client.send = _dying_at_request(real, kind, number)  # type: ignore[method-assign]


def _dying_at_step(real: Callable[..., Any], number: int) -> Callable[..., Any]:
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
                die()
            reply = yield step

    return run_call


def _dying_at_request(
    real: Callable[..., httpx.Response], kind: str, number: int
) -> Callable[..., httpx.Response]:
    seen = 0

    def send(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        nonlocal seen
        seen += request.method == "POST"
        mine = request.method == "POST" and seen == number
        if mine and kind == "sent":
            # The server holds its answers back for longer than this.
            threading.Timer(0.003, die).start()
        try:
            return real(client, request, **options)
        finally:
            if mine:
                die()

    return send
