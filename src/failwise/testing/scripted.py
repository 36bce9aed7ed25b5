"""Tools that answer by a script, and a list of what a runtime did."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from failwise.testing.clock import SteppingClock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec


class Expire:
    """A scripted answer that never comes: the tool's time limit passes (async tools only)."""


class ScriptedTool:
    """A tool whose answers are given in order; the last one repeats.

    An answer is a value to return, an exception (instance or type) to raise, `Expire()`, or a
    function of the arguments. `after` seconds pass on `clock` before each answer. `sent` lists the
    arguments of every request, `times` when it came, `contexts` what the tool could know. The
    declarations are those of `ToolSpec`.
    """

    def __init__(
        self,
        name: str,
        answers: Sequence[Any],
        *,
        clock: SteppingClock | None = None,
        after: float = 0.0,
        asynchronous: bool = True,
        schema: Mapping[str, Any] | None = None,
        **declarations: Any,
    ) -> None:
        self.name, self.answers, self.clock, self.after = name, list(answers), clock, after
        self.asynchronous = asynchronous
        self.schema = schema
        self.declarations = declarations
        self.sent: list[Arguments] = []
        self.times: list[float] = []
        self.contexts: list[CallContext] = []

    @property
    def requests(self) -> int:
        """How many requests came."""
        return len(self.sent)

    def spec(self) -> ToolSpec:
        """The tool, to be given to `Runtime.add`."""
        call = None if self.asynchronous else self._call
        call_async = self._call_async if self.asynchronous else None
        self.declarations.setdefault("thread", False)
        return ToolSpec(
            self.name,
            schema=self.schema,
            call=call,
            call_async=call_async,
            **self.declarations,
        )

    def _next(self, arguments: Arguments, context: CallContext) -> Any:
        if self.clock is not None:
            self.times.append(self.clock.monotonic())
        answer = self.answers[min(len(self.sent), len(self.answers) - 1)]
        self.sent.append(dict(arguments))
        self.contexts.append(context)
        if self.clock is not None and self.after:
            self.clock.advance(self.after)
        return answer

    def _finish(self, answer: Any, arguments: Arguments) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, type) and issubclass(answer, BaseException):
            raise answer()
        if callable(answer):
            return answer(arguments)
        return answer

    def _call(self, arguments: Arguments, context: CallContext) -> Any:
        return self._finish(self._next(arguments, context), arguments)

    async def _call_async(self, arguments: Arguments, context: CallContext) -> Any:
        answer = self._next(arguments, context)
        if isinstance(answer, Expire):
            assert self.clock is not None, "Expire() needs clock="
            await self.clock.expire()
        return self._finish(answer, arguments)


def recorded(runtime: Any) -> list[ToolResult[Any]]:
    """A list that fills with every result of a runtime."""
    results: list[ToolResult[Any]] = []
    keep: Callable[[ToolResult[Any]], Any] = results.append
    runtime.on_result(keep)
    return results
