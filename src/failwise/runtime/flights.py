"""Identical calls at once share one result: the work has a task of its own.

Cancelling one waiter cancels nobody else; when the last one goes, the work is cancelled too.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from failwise.runtime.execution import Execution
from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime


class Flight:
    """One piece of work that several callers wait for."""

    __slots__ = ("cancel", "future", "raw", "tool", "waiters")

    def __init__(self, execution: Execution) -> None:
        self.future: Future[ToolResult[Any]] = Future()
        self.future.set_running_or_notify_cancel()
        self.raw = execution.call.raw
        self.tool = execution.call.tool.name
        self.waiters = 1
        self.cancel: Callable[[], Any] | None = None

    def same(self, execution: Execution) -> bool:
        return self.tool == execution.call.tool.name and self.raw == execution.call.raw


def _join(runtime: "Runtime", key: str, execution: Execution) -> tuple[Flight | None, bool]:
    """The flight for this key and whether we lead it; None where the key flies with other arguments."""
    with runtime._lock:
        flight = runtime._flights.get(key)
        if flight is None:
            flight = runtime._flights[key] = Flight(execution)
            return flight, True
        if not flight.same(execution):
            return None, False
        flight.waiters += 1
        return flight, False


def _land(runtime: "Runtime", key: str) -> None:
    with runtime._lock:
        runtime._flights.pop(key, None)


async def shared_async(runtime: "Runtime", execution: Execution) -> ToolResult[Any]:
    import asyncio

    drive = runtime._drive or runtime._async_driver()
    key = execution.call.key
    flight, lead = _join(runtime, key, execution)
    if flight is None:
        return await drive(execution)
    if lead:
        loop = asyncio.get_running_loop()

        async def work() -> None:
            try:
                result = await drive(execution)
            except BaseException as error:
                _land(runtime, key)
                flight.future.set_exception(error)
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise  # these end the loop; any other signal is the waiters' to receive
            else:
                _land(runtime, key)
                flight.future.set_result(result)

        task = loop.create_task(work())
        runtime._tasks.add(task)
        task.add_done_callback(runtime._tasks.discard)
        flight.cancel = lambda: loop.call_soon_threadsafe(task.cancel)
    waiter = asyncio.wrap_future(flight.future)
    try:
        return await asyncio.shield(waiter)
    except asyncio.CancelledError:
        with runtime._lock:
            flight.waiters -= 1
            last = flight.waiters == 0
        if last and flight.cancel is not None and not flight.future.done():
            flight.cancel()
            await asyncio.wait([waiter], timeout=runtime._callback_timeout)
        if waiter.done() and not waiter.cancelled():
            waiter.exception()
        else:
            waiter.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def shared_sync(runtime: "Runtime", execution: Execution) -> ToolResult[Any]:
    drive_sync = runtime._drive_sync or runtime._sync_driver()
    key = execution.call.key
    flight, lead = _join(runtime, key, execution)
    if flight is None:
        return drive_sync(execution)
    if not lead:
        return flight.future.result()
    try:
        result = drive_sync(execution)
    except BaseException as error:
        _land(runtime, key)
        flight.future.set_exception(error)
        raise
    _land(runtime, key)
    flight.future.set_result(result)
    return result
