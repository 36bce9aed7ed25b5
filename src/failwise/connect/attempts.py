"""One attempt of a framework's tool: the framework runs it, inside of a call of the runtime."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from failwise.runtime.run import surroundings
from failwise.vocabulary.errors import ToolError
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.spec import Arguments, CallContext

Attempt: TypeAlias = Callable[[str, Arguments, CallContext], Any]
"""Lets the framework run a tool once: (name, arguments, context) → what it gives, or an awaitable of it.
The name is that of the call's own tool, or of a fallback that is a tool of the framework too."""


class Cell:
    """One call under way: how to let the framework run its tool, and what came of it."""

    __slots__ = ("_attempt", "_judged", "error", "given", "name")

    def __init__(self, judged: Callable[[Any], Any] | None, name: str, attempt: Attempt) -> None:
        self._judged, self.name, self._attempt = judged, name, attempt
        self.given: Any = UNSET
        self.error: Exception | None = None

    def perform(self, name: str, arguments: Arguments, context: CallContext) -> Any:
        self.given, self.error = UNSET, None
        try:
            given = self._attempt(name, arguments, context)
            if inspect.iscoroutine(given):
                given.close()
                raise ToolError(
                    f"{name} can only be awaited here: call it with `await rt.call(...)`",
                    effect="not_sent",
                    transient=False,
                )
            return self._taken(name, given)
        except Exception as error:
            self.error = error
            raise

    async def perform_async(self, name: str, arguments: Arguments, context: CallContext) -> Any:
        self.given, self.error = UNSET, None
        try:
            return self._taken(name, await self._attempt(name, arguments, context))
        except Exception as error:
            self.error = error
            raise

    def _taken(self, name: str, given: Any) -> Any:
        if name == self.name:
            self.given, self.error = given, None
        return given if self._judged is None else self._judged(given)


# A tool is shared by many calls: each finds its own cell by the execution that is under way.


def run_tool(arguments: Arguments, context: CallContext) -> Any:
    """``call=`` of a bridged tool: the call under way lets the framework run it."""
    cell, name = _here()
    return cell.perform(name, arguments, context)


def run_tool_async(arguments: Arguments, context: CallContext) -> Awaitable[Any]:
    """`run_tool` for an attempt that is awaited."""
    cell, name = _here()
    return cell.perform_async(name, arguments, context)


def _here() -> tuple[Cell, str]:
    execution = surroundings.get()
    name = execution.call.tool.name if execution is not None else ""
    cell: Cell | None = execution.performer if execution is not None else None
    if cell is None:
        raise ToolError(
            f"{name} is a tool of a framework's agent: only a call of that agent can run it",
            effect="not_sent",
            transient=False,
        )
    return cell, name


def not_reachable(name: str) -> ToolError:
    """For an attempt that is asked to run a fallback it has no way to."""
    return ToolError(
        f"{name} cannot be run from here: register the fallback in the runtime itself",
        effect="not_sent",
        transient=False,
    )
