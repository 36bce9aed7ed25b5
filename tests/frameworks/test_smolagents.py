"""smolagents: agents that call tools, and agents that write code."""

import inspect
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from smolagents import CodeAgent, LogLevel, OpenAIServerModel, Tool, ToolCallingAgent

import failwise
from failwise.connect.remarks import _said
from failwise.connect.smolagents import attach
from failwise.faults import FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, check_declarations, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names(needs=("text", "unknown"))
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}
DONE = Says(calls=[("final_answer", {"answer": "done"})])


def made(function: Function) -> Tool:
    """A function as a tool. (`@tool` wants the source of each, with a docstring of its arguments.)"""
    parameters = inspect.signature(function).parameters

    class Made(Tool):  # type: ignore[misc, unused-ignore]
        name = function.__name__
        description = function.__doc__ or ""
        output_type = "any"
        skip_forward_signature_validation = True
        inputs = {  # noqa: RUF012 - as smolagents has it
            name: {
                "type": KINDS[parameter.annotation],
                "description": name,
                **({} if parameter.default is parameter.empty else {"nullable": True}),
            }
            for name, parameter in parameters.items()
        }

    tool = Made()
    tool.forward = function
    return tool


def llm(provider: ProviderServer) -> OpenAIServerModel:
    return OpenAIServerModel(
        "m", api_base=provider.openai_url, api_key="test", client_kwargs={"max_retries": 0}
    )


def agent(provider: ProviderServer, tools: list[Any], **options: Any) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=tools, model=llm(provider), verbosity_level=LogLevel.OFF, **options
    )


def by_agent(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    tools = [made(function) for function in functions.values()]
    return str(attach(agent(provider, tools), rt).run("hi"))


@pytest.mark.parametrize("scenario", ALL)
def test_an_agent_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(by_agent, scenario, shop, last=DONE)


def test_what_a_file_declares_holds(tmp_path: Path) -> None:
    """`[declare."glob"]` of a failwise.toml holds for the agent's tools."""
    check_declarations(by_agent, tmp_path, last=DONE)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its answer, what the model read last)."""
    with ProviderServer(turns) as provider:
        answer = attach(agent(provider, given, **options), rt).run("hi")
        return answer, tool_texts(provider.requests[-1])


def code(provider: ProviderServer, tools: list[Any]) -> CodeAgent:
    return CodeAgent(tools=tools, model=llm(provider), verbosity_level=LogLevel.OFF)


def test_an_agent_that_writes_code(shop: FaultServer) -> None:
    """In code a failed call is raised with the text for the model, a lost order is not sent twice, and a
    success is the value itself."""
    BY_NAME["transport_recovered"].routes(shop)
    BY_NAME["write_with_lost_answer"].routes(shop)
    tools = [made(function) for function in Shop(shop).functions().values()]
    turns = [
        Says("<code>\ncreate_order('A-1', quantity=2)\n</code>"),
        Says("<code>\ncreate_order(sku='A-1', quantity=2)\n</code>"),
        Says("<code>\nfinal_answer(search('shoes', 2)['items'][0])\n</code>"),
    ]
    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        answer = attach(code(provider, tools), rt).run("hi")
        read = str(provider.requests[-1])
    assert answer == "shoes 1"
    assert shop.ledger.count("order") == 1
    assert [r.failure and r.failure.code for r in results] == [
        "network.gateway_timeout",
        "runtime.effect_open",
        None,
    ]
    assert "ToolFailed: FAILED: tool create_order · network (gateway_timeout) · HTTP 504" in read


def test_final_answers_and_managed_agents_are_left_alone(shop: FaultServer) -> None:
    """They are no calls of tools; the tools of a managed agent are."""
    BY_NAME["good"].routes(shop)
    search = made(Shop(shop).functions()["search"])
    turns = [
        Says(calls=[("b", {"task": "look", "additional_args": {}})]),
        Says(calls=[("search", {"query": "shoes"})]),
        Says(calls=[("final_answer", {"answer": "from b"})]),
        DONE,
    ]
    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        inner = agent(provider, [search], name="b", description="Looks.")
        outer = attach(agent(provider, [], managed_agents=[inner]), rt)
        assert outer.run("hi") == "done"
    assert [r.tool_name for r in results] == ["search"]


def test_things_of_the_agents_state_are_given_in_their_place() -> None:
    """An argument may name one of `additional_args`: the tool gets the thing itself."""
    seen: list[Any] = []

    class Count(Tool):  # type: ignore[misc, unused-ignore]
        name = "count"
        description = "Count."
        inputs = {"rows": {"type": "object", "description": "rows"}}  # noqa: RUF012
        output_type = "integer"

        def forward(self, rows: dict) -> int:  # type: ignore[type-arg]
            seen.append(rows)
            return len(rows)

    turns = [Says(calls=[("count", {"rows": "table"})]), DONE]
    with ProviderServer(turns) as provider, runtime() as rt:
        attach(agent(provider, [Count()]), rt).run("hi", additional_args={"table": {"a": 1}})
    assert seen == [{"a": 1}]


def test_a_task_that_goes_on_is_one_job(shop: FaultServer) -> None:
    """With ``reset=False`` an order that may have been placed is not placed again; a new memory is new."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    order = made(Shop(shop).functions()["create_order"])
    turns = [Says(calls=[("create_order", {"sku": "A-1"})]), DONE]
    with ProviderServer(turns * 3) as provider, runtime() as rt:
        one = attach(agent(provider, [order]), rt)
        one.run("hi")
        one.run("again", reset=False)
        assert shop.ledger.count("order") == 1
        one.run("anew")
    assert shop.ledger.count("order") == 2


def test_an_interruption_passes() -> None:
    """``agent.interrupt()`` from a tool stops the agent after its step."""
    from smolagents.utils import AgentError

    def stop(query: str) -> str:
        """Stop."""
        running.interrupt()
        return "stopping"

    turns = [Says(calls=[("stop", {"query": "x"})]), DONE]
    with ProviderServer(turns) as provider, runtime() as rt:
        running = attach(agent(provider, [made(stop)]), rt)
        with pytest.raises(AgentError, match="interrupted"):
            running.run("hi")


def test_tenacity_on_a_tool_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """tenacity on a tool would multiply with the runtime's retries: one warning."""
    import tenacity

    _said.clear()

    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def search(query: str) -> dict[str, str]:
        """Search."""
        return {"found": query}

    turns = [Says(calls=[("search", {"query": "x"})])] * 2
    with caplog.at_level(logging.WARNING, "failwise"), runtime() as rt:
        ask([made(search)], [*turns, DONE], rt)
    assert sum("tenacity" in record.message for record in caplog.records) == 1


def test_it_is_attached_once() -> None:
    """Two runtimes around one agent would multiply: that is refused, and so is what is no agent."""
    with ProviderServer(DONE) as provider, runtime() as rt:
        one = attach(agent(provider, []), rt)
        with pytest.raises(failwise.UsageError, match="once"):
            attach(one, rt)
        with pytest.raises(failwise.UsageError, match="neither"):
            attach(object(), rt)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, the model reads what smolagents has for a failure."""
    ran: list[int] = []

    def broken(query: str) -> str:
        """Break."""
        ran.append(1)
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), DONE]
    read = []
    with runtime(mode=mode) as rt:
        for wrapped in (False, True):
            with ProviderServer(turns) as provider:
                one = agent(provider, [made(broken)])
                (attach(one, rt) if wrapped else one).run("hi")
                read.append(str(provider.requests[-1]["messages"]))
    assert read[0] == read[1]
    assert "reset by peer" in read[0]
    assert len(ran) == 2
