"""A loop of one's own with the official `openai` SDK: chat completions, then the responses API.

Needs ``pip install openai``. With OPENAI_API_KEY set it asks OpenAI (and MODEL); without, a scripted
provider on loopback stands in for it.
"""

import asyncio
import contextlib
import os
from typing import Any

import openai

import failwise
from failwise.testing import ProviderServer, Says

rt = failwise.Runtime(":memory:")
MODEL = os.environ.get("MODEL", "gpt-5")


@rt.tool(read_only=True, timeout=10)
async def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    if city == "Atlantis":
        raise failwise.ToolError(
            f"no station in {city}", code="business.not_found", effect="rejected", transient=False
        )
    return {"city": city, "degrees": 9}


QUESTION: Any = {"role": "user", "content": "How warm is it in Paris, and in Atlantis?"}
SCRIPT = [
    Says(calls=[("weather", {"city": "Paris"}), ("weather", {"city": "Atlantis"})]),
    Says("It is 9 degrees in Paris; there is no station in Atlantis."),
]


async def chat_completions(client: openai.AsyncOpenAI) -> None:
    messages: list[Any] = [QUESTION]
    tools: Any = rt.schemas("openai")
    async with rt.run(deadline=120) as run:
        for _ in range(10):
            answer = await client.chat.completions.create(
                model=MODEL, messages=messages, tools=tools
            )
            choice = answer.choices[0]
            messages.append(choice.message)
            if not choice.message.tool_calls:
                print(choice.message.content)
                return
            messages += await run.answer_openai(
                choice.message.tool_calls, truncated=choice.finish_reason == "length"
            )
            print(messages[-1]["content"].splitlines()[0])


async def responses(client: openai.AsyncOpenAI) -> None:
    items: list[Any] = [QUESTION]
    tools: Any = rt.schemas("openai_responses")
    async with rt.run(deadline=120) as run:
        for _ in range(10):
            response = await client.responses.create(model=MODEL, input=items, tools=tools)
            items += response.output
            answers = await run.answer_openai_responses(response.output)
            if not answers:
                print(response.output_text)
                return
            items += answers


async def main() -> None:
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {}
        if not os.environ.get("OPENAI_API_KEY"):
            server = stack.enter_context(ProviderServer(SCRIPT * 2))
            options = {"base_url": server.openai_url, "api_key": "none"}
        # The SDK repeats its own requests to the model; Failwise looks after the tools.
        async with openai.AsyncOpenAI(**options) as client:
            await chat_completions(client)
            await responses(client)


if __name__ == "__main__":
    asyncio.run(main())
