"""Calls under the eyes of observers: begun and ended in the context in which they run."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from failwise.vocabulary.ports import Observer
from failwise.vocabulary.result import ToolResult

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution

logger = logging.getLogger("failwise")


def observed_async(
    drive: "Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]]", observer: Observer
) -> "Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]]":
    """The asyncio driver, watched."""

    async def driven(execution: "Execution") -> ToolResult[Any]:
        begun = _begin(observer, execution)
        result = None
        try:
            result = await drive(execution)
        finally:
            _end(observer, begun, execution, result)
        return result

    return driven


def observed_sync(
    drive: "Callable[[Execution], ToolResult[Any]]", observer: Observer
) -> "Callable[[Execution], ToolResult[Any]]":
    """The sync driver, watched."""

    def driven(execution: "Execution") -> ToolResult[Any]:
        begun = _begin(observer, execution)
        result = None
        try:
            result = drive(execution)
        finally:
            _end(observer, begun, execution, result)
        return result

    return driven


_NOT_BEGUN = object()


def _begin(observer: Observer, execution: "Execution") -> Any:
    try:
        return observer.begin(execution.call)
    except Exception:
        logger.exception("observer %r failed at the beginning of a call", observer)
        return _NOT_BEGUN


def _end(
    observer: Observer, begun: Any, execution: "Execution", result: ToolResult[Any] | None
) -> None:
    if begun is _NOT_BEGUN:
        return
    try:
        observer.end(begun, execution.call, result)
    except Exception:
        logger.exception("observer %r failed at the end of a call", observer)


def headers_of(observers: "list[Observer]") -> Mapping[str, str]:
    """What requests sent from here should carry, in the words of all observers."""
    found: dict[str, str] = {}
    for observer in observers:
        try:
            found.update(observer.headers())
        except Exception:
            logger.exception("observer %r gave no headers", observer)
    return found
