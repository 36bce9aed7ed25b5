"""What a scripted chat provider does in one turn: it says something, or it is in trouble."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

Stop = Literal["end", "tool_calls", "length", "content_filter", "refusal"]

KINDS = (
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "context_too_long",
    "bad_request",
    "bad_key",
    "forbidden",
    "no_model",
    "gateway",
    "silent",
    "reset",
    "broken_stream",
    "stream_error",
    "stream_end",
)


@record
class Says:
    """A turn of the model: a text, tool calls, or both.

    `calls` are ``(name, arguments)`` or ``(name, arguments, id)``; arguments that are a text go out
    as they are, broken JSON included. `stop`: why it ended (None: follows from `calls`). `usage`:
    tokens in and out (None: counted roughly). `thinking` is said before the text, where the dialect
    has such a thing. `delay`: seconds until the first byte; `pace`: seconds between two pieces of a
    stream.
    """

    text: str = ""
    calls: Sequence[Any] = ()
    stop: Stop | None = None
    usage: tuple[int, int] | None = None
    thinking: str = ""
    delay: float = 0.0
    pace: float = 0.0

    @property
    def ended(self) -> Stop:
        """Why this turn ended."""
        return self.stop or ("tool_calls" if self.calls else "end")


class Trouble:
    """A turn that fails as the provider's own API fails.

    `kind`: ``rate_limit`` (429 with a told wait), ``quota`` (nothing is left to spend),
    ``overloaded`` (503, 529), ``server_error`` (500), ``context_too_long``, ``bad_request`` (400),
    ``bad_key`` (401), ``forbidden`` (403), ``no_model`` (404), ``gateway`` (a proxy's 502 page),
    ``silent`` (no answer), ``reset`` (of the connection), ``broken_stream`` (the connection breaks
    in the middle), ``stream_error`` (an error event in the middle), ``stream_end`` (it ends in the
    middle as if that were all). The last three fall on answers that are not streamed as a break in
    the middle. `retry_after` in seconds.
    """

    def __init__(self, kind: str, *, retry_after: float | None = None) -> None:
        if kind not in KINDS:
            raise UsageError(f"Trouble({kind!r}): say one of {', '.join(KINDS)}")
        self.kind, self.retry_after = kind, retry_after

    def __repr__(self) -> str:
        return f"Trouble({self.kind!r})"


Turn: TypeAlias = Says | Trouble | Callable[[Mapping[str, Any]], "Says | Trouble"]
"""One entry of a provider's script; a function is given the request's JSON."""
