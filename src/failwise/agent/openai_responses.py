"""OpenAI's responses API through the official SDK."""

from typing import Any

from failwise.agent.messages import Completion, Limits, Prices, Stop, ToolCall, Usage
from failwise.agent.models import OnText, broke_off, filtered
from failwise.agent.streams import client_of, events, upstream_of
from failwise.runtime.dialects import part, responses_calls

_ENDED = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses:
    """``OpenAIResponses(openai.AsyncOpenAI(), "gpt-5")``: a model behind OpenAI's responses API.

    The whole history goes with each request, reasoning items in their own form. The client's own
    retries are switched off. `stream` false asks for whole answers; `options` go with every request.
    """

    dialect = "openai_responses"

    def __init__(
        self,
        client: Any,
        model: str,
        *,
        stream: bool = True,
        prices: Prices | None = None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        self.limits = limits or Limits()
        self._client = client_of(client, "openai", "AsyncOpenAI", self.limits)
        self.name, self.prices, self._options = model, prices, options
        self.upstream = upstream_of(client, model)
        self._stream = stream

    async def complete(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]],
        on_text: OnText | None = None,
    ) -> Completion:
        """Ask once; raises what the SDK raises."""
        request: dict[str, Any] = {"model": self.name, "input": messages, **self._options}
        if tools:
            request["tools"] = tools
        create = self._client.responses.create
        if not self._stream:
            return self._completion(await create(**request))
        async with events(create(stream=True, **request), self.limits) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta" and on_text is not None:
                    on_text(event.delta)
                elif event.type == "error":
                    raise self._error({"code": event.code, "message": event.message})
                elif event.type in _ENDED:
                    return self._completion(event.response)
        raise broke_off("the response was complete")

    def _completion(self, response: Any) -> Completion:
        if response.status == "failed" or response.error is not None:
            error = response.error
            raise self._error({"code": part(error, "code"), "message": part(error, "message")})
        asked = responses_calls(response.output)
        calls = tuple(ToolCall(call.id, call.name, call.raw) for call in asked)
        texts, refusals = _texts(response.output)
        reason = part(response.incomplete_details, "reason")
        if reason == "content_filter" and not calls:
            raise filtered("".join(texts))
        stop: Stop = "tool_calls" if calls else "end"
        if reason == "max_output_tokens":
            stop = "length"
        elif refusals and not texts:
            texts, stop = refusals, "refusal"
        native = [item.model_dump(mode="json", exclude_none=True) for item in response.output]
        return Completion("".join(texts), calls, stop, _usage(response.usage), native)

    def _error(self, body: dict[str, Any]) -> Exception:
        """A failure told inside an answer, as the SDK would raise it."""
        import openai

        # The SDK's errors belong to a request; of this one only the address is known here.
        request = self._client._client.build_request("POST", f"{self._client.base_url}responses")
        said = str(body.get("message") or body.get("code") or "the response failed")
        return openai.APIError(said, request=request, body={**body, "type": body.get("code")})


def _texts(output: Any) -> tuple[list[str], list[str]]:
    """The texts among the output items, and the refusals."""
    texts, refusals = [], []
    for item in output:
        if part(item, "type") == "message":
            for piece in part(item, "content") or ():
                if part(piece, "type") == "output_text":
                    texts.append(part(piece, "text") or "")
                elif part(piece, "type") == "refusal":
                    refusals.append(part(piece, "refusal") or "")
    return texts, refusals


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    cached = part(part(usage, "input_tokens_details"), "cached_tokens") or 0
    return Usage(usage.input_tokens, usage.output_tokens, cached)
