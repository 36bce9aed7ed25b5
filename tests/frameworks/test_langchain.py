"""LangChain and LangGraph: agents with our middleware, graphs with our tool node."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime, tools_condition
from langgraph.types import Command, interrupt

import failwise
from failwise.connect.langchain import add_tools, middleware, tool_node
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says
from tests.frameworks.driving import by_framework, check, runtime
from tests.frameworks.scenarios import FOUND, SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names(needs=("text", "unknown"))
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def model(provider: ProviderServer) -> ChatOpenAI:
    return ChatOpenAI(
        model="m", base_url=provider.openai_url, api_key="test", max_retries=0, timeout=10
    )


def tools_of(functions: Mapping[str, Function]) -> list[Any]:
    return [StructuredTool.from_function(function) for function in functions.values()]


def sync_agent(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = create_agent(model(provider), tools_of(functions), middleware=[middleware(rt)])
    return str(agent.invoke({"messages": [("user", "hi")]})["messages"][-1].content)


def async_agent(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = create_agent(model(provider), tools_of(functions), middleware=[middleware(rt)])
    ended = asyncio.run(agent.ainvoke({"messages": [("user", "hi")]}))
    return str(ended["messages"][-1].content)


def graph(rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer) -> str:
    tools = tools_of(functions)
    bound = model(provider).bind_tools(tools)

    def ask(state: MessagesState) -> Any:
        return {"messages": [bound.invoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("ask", ask)
    made.add_node("tools", ToolNode(tools, **tool_node(rt)))
    made.add_edge(START, "ask")
    made.add_conditional_edges("ask", tools_condition)
    made.add_edge("tools", "ask")
    return str(made.compile().invoke({"messages": [("user", "hi")]})["messages"][-1].content)


@pytest.mark.parametrize("scenario", ALL)
@pytest.mark.parametrize("play", [sync_agent, async_agent])
def test_an_agent_under_faults(play: Any, scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(play, scenario, shop)


_LISTS_TOOLS = "tools" in getattr(ToolRuntime, "__dataclass_fields__", {})
"""Older versions do not tell which tools there are before one was called."""


@pytest.mark.parametrize("scenario", names(needs=("unknown",) if _LISTS_TOOLS else ()))
def test_a_graph_with_a_tool_node_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """The same holds in a graph made by hand."""
    check(graph, scenario, shop)


def test_a_failure_keeps_its_record_where_no_model_reads(shop: FaultServer) -> None:
    """The tool message is marked as an error and carries the whole result as its artifact."""
    server = Shop(shop)
    BY_NAME["write_with_lost_answer"].routes(shop)
    with (
        ProviderServer([Says(calls=[("create_order", {"sku": "A-1"})]), Says("done")]) as provider,
        runtime() as rt,
    ):
        agent = create_agent(
            model(provider), tools_of(server.functions()), middleware=[middleware(rt)]
        )
        ended = agent.invoke({"messages": [("user", "hi")]})
    [message] = [one for one in ended["messages"] if isinstance(one, ToolMessage)]
    assert message.status == "error"
    assert message.artifact["error_code"] == "network.gateway_timeout"
    assert message.artifact["effect"] == "unknown"


def test_texts_in_chinese(shop: FaultServer) -> None:
    """`lang="zh"` is what the model reads."""

    def play(rt: failwise.Runtime, functions: Any, provider: ProviderServer) -> str:
        agent = create_agent(
            model(provider), tools_of(functions), middleware=[middleware(rt, lang="zh")]
        )
        return str(agent.invoke({"messages": [("user", "hi")]})["messages"][-1].content)

    played, _, _ = by_framework(play, BY_NAME["permanent_once"], shop)
    assert played.read[0].startswith("调用失败：工具 profile")


def test_a_tool_that_calls_another_of_its_agents_by_name() -> None:
    """Who runs the one can run the other: it is a call of its own, inside of the first."""
    with failwise.Runtime(":memory:", declarations={"*": {"read_only": True}}) as rt:
        inner: list[failwise.ToolResult[Any]] = []

        def price(name: str) -> dict[str, Any]:
            """The price of a thing."""
            return {"of": name, "price": 3}

        def search(query: str) -> dict[str, Any]:
            """Search the catalogue."""
            inner.append(rt.call_sync("price", {"name": query}))
            return {"found": query}

        turns = [
            Says(calls=[("price", {"name": "hats"})]),
            Says(calls=[("search", {"query": "socks"})]),
            Says("done"),
        ]
        with ProviderServer(turns) as provider:
            tools = [StructuredTool.from_function(func=one) for one in (search, price)]
            agent = create_agent(model(provider), tools, middleware=[middleware(rt)])
            agent.invoke({"messages": [("user", "hi")]})
        assert [result.value for result in inner] == [{"of": "socks", "price": 3}]
        assert inner[0].parent_id is not None


def test_an_interrupt_passes_and_the_call_goes_on_after_it(shop: FaultServer) -> None:
    """`interrupt()` inside a tool stops the graph as ever; resumed, the same call is made once."""
    done: list[str] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        if interrupt({"amount": amount}) != "yes":
            return "declined"
        done.append("paid")
        return "paid"

    config: Any = {"configurable": {"thread_id": "t-1"}}
    with (
        ProviderServer([Says(calls=[("pay", {"amount": 5})]), Says("done")]) as provider,
        runtime() as rt,
    ):
        agent = create_agent(
            model(provider), [pay], middleware=[middleware(rt)], checkpointer=InMemorySaver()
        )
        stopped = agent.invoke({"messages": [("user", "hi")]}, config)
        assert stopped["__interrupt__"][0].value == {"amount": 5}
        assert done == []
        ended = agent.invoke(Command(resume="yes"), config)
    assert done == ["paid"]
    assert [m.content for m in ended["messages"][-2:]] == ["paid", "done"]


def test_a_persons_approval_comes_first(shop: FaultServer) -> None:
    """`HumanInTheLoopMiddleware` stops before the call; nothing is claimed or sent until a yes."""
    server = Shop(shop)
    shop.route("POST", "/orders", Fault.effect("order", Fault.json({"id": "o-1"})))
    config: Any = {"configurable": {"thread_id": "t-2"}}
    with (
        ProviderServer([Says(calls=[("create_order", {"sku": "A-1"})]), Says("done")]) as provider,
        runtime() as rt,
    ):
        agent = create_agent(
            model(provider),
            tools_of(server.functions()),
            middleware=[
                middleware(rt),
                HumanInTheLoopMiddleware(interrupt_on={"create_order": True}),
            ],
            checkpointer=InMemorySaver(),
        )
        stopped = agent.invoke({"messages": [("user", "hi")]}, config)
        assert "__interrupt__" in stopped
        assert shop.ledger.count("order") == 0
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert shop.ledger.count("order") == 1


def test_a_command_is_handed_on_as_it_is(shop: FaultServer) -> None:
    """A tool that steers the graph (a handoff) does so."""

    @tool
    def hand_over(to: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Hand over."""
        told = ToolMessage(f"over to {to}", tool_call_id=tool_call_id)
        return Command(goto="other", update={"messages": [told]})

    made = StateGraph(MessagesState)
    with runtime() as rt:
        made.add_node("tools", ToolNode([hand_over], **tool_node(rt)))
        made.add_node("other", lambda state: {"messages": [("ai", "here")]})
        made.add_edge(START, "tools")
        call = {"name": "hand_over", "args": {"to": "bob"}, "id": "c1", "type": "tool_call"}
        ended = made.compile().invoke(
            {"messages": [{"role": "ai", "content": "", "tool_calls": [call]}]}
        )
    assert [m.content for m in ended["messages"][-2:]] == ["over to bob", "here"]


def test_cancellation_passes_and_leaves_an_open_effect(shop: FaultServer) -> None:
    """A cancelled agent ends at once; the order that was under way stays open, and is not sent again."""
    server = Shop(shop)
    shop.route("POST", "/orders", Fault.effect("order", Fault.slow(1.0, FOUND)))

    async def create_order(sku: str) -> Any:
        """Order."""
        return await asyncio.to_thread(server.functions()["create_order"], sku)

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        agent = create_agent(
            model(provider),
            [StructuredTool.from_function(coroutine=create_order)],
            middleware=[middleware(rt)],
        )
        task = asyncio.ensure_future(agent.ainvoke({"messages": [("user", "hi")]}))
        for _ in range(400):
            await asyncio.sleep(0.01)
            if shop.ledger.count("order"):
                break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    results: list[failwise.ToolResult[Any]] = []
    with (
        ProviderServer([Says(calls=[("create_order", {"sku": "A"})])]) as provider,
        runtime() as rt,
    ):
        rt.on_result(results.append)
        asyncio.run(main(rt, provider))
    assert [r.failure and r.failure.code for r in results] == ["runtime.cancelled"]
    assert results[0].effect is failwise.Effect.UNKNOWN


def test_a_thread_is_one_job_over_its_questions(shop: FaultServer) -> None:
    """In one thread, an order that may have been placed is not placed again in the next question; in
    another thread it is another order. A stopped chain is no longer stopped in the next question."""
    server = Shop(shop)
    BY_NAME["write_with_lost_answer"].routes(shop)
    asked = Says(calls=[("create_order", {"sku": "A-1"})])
    with (
        ProviderServer([asked, Says("1"), asked, Says("2"), asked, Says("3")]) as provider,
        runtime() as rt,
    ):
        agent = create_agent(
            model(provider),
            tools_of(server.functions()),
            middleware=[middleware(rt)],
            checkpointer=InMemorySaver(),
        )
        for thread, orders in (("a", 1), ("a", 1), ("b", 2)):
            config: Any = {"configurable": {"thread_id": thread}}
            agent.invoke({"messages": [("user", "order it")]}, config)
            assert shop.ledger.count("order") == orders


def test_a_fallback_among_the_agents_own_tools(shop: FaultServer) -> None:
    """A declared fallback runs another tool of the same agent, and the model is told so."""
    declared = {
        "search": {"read_only": True, "fallback": ["profile"]},
        "profile": {"read_only": True},
    }
    shop.route("GET", "/search", Fault.status(404, json={"message": "gone"}))

    @tool
    def search(user: str) -> Any:
        """Search."""
        raise ConnectionRefusedError("nobody listens")

    @tool
    def profile(user: str) -> Any:
        """Profile."""
        return {"name": user}

    with (
        ProviderServer([Says(calls=[("search", {"user": "ann"})]), Says("done")]) as provider,
        runtime(declarations=declared, policy={"network": {"retries": 0, "retries_read": 0}}) as rt,
    ):
        agent = create_agent(model(provider), [search, profile], middleware=[middleware(rt)])
        ended = agent.invoke({"messages": [("user", "hi")]})
    text = ended["messages"][-2].content
    assert "profile" in text
    assert '"name": "ann"' in text or '{"name":"ann"}' in text
    assert ended["messages"][-2].status == "success"


def test_what_a_tool_says_of_itself_and_who_has_the_last_word(shop: FaultServer) -> None:
    """`metadata={"failwise": {...}}` declares; the runtime's declarations win over it."""
    tries: list[int] = []

    def flaky(query: str) -> str:
        """Fail at first."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return "ok"

    made = StructuredTool.from_function(flaky, metadata={"failwise": {"read_only": True}})
    for declared, expected in (({}, 2), ({"fl*": {"read_only": False}}, 1)):
        tries.clear()
        with (
            ProviderServer([Says(calls=[("flaky", {"query": "x"})]), Says("done")]) as provider,
            runtime(declarations=declared) as rt,
        ):
            agent = create_agent(model(provider), [made], middleware=[middleware(rt)])
            agent.invoke({"messages": [("user", "hi")]})
        assert len(tries) == expected


def test_their_own_retries_are_warned_of_once(
    shop: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    """`ToolRetryMiddleware` within ours, and tenacity on a tool, would multiply: one warning each."""
    import tenacity

    _said.clear()

    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def search(query: str) -> str:
        """Search."""
        return "found"

    turns = [Says(calls=[("search", {"query": "x"})]), Says("done")]
    with caplog.at_level(logging.WARNING, "failwise"), runtime() as rt:
        for _ in range(2):
            with ProviderServer(turns) as provider:
                agent = create_agent(
                    model(provider),
                    [StructuredTool.from_function(search)],
                    middleware=[middleware(rt), ToolRetryMiddleware(max_retries=1)],
                )
                agent.invoke({"messages": [("user", "hi")]})
    texts = [record.message for record in caplog.records if record.name == "failwise"]
    assert sum("ToolRetryMiddleware" in text for text in texts) == 1
    assert sum("tenacity" in text for text in texts) == 1


def test_attempts_are_runs_of_the_tool_to_their_callbacks(shop: FaultServer) -> None:
    """LangChain's callbacks, and so its traces, see each attempt as a run of the tool."""
    seen: list[str] = []

    class Watch(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **_: Any) -> None:
            seen.append("start")

        def on_tool_error(self, error: BaseException, **_: Any) -> None:
            seen.append("error")

        def on_tool_end(self, output: Any, **_: Any) -> None:
            seen.append("end")

    shop.route("GET", "/search", [Fault.status(502), FOUND])
    turns = [Says(calls=[("search", {"query": "x"})]), Says("done")]
    with ProviderServer(turns) as provider, runtime() as rt:
        agent = create_agent(
            model(provider), tools_of(Shop(shop).functions()), middleware=[middleware(rt)]
        )
        agent.invoke({"messages": [("user", "hi")]}, {"callbacks": [Watch()]})
    assert seen == ["start", "error", "start", "end"]


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any, shop: FaultServer) -> None:
    """In observe mode and switched off, an exception ends the run as LangChain has it."""
    BY_NAME["permanent_once"].routes(shop)
    server = Shop(shop)
    with (
        ProviderServer([Says(calls=[("profile", {"user": "ann"})])]) as provider,
        runtime(mode=mode) as rt,
    ):
        agent = create_agent(
            model(provider), tools_of(server.functions()), middleware=[middleware(rt)]
        )
        with pytest.raises(Exception, match="404"):
            agent.invoke({"messages": [("user", "hi")]})
    assert shop.count("/profile") == 1


def test_langchain_tools_in_a_runtime(shop: FaultServer) -> None:
    """The other way round: a runtime calls LangChain's tools, sync and async, with what is declared."""
    server = Shop(shop)
    shop.route("GET", "/search", [Fault.status(502), FOUND, Fault.status(502), FOUND])
    with runtime() as rt:
        specs = add_tools(rt, tools_of(server.functions()))
        assert next(spec.name for spec in specs) == "search"
        result = rt.call_sync("search", '{"query": "shoes", "limit": "2"}')
        assert (result.value, result.retries) == ({"items": ["shoes 1", "shoes 2"]}, 1)
        again = asyncio.run(rt.call("search", {"query": "shoes"}))
        assert (again.success, again.retries) == (True, 1)
        assert "query" in rt.schemas("openai")[0]["function"]["parameters"]["properties"]
