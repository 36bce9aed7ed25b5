"""Pydantic AI: agents with our capability, and with a toolset wrapped."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pydantic
import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import ApprovalRequired, UsageLimitExceeded
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import FunctionToolset

import failwise
from failwise.connect.pydantic_ai import capability, toolset
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names(needs=("text",))
"""A tool that is not there is answered by Pydantic AI itself, before a capability is asked."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def model(provider: ProviderServer) -> OpenAIChatModel:
    return OpenAIChatModel(
        "m", provider=OpenAIProvider(base_url=provider.openai_url, api_key="test")
    )


def by_capability(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = Agent(model(provider), tools=list(functions.values()), capabilities=[capability(rt)])
    return str(asyncio.run(agent.run("hi")).output)


def by_toolset(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    wrapped = toolset(rt, FunctionToolset(list(functions.values())))
    agent = Agent(model(provider), toolsets=[wrapped])
    return str(asyncio.run(agent.run("hi")).output)


@pytest.mark.parametrize("scenario", ALL)
@pytest.mark.parametrize("play", [by_capability, by_toolset])
def test_an_agent_under_faults(play: Any, scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(play, scenario, shop)


def ask(tools: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its result, what the model read last)."""
    with ProviderServer(turns) as provider:
        agent = Agent(model(provider), tools=tools, capabilities=[capability(rt)], **options)
        ended = asyncio.run(agent.run("hi"))
        return ended, tool_texts(provider.requests[-1])


def test_model_retry_is_the_tools_own_word() -> None:
    """`ModelRetry` reaches the model as Pydantic AI writes it, and the runtime repeats nothing."""
    tries: list[str] = []

    def book(day: str) -> str:
        """Book."""
        tries.append(day)
        if len(tries) == 1:
            raise ModelRetry("choose a weekday")
        return "booked"

    turns = [Says(calls=[("book", {"day": d})]) for d in ("sunday", "monday")]
    with runtime() as rt:
        ended, read = ask([book], [*turns, Says("done")], rt)
    assert (ended.output, tries) == ("done", ["sunday", "monday"])
    assert "choose a weekday" in read[0]
    assert "FAILED" not in read[0]
    assert read[1] == "booked"


def test_an_approval_comes_first(shop: FaultServer) -> None:
    """A call that needs approval, and one that asks for it, wait; approved, each is made once."""
    server = Shop(shop)
    shop.route("POST", "/orders", Fault.effect("order", Fault.json({"id": "o-1"})))
    create_order = server.functions()["create_order"]

    def careful(ctx: RunContext[None], sku: str) -> Any:
        """Order after a question."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return create_order(sku)

    for tool in (Tool(create_order, requires_approval=True), Tool(careful)):
        name = tool.name
        before = shop.ledger.count("order")
        with (
            ProviderServer([Says(calls=[(name, {"sku": name})]), Says("done")]) as provider,
            runtime() as rt,
        ):
            agent = Agent(
                model(provider),
                tools=[tool],
                output_type=[str, DeferredToolRequests],
                capabilities=[capability(rt)],
            )

            async def conversation(agent: Any = agent, before: int = before) -> Any:
                waits = await agent.run("hi")
                assert isinstance(waits.output, DeferredToolRequests)
                [call] = waits.output.approvals
                assert shop.ledger.count("order") == before
                yes = DeferredToolResults(approvals={call.tool_call_id: True})
                return await agent.run(
                    message_history=waits.all_messages(), deferred_tool_results=yes
                )

            ended = asyncio.run(conversation())
        assert ended.output == "done"
        assert shop.ledger.count("order") == before + 1


def test_a_limit_of_the_run_ends_it() -> None:
    """`UsageLimitExceeded` out of a tool (an agent within it) ends the run, as ever."""

    def delegate(task: str) -> str:
        """Ask another agent."""
        raise UsageLimitExceeded("no more requests")

    with runtime() as rt, pytest.raises(UsageLimitExceeded):
        ask([delegate], [Says(calls=[("delegate", {"task": "x"})])], rt)


def test_a_timeout_of_theirs_says_nothing_of_the_effect() -> None:
    """The time limit of a tool becomes "it may have happened", not a request to try again."""
    done: list[str] = []

    async def pay(amount: int) -> str:
        """Pay."""
        done.append("sent")
        await asyncio.sleep(5)
        return "paid"

    turns = [Says(calls=[("pay", {"amount": 5})])] * 2
    with runtime() as rt:
        ended, read = ask([Tool(pay, timeout=0.05)], [*turns, Says("done")], rt)
    assert ended.output == "done"
    assert done == ["sent"]
    assert read[0].startswith("FAILED: tool pay · network (timeout)")
    assert "may have taken effect" in read[0]
    assert "effect_open" in read[1]


def test_arguments_become_what_the_function_wants() -> None:
    """Repaired arguments are validated by the tool's own models; what only they refuse is told."""

    class Item(pydantic.BaseModel):
        sku: str
        count: int

        @pydantic.field_validator("sku")
        @classmethod
        def known(cls, sku: str) -> str:
            if not sku.startswith("A-"):
                raise ValueError("no such article")
            return sku

    got: list[Item] = []

    def add(item: Item, note: str = "") -> str:
        """Add."""
        got.append(item)
        return "added"

    turns = [
        Says(calls=[("add", {"item": {"sku": "A-1", "count": "2"}})]),
        Says(calls=[("add", {"item": {"sku": "B-1", "count": 2}})]),
        Says("done"),
    ]
    with runtime() as rt:
        results = recorded(rt)
        _, read = ask([add], turns, rt)
    assert got == [Item(sku="A-1", count=2)]
    assert read[0] == "added"
    assert read[1].startswith("FAILED: tool add · model_output (schema_violation)")
    assert "no such article" in read[1]
    assert results[1].effect is failwise.Effect.NOT_SENT


def test_cancellation_passes() -> None:
    """A cancelled run ends at once; the call's record is closed as unknown."""
    begun = asyncio.Event()

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        agent = Agent(model(provider), tools=[pay], capabilities=[capability(rt)])
        task = asyncio.ensure_future(agent.run("hi"))
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


def test_their_own_retries_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """tenacity on a tool would multiply with the runtime's retries: one warning."""
    import tenacity

    _said.clear()

    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def search(query: str) -> str:
        """Search."""
        return "found"

    turns = [Says(calls=[("search", {"query": "x"})])] * 2
    with caplog.at_level(logging.WARNING, "failwise"), runtime() as rt:
        ask([search], [*turns, Says("done")], rt)
    assert sum("tenacity" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, an exception ends the run as Pydantic AI has it."""

    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    with runtime(mode=mode) as rt, pytest.raises(ConnectionResetError):
        ask([broken], [Says(calls=[("broken", {"query": "x"})])], rt)


def test_attempts_stand_in_their_traces() -> None:
    """The runtime's spans are children of Pydantic AI's span of the tool, one for each attempt."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai.models.instrumented import InstrumentationSettings

    from failwise.connect.opentelemetry import instrument

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tries: list[int] = []

    def search(query: str) -> str:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return "found"

    settings = InstrumentationSettings(tracer_provider=provider)
    with (
        runtime() as rt,
        ProviderServer([Says(calls=[("search", {"query": "x"})]), Says("d")]) as server,
    ):
        instrument(rt, tracer_provider=provider)
        agent = Agent(model(server), tools=[search], capabilities=[capability(rt)])
        Agent.instrument_all(settings)
        try:
            asyncio.run(agent.run("hi"))
        finally:
            Agent.instrument_all(False)
    spans = {span.context.span_id: span for span in exporter.get_finished_spans()}
    ours = [span for span in spans.values() if "failwise.attempts" in (span.attributes or {})]
    assert len(ours) == 1
    above = spans[ours[0].parent.span_id]  # type: ignore[union-attr]
    assert "search" in above.name
    attempts = [
        s for s in spans.values() if s.parent and s.parent.span_id == ours[0].context.span_id
    ]
    assert len(attempts) == 2
