"""LlamaIndex: agents with tools of all kinds."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from llama_index.llms.openai_like import OpenAILike

import failwise
from failwise.connect.llama_index import tools
from failwise.connect.remarks import _said
from failwise.faults import FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, check_declarations, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names()
"""LlamaIndex answers itself where a tool is not there, and takes broken JSON as no arguments."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def llm(provider: ProviderServer) -> OpenAILike:
    return OpenAILike(
        "m",
        api_base=provider.openai_url,
        api_key="test",
        max_retries=0,
        is_chat_model=True,
        is_function_calling_model=True,
    )


def agent(provider: ProviderServer, given: list[Any], **options: Any) -> FunctionAgent:
    return FunctionAgent(tools=given, llm=llm(provider), **options)


def run(agent: Any, **options: Any) -> Any:
    async def main() -> Any:
        return await agent.run("hi", **options)

    return asyncio.run(main())


def by_agent(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    return str(run(agent(provider, list(tools(rt, functions.values())))))


@pytest.mark.parametrize("scenario", ALL)
def test_an_agent_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(by_agent, scenario, shop)


def test_what_a_file_declares_holds(tmp_path: Path) -> None:
    """`[declare."glob"]` of a failwise.toml holds for the agent's tools."""
    check_declarations(by_agent, tmp_path)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its answer, what the model read last)."""
    with ProviderServer(turns) as provider:
        answer = run(agent(provider, list(tools(rt, given))), **options)
        return str(answer), tool_texts(provider.requests[-1])


def test_an_agent_that_thinks_in_text(shop: FaultServer) -> None:
    """A ReAct agent, which writes its calls as text, reads the same of a failure."""
    BY_NAME["permanent_once"].routes(shop)
    profile = Shop(shop).functions()["profile"]
    turns = [
        Says('Thought: look.\nAction: profile\nAction Input: {"user": "ann"}'),
        Says("Thought: I can answer.\nAnswer: done"),
    ]
    with ProviderServer(turns) as provider, runtime() as rt:
        made = ReActAgent(tools=list(tools(rt, [profile])), llm=llm(provider), streaming=False)
        assert str(run(made)) == "done"
        assert "FAILED: tool profile · business (not_found) · HTTP 404" in str(
            provider.requests[-1]["messages"]
        )


def test_a_person_who_is_asked_stops_the_call_and_goes_on() -> None:
    """`ctx.wait_for_event` in a tool is control flow: nothing failed; answered, it is paid once."""
    paid: list[str] = []

    async def pay(ctx: Context, amount: int) -> str:
        """Pay."""
        answer = await ctx.wait_for_event(
            HumanResponseEvent, waiter_id="pay", waiter_event=InputRequiredEvent(prefix="pay?")
        )
        paid.append(answer.response)
        return "paid"

    turns = [Says(calls=[("pay", {"amount": 5})]), Says("done")]

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> str:
        handler = agent(provider, list(tools(rt, [pay]))).run("hi")
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                assert paid == []
                handler.ctx.send_event(HumanResponseEvent(response="yes"))
        return str(await handler)

    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        assert asyncio.run(main(rt, provider)) == "done"
    assert paid == ["yes"]
    assert [r.failure and r.failure.code for r in results] == ["runtime.cancelled", None]


def test_handoffs_pass() -> None:
    """A handoff changes the agent without a record."""
    turns = [
        Says(calls=[("handoff", {"to_agent": "b", "reason": "knows"})]),
        Says("from b"),
    ]
    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        first = agent(
            provider, list(tools(rt, [])), name="a", description="A", can_handoff_to=["b"]
        )
        second = agent(provider, list(tools(rt, [])), name="b", description="B")
        flow = AgentWorkflow(agents=[first, second], root_agent="a")
        assert str(run(flow)) == "from b"
    assert results == []


def test_a_success_is_handed_on_untouched() -> None:
    """A tool's own output, its raw value among it, is what the agent gets; a direct return ends it."""

    def price(sku: str) -> dict[str, int]:
        """Price."""
        return {"price": 5}

    with runtime() as rt:
        [made] = tools(rt, [FunctionTool.from_defaults(price, return_direct=True)])
        output = made(sku="A-1")
        assert isinstance(output, ToolOutput)
        assert output.raw_output == {"price": 5}
        answer, _ = ask(
            [FunctionTool.from_defaults(price, return_direct=True)],
            [Says(calls=[("price", {"sku": "A-1"})]), Says("not asked")],
            rt,
        )
    assert answer == "{'price': 5}"


def test_cancellation_passes() -> None:
    """A cancelled run ends; the call's record is closed as unknown."""
    begun = asyncio.Event()

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        handler = agent(provider, list(tools(rt, [pay]))).run("hi")
        await asyncio.wait_for(begun.wait(), 10)
        await handler.cancel_run()
        for _ in range(200):
            if results:
                break
            await asyncio.sleep(0.02)

    with ProviderServer([Says(calls=[("pay", {"amount": 5})])]) as provider, runtime() as rt:
        results = recorded(rt)
        asyncio.run(main(rt, provider))
    assert [(r.failure and r.failure.code, r.effect) for r in results] == [
        ("runtime.cancelled", failwise.Effect.UNKNOWN)
    ]


def test_a_context_is_one_job(shop: FaultServer) -> None:
    """Runs of one context, stored and restored, do not place an order twice that may have been placed."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    order = Shop(shop).functions()["create_order"]
    turns = [Says(calls=[("create_order", {"sku": "A-1"})]), Says("done")]

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        one = agent(provider, list(tools(rt, [order])))
        context = Context(one)
        await one.run("hi", ctx=context)
        restored = Context.from_dict(one, context.to_dict())
        await one.run("again", ctx=restored)
        assert "effect_open" in tool_texts(provider.requests[-1])[-1]
        assert shop.ledger.count("order") == 1
        await one.run("anew")

    with ProviderServer(turns * 3) as provider, runtime() as rt:
        asyncio.run(main(rt, provider))
    assert shop.ledger.count("order") == 2


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
        ask([search], [*turns, Says("done")], rt)
    assert sum("tenacity" in record.message for record in caplog.records) == 1


def test_attempts_stand_in_their_traces() -> None:
    """Each attempt is a span of the tool in LlamaIndex's instrumentation, the failed one dropped as ever."""
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

    handler = SimpleSpanHandler()
    get_dispatcher().add_span_handler(handler)
    tries: list[int] = []

    def search(query: str) -> dict[str, str]:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return {"found": query}

    with runtime() as rt:
        ask([search], [Says(calls=[("search", {"query": "x"})]), Says("done")], rt)
    [failed] = [s.id_ for s in handler.dropped_spans if "FunctionTool" in s.id_]
    good = [s for s in handler.completed_spans if "Tool.acall" in s.id_]
    assert [s.id_.partition(".")[0] for s in good] == ["FunctionTool", "FailwiseTool"]
    assert good[0].parent_id == good[1].id_ != failed


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, the model reads what LlamaIndex has for a failure."""

    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), Says("done")]
    with runtime(mode=mode) as rt:
        with ProviderServer(turns) as provider:
            run(agent(provider, [broken]))
            bare = tool_texts(provider.requests[-1])
        _, read = ask([broken], turns, rt)
    assert read == bare
    assert "reset by peer" in read[0]
