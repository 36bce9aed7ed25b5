"""A first tool: a failed call comes back as data, and what could do harm is not repeated.

Run it: ``python examples/quickstart.py``. It needs nothing but failwise and takes about two seconds.
"""

import asyncio
from typing import Any

import failwise

rt = failwise.Runtime(":memory:")  # a path, or nothing for .failwise/journal.db, keeps the records

down = [ConnectionRefusedError(111, "Connection refused")]


@rt.tool(read_only=True, timeout=10)
async def search_products(query: str, limit: int = 10) -> list[dict[str, Any]]:
    """Search the catalogue."""
    if down:
        raise down.pop()  # the first request fails, as an upstream that restarts does
    return [{"name": f"{query} {number}"} for number in range(1, 100)][:limit]


@rt.tool(timeout=10)
async def send_message(to: str, text: str) -> str:
    """Send a message. Nothing is declared: never repeated once it may have been sent."""
    raise TimeoutError("timed out")


async def main() -> None:
    async with rt.run(id="job-42", deadline=60) as run:
        # The model's own text: "2" is a number in quotes, and is read as the schema wants it.
        found = await run.call("search_products", '{"query": "shoes", "limit": "2"}', call_id="c1")
        assert found.success
        print(found.value, f"({found.sent} requests)\n")

        lost = await run.call("send_message", '{"to": "Ann", "text": "Hello"}', call_id="c2")
        assert lost.failure is not None
        print(lost.failure.code, lost.failure.effect, lost.stop_reason, f"({lost.sent} request)\n")
        print(lost.for_model(), "\n")
        print(lost.for_model("zh"))


if __name__ == "__main__":
    asyncio.run(main())
