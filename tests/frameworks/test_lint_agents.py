"""``failwise lint`` on agents and servers of the real frameworks: their tools are found where the framework keeps
them, with the line of their function, and with what they declare."""

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Program(NamedTuple):
    """An agent's module, the package it needs, and what must be found: rule → tools."""

    package: str
    text: str
    tools: int
    rules: dict[str, list[str]]
    framework: str


# Names are taken away, so that the tools are only where the framework keeps them.
PROGRAMS = {
    "langchain": Program(
        "langchain_openai",
        """
        import tenacity
        from langchain.agents import create_agent
        from langchain_core.tools import StructuredTool, tool
        from langchain_openai import ChatOpenAI

        @tool
        def search(query: str) -> str:
            "Search."
            return query

        @tool
        @tenacity.retry(stop=tenacity.stop_after_attempt(3))
        def create_order(sku: str) -> str:
            "Order."
            return sku

        def pay_bill(amount: int) -> str:
            "Pay."
            return ""

        said = {"failwise": {"read_only": False, "timeout": 5}}
        pay = StructuredTool.from_function(pay_bill, metadata=said)
        agent = create_agent(ChatOpenAI(model="m", api_key="x"), [search, create_order, pay])
        del search, create_order, pay
        """,
        3,
        {
            "undeclared": ["search"],
            "no_timeout": ["create_order", "search"],
            "risky_name": ["create_order"],
            "blind_retry": ["create_order"],
        },
        "langchain",
    ),
    "openai_agents": Program(
        "agents",
        """
        from agents import Agent, function_tool

        @function_tool
        def search(query: str) -> str:
            "Search."
            return query

        @function_tool
        def delete_user(name: str) -> str:
            "Delete."
            return name

        other = Agent(name="b", tools=[delete_user])
        agent = Agent(name="a", tools=[search], handoffs=[other])
        del search, delete_user, other
        """,
        2,
        {
            "undeclared": ["search"],
            "no_timeout": ["delete_user", "search"],
            "risky_name": ["delete_user"],
        },
        "openai-agents",
    ),
    "pydantic_ai": Program(
        "pydantic_ai",
        """
        from pydantic_ai import Agent, FunctionToolset, RunContext

        agent = Agent("test", defer_model_check=True)

        @agent.tool_plain(metadata={"failwise": {"read_only": True}})
        def search(query: str) -> str:
            "Search."
            return query

        @agent.tool
        def pay_bill(ctx: RunContext, amount: int) -> str:
            "Pay."
            return ""

        more = FunctionToolset()

        @more.tool_plain
        def send_mail(to: str) -> str:
            return to

        other = Agent("test", toolsets=[more], defer_model_check=True)
        del search, pay_bill, send_mail, more
        """,
        3,
        {
            "no_timeout": ["pay_bill", "search", "send_mail"],
            "risky_name": ["pay_bill", "send_mail"],
        },
        "pydantic-ai",
    ),
    "google_adk": Program(
        "google.adk",
        """
        from google.adk.agents import LlmAgent
        from google.adk.tools import FunctionTool

        def search(query: str) -> str:
            "Search."
            return query

        def transfer_money(amount: int) -> str:
            "Pay."
            return ""

        within = LlmAgent(name="b", model="m", tools=[FunctionTool(transfer_money)])
        agent = LlmAgent(name="a", model="m", tools=[search], sub_agents=[within])
        callbacks = [print, lambda: None]
        del search, transfer_money, within
        """,
        2,
        {
            "undeclared": ["search"],
            "no_timeout": ["search", "transfer_money"],
            "risky_name": ["transfer_money"],
        },
        "google-adk",
    ),
    "fastmcp": Program(
        "fastmcp",
        """
        from fastmcp import FastMCP

        mcp = FastMCP("shop")

        @mcp.tool(annotations={"readOnlyHint": True}, meta={"failwise": {"timeout": 5}})
        def search(query: str) -> str:
            "Search."
            return query

        @mcp.tool
        async def create_order(sku: str) -> str:
            "Order."
            return sku

        @mcp.resource("shop://{name}")
        def sign(name: str) -> str:
            return "open"

        del search, create_order, sign
        """,
        2,
        {"risky_name": ["create_order"], "no_timeout": ["create_order"]},
        "mcp",
    ),
    "mcp_server": Program(
        "mcp.server.mcpserver",
        """
        from mcp.server.mcpserver import MCPServer
        from mcp_types import ToolAnnotations

        mcp = MCPServer("shop")

        @mcp.tool(annotations=ToolAnnotations(read_only_hint=True), meta={"failwise": {"timeout": 5}})
        def search(query: str) -> str:
            "Search."
            return query

        @mcp.tool()
        def create_order(sku: str) -> str:
            "Order."
            return sku

        del search, create_order
        """,
        2,
        {"risky_name": ["create_order"], "no_timeout": ["create_order"]},
        "mcp",
    ),
}


def _there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def lint(folder: Path, *words: str) -> dict[str, Any]:
    """What the command says of the module in a folder, in a process of its own: frameworks set up much."""
    command = [sys.executable, "-W", "ignore", "-m", "failwise", "lint", "agent", "--json", *words]
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=90
    )
    assert ended.returncode in (0, 1), ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_an_agents_tools_are_found(name: str, tmp_path: Path) -> None:
    """Every tool, and nothing else, with its line; what it says of itself counts; a configuration has the last word."""
    program = PROGRAMS[name]
    if not _there(program.package):
        pytest.skip(f"{program.package} is not installed")
    source = textwrap.dedent(program.text)
    (tmp_path / "agent.py").write_text(source, "utf-8")
    told = lint(tmp_path)
    assert told["tools"] == program.tools
    found: dict[str, list[str]] = {}
    for finding in told["findings"]:
        found.setdefault(finding["rule"], []).append(finding["tool"])
        lines = source.splitlines()
        below = "\n".join(lines[finding["line"] - 1 : finding["line"] + 3])
        assert f"def {finding['tool']}(" in below
        assert finding["framework"] == program.framework
    assert {rule: sorted(tools) for rule, tools in found.items()} == program.rules
    declared = '[declare."*"]\nread_only = false\ntimeout = 5\n'
    (tmp_path / "failwise.toml").write_text(declared, "utf-8")
    left = {finding["rule"] for finding in lint(tmp_path)["findings"]}
    assert left <= {"blind_retry"}
