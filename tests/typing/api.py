"""How the public names type-check. Never run: `make types` checks it."""

from typing import Any, TypedDict, assert_type

import failwise
from failwise.agent import AgentResult, Event


class Item(TypedDict):
    name: str


rt = failwise.Runtime(":memory:")


@rt.tool(read_only=True, timeout=10)
async def search(query: str, limit: int = 10) -> list[Item]:
    return [{"name": query}]


@rt.tool
def order(item: str) -> Item:
    return {"name": item}


async def typed_calls() -> None:
    found = await rt.call(search, query="shoes", limit=3)
    assert_type(found, failwise.ToolResult[list[Item]])
    assert_type(found.unwrap(), list[Item])
    made = await rt.call(order, item="shoe")
    assert_type(made, failwise.ToolResult[Item])
    if made.failure is not None:
        assert_type(made.failure.category, failwise.Category)
        assert_type(made.failure.effect, failwise.Effect)
        assert_type(made.for_model("zh"), str)
    async with rt.run(id="job", deadline=60) as run:
        assert_type(run, failwise.Run)
        await run.call("search", '{"query": "shoes"}', call_id="call_7")


def the_decorator_gives_back_the_same_type() -> None:
    assert_type(order(item="shoe"), Item)
    assert_type(rt.call_sync(order, item="shoe"), failwise.ToolResult[Item])


async def typed_agents() -> None:
    class Echo:
        def complete(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
            return "hello"

    agent = failwise.Agent(Echo(), rt)
    result = await agent.run("hello", id="job")
    assert_type(result, AgentResult)
    assert_type(result.results, tuple[failwise.ToolResult[Any], ...])
    assert_type(result.report("zh"), str)
    async for event in agent.stream("hello"):
        assert_type(event, Event)
    assert_type(await rt.answer_openai(None), list[dict[str, Any]])
    async with rt.run() as run:
        assert_type(await run.plan([]), list[failwise.ToolResult[Any]])
