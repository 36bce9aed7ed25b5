"""The good way of both drivers: what a read that simply works shares, and how it is left.

Because a call is a pure function of its log, a driver may perform the first steps of such a read
without the machine: as soon as anything is not plainly good, a fresh machine is told the log and goes
on from there.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

from failwise.runtime.discretion import discreet_repairs
from failwise.runtime.lines import INFO, calls
from failwise.vocabulary.kinds import StopReason
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import AnyStep, Call, Machine

if TYPE_CHECKING:
    from failwise.arguments.reader import Reading
    from failwise.runtime.execution import Execution

logged = calls.isEnabledFor

Log: TypeAlias = "list[tuple[float, Any]]"
"""What the machine was told so far: (monotonic time, reply)."""


def replay(machine: Machine, call: Call, log: Log) -> AnyStep:
    """Tell a fresh machine what happened so far; the step it now asks for."""
    step: AnyStep | None = None
    for now, reply in log:
        call.now = now
        step = machine.send(reply)
    assert step is not None
    return step


def left(execution: "Execution", log: Log, now: float, signal: BaseException) -> None:
    """A signal ended a call on the good way: close it as the machine would, having seen the log."""
    machine = execution.machine()
    replay(machine, execution.call, log)
    execution.call.now = now
    execution.close(machine, signal)


def ended(execution: "Execution", reading: "Reading", value: Any, now: float) -> ToolResult[Any]:
    """The result of a read that was plainly good, recorded."""
    call, runtime, plan = execution.call, execution.runtime, execution.plan
    began = call.began
    result: ToolResult[Any] = ToolResult(
        plan.tool.name,
        True,
        value,
        None,
        None,
        (),
        discreet_repairs(reading.repairs) if reading.repairs else (),
        None,
        StopReason.SUCCEEDED,
        None,
        (now - began) * 1000,
        began + call.epoch,
        call.call_id,
        call.run_id,
        call.parent_id,
        None,
        "",
        None,
        None if call.extra is None else dict(call.extra),
        plan.upstream,
        call.model,
        plan.parameters,
    )
    (runtime._journal or runtime.journal).put(result)
    if runtime._callbacks or logged(INFO):
        runtime._tell(result)
    return result
