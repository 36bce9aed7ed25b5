"""A runtime with a few tools, on a clock that is stepped; models that play a script."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import failwise
from failwise.agent import Completion, ToolCall, Usage
from failwise.testing import SteppingClock


class Script:
    """A chat model that plays a script: texts, completions, exceptions, or functions of the
    messages; the last one repeats. `heard` has the messages of each request, `offered` the tools."""

    name = "scripted"

    def __init__(self, turns: Sequence[Any], **attributes: Any) -> None:
        self.turns = list(turns)
        self.heard: list[list[dict[str, Any]]] = []
        self.offered: list[list[dict[str, Any]]] = []
        for name, value in attributes.items():
            setattr(self, name, value)

    async def complete(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        turn = self.turns[min(len(self.heard), len(self.turns) - 1)]
        self.heard.append(messages)
        self.offered.append(tools)
        if callable(turn) and not isinstance(turn, type):
            turn = turn(messages)
        if isinstance(turn, BaseException):
            raise turn
        return turn

    @property
    def told(self) -> str:
        """The text of the last message of the last request."""
        return str(self.heard[-1][-1]["content"])


def asks(*calls: tuple[str, Any], text: str = "", stop: str = "tool_calls") -> Completion:
    """A turn with tool calls."""
    made = tuple(ToolCall(f"c{id(call)}", call[0], call[1]) for call in calls)
    return Completion(text, made, stop, Usage(10, 5))  # type: ignore[arg-type]


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def rt(clock: SteppingClock) -> Iterator[failwise.Runtime]:
    with failwise.Runtime(":memory:", clock=clock) as runtime:
        yield runtime


@pytest.fixture
def script() -> Callable[..., Script]:
    return Script
