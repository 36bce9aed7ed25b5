"""What goes between the loop and a chat model, whatever its provider."""

import json
from collections.abc import Mapping
from typing import Any, Literal

from failwise.vocabulary.records import record

Stop = Literal["end", "tool_calls", "length", "refusal", "pause"]


@record
class ToolCall:
    """A tool call as the model asked for it: `id` as the provider gave it, `arguments` as text, or
    as the object where the provider sends one."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]

    @property
    def text(self) -> str:
        """The arguments as text."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@record
class Usage:
    """Tokens of one completion, as the provider counted them. `cached` of `input` came from its
    cache."""

    input: int = 0
    output: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input, self.output + other.output, self.cached + other.cached
        )


@record
class Completion:
    """What a model said in one turn.

    `stop`: ``end``; ``tool_calls``; ``length`` (cut off at the output limit: the last call's
    arguments may be cut too); ``refusal`` (the model declined); ``pause`` (the provider wants the turn
    back to go on). `usage` None: the provider told none, it is estimated. `native`: the turn in
    the provider's own form, sent back to the same model as it is (reasoning and signatures with it).
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage | None = None
    native: Any = None


@record
class Prices:
    """What a model costs, per million tokens, in any one currency. `cached`: for input tokens from
    the provider's cache (None: as `input`)."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """The price of so many tokens."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input - usage.cached
        return (fresh * self.input + usage.cached * cached + usage.output * self.output) / 1e6


@record
class Limits:
    """How long a model's call may take, in seconds: to connect, to the first token (and between two,
    where it streams), as a whole. Each attempt has them anew."""

    connect: float = 5.0
    first_token: float = 60.0
    whole: float = 600.0
