"""OpenAI Agents SDK: function tools and MCP servers."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    RunConfig,
    Runner,
    function_tool,
    handoff,
    set_trace_processors,
    set_tracing_disabled,
)
from agents.mcp import MCPServer
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as MCPTool

import failwise
from failwise.connect.openai_agents import servers, tools
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import DECLARED, Function, Shop

ALL = names(needs=("text",))
"""A tool that is not there ends the run in the SDK itself (`ModelBehaviorError`)."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    set_tracing_disabled(True)


def responses(provider: ProviderServer) -> OpenAIResponsesModel:
    client = openai.AsyncOpenAI(base_url=provider.openai_url, api_key="test", max_retries=0)
    return OpenAIResponsesModel("m", client)


def chat(provider: ProviderServer) -> OpenAIChatCompletionsModel:
    client = openai.AsyncOpenAI(base_url=provider.openai_url, api_key="test", max_retries=0)
    return OpenAIChatCompletionsModel("m", client)


def tools_of(functions: Mapping[str, Function]) -> list[Any]:
    return [function_tool(function) for function in functions.values()]


def by_responses(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = Agent(name="a", model=responses(provider), tools=tools(rt, tools_of(functions)))
    return str(asyncio.run(Runner.run(agent, "hi")).final_output)


def by_chat(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = Agent(name="a", model=chat(provider), tools=tools(rt, tools_of(functions)))
    return str(asyncio.run(Runner.run(agent, "hi")).final_output)


class Near(MCPServer):
    """An MCP server in this process, made of functions; its exceptions come out as they are."""

    def __init__(self, functions: Mapping[str, Function], **options: Any) -> None:
        super().__init__()
        self._functions = functions
        for name, value in options.items():
            setattr(self, name, value)

    @property
    def name(self) -> str:
        return "near"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        made = tools_of(self._functions)
        return [
            MCPTool.model_validate(
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {
                        **tool.params_json_schema,
                        "required": [
                            name
                            for name, schema in tool.params_json_schema["properties"].items()
                            if "default" not in schema
                        ],
                    },
                }
            )
            for tool in made
        ]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        import json

        value = await asyncio.to_thread(lambda: self._functions[tool_name](**(arguments or {})))
        return CallToolResult(content=[TextContent(type="text", text=json.dumps(value))])

    async def list_prompts(self) -> Any:
        return []

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


def by_mcp(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = Agent(name="a", model=responses(provider), mcp_servers=servers(rt, [Near(functions)]))
    return str(asyncio.run(Runner.run(agent, "hi")).final_output)


@pytest.mark.parametrize("scenario", ALL)
@pytest.mark.parametrize("play", [by_responses, by_chat])
def test_an_agent_under_faults(play: Any, scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(play, scenario, shop)


@pytest.mark.parametrize("scenario", names())
def test_an_agent_with_an_mcp_server_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """The same holds for the tools of MCP servers."""
    check(by_mcp, scenario, shop)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its result, what the model read last)."""
    with ProviderServer(turns) as provider:
        agent = Agent(name="a", model=responses(provider), tools=tools(rt, given))
        ended = asyncio.run(Runner.run(agent, "hi", **options))
        return ended, tool_texts(provider.requests[-1])


def test_an_approval_comes_first_and_arguments_stay_as_approved(shop: FaultServer) -> None:
    """A tool that people approve stops the run; approved, the call is made once, with these arguments."""
    server = Shop(shop)
    shop.route("POST", "/orders", Fault.effect("order", Fault.json({"id": "o-1"})))
    approved = function_tool(server.functions()["create_order"], needs_approval=True)
    calls = [("create_order", {"sku": "A-1"}), ("create_order", {"sku": "B-1", "quantity": "2"})]
    with ProviderServer([Says(calls=[call]) for call in calls] + [Says("done")]) as provider:
        with runtime() as rt:
            agent = Agent(name="a", model=responses(provider), tools=tools(rt, [approved]))

            async def conversation() -> Any:
                result = await Runner.run(agent, "hi")
                for orders in (0, 1):
                    [waiting] = result.interruptions
                    assert shop.ledger.count("order") == orders
                    state = result.to_state()
                    state.approve(waiting)
                    result = await Runner.run(agent, state)
                return result

            result = asyncio.run(conversation())
        read = tool_texts(provider.requests[-1])
    assert result.final_output == "done"
    assert shop.ledger.count("order") == 1
    assert read[1].startswith("FAILED: tool create_order · model_output")


def test_handoffs_and_agents_as_tools_are_left_alone() -> None:
    """A handoff changes the agent; an agent as a tool is not wrapped."""
    with (
        ProviderServer([Says(calls=[("transfer_to_b", {})]), Says("from b")]) as provider,
        runtime() as rt,
    ):
        second = Agent(name="b", model=responses(provider))
        as_tool = second.as_tool("ask_b", "Ask b.")
        assert tools(rt, [as_tool]) == [as_tool]
        first = Agent(
            name="a", model=responses(provider), tools=tools(rt, []), handoffs=[handoff(second)]
        )
        ended = asyncio.run(Runner.run(first, "hi"))
    assert (ended.final_output, ended.last_agent.name) == ("from b", "b")


def test_a_limit_of_time_is_told_with_its_effect() -> None:
    """`timeout_seconds` is the limit of one attempt: a write that ran out of it may have happened."""
    done: list[str] = []

    async def pay(amount: int) -> str:
        """Pay."""
        done.append("sent")
        await asyncio.sleep(5)
        return "paid"

    turns = [Says(calls=[("pay", {"amount": 5})])] * 2
    with runtime() as rt:
        _, read = ask([function_tool(pay, timeout=0.05)], [*turns, Says("done")], rt)
    assert done == ["sent"]
    assert "may have taken effect" in read[0]
    assert "effect_open" in read[1]


def test_cancellation_passes() -> None:
    """A cancelled run ends; the call's record is closed as unknown."""
    begun = asyncio.Event()

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        agent = Agent(name="a", model=responses(provider), tools=tools(rt, [function_tool(pay)]))
        task = asyncio.ensure_future(Runner.run(agent, "hi"))
        await asyncio.wait_for(begun.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ProviderServer([Says(calls=[("pay", {"amount": 5})])]) as provider, runtime() as rt:
        results = recorded(rt)
        asyncio.run(main(rt, provider))
    assert [(r.failure and r.failure.code, r.effect) for r in results] == [
        ("runtime.cancelled", failwise.Effect.UNKNOWN)
    ]


def test_a_group_is_one_job(shop: FaultServer) -> None:
    """Runs of one `group_id` do not place an order twice that may have been placed; others are apart."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    function = function_tool(Shop(shop).functions()["create_order"])
    turns = [Says(calls=[("create_order", {"sku": "A-1"}, "c1")]), Says("done")]
    again = [Says(calls=[("create_order", {"sku": "A-1"}, "c2")]), Says("done")]
    with runtime() as rt:
        ask([function], turns, rt, run_config=RunConfig(group_id="chat-1"))
        _, read = ask([function], again, rt, run_config=RunConfig(group_id="chat-1"))
        assert "effect_open" in read[0]
        assert shop.ledger.count("order") == 1
        ask([function], again, rt, run_config=RunConfig(group_id="chat-2"))
    assert shop.ledger.count("order") == 2


def test_their_own_retries_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """`max_retry_attempts` of an MCP server would multiply: one warning."""
    _said.clear()
    near = Near({"search": lambda query: {"found": query}}, max_retry_attempts=2)

    def search(query: str) -> dict[str, str]:
        """Search."""
        return {"found": query}

    near._functions = {"search": search}
    turns = [Says(calls=[("search", {"query": "x"})])] * 2
    with (
        caplog.at_level(logging.WARNING, "failwise"),
        runtime() as rt,
        ProviderServer([*turns, Says("done")]) as provider,
    ):
        agent = Agent(name="a", model=responses(provider), mcp_servers=servers(rt, [near]))
        asyncio.run(Runner.run(agent, "hi"))
    assert sum("max_retry_attempts" in record.message for record in caplog.records) == 1


def test_attempts_stand_in_their_traces() -> None:
    """A span of the SDK's own trace names the attempts, below the span of the function."""
    ended: list[Any] = []

    class Keep:
        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def on_span_end(self, span: Any) -> None:
            ended.append(span)

        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    tries: list[int] = []

    def search(query: str) -> str:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return "found"

    set_tracing_disabled(False)
    set_trace_processors([Keep()])  # type: ignore[list-item]
    with runtime() as rt:
        ask([function_tool(search)], [Says(calls=[("search", {"query": "x"})]), Says("done")], rt)
    by_id = {span.span_id: span for span in ended}
    [ours] = [s for s in ended if getattr(s.span_data, "name", "") == "failwise search"]
    assert [row["code"] for row in ours.span_data.data["attempts"]] == [
        "network.connection_reset",
        None,
    ]
    assert by_id[ours.parent_id].span_data.type == "function"


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, the model reads what the SDK has for a failure."""

    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), Says("done")]
    with runtime(mode=mode, declarations=dict(DECLARED)) as rt:
        with ProviderServer(turns) as provider:
            agent = Agent(name="a", model=responses(provider), tools=[function_tool(broken)])
            asyncio.run(Runner.run(agent, "hi"))
            bare = tool_texts(provider.requests[-1])
        _, read = ask([function_tool(broken)], turns, rt)
    assert read == bare
