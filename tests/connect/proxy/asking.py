"""A server that asks its user, in one era of the protocol: ``python -m tests.connect.proxy.asking ERA``."""

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ERA = sys.argv[1]
FORM = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name="ask", input_schema={"type": "object", "properties": {}})]
    )


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    if ERA == "legacy":
        answer: Any = await context.session.elicit_form(
            "Really?", FORM, related_request_id=context.request_id
        )
    else:
        answer = (params.input_responses or {}).get("sure")
        if answer is None:
            question = types.ElicitRequestFormParams(message="Really?", requested_schema=FORM)
            return types.InputRequiredResult(
                input_requests={"sure": types.ElicitRequest(params=question)}, request_state="s"
            )
        assert params.request_state == "s"
    said = f"{answer.action} {(answer.content or {}).get('sure')}"
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


async def main() -> None:
    server: Server[Any] = Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
