"""OpenAI's chat completions, and everything that speaks them, through the official SDK."""

from typing import Any

from failwise.agent.messages import Completion, Limits, Prices, Usage
from failwise.agent.models import OnText, as_completion, broke_off, of_message, usage_of
from failwise.agent.streams import client_of, events, upstream_of


class OpenAIChat:
    """``OpenAIChat(openai.AsyncOpenAI(), "gpt-5")``: a model behind OpenAI's chat completions.

    The client's own retries are switched off: Failwise repeats what can be repeated. `stream`
    false asks for whole answers (the first-token limit then has nothing to watch). `options` go with
    every request (``temperature=0``, ...). `usage_in_stream` false for servers that do not know
    ``stream_options``; tokens are then estimated.
    """

    dialect = "openai"

    def __init__(
        self,
        client: Any,
        model: str,
        *,
        stream: bool = True,
        usage_in_stream: bool = True,
        prices: Prices | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self.limits = limits or Limits()
        self._client = client_of(client, "openai", "AsyncOpenAI", self.limits)
        self.name, self.prices, self._options = model, prices, options
        self.upstream = upstream_of(client, model)
        self._stream, self._usage = stream, usage_in_stream

    async def complete(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]],
        on_text: OnText | None = None,
    ) -> Completion:
        """Ask once; raises what the SDK raises."""
        request: dict[str, Any] = {"model": self.name, "messages": messages, **self._options}
        if tools:
            request["tools"] = tools
        create = self._client.chat.completions.create
        if not self._stream:
            return as_completion(await create(**request))
        if self._usage:
            request["stream_options"] = {"include_usage": True}
        assembled = _Assembled()
        async with events(create(stream=True, **request), self.limits) as chunks:
            async for chunk in chunks:
                assembled.add(chunk, on_text)
        return assembled.completion()


class _Assembled:
    """A streamed message, put together from its pieces."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.finish: str | None = None
        self.usage: Usage | None = None

    def add(self, chunk: Any, on_text: OnText | None) -> None:
        self.usage = usage_of(chunk.usage) or self.usage
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta
            if delta is None:
                continue
            if delta.content:
                self.text.append(delta.content)
                if on_text is not None:
                    on_text(delta.content)
            if getattr(delta, "refusal", None):
                self.refusal.append(delta.refusal)
            for piece in delta.tool_calls or ():
                self._add_call(piece)

    def _add_call(self, piece: Any) -> None:
        index = piece.index
        if index is None:  # some servers leave it out: a new id begins a new call
            index = len(self.calls) if piece.id else len(self.calls) - 1
        call = self.calls.setdefault(index, {"id": "", "name": "", "arguments": []})
        call["id"] = piece.id or call["id"]
        if piece.function is not None:
            call["name"] = piece.function.name or call["name"]
            call["arguments"].append(piece.function.arguments or "")

    def completion(self) -> Completion:
        if self.finish is None:
            raise broke_off("it gave a finish reason")
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": "".join(call["arguments"])},
            }
            for _, call in sorted(self.calls.items())
        ]
        message = {
            "content": "".join(self.text),
            "refusal": "".join(self.refusal),
            "tool_calls": calls,
        }
        return of_message(message, self.finish, self.usage)
