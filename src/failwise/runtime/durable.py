"""Calls that an engine keeps: laid down at a wait between two attempts, taken up by any process.

A call is a pure function of its log. So what is kept of one is what its machine was told so far, with
each answer in its classified form: the machine that goes on is a fresh one that is told it again. No
claim is held meanwhile (`Wait.between`), so that whatever a process sent before it died stands in the
journal and is never sent again blindly.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from failwise.runtime.call import Logic
from failwise.runtime.execution import Execution
from failwise.runtime.state import CallState
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.plain import as_json
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.steps import (
    Admitted,
    Answer,
    AnyStep,
    Call,
    Cancelled,
    Claimed,
    Durable,
    Machine,
    Refused,
    Reply,
    Wait,
)

if TYPE_CHECKING:
    from failwise.runtime.run import Run

logger = logging.getLogger("failwise")

_FORM = 1


@record
class LaidDown:
    """A call between two attempts. `kept` is what takes it up again, `seconds` how long from now,
    `until` the epoch second when, `code` what it waits for."""

    kept: str
    seconds: float
    until: float
    code: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "kept": self.kept,
            "seconds": self.seconds,
            "until": self.until,
            "code": self.code,
        }


Outcome: TypeAlias = "ToolResult[Any] | LaidDown"


def go_on(
    run: "Run",
    tool: Any,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    durable: Durable,
    kept: str | None = None,
    earlier: int = 0,
) -> Outcome:
    """Perform a call from where it was laid down (`kept`; None: from its beginning) to the next
    wait between attempts, or to its end.

    `options` need a `call_id`; the same run id and call id are the same call. `earlier` counts
    attempts that nobody kept. What is noted here is on disk before this returns.
    """
    execution = _taken_up(run, tool, args, options, durable, kept, earlier)
    runtime = execution.runtime
    try:
        return (runtime._drive_sync or runtime._sync_driver())(execution)
    except _Laid as laid:
        return laid.down
    finally:
        runtime.flush()


async def go_on_async(
    run: "Run",
    tool: Any,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    durable: Durable,
    kept: str | None = None,
    earlier: int = 0,
) -> Outcome:
    """`go_on` on the caller's loop."""
    execution = _taken_up(run, tool, args, options, durable, kept, earlier)
    runtime = execution.runtime
    try:
        return await (runtime._drive or runtime._async_driver())(execution)
    except _Laid as laid:
        return laid.down
    finally:
        await runtime.flush_async()


def _taken_up(
    run: "Run",
    tool: Any,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    durable: Durable,
    kept: str | None,
    earlier: int,
) -> "Kept":
    begun = run.runtime._begin(tool, args, options, run)
    call, log = begun.call, []
    call.durable, call.earlier = durable, earlier
    saved = _read(kept, call) if kept is not None else None
    if saved is not None:
        call.began = saved["began"] - call.epoch
        if saved["deadline"] is not None:
            call.deadline = saved["deadline"] - call.epoch
        call.earlier, log = saved["earlier"], saved["log"]
        if saved["extra"]:
            call.extra = {**saved["extra"], **(call.extra or {})}
    return Kept(begun, log)


def _read(kept: str, call: Call) -> dict[str, Any] | None:
    saved = json.loads(kept)
    if isinstance(saved, dict) and saved.get("form") == _FORM:
        return saved
    logger.warning("%s was kept in a form that is not known here: it begins anew", call.tool.name)
    return None


class _Laid(BaseException):
    """Comes out of the machine instead of a wait between attempts; no tool ever sees it."""

    def __init__(self, down: LaidDown) -> None:
        self.down = down
        super().__init__()


class _OtherWay(Exception):
    """The machine asks for something else than it did before: the code or the policy has changed."""


class Kept(Execution):
    """An execution whose machine was told `log` before, and that ends at a wait between attempts."""

    __slots__ = ("_failure", "_log", "_told")

    def __init__(self, begun: Execution, log: list[Any]) -> None:
        super().__init__(begun.runtime, begun.call, begun.run, begun.plan)
        self._log = log
        self._told = False
        """The machine is being told what it knew before: nobody hears of that again."""
        self._failure: Failure | None = None

    @property
    def straight(self) -> bool:
        return False

    @property
    def logic(self) -> Logic:
        return replace(super().logic, classify=self._classify, heard=self._heard)

    def machine(self) -> Machine:
        if self.runtime.mode == "off":
            return super().machine()
        return self._kept()

    def close(self, machine: Machine, signal: BaseException) -> None:
        if not isinstance(signal, _Laid):
            super().close(machine, signal)

    def _classify(self, answer: Answer, call: Call, state: CallState) -> Failure | None:
        if self._told:
            self._failure = answer.value
        else:
            self._failure = super().logic.classify(answer, call, state)
        return self._failure

    def _heard(self, call: Call, attempt: Attempt) -> None:
        heard = super().logic.heard
        if heard is not None and not self._told:
            heard(call, attempt)

    def _kept(self) -> Machine:
        """The machine, told what it knew; then whatever it is told is noted, up to a wait."""
        try:
            machine, step = self._remembered()
            while True:
                if isinstance(step, Wait) and step.between:
                    self.call.laid_down = True
                    raise _Laid(self._laid_down(step))
                try:
                    reply = yield step
                except Cancelled as signal:
                    step = machine.throw(signal)
                    continue
                now, told = self._wall, _plain(step, reply)
                asked = _kind(step)
                step = machine.send(reply)
                if asked == "Invoke" and self._failure is not None:
                    told = self._failure.to_dict()
                self._log.append([now, asked, told])
        except StopIteration as stop:
            result: ToolResult[Any] = stop.value
            return result

    def _remembered(self) -> tuple[Machine, AnyStep]:
        """A machine that knows what the log says, and the step it asks for now."""
        call, now = self.call, self.call.now
        self._told = True
        try:
            machine = super().machine()
            try:
                call.now = call.began
                step = next(machine)
                for index, (wall, asked, told) in enumerate(self._log):
                    if asked != _kind(step):
                        raise _OtherWay(f"{_kind(step)} instead of {asked}")
                    call.now = wall - call.epoch
                    if index == len(self._log) - 1:
                        call.now = max(now, call.now)
                    step = machine.send(_again(asked, told))
            except (_OtherWay, StopIteration, KeyError, TypeError, ValueError) as error:
                # Safe all the same: what was sent stands in the journal under this call's key.
                logger.warning(
                    "%s (%s) cannot be taken up where it was laid down (%s): it begins anew",
                    call.tool.name,
                    call.call_id,
                    error,
                )
                call.earlier += sum(asked == "Invoke" for _, asked, _ in self._log)
                self._log = []
                machine = super().machine()
                call.now = now
                step = next(machine)
        finally:
            self._told = False
        return machine, step

    @property
    def _wall(self) -> float:
        """What the machine takes the time to be, as epoch seconds: the next process has other clocks."""
        return self.call.now + self.call.epoch

    def _laid_down(self, step: Wait) -> LaidDown:
        call = self.call
        until = self._wall + step.seconds
        deadline = None if call.deadline is None else call.deadline + call.epoch
        kept = {
            "form": _FORM,
            "began": call.began + call.epoch,
            "deadline": deadline,
            "earlier": call.earlier,
            "extra": call.extra,
            "log": [*self._log, [until, _kind(step), None]],
        }
        code = self._failure.code if self._failure is not None else ""
        return LaidDown(as_json(kept), step.seconds, until, code)


def _kind(step: AnyStep) -> str:
    return type(step).__name__


def _plain(step: AnyStep, reply: Any) -> Any:
    """A reply as data. An `Invoke`'s is known once it was classified."""
    match reply:
        case Admitted():
            return {
                "generation": reply.generation,
                "worked": reply.worked,
                "refusals": reply.refusals,
            }
        case Refused():
            return {
                "code": reply.code,
                "wait": reply.wait,
                "hold": reply.hold,
                "reason": reply.reason,
                "cause": reply.cause,
            }
        case Claimed():
            return {"state": reply.state, "wait": reply.wait, "key": reply.key}
        case Reply():
            return {"verdict": reply.verdict, "arguments": reply.arguments}
        case ToolResult():
            return reply.to_dict()
        case Answer():
            return None
        case _:
            return reply


def _again(asked: str, told: Any) -> Any:
    """The reply again."""
    match asked:
        case "Admit":
            return Refused(**told) if "code" in told else Admitted(**told)
        case "Claim":
            return Claimed(**told)
        case "Invoke":
            return Answer(Failure.from_dict(told))
        case "Ask":
            return Reply(told["verdict"], arguments=told["arguments"])
        case "Delegate":
            return ToolResult.from_dict(told)
        case _:
            return told
