"""The good way of both drivers: what a read that simply works shares, and how it is left.

Because a call is a pure function of its log, a driver may perform the first steps of such a read
without the machine: as soon as anything is not plainly good, a fresh machine is told the log and goes
on from there.
"""

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from failwise.runtime.discretion import discreet_repairs
from failwise.runtime.glance import plainly_good
from failwise.runtime.lines import INFO, calls
from failwise.runtime.state import CallState
from failwise.vocabulary.kinds import StopReason
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Answer, AnyStep, Call, Machine

if TYPE_CHECKING:
    from failwise.arguments.reader import Reading
    from failwise.runtime.execution import Execution

logged = calls.isEnabledFor
_DATA: Final = frozenset({str, dict, list, tuple})

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


def is_good(execution: "Execution", answer: Answer) -> bool:
    """Is what a tool gave back good, at a glance or, for data and texts, looked at in full?"""
    if answer.error is not None or answer.expired:
        return False
    judgement = execution.runtime._judgement
    if judgement.glances and plainly_good(answer.value):
        return True
    if type(answer.value) not in _DATA:
        return False
    call = execution.call
    return judgement.classify(answer, call, CallState(call)) is None


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
