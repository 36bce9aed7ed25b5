"""A scripted turn in the providers' wire formats: one JSON object, or the events of a stream."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from failwise.testing.turns import Says

Event = tuple[str | None, dict[str, Any] | str]
"""The name of a server-sent event (None: it has none), and its data."""

_PIECE = 12
"""Characters in one piece of a stream."""
_CREATED = 1_800_000_000


def encoded(events: Iterator[Event]) -> list[bytes]:
    """Server-sent events as they go over the wire."""
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        head = f"event: {name}\n" if name else ""
        lines.append(f"{head}data: {text}\n\n".encode())
    return lines


class Turned:
    """A turn with its calls and tokens worked out. `number` makes ids that are the script's own."""

    def __init__(self, says: Says, request: Mapping[str, Any], number: int, prefix: str) -> None:
        self.says, self.request, self.number = says, request, number
        self.model = str(request.get("model"))
        self.calls: list[tuple[str, str, str]] = []
        for index, (name, arguments, *given) in enumerate(says.calls):
            call_id = given[0] if given else f"{prefix}_{number}_{index}"
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            self.calls.append((call_id, name, text))
        asked = math.ceil(len(json.dumps(dict(request))) / 4)
        said = len(says.text) + sum(len(name) + len(text) for _, name, text in self.calls)
        self.tokens = says.usage or (asked, math.ceil(said / 4) or 1)


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


# OpenAI chat completions

_FINISH = {
    "end": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "refusal": "stop",
}


def chat(turn: Turned) -> dict[str, Any]:
    """A ``chat.completion``."""
    says = turn.says
    refused = says.ended == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused else says.text or None,
        "refusal": says.text if refused else None,
    }
    if turn.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
            for call_id, name, text in turn.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": _FINISH[says.ended]}
    return {**_chat_head(turn, "chat.completion"), "choices": [choice], "usage": _chat_usage(turn)}


def _chat_head(turn: Turned, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.number}",
        "object": kind,
        "created": _CREATED,
        "model": turn.model,
    }


def _chat_usage(turn: Turned) -> dict[str, Any]:
    into, out = turn.tokens
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}


def chat_stream(turn: Turned) -> Iterator[Event]:
    """The chunks of a streamed chat completion."""
    head = _chat_head(turn, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return None, {**head, "choices": [choice]}

    refused = turn.says.ended == "refusal"
    yield chunk({"role": "assistant", "content": None if refused else ""})
    for piece in _pieces(turn.says.text):
        yield chunk({"refusal" if refused else "content": piece})
    for index, (call_id, name, text) in enumerate(turn.calls):
        opened = {"name": name, "arguments": ""}
        first = {"index": index, "id": call_id, "type": "function", "function": opened}
        yield chunk({"tool_calls": [first]})
        for piece in _pieces(text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _FINISH[turn.says.ended])
    if (turn.request.get("stream_options") or {}).get("include_usage"):
        yield None, {**head, "choices": [], "usage": _chat_usage(turn)}
    yield None, "[DONE]"


# OpenAI responses


def response(turn: Turned) -> dict[str, Any]:
    """A ``response`` that ended."""
    says = turn.says
    incomplete = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = incomplete.get(says.ended)
    into, out = turn.tokens
    return {
        **_response_head(turn),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _response_output(turn),
        "usage": {
            "input_tokens": into,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": into + out,
        },
    }


def _response_head(turn: Turned) -> dict[str, Any]:
    return {
        "id": f"resp_{turn.number}",
        "object": "response",
        "created_at": _CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": turn.request.get("instructions"),
        "model": turn.model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": turn.request.get("tools") or [],
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def _response_output(turn: Turned) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if turn.says.thinking:
        summary = [{"type": "summary_text", "text": turn.says.thinking}]
        output.append({"id": f"rs_{turn.number}", "type": "reasoning", "summary": summary})
    if turn.says.text:
        kind = "refusal" if turn.says.ended == "refusal" else "output_text"
        text: dict[str, Any] = {"type": kind}
        if kind == "refusal":
            text["refusal"] = turn.says.text
        else:
            text |= {"text": turn.says.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{turn.number}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    for index, (call_id, name, arguments) in enumerate(turn.calls):
        output.append(
            {
                "id": f"fc_{turn.number}_{index}",
                "type": "function_call",
                "status": "completed",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            }
        )
    return output


def response_stream(turn: Turned) -> Iterator[Event]:
    """The events of a streamed response."""
    number = 0

    def event(kind: str, **data: Any) -> Event:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **data}

    yield event("response.created", response=_response_head(turn))
    whole = response(turn)
    for index, item in enumerate(whole["output"]):
        yield event("response.output_item.added", output_index=index, item=_opened(item))
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            kind = part["type"]
            field = "refusal" if kind == "refusal" else "text"
            empty = {**part, field: ""}
            yield event("response.content_part.added", **where, content_index=0, part=empty)
            for piece in _pieces(part[field]):
                more = {"delta": piece, "content_index": 0}
                if kind == "output_text":
                    more["logprobs"] = []
                yield event(f"response.{kind}.delta", **where, **more)
            yield event("response.content_part.done", **where, content_index=0, part=part)
        elif item["type"] == "function_call":
            for piece in _pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **where, delta=piece)
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield event("response.function_call_arguments.done", **where, **done)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{whole['status']}", response=whole)


def _opened(item: dict[str, Any]) -> dict[str, Any]:
    """An output item as it is announced."""
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    if item["type"] == "function_call":
        return {**item, "status": "in_progress", "arguments": ""}
    return {**item, "summary": []}


# Anthropic messages

_STOPPED = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}


def message(turn: Turned) -> dict[str, Any]:
    """A ``message``. Text that is no JSON object goes out as an empty input, as the API has it."""
    content: list[dict[str, Any]] = []
    if turn.says.thinking:
        content.append({"type": "thinking", "thinking": turn.says.thinking, "signature": "c2ln"})
    if turn.says.text:
        content.append({"type": "text", "text": turn.says.text})
    for call_id, name, text in turn.calls:
        content.append({"type": "tool_use", "id": call_id, "name": name, "input": _object(text)})
    into, out = turn.tokens
    return {
        "id": f"msg_{turn.number}",
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": content,
        "stop_reason": _STOPPED[turn.says.ended],
        "stop_sequence": None,
        "usage": {"input_tokens": into, "output_tokens": out},
    }


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def message_stream(turn: Turned) -> Iterator[Event]:
    """The events of a streamed message."""
    whole = message(turn)
    into, out = turn.tokens
    begun = {**whole, "content": [], "stop_reason": None}
    begun["usage"] = {"input_tokens": into, "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": begun}
    yield "ping", {"type": "ping"}
    texts = iter([text for _, _, text in turn.calls])
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        if kind == "tool_use":
            empty, deltas = {**block, "input": {}}, _deltas("input_json", next(texts))
        elif kind == "thinking":
            empty = {**block, "thinking": "", "signature": ""}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            deltas = [*_deltas("thinking", block["thinking"]), signed]
        else:
            empty, deltas = {**block, "text": ""}, _deltas("text", block["text"])
        at = {"index": index}
        yield "content_block_start", {"type": "content_block_start", **at, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", **at, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", **at}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": out}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _deltas(kind: str, text: str) -> list[dict[str, Any]]:
    field = "partial_json" if kind == "input_json" else kind
    return [{"type": f"{kind}_delta", field: piece} for piece in _pieces(text)]
