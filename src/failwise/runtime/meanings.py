"""What others' exceptions mean, said by the user: `as_failure`, and mappings in all their forms."""

from collections.abc import Callable
from typing import Any

from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect


def as_failure(
    code: str,
    *,
    effect: Effect | str = Effect.UNKNOWN,
    transient: bool | None = None,
    retry_after: float | None = None,
    message: str | None = None,
) -> Callable[[BaseException], ToolError]:
    """What an exception type means, for `Runtime.errors` and a tool's ``errors=``.

    Without `message` the exception's own text is kept (redacted).
    """
    ToolError("", code=code, effect=effect)  # raises UsageError for what is not known

    def meaning(error: BaseException) -> ToolError:
        return ToolError(
            str(error) if message is None else message,
            code=code,
            effect=effect,
            transient=transient,
            retry_after=retry_after,
        )

    return meaning


def as_tool_error(meaning: Any, error: BaseException | None) -> ToolError:
    """A mapped exception as the `ToolError` it stands for. Raises `UsageError` for another mapping."""
    if isinstance(meaning, str):
        return ToolError(str(error or ""), code=meaning)
    if isinstance(meaning, ToolError):
        return meaning
    if callable(meaning):
        if error is None:
            return ToolError()
        made = meaning(error)
        if isinstance(made, ToolError):
            return made
    raise UsageError(
        f"errors={{...: {meaning!r}}}: give as_failure(...), a code, or a function that makes a ToolError"
    )
