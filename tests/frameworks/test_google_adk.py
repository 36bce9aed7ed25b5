"""Google ADK: a runner with our plugin."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import openai
import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types

import failwise
from failwise.connect.google_adk import plugin
from failwise.connect.remarks import _said
from failwise.faults import Fault, FaultServer
from failwise.testing import ProviderServer, Says, recorded
from tests.frameworks.driving import check, runtime, tool_texts
from tests.frameworks.scenarios import SCENARIOS, Scenario, names
from tests.frameworks.shop import Function, Shop

ALL = names(needs=("unknown",))
"""ADK has arguments as an object, never as text: its models have read them."""
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


class Scripted(BaseLlm):
    """A model on a scripted provider, in the simplest form: ADK's own differ from version to version."""

    url: str

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        client = openai.AsyncOpenAI(base_url=self.url, api_key="test", max_retries=0)
        messages = [one for content in llm_request.contents for one in _messages(content)]
        answer = await client.chat.completions.create(model="m", messages=messages)
        message = answer.choices[0].message
        parts = [types.Part(text=message.content)] if message.content else []
        for call in message.tool_calls or ():
            given = types.FunctionCall(
                id=call.id, name=call.function.name, args=json.loads(call.function.arguments)
            )
            parts.append(types.Part(function_call=given))
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _messages(content: types.Content) -> list[Any]:
    """A content as messages of a chat: a function's response is handed on as JSON, as models get it."""
    found: list[Any] = []
    for part in content.parts or ():
        if part.function_call is not None:
            call = part.function_call
            function = {"name": call.name, "arguments": json.dumps(call.args)}
            one = {"id": call.id, "type": "function", "function": function}
            found.append({"role": "assistant", "content": None, "tool_calls": [one]})
        elif part.function_response is not None:
            told = part.function_response
            text = json.dumps(told.response, ensure_ascii=False)
            found.append({"role": "tool", "tool_call_id": told.id, "content": text})
        elif part.text:
            role = "assistant" if content.role == "model" else "user"
            found.append({"role": role, "content": part.text})
    return found


def llm(provider: ProviderServer) -> Scripted:
    return Scripted(model="m", url=provider.openai_url)


async def conversation(
    runner: InMemoryRunner, *messages: types.Content
) -> tuple[list[Any], list[types.Content]]:
    """All events of one session, and the contents that hold something."""
    session = await runner.session_service.create_session(
        app_name=runner.app_name, user_id="u", session_id="s-1"
    )
    events: list[Any] = []
    for message in messages:
        run = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        events += [event async for event in run]
    return events, [event.content for event in events if event.content]


HI = types.Content(role="user", parts=[types.Part(text="hi")])


def by_plugin(
    rt: failwise.Runtime, functions: Mapping[str, Function], provider: ProviderServer
) -> str:
    agent = LlmAgent(name="a", model=llm(provider), tools=list(functions.values()))
    runner = InMemoryRunner(agent, plugins=[plugin(rt)])
    _, contents = asyncio.run(conversation(runner, HI))
    return str(contents[-1].parts[0].text)  # type: ignore[index]


@pytest.mark.parametrize("scenario", ALL)
def test_an_agent_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    check(by_plugin, scenario, shop)


def ask(given: list[Any], turns: list[Any], rt: failwise.Runtime, **options: Any) -> Any:
    """Run an agent with these tools; (its events, what the model read last)."""
    with ProviderServer(turns) as provider:
        agent = LlmAgent(name="a", model=llm(provider), tools=given, **options)
        runner = InMemoryRunner(agent, plugins=[plugin(rt)])
        events, _ = asyncio.run(conversation(runner, HI))
        return events, tool_texts(provider.requests[-1])


def test_callbacks_of_agents_and_plugins_run_as_before(shop: FaultServer) -> None:
    """A callback before the tool may still answer in its place, one after it still sees the result."""
    seen: list[str] = []

    def search(query: str) -> dict[str, Any]:
        """Search."""
        seen.append("ran")
        return {"found": query}

    def before(tool: Any, args: Any, tool_context: Any) -> Any:
        seen.append("before")
        return {"found": "from a cache"} if args["query"] == "cached" else None

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
        seen.append("after")

    turns = [Says(calls=[("search", {"query": q})]) for q in ("cached", "new")]
    with runtime() as rt:
        results = recorded(rt)
        ask(
            [search],
            [*turns, Says("done")],
            rt,
            before_tool_callback=before,
            after_tool_callback=after,
        )
    assert seen == ["before", "after", "before", "ran", "after"]
    assert len(results) == 1


def test_a_confirmation_comes_first(shop: FaultServer) -> None:
    """A tool that asks for confirmation waits; confirmed, the call is made once."""
    BY_NAME["good"].routes(shop)
    shop.route("POST", "/orders", Fault.effect("order", Fault.json({"id": "o-1"})))
    create_order = Shop(shop).functions()["create_order"]
    turns = [Says(calls=[("create_order", {"sku": "A-1"})]), Says("done"), Says("done")]
    with ProviderServer(turns) as provider, runtime() as rt:
        agent = LlmAgent(
            name="a",
            model=llm(provider),
            tools=[FunctionTool(create_order, require_confirmation=True)],
        )
        runner = InMemoryRunner(agent, plugins=[plugin(rt)])

        async def main() -> None:
            session = await runner.session_service.create_session(
                app_name=runner.app_name, user_id="u"
            )
            asked = None
            async for event in runner.run_async(user_id="u", session_id=session.id, new_message=HI):
                for call in event.get_function_calls():
                    if call.name == "adk_request_confirmation":
                        asked = call
            assert asked is not None
            assert shop.ledger.count("order") == 0
            yes = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
            answer = types.Content(role="user", parts=[types.Part(function_response=yes)])
            async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=answer):
                pass

        asyncio.run(main())
    assert shop.ledger.count("order") == 1


def test_a_tool_that_asks_by_itself_waits_and_goes_on(shop: FaultServer) -> None:
    """`tool_context.request_confirmation()` inside a tool is control flow: nothing failed or was done."""
    asked: list[bool] = []

    def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay."""
        asked.append(tool_context.tool_confirmation is not None)
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="pay?")
            return {"error": "this must be confirmed"}
        return {"paid": amount}

    with runtime() as rt:
        results = recorded(rt)
        events, _ = ask([pay], [Says(calls=[("pay", {"amount": 5})]), Says("done")], rt)
    responses = [r for e in events for r in e.get_function_responses() if r.name == "pay"]
    assert responses[0].response == {"error": "this must be confirmed"}
    assert asked == [False]
    assert [(r.failure and r.failure.code, r.effect) for r in results] == [
        ("runtime.cancelled", failwise.Effect.NOT_SENT)
    ]


def test_transfers_and_long_running_tools_pass(shop: FaultServer) -> None:
    """A transfer changes the agent without a claim or a record; a long-running tool gives its ticket."""

    def start(job: str) -> dict[str, str]:
        """Start."""
        return {"status": "pending", "ticket": job}

    with (
        ProviderServer(
            [Says(calls=[("transfer_to_agent", {"agent_name": "b"})]), Says("from b")]
        ) as provider,
        runtime() as rt,
    ):
        results = recorded(rt)
        second = LlmAgent(name="b", model=llm(provider))
        first = LlmAgent(name="a", model=llm(provider), sub_agents=[second])
        runner = InMemoryRunner(first, plugins=[plugin(rt)])
        events, _ = asyncio.run(conversation(runner, HI))
        assert events[-1].author == "b"
        assert results == []
        turns = [Says(calls=[("start", {"job": "j"})]), Says("started")]
        events, _ = ask([LongRunningFunctionTool(start)], turns, rt)
    responses = [r for e in events for r in e.get_function_responses()]
    assert responses[0].response == {"status": "pending", "ticket": "j"}


def test_cancellation_passes() -> None:
    """A cancelled invocation ends; the call's record is closed as unknown."""
    begun = asyncio.Event()

    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(30)
        return "paid"

    async def main(rt: failwise.Runtime, provider: ProviderServer) -> None:
        agent = LlmAgent(name="a", model=llm(provider), tools=[pay])
        runner = InMemoryRunner(agent, plugins=[plugin(rt)])
        task = asyncio.ensure_future(conversation(runner, HI))
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


def test_a_runner_without_the_plugin_is_as_it_was(shop: FaultServer) -> None:
    """A tool that one runner's plugin has opened runs untouched in a runner without it."""

    def search(query: str) -> dict[str, Any]:
        """Search."""
        return {"found": query}

    tool = FunctionTool(search)
    turns = [Says(calls=[("search", {"query": "x"})]), Says("done")]
    with runtime() as rt:
        results = recorded(rt)
        ask([tool], turns, rt)
        with ProviderServer(turns) as provider:
            agent = LlmAgent(name="a", model=llm(provider), tools=[tool])
            asyncio.run(conversation(InMemoryRunner(agent), HI))
    assert len(results) == 1


def test_attempts_stand_in_their_traces() -> None:
    """The runtime's spans are children of ADK's own span of the tool."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from failwise.connect.opentelemetry import instrument

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tries: list[int] = []

    def search(query: str) -> dict[str, str]:
        """Search."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return {"found": query}

    with runtime() as rt:
        instrument(rt)
        ask([search], [Says(calls=[("search", {"query": "x"})]), Says("done")], rt)
    spans = {span.context.span_id: span for span in exporter.get_finished_spans()}
    [ours] = [span for span in spans.values() if "failwise.attempts" in (span.attributes or {})]
    assert "search" in spans[ours.parent.span_id].name  # type: ignore[union-attr]
    under = [s for s in spans.values() if s.parent and s.parent.span_id == ours.context.span_id]
    assert len(under) == 2


def test_their_own_retries_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
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


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode and switched off, other plugins see the exception as ever."""
    seen: list[Exception] = []

    class Watch(BasePlugin):
        async def on_tool_error_callback(
            self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception
        ) -> Any:
            seen.append(error)
            return {"error": "theirs"}

    def broken(query: str) -> str:
        """Break."""
        raise ConnectionResetError("reset by peer")

    turns = [Says(calls=[("broken", {"query": "x"})]), Says("done")]
    with ProviderServer(turns) as provider, runtime(mode=mode) as rt:
        agent = LlmAgent(name="a", model=llm(provider), tools=[broken])
        runner = InMemoryRunner(agent, plugins=[plugin(rt), Watch("watch")])
        asyncio.run(conversation(runner, HI))
        assert tool_texts(provider.requests[-1]) == ["theirs"]
    assert [type(error) for error in seen] == [ConnectionResetError]
