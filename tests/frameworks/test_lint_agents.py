"""``failwise lint`` on agents and servers of the real frameworks: their tools are found where the framework keeps
them, with the line of their function, and with what they declare."""

import importlib.util
import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest


class Program(NamedTuple):
    """An agent's module, the package it needs, and what must be found: rule → tools."""

    package: str
    text: str
    tools: int
    rules: dict[str, list[str]]
    framework: str
    written: Mapping[str, str] = MappingProxyType({})
    """How the line begins that is told for a tool, where it is not ``def NAME(``."""


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
    "mcp_lists": Program(
        "mcp_types",
        """
        from mcp_types import Tool, ToolAnnotations

        form = {"type": "object"}
        TOOLS = [
            Tool(
                name="search",
                input_schema=form,
                annotations=ToolAnnotations(read_only_hint=True),
            ),
            Tool(name="create_order", input_schema=form),
        ]
        """,
        2,
        {"risky_name": ["create_order"], "no_timeout": ["create_order", "search"]},
        "mcp",
        {"create_order": 'name="create_order"', "search": 'name="search"'},
    ),
    "strands": Program(
        "strands",
        """
        import tenacity
        from strands import Agent, tool
        from strands.multiagent import GraphBuilder, Swarm

        @tool
        def search(query: str) -> str:
            "Search."
            return query

        @tool
        @tenacity.retry(stop=tenacity.stop_after_attempt(3))
        def create_order(sku: str) -> str:
            "Order."
            return sku

        @tool
        async def send_mail(to: str) -> str:
            "Send."
            return to

        @tool
        def delete_user(name: str) -> str:
            "Delete."
            return name

        quiet = dict(callback_handler=None)
        within = Agent(name="b", tools=[create_order], **quiet)
        agent = Agent(name="a", tools=[search, within], **quiet)
        swarm = Swarm([Agent(name="c", tools=[send_mail], **quiet)])
        builder = GraphBuilder()
        builder.add_node(Agent(name="d", tools=[delete_user], **quiet), "d")
        graph = builder.build()
        del search, create_order, send_mail, delete_user, within, builder
        """,
        4,
        {
            "undeclared": ["search"],
            "no_timeout": ["create_order", "delete_user", "search", "send_mail"],
            "risky_name": ["create_order", "delete_user", "send_mail"],
            "blind_retry": ["create_order"],
        },
        "strands",
    ),
    "smolagents": Program(
        "smolagents",
        """
        import requests
        from smolagents import CodeAgent, Model, Tool, ToolCallingAgent, tool

        @tool
        def search(query: str) -> str:
            \"\"\"Search.

            Args:
                query: What to look for.
            \"\"\"
            return query

        class Order(Tool):
            name = "create_order"
            description = "Order."
            inputs = {"sku": {"type": "string", "description": "What."}}
            output_type = "string"

            def setup(self):
                self.session = requests.Session()
                adapter = requests.adapters.HTTPAdapter(max_retries=2)
                self.session.mount("https://", adapter)

            def forward(self, sku: str) -> str:
                return self.session.get(sku).text

        order = Order()
        order.setup()
        model = Model(model_id="m")
        within = ToolCallingAgent([order], model, name="b", description="Orders.")
        agent = CodeAgent([search], model, managed_agents=[within])
        del search, order, within
        """,
        2,
        {
            "undeclared": ["search"],
            "no_timeout": ["create_order", "search"],
            "risky_name": ["create_order"],
            "client_retry": ["create_order"],
        },
        "smolagents",
        {"create_order": "def forward(self, sku"},
    ),
    "llama_index": Program(
        "llama_index.core",
        """
        import tenacity
        from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
        from llama_index.core.llms import LLMMetadata, MockLLM
        from llama_index.core.tools import FunctionTool

        class Model(MockLLM):
            @property
            def metadata(self) -> LLMMetadata:
                return LLMMetadata(is_function_calling_model=True)

        def search(query: str) -> str:
            "Search."
            return query

        @tenacity.retry(stop=tenacity.stop_after_attempt(3))
        def create_order(sku: str) -> str:
            "Order."
            return sku

        async def send_mail(to: str) -> str:
            "Send."
            return to

        order = FunctionTool.from_defaults(create_order)
        agent = FunctionAgent(tools=[search, order], llm=Model())
        other = FunctionAgent(tools=[search], llm=Model())
        within = ReActAgent(
            name="b", description="b", tools=[FunctionTool.from_defaults(async_fn=send_mail)], llm=Model()
        )
        workflow = AgentWorkflow(agents=[within])
        del search, create_order, send_mail, order, within
        """,
        3,
        {
            "undeclared": ["search"],
            "no_timeout": ["create_order", "search", "send_mail"],
            "risky_name": ["create_order", "send_mail"],
            "blind_retry": ["create_order"],
        },
        "llama-index",
    ),
    "agent_framework": Program(
        "agent_framework_openai",
        """
        import openai
        from agent_framework import Agent, WorkflowBuilder, tool
        from agent_framework_openai import OpenAIChatCompletionClient

        own = openai.AsyncOpenAI(api_key="x")
        client = OpenAIChatCompletionClient("m", async_client=own)

        @tool(additional_properties={"failwise": {"read_only": True, "timeout": 5}})
        def search(query: str) -> str:
            "Search."
            return query

        def pay_bill(amount: int) -> str:
            "Pay."
            return ""

        @tool
        async def send_mail(to: str) -> str:
            "Send."
            return to

        agent = Agent(client, tools=[search, pay_bill])
        other = Agent(client, tools=[pay_bill])
        workflow = WorkflowBuilder(start_executor=Agent(client, name="b", tools=[send_mail])).build()
        del search, pay_bill, send_mail
        """,
        3,
        {
            "no_timeout": ["pay_bill", "send_mail"],
            "risky_name": ["pay_bill", "send_mail"],
        },
        "agent-framework",
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


def _check(program: Program, folder: Path) -> None:
    """Every tool is found, and nothing else, with its line."""
    if not _there(program.package):
        pytest.skip(f"{program.package} is not installed")
    source = textwrap.dedent(program.text)
    (folder / "agent.py").write_text(source, "utf-8")
    told = lint(folder)
    assert told["tools"] == program.tools
    found: dict[str, list[str]] = {}
    for finding in told["findings"]:
        found.setdefault(finding["rule"], []).append(finding["tool"])
        lines = source.splitlines()
        below = "\n".join(lines[finding["line"] - 1 : finding["line"] + 3])
        name = finding["tool"]
        assert program.written.get(name, f"def {name}(") in below
        assert finding["framework"] == program.framework
    assert {rule: sorted(tools) for rule, tools in found.items()} == program.rules


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_an_agents_tools_are_found(name: str, tmp_path: Path) -> None:
    """Every tool, and nothing else, with its line; what it says of itself counts; a configuration has the last word."""
    _check(PROGRAMS[name], tmp_path)
    declared = '[declare."*"]\nread_only = false\ntimeout = 5\n'
    (tmp_path / "failwise.toml").write_text(declared, "utf-8")
    left = {finding["rule"] for finding in lint(tmp_path)["findings"]}
    assert left <= {"blind_retry", "client_retry"}


ADAPTED = {
    "strands": Program(
        "strands",
        """
        import failwise
        from failwise.connect.strands import plugin
        from strands import Agent, tool

        @tool
        def search(query: str) -> str:
            "Search."
            return query

        said = {"search": {"read_only": True, "timeout": 5}}
        rt = failwise.Runtime(":memory:", declarations=said)
        agent = Agent(tools=[search], plugins=[plugin(rt)], callback_handler=None)
        """,
        1,
        {},
        "strands",
    ),
    "smolagents": Program(
        "smolagents",
        """
        import failwise
        from failwise.connect.smolagents import attach
        from smolagents import CodeAgent, Model, tool

        @tool
        def search(query: str) -> str:
            \"\"\"Search.

            Args:
                query: What to look for.
            \"\"\"
            return query

        rt = failwise.Runtime(":memory:", declarations={"sea*": {"read_only": True}})
        agent = attach(CodeAgent([search], Model(model_id="m")), rt)
        """,
        1,
        {"no_timeout": ["search"]},
        "smolagents",
    ),
    "llama_index": Program(
        "llama_index.core",
        """
        import failwise
        from failwise.connect.llama_index import tools

        def search(query: str) -> str:
            "Search."
            return query

        rt = failwise.Runtime(":memory:", declarations={"*": {"read_only": True}})
        given = tools(rt, [search])
        del search
        """,
        1,
        {"no_timeout": ["search"]},
        "llama-index",
    ),
    "agent_framework": Program(
        "agent_framework_openai",
        """
        import failwise, openai
        from agent_framework import Agent, tool
        from agent_framework_openai import OpenAIChatCompletionClient
        from failwise.connect.agent_framework import middleware

        def search(query: str) -> str:
            "Search."
            return query

        rt = failwise.Runtime(":memory:", declarations={"search": {"timeout": 5}})
        own = openai.AsyncOpenAI(api_key="x")
        client = OpenAIChatCompletionClient("m", async_client=own)
        agent = Agent(client, tools=[search], middleware=[middleware(rt)])
        """,
        1,
        {"undeclared": ["search"]},
        "agent-framework",
    ),
}


@pytest.mark.parametrize("name", list(ADAPTED))
def test_what_the_modules_runtime_declares_counts(name: str, tmp_path: Path) -> None:
    """An agent that calls its tools through a runtime is judged with that runtime's declarations, by name or glob."""
    _check(ADAPTED[name], tmp_path)
