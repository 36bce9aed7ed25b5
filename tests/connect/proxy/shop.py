"""An MCP server for the tests, over stdio: tools that work, fail, ask, die, and write a ledger.

``python -m tests.connect.proxy.shop LEDGER`` - every order is a line of the ledger file.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

READ = ToolAnnotations(read_only_hint=True)
shop = MCPServer("shop")
ledger = Path(sys.argv[1] if len(sys.argv) > 1 else os.devnull)


class Yes(BaseModel):
    sure: bool


@shop.tool(annotations=READ)
def echo(text: str) -> str:
    """Say it again."""
    return text


@shop.tool(annotations=READ)
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@shop.tool()
def order(item: str) -> str:
    """Order something."""
    with ledger.open("a") as file:
        file.write(item + "\n")
    return f"ordered {item}"


@shop.tool()
def order_and_die(item: str) -> str:
    """Order something; the answer is never sent."""
    order(item)
    os._exit(3)


@shop.tool(annotations=READ)
def look_and_die(text: str) -> str:
    """Dies at its first call, answers at the next."""
    mark = ledger.with_suffix(".died")
    if not mark.exists():
        mark.touch()
        print("the disk is on fire, token=" + "sk-" + "ant-api03-" + "Ab3d" * 12, file=sys.stderr)
        os._exit(3)
    return text


@shop.tool(annotations=READ)
def fail(text: str) -> str:
    """Fail with this text."""
    raise ToolError(text)


@shop.tool(annotations=READ)
def says(text: str) -> dict[str, object]:
    """A success that holds a failure."""
    return {"code": 10001, "msg": text}


@shop.tool()
async def slow(context: Context, seconds: float, progress: bool = False) -> str:
    """Take a while, with or without news."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(0.05)
        if progress:
            await context.report_progress(0.5, 1.0, "half")
    with ledger.open("a") as file:
        file.write("slow\n")
    return "done"


@shop.tool()
async def ask(context: Context) -> str:
    """Ask the user."""
    answer = await context.elicit("Really?", Yes)
    return f"{answer.action} {getattr(getattr(answer, 'data', None), 'sure', None)}"


@shop.tool()
async def later(context: Context) -> str:
    """Add one more tool, and say so in the way of either era."""

    def brand_new() -> str:
        return "new"

    shop.add_tool(brand_new)
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "added"


@shop.resource("shop://sign")
def sign() -> str:
    """What stands over the door."""
    return "open"


@shop.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


if __name__ == "__main__":
    shop.run("stdio")
