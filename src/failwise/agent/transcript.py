"""The history of one task, independent of the provider, and how each provider is told it.

A call and its answer stay together, whatever is folded, shortened or left out, so that every
provider takes the history.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from failwise.agent.messages import Completion, ToolCall
from failwise.runtime import dialects
from failwise.runtime.dialects import Asked, Reply
from failwise.vocabulary.tokens import estimated

Messages = list[dict[str, Any]]


@dataclass(slots=True)
class Said:
    """A text of the user's, or of the loop in the user's place."""

    text: str

    @property
    def tokens(self) -> int:
        return estimated(self.text)


@dataclass(slots=True)
class Answered:
    """The answer to one call. `folded`: one line that stands for it once it is old."""

    call: ToolCall
    text: str
    failed: bool
    folded: str
    whole: str
    """The text as it was at first: `text` may have become shorter."""

    @property
    def tokens(self) -> int:
        return estimated(self.text)


@dataclass(slots=True)
class Turn:
    """What the model said, with the answers to its calls. `model` said it, in `dialect`."""

    completion: Completion
    dialect: str
    model: str
    answers: list[Answered] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        own = estimated(self.completion.text)
        own += sum(estimated(call.name + call.text) + 8 for call in self.completion.calls)
        return own + sum(answer.tokens for answer in self.answers)


Entry = Said | Turn


class Transcript:
    """The system's instructions, and the entries in order."""

    def __init__(self, instructions: str, entries: Sequence[Entry] = ()) -> None:
        self.instructions = instructions
        self.entries: list[Entry] = list(entries)

    def say(self, text: str) -> None:
        """Something said in the user's place."""
        self.entries.append(Said(text))

    @property
    def turns(self) -> list[Turn]:
        return [entry for entry in self.entries if isinstance(entry, Turn)]

    @property
    def tokens(self) -> int:
        """Tokens of the whole, estimated."""
        return estimated(self.instructions) + sum(entry.tokens for entry in self.entries)

    @property
    def result_tokens(self) -> int:
        """Tokens of the tool results in it, estimated: what each request makes the model read again."""
        return sum(answer.tokens for turn in self.turns for answer in turn.answers)

    def render(self, dialect: str, model: str) -> Messages:
        """The messages of the next request to `model`."""
        return _RENDER[dialect](self, model)


def _reply(answer: Answered) -> Reply:
    call = answer.call
    return Reply(Asked(call.id, call.name, call.arguments), answer.text, answer.failed)


def _sound(call: ToolCall) -> str:
    """Arguments as JSON text. What the model wrote broken would make some providers refuse the whole
    history: it stands there as a text."""
    text = call.text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return text
    return json.dumps({"unreadable": text[:500]}, ensure_ascii=False)


def _own(turn: Turn, dialect: str, model: str) -> Any:
    """The turn in the provider's own form, where it goes back to the model that said it."""
    same = turn.dialect == dialect and turn.model == model
    return turn.completion.native if same else None


def _openai(transcript: Transcript, model: str) -> Messages:
    messages: Messages = []
    if transcript.instructions:
        messages.append({"role": "system", "content": transcript.instructions})
    for entry in transcript.entries:
        if isinstance(entry, Said):
            messages.append({"role": "user", "content": entry.text})
            continue
        said = entry.completion
        message = dict(_own(entry, "openai", model) or {})
        message |= {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": _sound(call)},
                }
                for call in said.calls
            ]
        elif not said.text:
            message["content"] = "-"
        messages.append(message)
        messages += dialects.openai_replies([_reply(answer) for answer in entry.answers])
    return messages


def _responses(transcript: Transcript, model: str) -> Messages:
    items: Messages = []
    if transcript.instructions:
        items.append({"role": "system", "content": transcript.instructions})
    for entry in transcript.entries:
        if isinstance(entry, Said):
            items.append({"role": "user", "content": entry.text})
            continue
        native = _own(entry, "openai_responses", model)
        if native:
            items += [_sound_item(item) for item in native]
        else:
            if entry.completion.text:
                items.append({"role": "assistant", "content": entry.completion.text})
            items += [
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": _sound(call),
                }
                for call in entry.completion.calls
            ]
        items += dialects.responses_replies([_reply(answer) for answer in entry.answers])
    return items


def _sound_item(item: Mapping[str, Any]) -> dict[str, Any]:
    if item.get("type") != "function_call":
        return dict(item)
    call = ToolCall("", "", str(item.get("arguments") or "{}"))
    return {**item, "arguments": _sound(call)}


def _anthropic(transcript: Transcript, model: str) -> Messages:
    messages: Messages = []
    if transcript.instructions:
        messages.append({"role": "system", "content": transcript.instructions})
    for entry in transcript.entries:
        if isinstance(entry, Said):
            _add(messages, "user", [{"type": "text", "text": entry.text or "-"}])
            continue
        native = _own(entry, "anthropic", model)
        blocks = [dict(block) for block in native] if native else _blocks(entry.completion)
        _add(messages, "assistant", blocks)
        for message in dialects.anthropic_replies([_reply(answer) for answer in entry.answers]):
            _add(messages, "user", message["content"])
    return messages


def _blocks(said: Completion) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(_sound(call))}
        for call in said.calls
    ]
    return blocks or [{"type": "text", "text": "-"}]


def _add(messages: Messages, role: str, blocks: list[dict[str, Any]]) -> None:
    """Roles take turns there: what follows the same role joins its message."""
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] = [*messages[-1]["content"], *blocks]
    else:
        messages.append({"role": role, "content": list(blocks)})


_RENDER: Mapping[str, Callable[[Transcript, str], Messages]] = {
    "openai": _openai,
    "openai_responses": _responses,
    "anthropic": _anthropic,
}


def answers(entries: Sequence[Entry]) -> Iterator[Answered]:
    """All answers among some entries, oldest first."""
    for entry in entries:
        if isinstance(entry, Turn):
            yield from entry.answers
