"""The first calls of a runtime with an advisor: what the journal keeps of its advice is there before a
failure is judged. Later calls go straight to the driver.
"""

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution

PATIENCE: Final = 2.0
"""Seconds that a call waits at most for a slow journal. What comes later labels later failures."""


def recalled_async(
    drive: "Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]]", loading: "Future[None]"
) -> "Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]]":
    """The asyncio driver, after the kept advice. The loop goes on meanwhile."""

    async def driven(execution: "Execution") -> ToolResult[Any]:
        if not loading.done():
            import asyncio

            waiting = asyncio.wrap_future(loading)
            try:
                await asyncio.wait((waiting,), timeout=_patience(execution))
            finally:
                waiting.cancel()
        return await drive(execution)

    return driven


def recalled_sync(
    drive: "Callable[[Execution], ToolResult[Any]]", loading: "Future[None]"
) -> "Callable[[Execution], ToolResult[Any]]":
    """The sync driver, after the kept advice."""

    def driven(execution: "Execution") -> ToolResult[Any]:
        if not loading.done():
            with suppress(FutureTimeout):
                loading.result(_patience(execution))
        return drive(execution)

    return driven


def _patience(execution: "Execution") -> float:
    """`PATIENCE`, cut to the call's deadline."""
    call = execution.call
    if call.deadline is None:
        return PATIENCE
    return max(0.0, min(PATIENCE, call.deadline - call.now))
