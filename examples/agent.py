"""`failwise.Agent`: a model, tools that fail, a second model that takes over, a report.

Needs ``pip install openai anthropic``. Scripted providers on loopback stand in for the real ones.
"""

import asyncio

import anthropic
import openai

import failwise
from failwise.agent import AnthropicMessages, Budget, OpenAIChat, Prices
from failwise.faults import AfterCall, inject
from failwise.testing import ProviderServer, Says, Trouble

rt = failwise.Runtime(":memory:")


@rt.tool(read_only=True)
async def find_customer(name: str) -> dict[str, str]:
    """Find a customer by name."""
    return {"customer": f"c-{name.lower()}"}


def create_order(customer: str, sku: str) -> str:
    """Place an order."""
    return f"ordered {sku} for {customer}"


# The order is placed, and its answer is lost.
rt.add(inject(create_order, [AfterCall(TimeoutError("no answer"))]))

SCRIPT: list[Says | Trouble] = [
    Says("First, who is that?", calls=[("find_customer", {"name": "Ada"})]),
    Trouble("overloaded"),
    Says(calls=[("create_order", {"customer": "c-ada", "sku": "A-1"})]),
    Trouble("quota"),
    # the other model now; it tries the order again, in other words
    Says(calls=[("create_order", '{"sku": "A-1", "customer": "c-ada"}')]),
    Says("The order may have been placed; I could not make sure of it."),
]


async def main() -> None:
    with ProviderServer(SCRIPT) as server:
        async with (
            openai.AsyncOpenAI(base_url=server.openai_url, api_key="none") as first,
            anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="none") as second,
        ):
            agent = failwise.Agent(
                models=[
                    OpenAIChat(first, "gpt-5", prices=Prices(input=1.25, output=10)),
                    AnthropicMessages(second, "claude-haiku-5", prices=Prices(1, 5)),
                ],
                runtime=rt,
                instructions="You take orders.",
                budget=Budget(money=1.0, calls=20),
            )
            async for event in agent.stream("Order A-1 for Ada.", id="job-42", deadline=120):
                if event.kind == "retry" and event.attempt and event.attempt.failure:
                    print(f"retry: {event.tool}: {event.attempt.failure.code}")
                elif event.kind == "model":
                    print(f"model: {event.model}")
                elif event.kind == "result" and event.result:
                    print(f"result: {event.result}")
                elif event.outcome is not None:
                    print(
                        f"\n{event.outcome.status}: {event.outcome.text}\n{event.outcome.report()}"
                    )


if __name__ == "__main__":
    asyncio.run(main())
