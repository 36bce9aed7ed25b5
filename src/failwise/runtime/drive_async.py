"""The asyncio driver: performs the machine's steps, and decides nothing."""

import asyncio
import inspect
import types
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from typing import Any, assert_never

from failwise.runtime.background import in_thread
from failwise.runtime.execution import Execution, LiveContext
from failwise.runtime.good_way import Log, ended, is_good, left, replay
from failwise.runtime.run import surroundings
from failwise.vocabulary.errors import FailwiseError
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, ToolSpec
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


def drive(execution: Execution) -> Coroutine[Any, Any, ToolResult[Any]]:
    """Run a call to its end. A cancellation, or a signal that passes, comes out after the record."""
    if execution.straight:
        return _good_way(execution)
    return perform(execution.machine(), execution, [(execution.call.now, None)])


async def _good_way(execution: Execution) -> ToolResult[Any]:
    """A read that simply works, without the machine: most calls are one. Nothing is decided here."""
    call, runtime, plan = execution.call, execution.runtime, execution.plan
    tool, monotonic, began = plan.tool, runtime.clock.monotonic, call.began
    reading = plan.read(call.raw)
    if reading.failure is not None:
        return await perform(execution.machine(), execution, [(began, None)])
    guards = runtime._guards_made or runtime._guards
    ask, end = plan.steps(call.run_id)
    leave: Any = guards.admit(ask)
    answer: Any = None
    sent: float | None = None
    try:
        if type(leave) is not Admitted and isinstance(leave, Future):
            leave = await _leave(execution, ask, leave)
            call.now = monotonic()
        sent = monotonic()
        if type(leave) is Admitted:
            context = LiveContext(execution, None, 1, tool.timeout, None)
            answer = _start(execution, tool, reading.arguments or {}, tool.timeout, context)
            if type(answer) is not Answer:
                answer = await answer
    except BaseException as signal:
        log = [(began, None)] if sent is None else [(began, None), (sent, leave)]
        left(execution, log, monotonic(), signal)
        raise
    if answer is None:
        return await perform(execution.machine(), execution, [(began, None), (sent, leave)])
    now = call.now = monotonic()
    if is_good(execution, answer):
        guards.release(end)
        return ended(execution, reading, answer.value, now)
    log = [(began, None), (sent, leave), (now, answer)]
    return await perform(execution.machine(), execution, log)


async def perform(machine: Machine, execution: Execution, log: Log) -> ToolResult[Any]:
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
                    reply = await _invoke(execution, step)
                case Admit():
                    reply = execution.admit(step)
                    if isinstance(reply, Future):
                        reply = await _leave(execution, step, reply)
                case Release():
                    execution.release(step)
                case Claim():
                    reply = await _claimed(execution, step)
                case Settle():
                    execution.settle(step)
                case Wait():
                    await runtime.clock.sleep_async(step.seconds)
                case Refresh():
                    reply = await _refresh(execution, step)
                case Ask():
                    reply = await _ask(execution, step)
                case Delegate():
                    reply = await runtime._delegate(execution, step)
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


async def _claimed(execution: Execution, step: Claim) -> Claimed:
    try:
        return await asyncio.wrap_future(execution.claim(step))
    except FailwiseError as error:
        return execution.unclaimed(error)


async def _leave(execution: Execution, step: Admit, future: "Future[Any]") -> Any:
    """Wait for a slot; one that is given while the caller gives up goes back."""
    try:
        async with asyncio.timeout(execution.time_left):
            answer = await asyncio.wrap_future(future)
    except TimeoutError:
        return execution.no_slot(step, future)
    except asyncio.CancelledError:
        execution.give_up(step, future)
        raise
    return execution.leave(answer)


async def _invoke(execution: Execution, step: Invoke) -> Answer:
    """Call the tool once, within its time."""
    tool = execution.call.tool
    value = None
    if tool.credential is not None:
        missing = execution.missing_credential()
        if missing is not None:
            return Answer(error=missing)
        try:
            value = await _credential(execution)
        except Exception as error:
            return Answer(error=execution.credential_failed(error))
    context = LiveContext(execution, value, step.attempt, step.timeout, step.key)
    answer = _start(execution, tool, step.arguments, step.timeout, context)
    return answer if type(answer) is Answer else await answer  # type: ignore[misc]


async def _credential(execution: Execution) -> Any:
    """The credential's value (None without one), got at the first need."""
    credential = execution.credential
    if credential is None or credential.value is not UNSET:
        return credential and credential.value
    async with asyncio.timeout(execution.runtime.callback_timeout(execution.call)):
        return execution.keep_credential(await _callback(credential.get))


def _start(
    execution: Execution,
    tool: ToolSpec,
    arguments: Arguments,
    timeout: float | None,
    context: LiveContext,
) -> Answer | Coroutine[Any, Any, Answer]:
    """Begin an invocation: its answer, or what to await for it.

    A tool that never suspends (a cache, a table in memory) is done at once; an alarm is armed only
    for one that does.
    """
    token = surroundings.set(execution)
    answer: Answer
    try:
        if tool.call_async is not None:
            awaitable = tool.call_async(arguments, context)
            if type(awaitable) is types.CoroutineType:
                try:
                    first = awaitable.send(None)
                except StopIteration as stop:
                    answer = Answer(stop.value)
                else:
                    return _within(execution, _rest(awaitable, first), timeout, token)
            else:
                return _within(execution, awaitable, timeout, token)
        elif tool.thread:
            return _in_thread(execution, arguments, timeout, context, token)
        else:
            assert tool.call is not None
            answer = Answer(tool.call(arguments, context))
    except Exception as error:
        answer = execution.raised(error)
    except BaseException:
        surroundings.reset(token)
        raise
    surroundings.reset(token)
    return answer


async def _within(
    execution: Execution,
    work: Any,
    timeout: float | None,  # noqa: ASYNC109 - its passing is an answer, not an exception
    token: Any,
) -> Answer:
    """Go on in this very task (no new one is made) until the work ends or its alarm goes off."""
    try:
        if timeout is None:
            return Answer(await work)
        task = asyncio.current_task()
        assert task is not None
        cancelling, expired = task.cancelling(), False

        def expire() -> None:
            nonlocal expired
            expired = True
            task.cancel()

        alarm = execution.runtime.clock.alarm(asyncio.get_running_loop(), timeout, expire)
        try:
            value = await work
        except asyncio.CancelledError:
            if expired and task.uncancel() <= cancelling:
                return Answer(expired=True, limit=timeout)
            raise
        except BaseException:
            if expired:
                task.uncancel()
                return Answer(expired=True, limit=timeout)
            raise
        else:
            if expired:
                # It finished in the very moment of the alarm: the value counts, the alarm not.
                task.uncancel()
            return Answer(value)
        finally:
            alarm.cancel()
    except Exception as error:
        return execution.raised(error)
    finally:
        surroundings.reset(token)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, Any], waiting_for: Any) -> Generator[Any, Any, Any]:
    """Go on with a coroutine that has already suspended once on `waiting_for`."""
    while True:
        try:
            try:
                sent = yield waiting_for
            except BaseException as error:
                waiting_for = coroutine.throw(error)
            else:
                waiting_for = coroutine.send(sent)
        except StopIteration as stop:
            return stop.value


async def _in_thread(
    execution: Execution,
    arguments: Arguments,
    timeout: float | None,  # noqa: ASYNC109 - its passing is an answer, not an exception
    context: LiveContext,
    token: Any,
) -> Answer:
    """Run a sync tool in a thread. One past its time goes on, keeps its slot and settles late."""
    tool = execution.call.tool
    assert tool.call is not None
    work = in_thread(tool.call, arguments, context)
    surroundings.reset(token)
    waiter = asyncio.wrap_future(work)
    try:
        done, _ = await asyncio.wait([waiter], timeout=timeout)
    except asyncio.CancelledError:
        _abandon(execution, work, waiter)
        raise
    if not done:
        _abandon(execution, work, waiter)
        if work.cancelled():
            return execution.never_began(timeout)
        return Answer(expired=True, limit=timeout)
    try:
        return Answer(waiter.result())
    except Exception as error:
        return execution.raised(error)


def _abandon(execution: Execution, work: "Future[Any]", waiter: "asyncio.Future[Any]") -> None:
    waiter.add_done_callback(lambda done: done.cancelled() or done.exception())
    if not work.cancel():
        execution.late = work


async def _callback(function: Any, *arguments: Any) -> Any:
    """Call a user's function, sync (in a thread) or async."""
    if not callable(function):
        return function
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer = await asyncio.wrap_future(in_thread(function, *arguments))
    if inspect.isawaitable(answer):
        return await answer
    return answer


async def _refresh(execution: Execution, step: Refresh) -> bool:
    """Renew a credential, in a task of its own: a cancelled leader does not fail its followers."""
    credential = execution.credential
    if credential is None:
        return False
    future, lead = credential.begin_refresh(step.seen)
    if lead:

        async def perform() -> None:
            value, succeeded = None, False
            try:
                value = await _callback(credential.refresh)
                execution.runtime._hide(value)
                succeeded = True
            except Exception as error:
                execution.runtime._refresh_failed(credential.name, error)
            finally:
                credential.finish_refresh(value, succeeded=succeeded)

        execution.runtime._spawn(perform())
    try:
        async with asyncio.timeout(execution.runtime.callback_timeout(execution.call)):
            renewed = await asyncio.shield(asyncio.wrap_future(future))
    except TimeoutError as error:
        execution.runtime._refresh_failed(credential.name, error)
        return False
    return renewed and credential.generation > step.seen


async def _ask(execution: Execution, step: Ask) -> Reply:
    """Ask a callback. One that raises or hangs means "don't know"."""
    runtime, call = execution.runtime, execution.call
    token = surroundings.set(execution)
    try:
        async with asyncio.timeout(runtime.callback_timeout(call)):
            if step.who == "verify":
                verify, two = execution.verify_arguments()
                extra: tuple[Any, ...] = ()
                if two:
                    value = await _credential(execution)
                    extra = (LiveContext(execution, value, 0, None, call.key),)
                answer = await _callback(verify, dict(step.arguments), *extra)
                return Reply(*execution.verdict(answer))
            if step.who == "fixer":
                given = execution.fixer_arguments(step)
                return execution.fixed(await _callback(execution.fixer, *given))
            answer = await _callback(execution.confirm, call.tool.name, step.repairs)
            return Reply(answer is True)
    except execution.runtime.passthrough + call.tool.passthrough:
        raise
    except Exception as error:
        runtime._callback_failed(step.who, call.tool.name, error)
        return Reply(None)
    finally:
        surroundings.reset(token)
