"""The sync driver: performs the machine's steps in the caller's thread, and decides nothing."""

import inspect
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, assert_never

from failwise.runtime import background
from failwise.runtime.execution import Execution, LiveContext
from failwise.runtime.good_way import Log, ended, is_good, left, replay
from failwise.runtime.run import surroundings
from failwise.vocabulary.errors import FailwiseError
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Answer,
    Ask,
    Claim,
    Claimed,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Release,
    Reply,
    Settle,
    Wait,
)


def drive_sync(execution: Execution) -> ToolResult[Any]:
    """Run a call to its end. A signal that passes (KeyboardInterrupt, ...) comes out after the record."""
    if execution.straight:
        return _good_way(execution)
    return perform(execution.machine(), execution, [(execution.call.now, None)])


def _good_way(execution: Execution) -> ToolResult[Any]:
    """A read that simply works, without the machine: most calls are one. Nothing is decided here."""
    call, runtime, plan = execution.call, execution.runtime, execution.plan
    tool, monotonic, began = plan.tool, runtime.clock.monotonic, call.began
    reading = plan.read(call.raw)
    if reading.failure is not None:
        return perform(execution.machine(), execution, [(began, None)])
    guards = runtime._guards_made or runtime._guards
    ask, end = plan.steps(call.run_id)
    leave: Any = guards.admit(ask)
    answer: Answer | None = None
    sent: float | None = None
    try:
        if type(leave) is not Admitted and isinstance(leave, Future):
            leave = _leave(execution, ask, leave)
        sent = call.now = monotonic()
        if type(leave) is Admitted:
            answer = _invoke(execution, Invoke(reading.arguments or {}, tool.timeout, 1, None))
    except BaseException as signal:
        log = [(began, None)] if sent is None else [(began, None), (sent, leave)]
        left(execution, log, monotonic(), signal)
        raise
    if answer is None:
        return perform(execution.machine(), execution, [(began, None), (sent, leave)])
    now = call.now = monotonic()
    if is_good(execution, answer):
        guards.release(end)
        return ended(execution, reading, answer.value, now)
    return perform(execution.machine(), execution, [(began, None), (sent, leave), (now, answer)])


def perform(machine: Machine, execution: Execution, log: Log) -> ToolResult[Any]:
    """Perform the machine's steps, from where the log leaves off."""
    call, runtime = execution.call, execution.runtime
    monotonic = runtime.clock.monotonic
    reply: Any = None
    try:
        step = replay(machine, call, log)
        while True:
            reply = None
            match step:
                case Invoke():
                    reply = _invoke(execution, step)
                case Admit():
                    reply = execution.admit(step)
                    if isinstance(reply, Future):
                        reply = _leave(execution, step, reply)
                case Release():
                    execution.release(step)
                case Claim():
                    reply = _claimed(execution, step)
                case Settle():
                    execution.settle(step)
                case Wait():
                    runtime.clock.sleep(step.seconds)
                case Refresh():
                    reply = _refresh(execution, step)
                case Ask():
                    reply = _ask(execution, step)
                case Delegate():
                    reply = runtime._delegate_sync(execution, step)
                case _:
                    assert_never(step)
            call.now = monotonic()
            step = machine.send(reply)
    except StopIteration as stop:
        result: ToolResult[Any] = stop.value
        return runtime._finish(execution, result)
    except BaseException as signal:
        call.now = monotonic()
        execution.close(machine, signal)
        raise


def _claimed(execution: Execution, step: Claim) -> Claimed:
    try:
        return execution.claim(step).result()
    except FailwiseError as error:
        return execution.unclaimed(error)


def _leave(execution: Execution, step: Admit, future: "Future[Any]") -> Any:
    """Wait for a slot; one that is given while the caller gives up goes back."""
    try:
        return execution.leave(future.result(execution.time_left))
    except FutureTimeout:
        return execution.no_slot(step, future)
    except BaseException:
        execution.give_up(step, future)
        raise


def _invoke(execution: Execution, step: Invoke) -> Answer:
    """Call the tool once, within its time. A thread is used only where it cannot time itself."""
    call, runtime = execution.call, execution.runtime
    tool = call.tool
    value = None
    if tool.credential is not None:
        missing = execution.missing_credential()
        if missing is not None:
            return Answer(error=missing)
        try:
            value = _credential(execution)
        except Exception as error:
            return Answer(error=execution.credential_failed(error))
    context = LiveContext(execution, value, step.attempt, step.timeout, step.key)
    token = surroundings.set(execution)
    try:
        if tool.call is None:
            return _on_loop(execution, step, context)
        if step.timeout is None or tool.self_timed or not tool.thread:
            return Answer(tool.call(step.arguments, context))
        work = background.in_thread(tool.call, step.arguments, context)
        return _wait_for(execution, work, step.timeout)
    except Exception as error:
        if isinstance(error, tool.passthrough + runtime.passthrough):
            raise
        return Answer(error=error)
    finally:
        surroundings.reset(token)


def _credential(execution: Execution) -> Any:
    """The credential's value (None without one), got at the first need."""
    credential = execution.credential
    if credential is None or credential.value is not UNSET:
        return credential and credential.value
    limit = execution.runtime.callback_timeout(execution.call)
    return execution.keep_credential(_callback(credential.get, timeout=limit))


def _on_loop(execution: Execution, step: Invoke, context: Any) -> Answer:
    """An async tool, on the background loop."""
    tool = execution.call.tool
    assert tool.call_async is not None

    async def run() -> Any:
        return await tool.call_async(step.arguments, context)  # type: ignore[misc]

    work = background.submit(run())
    try:
        return Answer(work.result(step.timeout))
    except FutureTimeout:
        if work.done():
            return Answer(work.result())
        work.cancel()
        return Answer(expired=True, limit=step.timeout)
    except BaseException:
        work.cancel()
        raise


def _wait_for(execution: Execution, work: "Future[Any]", timeout: float) -> Answer:
    try:
        return Answer(work.result(timeout))
    except FutureTimeout:
        if work.done():
            return Answer(work.result())
        if work.cancel():
            return execution.never_began(timeout)
        execution.late = work
        return Answer(expired=True, limit=timeout)
    except BaseException:
        if not work.done() and not work.cancel():
            execution.late = work
        raise


def _callback(
    function: Any, *arguments: Any, timeout: float | None = None, goes_on: bool = False
) -> Any:
    """Call a user's function: async ones on the background loop, a limited one in a thread.

    A coroutine that is not waited for any longer ends, so that a question is withdrawn; unless it
    `goes_on`, since half a renewal may lose a credential.
    """
    if not callable(function):
        return function
    if inspect.iscoroutinefunction(function):
        return _result(background.submit(function(*arguments)), timeout, goes_on)
    if timeout is None:
        answer = function(*arguments)
    else:
        answer = background.in_thread(function, *arguments).result(timeout)
    if inspect.isawaitable(answer):

        async def finish() -> Any:
            return await answer

        return _result(background.submit(finish()), timeout, goes_on)
    return answer


def _result(work: "Future[Any]", timeout: float | None, goes_on: bool) -> Any:
    try:
        return work.result(timeout)
    except BaseException:
        if not goes_on:
            work.cancel()
        raise


def _refresh(execution: Execution, step: Refresh) -> bool:
    """Renew a credential; whoever comes first does it, the others wait for the outcome."""
    credential = execution.credential
    if credential is None:
        return False
    limit = execution.runtime.callback_timeout(execution.call)
    future, lead = credential.begin_refresh(step.seen)
    if lead:
        value, succeeded = None, False
        try:
            value = _callback(credential.refresh, timeout=limit, goes_on=True)
            execution.runtime._hide(value)
            succeeded = True
        except Exception as error:
            execution.runtime._refresh_failed(credential.name, error)
        finally:
            credential.finish_refresh(value, succeeded=succeeded)
    try:
        return future.result(limit) and credential.generation > step.seen
    except FutureTimeout as error:
        execution.runtime._refresh_failed(credential.name, error)
        return False


def _ask(execution: Execution, step: Ask) -> Reply:
    """Ask a callback. One that raises or hangs means "don't know"."""
    runtime, call = execution.runtime, execution.call
    timeout = runtime.callback_timeout(call)
    token = surroundings.set(execution)
    try:
        if step.who == "verify":
            verify, two = execution.verify_arguments()
            extra: tuple[Any, ...] = ()
            if two:
                extra = (LiveContext(execution, _credential(execution), 0, None, call.key),)
            answer = _callback(verify, dict(step.arguments), *extra, timeout=timeout)
            return Reply(*execution.verdict(answer))
        if step.who == "fixer":
            given = execution.fixer_arguments(step)
            return execution.fixed(_callback(execution.fixer, *given, timeout=timeout))
        return Reply(
            _callback(execution.confirm, call.tool.name, step.repairs, timeout=timeout) is True
        )
    except runtime.passthrough + call.tool.passthrough:
        raise
    except Exception as error:
        runtime._callback_failed(step.who, call.tool.name, error)
        return Reply(None)
    finally:
        surroundings.reset(token)
