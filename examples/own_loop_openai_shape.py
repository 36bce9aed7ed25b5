"""A loop of one's own around tool calls in the shape of OpenAI's chat completions; no SDK needed.

`chat` stands for the model. What the loop has to know about failures is one line:
``messages += await run.answer_openai(answer)``, whatever happened.
"""

import asyncio
from typing import Any

import failwise

rt = failwise.Runtime(":memory:")


@rt.tool(read_only=True)
async def weather(city: str, day: str = "today") -> dict[str, Any]:
    """The weather of a city. `day` is a date, such as 2026-11-30, or "today"."""
    if city != "Paris":
        raise failwise.ToolError(f"no station in {city}", code="business.not_found")
    return {"city": city, "day": day, "degrees": 9}


def tool_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


SCRIPT = [
    [tool_call(1, "wether", '{"city": "Paris"}')],  # a near miss: answered with the tools there are
    [tool_call(2, "weather", "{'city': 'Pariss',}"), tool_call(3, "weather", '{"city": "Paris"}')],
    [],
]


async def chat(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """A model that plays a script; put your client's call here."""
    turn = sum(message["role"] == "assistant" for message in messages)
    calls = SCRIPT[turn]
    content = None if calls else "It is 9 degrees in Paris."
    return {"role": "assistant", "content": content, "tool_calls": calls}


async def main() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How warm is it in Paris?"}]
    async with rt.run(id="chat-7", deadline=120) as run:
        for _ in range(10):
            answer = await chat(messages, rt.schemas("openai"))
            messages.append(answer)
            if not answer["tool_calls"]:
                break
            messages += await run.answer_openai(answer["tool_calls"])
    for message in messages:
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        print(f"{message['role']}: {message['content'] or calls}\n")


if __name__ == "__main__":
    asyncio.run(main())
