"""Failwise's own exceptions, few, by what the caller can do next.

FailwiseError
├── UsageError            the API was misused: fix the code (also a ValueError)
│   └── ConfigurationError    a data file is wrong: fix the line it names
├── ToolError             a tool speaks for itself (raised by users' tools)
└── ToolCallFailed        `ToolResult.unwrap()` on a failure: look at `.result`
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from failwise.vocabulary.kinds import Effect

if TYPE_CHECKING:
    from failwise.vocabulary.result import ToolResult


class FailwiseError(Exception):
    """Base of every exception that Failwise raises itself."""


class UsageError(FailwiseError, ValueError):
    """The API was called in a way that cannot work; the message says what to do instead."""


class ConfigurationError(UsageError):
    """A data file (policy, profile, configuration) is wrong.

    The message has the form ``file:line: reason; what to do``. `file` and `line` are kept apart.
    """

    def __init__(self, reason: str, *, file: str = "", line: int | None = None) -> None:
        self.reason, self.file, self.line = reason, file, line
        place = f"{file}:{line}: " if file and line is not None else f"{file}: " if file else ""
        super().__init__(place + reason)

    def __reduce__(self) -> Any:
        return _configuration_error, (self.reason, self.file, self.line)


def _configuration_error(reason: str, file: str, line: int | None) -> ConfigurationError:
    return ConfigurationError(reason, file=file, line=line)


class ToolError(FailwiseError):
    """A tool says itself what went wrong; nothing is guessed from the text.

    Raise it inside a tool. `code` is a registered code such as ``business.conflict`` (an unknown
    code below a known category, such as ``business.seat_taken``, is kept as it is). `effect` says
    what became of the side effect, `transient` whether the same call may succeed soon, and
    `retry_after` (seconds) how long to wait.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "tool.exception",
        effect: Effect | str = Effect.UNKNOWN,
        transient: bool | None = None,
        retry_after: float | None = None,
        http_status: int | None = None,
        provider_code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.message, self.code = message, code
        try:
            self.effect = Effect(effect)
        except ValueError:
            raise UsageError(
                f"ToolError(effect={effect!r}): say one of {', '.join(Effect)}"
            ) from None
        self.transient, self.retry_after = transient, retry_after
        self.http_status, self.provider_code = http_status, provider_code
        self.details = dict(details or {})
        super().__init__(message or code)

    def __reduce__(self) -> Any:
        return _tool_error, (
            self.message,
            self.code,
            str(self.effect),
            self.transient,
            self.retry_after,
            self.http_status,
            self.provider_code,
            self.details,
        )


def _tool_error(
    message: str,
    code: str,
    effect: str,
    transient: bool | None,
    retry_after: float | None,
    http_status: int | None,
    provider_code: str | None,
    details: Mapping[str, Any],
) -> ToolError:
    return ToolError(
        message,
        code=code,
        effect=effect,
        transient=transient,
        retry_after=retry_after,
        http_status=http_status,
        provider_code=provider_code,
        details=details,
    )


class ToolCallFailed(FailwiseError):
    """Raised by `ToolResult.unwrap()`; the whole result is on `.result`.

    Leaving a tool that called the runtime itself, it is read as the inner failure, already retried.
    """

    def __init__(self, result: "ToolResult[Any]") -> None:
        self.result = result
        failure = result.failure
        text = f"{failure.code}: {failure.message}" if failure else "failed"
        super().__init__(f"{result.tool_name}: {text}")

    def __reduce__(self) -> Any:
        return _tool_call_failed, (self.result.to_dict(),)


def _tool_call_failed(data: Mapping[str, Any]) -> ToolCallFailed:
    from failwise.vocabulary.result import ToolResult

    return ToolCallFailed(ToolResult.from_dict(data))
