"""Chat models as the loop sees them: one `complete` method, whatever stands behind it."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from failwise.agent.messages import Completion, Limits, Prices, Stop, ToolCall, Usage
from failwise.runtime.dialects import Asked, openai_calls, part, text_of
from failwise.vocabulary.errors import ToolError, UsageError

OnText = Callable[[str], None]


@runtime_checkable
class ChatModel(Protocol):
    """Anything with a `complete` method, sync or async.

    It is given the messages and the tools in the shape of OpenAI's chat completions, or of the API
    that its attribute `dialect` names (``openai``, ``openai_responses``, ``anthropic``). It gives a
    `Completion`, a text, or OpenAI's own shape (a message, or a whole completion), as plain data or
    as an object; or it raises. Further attributes are optional: `name`, `upstream` (what guards
    count by), `profile`, `prices` (`Prices`), `limits` (`Limits`). With a parameter `on_text` it is
    given a function to call with each piece of text as it comes.
    """

    def complete(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any: ...


class Model:
    """A chat model with everything that is optional filled in."""

    def __init__(self, given: Any) -> None:
        complete = getattr(given, "complete", None)
        if not callable(complete):
            raise UsageError(
                f"{given!r} is no chat model: give an adapter (failwise.agent.OpenAIChat, "
                "OpenAIResponses, AnthropicMessages) or any object with a method "
                "complete(messages, tools)"
            )
        self._complete = complete
        self._takes_text = "on_text" in _parameters(complete)
        self.name = str(getattr(given, "name", None) or type(given).__name__)
        self.upstream = str(getattr(given, "upstream", None) or f"model:{self.name}")
        self.dialect = str(getattr(given, "dialect", None) or "openai")
        if self.dialect not in ("openai", "openai_responses", "anthropic"):
            raise UsageError(
                f"{self.name}: dialect={self.dialect!r}: say 'openai', 'openai_responses' or "
                "'anthropic'"
            )
        self.profile: str | None = getattr(given, "profile", None)
        self.prices: Prices | None = getattr(given, "prices", None)
        self.limits: Limits = getattr(given, "limits", None) or Limits()

    async def complete(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], on_text: OnText
    ) -> Completion:
        """Ask once. Raises whatever the model raises."""
        options = {"on_text": on_text} if self._takes_text else {}
        if inspect.iscoroutinefunction(self._complete):
            answer = await self._complete(messages, tools, **options)
        else:
            import asyncio

            answer = await asyncio.to_thread(self._complete, messages, tools, **options)
            if inspect.isawaitable(answer):
                answer = await answer
        return as_completion(answer)


def _parameters(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def as_completion(answer: Any) -> Completion:
    """What a `complete` method gave, as a `Completion`. Raises `ToolError` for what is none."""
    if isinstance(answer, Completion):
        return answer
    if isinstance(answer, str):
        return Completion(answer)
    choices = part(answer, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = part(choice, "message") if choice is not None else answer
    if message is None or (
        part(message, "content") is None and part(message, "tool_calls") is None
    ):
        raise ToolError(
            f"the model gave {type(answer).__name__}, which is no completion",
            code="parsing.schema_mismatch",
            effect="applied",
            transient=False,
        )
    return of_message(message, text_of(choice, "finish_reason"), usage_of(part(answer, "usage")))


def of_message(message: Any, finish: str, usage: Usage | None) -> Completion:
    """A message in OpenAI's shape with its stop reason."""
    calls = tuple(_call(asked) for asked in openai_calls(part(message, "tool_calls")))
    text = text_of(message, "content")
    refusal = text_of(message, "refusal")
    if finish == "content_filter" and not calls:
        raise filtered(text)
    stop: Stop = "tool_calls" if calls else "end"
    if finish == "length":
        stop = "length"
    elif refusal and not text:
        text, stop = refusal, "refusal"
    return Completion(text, calls, stop, usage)


def _call(asked: Asked) -> ToolCall:
    return ToolCall(asked.id, asked.name, asked.raw)


def usage_of(usage: Any) -> Usage | None:
    """Usage in OpenAI's shape."""
    into, out = part(usage, "prompt_tokens"), part(usage, "completion_tokens")
    if not isinstance(into, int) or not isinstance(out, int):
        return None
    cached = part(part(usage, "prompt_tokens_details"), "cached_tokens")
    return Usage(into, out, cached if isinstance(cached, int) else 0)


def filtered(text: str = "") -> ToolError:
    """The provider's filter cut the answer: nothing of it is used."""
    return ToolError(
        "the provider's content filter withheld the answer",
        code="model_output.content_filter",
        effect="applied",
        transient=False,
        details={"length": len(text)},
    )


def broke_off(what: str) -> ToolError:
    """A stream that ended before the answer did."""
    return ToolError(
        f"the stream ended before {what}",
        code="network.interrupted",
        effect="unknown",
        transient=True,
    )
