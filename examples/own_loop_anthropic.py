"""A loop of one's own with the official `anthropic` SDK.

Needs ``pip install anthropic``. With ANTHROPIC_API_KEY set it asks Anthropic (and MODEL); without, a
scripted provider on loopback stands in for it.
"""

import contextlib
import os
from typing import Any

import anthropic

import failwise
from failwise.testing import ProviderServer, Says

rt = failwise.Runtime(":memory:")
MODEL = os.environ.get("MODEL", "claude-sonnet-5")


@rt.tool(read_only=True)
def stock(sku: str) -> int:
    """How many there are of an article."""
    if sku != "A-1":
        raise failwise.ToolError(
            f"no article {sku}", code="business.not_found", effect="rejected", transient=False
        )
    return 3


SCRIPT = [
    Says("I look.", calls=[("stock", {"sku": "A-1"}), ("stock", {"sku": "B-2"})]),
    Says("There are 3 of A-1; there is no B-2."),
]


def main() -> None:
    """Without a loop of asyncio: the sync twin."""
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {}
        if not os.environ.get("ANTHROPIC_API_KEY"):
            server = stack.enter_context(ProviderServer(SCRIPT))
            options = {"base_url": server.anthropic_url, "api_key": "none"}
        client = stack.enter_context(anthropic.Anthropic(**options))
        messages: list[Any] = [{"role": "user", "content": "How many A-1 and B-2 are there?"}]
        tools: Any = rt.schemas("anthropic")
        run = stack.enter_context(rt.run(deadline=120))
        for _ in range(10):
            message = client.messages.create(
                model=MODEL, max_tokens=1000, messages=messages, tools=tools
            )
            messages.append({"role": "assistant", "content": message.content})
            if message.stop_reason != "tool_use":
                print("".join(block.text for block in message.content if block.type == "text"))
                return
            messages += run.answer_anthropic_sync(message.content)
            for block in messages[-1]["content"]:
                print(block.get("is_error", False), block["content"].splitlines()[0])


if __name__ == "__main__":
    main()
