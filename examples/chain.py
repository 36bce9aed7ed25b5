"""A chain of calls: what one permission failure stops, and what a fallback saves."""

import asyncio
from typing import Any

import failwise

rt = failwise.Runtime(":memory:")


@rt.tool(read_only=True, upstream="catalogue", fallback=["search_cache"])
async def search(query: str) -> list[str]:
    """Search the catalogue."""
    raise failwise.ToolError(
        "the index is being rebuilt", code="server.unavailable", effect="rejected", transient=False
    )


@rt.tool(read_only=True)
async def search_cache(query: str) -> list[str]:
    """Search yesterday's copy of the catalogue."""
    return [f"{query} (yesterday's copy)"]


@rt.tool(upstream="shop")
async def read_account() -> dict[str, Any]:
    """Read the customer's account."""
    raise failwise.ToolError(
        "scope accounts:read is missing", code="auth.insufficient_scope", effect="rejected"
    )


@rt.tool(upstream="shop")
async def place_order(sku: str) -> dict[str, Any]:
    """Place an order."""
    raise AssertionError("never sent: the chain has stopped before it")


async def main() -> None:
    async with rt.run(deadline=30) as run:
        results = [
            await run.call("search", '{"query": "shoes"}'),
            await run.call("read_account", "{}"),
            await run.call("place_order", '{"sku": "A-1"}'),
        ]
        for result in results:
            outcome = result.failure.code if result.failure else "success"
            source = f", answered by {result.degraded_to}" if result.degraded_to else ""
            print(f"{result.tool_name}: {outcome}, {result.sent} sent{source}")
        assert results[0].degraded_to == "search_cache"
        assert results[2].failure is not None
        assert results[2].failure.code == "runtime.chain_aborted"
        assert run.interrupted_by is results[1]
        print()
        print(results[2].for_model())


if __name__ == "__main__":
    asyncio.run(main())
