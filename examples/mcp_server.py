"""An MCP server with one line more: reads are tried again, an order whose answer was lost is not placed twice."""

import asyncio

import httpx
import mcp_types as types
from mcp import Client
from mcp.server.mcpserver import MCPServer

import failwise
from failwise.connect.mcp_server import protect
from failwise.faults import Fault, FaultServer

POLICY = {"network": {"base": 0.01}}


def shop_server(upstream: FaultServer) -> MCPServer:
    """A server as anybody writes it: functions with an HTTP client inside."""
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def search(query: str, limit: int = 10) -> dict[str, list[str]]:
        """Search the catalogue."""
        found = httpx.get(upstream.url("/search"), params={"query": query, "limit": limit})
        return dict(found.raise_for_status().json())

    @server.tool()
    def create_order(sku: str) -> dict[str, str]:
        """Place an order."""
        placed = httpx.post(upstream.url("/orders"), json={"sku": sku})
        return dict(placed.raise_for_status().json())

    return server


async def main() -> None:
    with FaultServer() as upstream, failwise.Runtime(":memory:", policy=POLICY) as rt:
        found = Fault.json({"items": ["shoes 1"]})
        upstream.route("GET", "/search", [Fault.status(502), found, found])
        upstream.route("POST", "/orders", Fault.effect("order", Fault.status(504)))
        server = protect(shop_server(upstream), rt)  # the line
        async with Client(server) as client:
            calls = [
                ("search", {"query": "shoes", "limit": "5"}),
                ("create_order", {"sku": "A-1"}),
                ("create_order", {"sku": "A-1"}),
            ]
            for tool, arguments in calls:
                result = await client.call_tool(tool, arguments)
                print(f"-- {tool}")
                print(*(item.text for item in result.content if item.type == "text"), sep="\n")
        print(f"searches sent: {upstream.count('/search')}", end=", ")
        print(f"orders placed: {upstream.ledger.count('order')}")


asyncio.run(main())
