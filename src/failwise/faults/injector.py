"""`inject`: faults for a plain function, without any network."""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import ToolSpec

T = TypeVar("T", bound="Callable[..., Any] | ToolSpec")


@record
class Returns:
    """The call gives `value`; the function is not run."""

    value: Any


@record
class AfterCall:
    """The function is run, its effect happens, and then the call raises: an answer that was lost."""

    error: BaseException | type[BaseException]


@record
class Passes:
    """The call is left alone."""


Injected: TypeAlias = BaseException | type[BaseException] | Returns | AfterCall | Passes


def inject(target: T, faults: Sequence[Injected], *, repeat_last: bool = False) -> T:
    """The same function or tool, whose first calls meet `faults`, one each, in order.

    An exception (or its class) is raised, and the function is not run; `Returns(value)` gives a
    value instead; `AfterCall(error)` runs the function first, so that its effect happens; `Passes()`
    leaves a call alone. When they are used up, calls go through (with `repeat_last`, the last one
    repeats). Works for sync and async functions and for a `ToolSpec`; safe in threads.
    """
    script = _Script(faults, repeat_last)
    if isinstance(target, ToolSpec):
        return cast(
            "T",
            replace(
                target,
                call=script.around(target.call) if target.call else None,
                call_async=script.around(target.call_async) if target.call_async else None,
            ),
        )
    if not callable(target):
        raise UsageError(f"inject({target!r}): give a function or a ToolSpec")
    return cast("T", script.around(target))


class _Script:
    def __init__(self, faults: Sequence[Injected], repeat_last: bool) -> None:
        for fault in faults:
            if not _is_fault(fault):
                raise UsageError(
                    f"inject(): {fault!r} is neither an exception nor Returns, AfterCall or Passes"
                )
        self._faults = list(faults)
        self._repeat_last = repeat_last
        self._lock = threading.Lock()
        self._number = 0

    def _next(self) -> Injected:
        with self._lock:
            number = self._number
            self._number += 1
        if number < len(self._faults):
            return self._faults[number]
        return self._faults[-1] if self._repeat_last and self._faults else Passes()

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import inspect

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def faulty_async(*arguments: Any, **options: Any) -> Any:
                fault = self._next()
                match fault:
                    case Returns(value):
                        return value
                    case Passes():
                        return await function(*arguments, **options)
                    case AfterCall(error):
                        await function(*arguments, **options)
                        raise _fresh(error)
                    case _:
                        raise _fresh(fault)

            return faulty_async

        @functools.wraps(function)
        def faulty(*arguments: Any, **options: Any) -> Any:
            fault = self._next()
            match fault:
                case Returns(value):
                    return value
                case Passes():
                    return function(*arguments, **options)
                case AfterCall(error):
                    function(*arguments, **options)
                    raise _fresh(error)
                case _:
                    raise _fresh(fault)

        return faulty


def _is_fault(fault: object) -> bool:
    if isinstance(fault, type):
        return issubclass(fault, BaseException)
    return isinstance(fault, BaseException | Returns | AfterCall | Passes)


def _fresh(error: BaseException | type[BaseException]) -> BaseException:
    """The exception as on its first raising: repeated use must not pile up tracebacks."""
    if isinstance(error, type):
        return error()
    return error.with_traceback(None)
