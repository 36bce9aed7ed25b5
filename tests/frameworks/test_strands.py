"""Strands Agents: an agent with our plugin."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.session import FileSessionManager
from strands.types.tools import ToolContext

import failwise
from failwise.connect.remarks import _said
from failwise.connect.strands import plugin
from failwise.faults import FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, check_declarations, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names(needs=("unknown",))
"""Arguments that are no JSON are taken as none by Strands itself."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def llm(provider: ProviderServer) -> OpenAIModel:
    arguments = {"base_url": provider.openai_url, "api_key": "test", "max_retries": 0}
    return OpenAIModel(client_args=arguments, model_id="m")


def agent(provider: ProviderServer, tools: list[Any], **options: Any) -> Agent:
    return Agent(llm(provider), tools=tools, callback_handler=None, **options)


def by_plugin(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    made = [tool(function) for function in functions.values()]
    return str(agent(provider, made, plugins=[plugin(rt)])("hi")).strip()


@pytest.mark.parametrize("scenario", ALL)
def test_an_agent_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(by_plugin, scenario, shop)


def test_what_a_file_declares_holds(tmp_path: Path) -> None:
    """`[declare."glob"]` of a failwise.toml holds for the agent's tools."""
    check_declarations(by_plugin, tmp_path)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its result, what the model read last)."""
    with ProviderServer(turns) as provider:
        result = agent(provider, given, plugins=[plugin(rt)], **options)("hi")
        return result, tool_texts(provider.requests[-1])


def test_what_a_tool_streams_arrives_as_it_is_made() -> None:
    """The events of a tool that streams come before its result, and before the tool has ended."""
    seen: list[Any] = []
    go_on = asyncio.Event()

    @tool
    async def crawl(site: str) -> Any:
        """Crawl."""
        yield "page 1"
        await asyncio.wait_for(go_on.wait(), 10)
        yield {"pages": 1}

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        made = agent(provider, [crawl], plugins=[plugin(rt)])
        async for event in made.stream_async("hi"):
            if "tool_stream_event" in event:
                seen.append(event["tool_stream_event"]["data"])
                go_on.set()

    turns = [Says(calls=[("crawl", {"site": "a.example"})]), Says("done")]
    with ProviderServer(turns) as provider, runtime() as rt:
        asyncio.run(main(rt, provider))
    assert seen == ["page 1", {"pages": 1}]


def test_interrupts_of_tools_and_hooks_pass() -> None:
    """A tool and a hook that ask a person stop the agent; answered, the call is made once."""
    paid: list[Any] = []

    @tool(context=True)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        answer = tool_context.interrupt("pay", reason="pay?")
        paid.append(answer)
        return "paid"

    def approve(event: BeforeToolCallEvent) -> None:
        event.interrupt("approve", reason="may it?")

    turns = [Says(calls=[("pay", {"amount": 5})]), Says("done")]
    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        made = agent(provider, [pay], plugins=[plugin(rt)], hooks=[approve])
        result = made("hi")
        for name in ("approve", "pay"):
            assert result.stop_reason == "interrupt"
            assert paid == []
            [waiting] = result.interrupts or ()
            assert waiting.name == name
            result = made([{"interruptResponse": {"interruptId": waiting.id, "response": "yes"}}])
    assert str(result).strip() == "done"
    assert paid == ["yes"]
    assert [r.failure and r.failure.code for r in results] == ["runtime.cancelled", None]


def test_structured_output_and_agents_as_tools_are_left_alone() -> None:
    """The form for an answer is no call; nor is an agent in an agent."""
    from pydantic import BaseModel

    class Answer(BaseModel):
        price: int

    with ProviderServer([Says(calls=[("Answer", {"price": 5})])]) as provider, runtime() as rt:
        results = recorded(rt)
        made = agent(provider, [], plugins=[plugin(rt)])
        assert made("hi", structured_output_model=Answer).structured_output == Answer(price=5)
        provider.script([Says(calls=[("b", {"input": "hi"})]), Says("from b"), Says("done")])
        inner = agent(provider, [], name="b")
        agent(provider, [inner.as_tool()], plugins=[plugin(rt)])("hi")
    assert results == []


def test_cancellation_passes() -> None:
    """A cancelled invocation ends; the call's record is closed as unknown."""
    begun = asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        made = agent(provider, [pay], plugins=[plugin(rt)])
        task = asyncio.ensure_future(made.invoke_async("hi"))
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


def test_a_session_is_one_job(shop: FaultServer, tmp_path: Any) -> None:
    """Agents of one session do not place an order twice that may have been placed; others are apart."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    function = tool(Shop(shop).functions()["create_order"])

    def order(rt: failwise.Runtime, session: str, call_id: str) -> Any:
        manager = FileSessionManager(session_id=session, storage_dir=str(tmp_path))
        turns = [Says(calls=[("create_order", {"sku": "A-1"}, call_id)]), Says("done")]
        return ask([function], turns, rt, session_manager=manager)[1]

    with runtime() as rt:
        order(rt, "s-1", "c1")
        assert "effect_open" in order(rt, "s-1", "c2")[-1]
        assert shop.ledger.count("order") == 1
        order(rt, "s-2", "c3")
    assert shop.ledger.count("order") == 2


def test_a_hook_that_repeats_is_warned_of_and_repeats_no_write(
    shop: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    """`AfterToolCallEvent.retry` would multiply: one warning, and an order is placed once."""
    _said.clear()
    BY_NAME["write_with_lost_answer"].routes(shop)
    tries: list[int] = []

    def again(event: AfterToolCallEvent) -> None:
        tries.append(1)
        event.retry = len(tries) < 3

    function = tool(Shop(shop).functions()["create_order"])
    turns = [Says(calls=[("create_order", {"sku": "A-1"})]), Says("done")]
    with caplog.at_level(logging.WARNING, "failwise"), runtime() as rt:
        ask([function], turns, rt, hooks=[again])
    assert sum("AfterToolCallEvent.retry" in record.message for record in caplog.records) == 1
    assert shop.ledger.count("order") == 1


def test_tenacity_on_a_tool_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """tenacity on a tool would multiply with the runtime's retries: one warning."""
    import tenacity

    _said.clear()

    @tool
    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def search(query: str) -> dict[str, str]:
        """Search."""
        return {"found": query}

    turns = [Says(calls=[("search", {"query": "x"})])] * 2
    with caplog.at_level(logging.WARNING, "failwise"), runtime() as rt:
        ask([search], [*turns, Says("done")], rt)
    assert sum("tenacity" in record.message for record in caplog.records) == 1


def test_attempts_stand_in_their_traces() -> None:
    """Each attempt is a tool span of Strands' own, below the runtime's span of it."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from failwise.connect.opentelemetry import instrument

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tries: list[int] = []

    @tool
    def search(query: str) -> dict[str, str]:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return {"found": query}

    with runtime() as rt:
        instrument(rt)
        ask([search], [Says(calls=[("search", {"query": "x"})]), Says("done")], rt)
    spans = exporter.get_finished_spans()
    theirs = [s for s in spans if s.attributes and s.attributes.get("gen_ai.tool.status")]
    ours = [s for s in spans if "failwise.attempts" in (s.attributes or {})]
    said = [s.attributes["gen_ai.tool.status"] for s in theirs]  # type: ignore[index]
    assert said in (["error", "success"], ["success"])  # before 1.62 one span stands around all
    assert len(ours) == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, the model reads what Strands has for a failure."""

    @tool
    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), Says("done")]
    with runtime(mode=mode) as rt:
        with ProviderServer(turns) as provider:
            agent(provider, [broken])("hi")
            bare = tool_texts(provider.requests[-1])
        _, read = ask([broken], turns, rt)
    assert read == bare
    assert "reset by peer" in read[0]


def test_a_success_is_handed_on_untouched() -> None:
    """Content blocks of a tool reach the model as they are; hooks see the result they always saw."""
    seen: list[Any] = []

    @tool
    def draw(query: str) -> dict[str, Any]:
        """Draw."""
        return {"status": "success", "content": [{"text": "one"}, {"json": {"two": 2}}]}

    def after(event: AfterToolCallEvent) -> None:
        seen.append(event.result["content"])

    turns = [Says(calls=[("draw", {"query": "x"})]), Says("done")]
    with runtime() as rt:
        ask([draw], turns, rt, hooks=[after])
    assert seen == [[{"text": "one"}, {"json": {"two": 2}}]]
