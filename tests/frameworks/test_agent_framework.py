"""Microsoft Agent Framework: an agent with our middleware."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openai
import pytest
from agent_framework import (
    Agent,
    FunctionMiddleware,
    Message,
    MiddlewareTermination,
    tool,
)
from agent_framework_openai import OpenAIChatCompletionClient

import failwise
from failwise.connect.agent_framework import middleware
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, check_declarations, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names()
"""The framework answers itself where a tool is not there, and where arguments are no JSON."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def llm(provider: ProviderServer) -> OpenAIChatCompletionClient:
    client = openai.AsyncOpenAI(base_url=provider.openai_url, api_key="test", max_retries=0)
    return OpenAIChatCompletionClient("m", async_client=client)


def agent(provider: ProviderServer, tools: list[Any], *layers: Any) -> Agent:
    return Agent(llm(provider), tools=tools, middleware=list(layers))


def by_middleware(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    made = [tool(function) for function in functions.values()]
    return str(asyncio.run(run(agent(provider, made, middleware(rt)))))


async def run(agent: Agent, message: Any = "hi", **options: Any) -> Any:
    return await agent.run(message, **options)


@pytest.mark.parametrize("scenario", ALL)
def test_an_agent_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(by_middleware, scenario, shop)


def test_what_a_file_declares_holds(tmp_path: Path) -> None:
    """`[declare."glob"]` of a failwise.toml holds for the agent's tools."""
    check_declarations(by_middleware, tmp_path)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, *layers: Any) -> Any:
    """Run an agent with these tools; (its answer, what the model read last)."""
    with ProviderServer(turns) as provider:
        answer = asyncio.run(run(agent(provider, given, middleware(rt), *layers)))
        return str(answer), tool_texts(provider.requests[-1])


def test_an_approval_comes_first_and_arguments_stay_as_approved(shop: FaultServer) -> None:
    """A tool that people approve stops the run; approved, the call is made once, with these arguments."""
    shop.route("POST", "/orders", Fault.effect("order", Fault.json({"id": "o-1"})))
    order = tool(Shop(shop).functions()["create_order"], approval_mode="always_require")
    turns = [Says(calls=[("create_order", {"sku": "A-1"})]), Says("done")]

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> Any:
        made = agent(provider, [order], middleware(rt))
        session = made.create_session()
        asked = await made.run("hi", session=session)
        [waiting] = asked.user_input_requests
        assert shop.ledger.count("order") == 0
        yes = Message("user", [waiting.to_function_approval_response(True)])
        return await made.run(yes, session=session)

    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        assert str(asyncio.run(main(rt, provider))) == "done"
    assert shop.ledger.count("order") == 1
    assert [result.success for result in results] == [True]


def test_a_middleware_that_ends_the_run_is_obeyed() -> None:
    """`MiddlewareTermination` from one within is control flow: nothing failed, and no tool has run."""
    ran: list[str] = []

    class Stop(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            raise MiddlewareTermination("enough")

    def search(query: str) -> str:
        """Search."""
        ran.append(query)
        return "found"

    turns = [Says(calls=[("search", {"query": "x"})]), Says("not asked")]
    with runtime() as rt, ProviderServer(turns) as provider:
        results = recorded(rt)
        asyncio.run(run(agent(provider, [tool(search)], middleware(rt), Stop())))
        assert len(provider.requests) == 1
    assert ran == []
    assert [r.failure and r.failure.code for r in results] == ["runtime.cancelled"]


def test_cancellation_passes() -> None:
    """A cancelled run ends; the call's record is closed as unknown."""
    begun = asyncio.Event()

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        task = asyncio.ensure_future(run(agent(provider, [tool(pay)], middleware(rt))))
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


def test_a_session_is_one_job_and_a_run_one_chain(shop: FaultServer) -> None:
    """An order that may have been placed is not placed again in its session; a chain that was stopped goes
    on with the next run."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    BY_NAME["auth_stops_the_chain"].routes(shop)
    functions = Shop(shop).functions()
    made = [tool(functions[name]) for name in ("create_order", "profile", "search")]
    order = Says(calls=[("create_order", {"sku": "A-1"})])
    turns = [
        order,
        Says(calls=[("profile", {"user": "ann"})]),
        Says("done"),
        Says(calls=[("search", {"query": "shoes"})]),
        order,
        Says("done"),
        order,
        Says("done"),
    ]

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        one = agent(provider, made, middleware(rt))
        session = one.create_session()
        await one.run("hi", session=session)
        await one.run("again", session=session)
        assert [r.failure and r.failure.code for r in results] == [
            "network.gateway_timeout",
            "auth.forbidden",
            None,
            "runtime.effect_open",
        ]
        assert shop.ledger.count("order") == 1
        await one.run("hi", session=one.create_session())

    with ProviderServer(turns) as provider, runtime() as rt:
        results = recorded(rt)
        asyncio.run(main(rt, provider))
    assert shop.ledger.count("order") == 2


def test_a_success_is_handed_on_untouched() -> None:
    """A middleware outside of ours sees the content that the tool's parser made."""
    seen: list[Any] = []

    class Watch(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()
            seen.append(context.result)

    def search(query: str) -> dict[str, str]:
        """Search."""
        return {"found": query}

    turns = [Says(calls=[("search", {"query": "x"})]), Says("done")]
    with ProviderServer(turns) as provider, runtime() as rt:
        asyncio.run(run(agent(provider, [tool(search)], Watch(), middleware(rt))))
    [[content]] = seen
    assert content.text == '{"found": "x"}'


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
        ask([tool(search)], [*turns, Says("done")], rt)
    assert sum("tenacity" in record.message for record in caplog.records) == 1


def test_attempts_stand_in_their_traces() -> None:
    """Each attempt is a span of the framework's own, below the runtime's span of the call."""
    from agent_framework.observability import enable_instrumentation
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from failwise.connect.opentelemetry import instrument

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    enable_instrumentation()
    tries: list[int] = []

    def search(query: str) -> dict[str, str]:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return {"found": query}

    with runtime() as rt:
        instrument(rt)
        ask([tool(search)], [Says(calls=[("search", {"query": "x"})]), Says("done")], rt)
    spans = exporter.get_finished_spans()
    [ours] = [s for s in spans if "failwise.attempts" in (s.attributes or {})]
    under = [
        s
        for s in spans
        if s.name == "execute_tool search" and s.parent and s.parent.span_id == ours.context.span_id
    ]
    assert [s.status.status_code.name for s in under] == ["ERROR", "UNSET"]


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, the model reads what the framework has for a failure."""

    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), Says("done")]
    with runtime(mode=mode) as rt:
        with ProviderServer(turns) as provider:
            asyncio.run(run(agent(provider, [tool(broken)])))
            bare = tool_texts(provider.requests[-1])
        _, read = ask([tool(broken)], turns, rt)
    assert read == bare
