"""Anthropic's messages API through the official SDK."""

from typing import Any

from failwise.agent.messages import Completion, Limits, Prices, Stop, ToolCall, Usage
from failwise.agent.models import OnText, broke_off
from failwise.agent.streams import client_of, events, upstream_of
from failwise.runtime.dialects import part, text_of

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}


class AnthropicMessages:
    """``AnthropicMessages(anthropic.AsyncAnthropic(), "claude-sonnet-5")``: Anthropic's messages API.

    `max_tokens` is the limit of one answer, which this API wants to be told. The client's own
    retries are switched off. `stream` false asks for whole answers; `options` go with every request
    (``thinking=...``: its blocks go back as they came).
    """

    dialect = "anthropic"

    def __init__(
        self,
        client: Any,
        model: str,
        *,
        max_tokens: int = 8192,
        stream: bool = True,
        prices: Prices | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self.limits = limits or Limits()
        self._client = client_of(client, "anthropic", "AsyncAnthropic", self.limits)
        self.name, self.prices = model, prices
        self._options = {"max_tokens": max_tokens, **options}
        self.upstream = upstream_of(client, model)
        self._stream = stream

    async def complete(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]],
        on_text: OnText | None = None,
    ) -> Completion:
        """Ask once; raises what the SDK raises."""
        request: dict[str, Any] = {"model": self.name, **self._options}
        if messages and messages[0]["role"] == "system":
            request["system"] = messages[0]["content"]
            messages = messages[1:]
        request["messages"] = messages
        if tools:
            request["tools"] = tools
        create = self._client.messages.create
        assembled = _Assembled()
        if not self._stream:
            assembled.whole(await create(**request))
        else:
            async with events(create(stream=True, **request), self.limits) as stream:
                async for event in stream:
                    assembled.add(event, on_text)
        return assembled.completion()


class _Assembled:
    """A message, put together from its blocks."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self.inputs: dict[int, list[str]] = {}
        self.stop: str | None = None
        self.into = self.cached = self.out = 0

    def whole(self, message: Any) -> None:
        self.blocks = [
            block.model_dump(mode="json", exclude_none=True) for block in message.content
        ]
        self.stop = message.stop_reason
        self._count(message.usage)

    def _count(self, usage: Any) -> None:
        cached = part(usage, "cache_read_input_tokens") or 0
        written = part(usage, "cache_creation_input_tokens") or 0
        self.cached = cached
        self.into = (part(usage, "input_tokens") or 0) + cached + written
        self.out = part(usage, "output_tokens") or 0

    def add(self, event: Any, on_text: OnText | None) -> None:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                block = event.content_block.model_dump(mode="json", exclude_none=True)
                while len(self.blocks) <= event.index:
                    self.blocks.append({})
                self.blocks[event.index] = block
            case "content_block_delta":
                self._grow(event.index, event.delta, on_text)
            case "message_delta":
                self.stop = event.delta.stop_reason or self.stop
                self.out = part(event.usage, "output_tokens") or self.out

    def _grow(self, index: int, delta: Any, on_text: OnText | None) -> None:
        block = self.blocks[index]
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + delta.text
                if on_text is not None:
                    on_text(delta.text)
            case "input_json_delta":
                self.inputs.setdefault(index, []).append(delta.partial_json)
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.thinking
            case "signature_delta":
                block["signature"] = delta.signature

    def completion(self) -> Completion:
        if self.stop is None:
            raise broke_off("it gave a stop reason")
        calls = []
        for index, block in enumerate(self.blocks):
            if block.get("type") != "tool_use":
                continue
            text = "".join(self.inputs.get(index, ()))
            if text:
                block["input"] = _object(text)
            arguments = text or block.get("input") or {}
            calls.append(ToolCall(text_of(block, "id"), text_of(block, "name"), arguments))
        texts = [block.get("text", "") for block in self.blocks if block.get("type") == "text"]
        native = [block for block in self.blocks if block and block.get("text") != ""]
        stop = _STOPS.get(self.stop, "end")
        usage = Usage(self.into, self.out, self.cached)
        return Completion("".join(texts), tuple(calls), stop, usage, native)


def _object(text: str) -> dict[str, Any]:
    """The input as the history may hold it: an object, whatever the model wrote."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"unreadable": text[:500]}
