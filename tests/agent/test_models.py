"""The official SDKs against the scripted providers: the model's transport is a call like any other."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest

import failwise
from failwise.agent import AnthropicMessages, Budget, Limits, OpenAIChat, OpenAIResponses, Usage
from failwise.testing import ProviderServer, Says, SteppingClock, Trouble
from failwise.vocabulary.errors import UsageError

KINDS = ("chat", "responses", "anthropic")


class Provider:
    """A running provider with both SDKs' clients, and an adapter of each kind."""

    def __init__(self) -> None:
        self.server = ProviderServer()

    async def __aenter__(self) -> "Provider":
        await self.server.__aenter__()
        self.openai = openai.AsyncOpenAI(base_url=self.server.openai_url, api_key="test-key")
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=self.server.anthropic_url, api_key="test-key"
        )
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.openai.close()
        await self.anthropic.close()
        await self.server.__aexit__(None, None, None)

    def model(self, kind: str, name: str = "model-1", **options: Any) -> Any:
        if kind == "chat":
            return OpenAIChat(self.openai, name, **options)
        if kind == "responses":
            return OpenAIResponses(self.openai, name, **options)
        return AnthropicMessages(self.anthropic, name, **options)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as running:
        yield running


@pytest.fixture
def tools(rt: failwise.Runtime) -> failwise.Runtime:
    @rt.tool(read_only=True)
    async def search(query: str, limit: int = 3) -> list[str]:
        """Search the catalogue."""
        if query == "nothing":
            raise failwise.ToolError(
                "no such thing", code="business.not_found", effect="rejected", transient=False
            )
        return [query] * limit

    return rt


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_task_through_each_api(
    provider: Provider, tools: failwise.Runtime, kind: str, stream: bool
) -> None:
    """Calls are assembled, answered in the API's shape, and its own reasoning goes back with them;
    a history that the API would refuse would end the task."""
    provider.server.script(
        [
            Says(
                "Let me look.",
                calls=[
                    ("search", {"query": "shoes", "limit": "2"}),
                    ("search", {"query": "nothing"}),
                ],
                thinking="hm",
                usage=(100, 20),
            ),
            Says(calls=[("search", '{"query": "socks"}')], usage=(200, 10)),
            Says("Found shoes and socks.", usage=(300, 30)),
        ]
    )
    agent = failwise.Agent(
        provider.model(kind, stream=stream), tools, instructions="Be brief.", remind=False
    )
    result = await agent.run("Find shoes and socks.")
    assert result.text == "Found shoes and socks."
    assert [r.success for r in result.results] == [True, False, True]
    assert result.results[0].value == ["shoes", "shoes"]
    assert (result.usage, result.usage_estimated) == (Usage(600, 60), False)
    sent = provider.server.requests[-1]
    if kind == "anthropic":
        assert sent["system"] == "Be brief."
        assert sent["messages"][1]["content"][0]["type"] == "thinking"
        results = sent["messages"][2]["content"]
        assert [block.get("is_error") for block in results] == [None, True]
    elif kind == "responses":
        assert sent["input"][0] == {"role": "system", "content": "Be brief."}
        types = [item.get("type") for item in sent["input"]]
        assert types.index("reasoning") < types.index("function_call")
        assert types.count("function_call_output") == 3
    else:
        assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
        assert [m["role"] for m in sent["messages"]].count("tool") == 3


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ("rate_limit", "rate_limit.requests"),
        ("overloaded", "server.overloaded"),
        ("server_error", "server.internal"),
        ("gateway", "network.bad_gateway"),
        ("reset", "network.connection_reset"),
        ("broken_stream", "network.interrupted"),
        ("stream_error", None),
        ("stream_end", "network.interrupted"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
async def test_what_passes_is_waited_for_and_repeated(
    provider: Provider,
    tools: failwise.Runtime,
    clock: SteppingClock,
    kind: str,
    trouble: str,
    code: str | None,
) -> None:
    """Transient trouble costs no turn and no correction: one call, two requests, a told wait kept."""
    provider.server.script([Trouble(trouble, retry_after=3), Says("Here.")])
    result = await failwise.Agent(provider.model(kind), tools).run("hello")
    assert (result.status, result.text, result.corrections) == ("done", "Here.", 0)
    assert len(provider.server.requests) == 2, "the SDK's own retries are off"
    (call,) = result.model_results
    failure = call.attempts[0].failure
    assert failure is not None
    assert failure.layer is failwise.Layer.TRANSPORT
    assert failure.transient
    if code is not None:
        assert failure.code == code
    if trouble == "rate_limit":
        assert 3.0 <= clock.sleeps[0] <= 3.4


@pytest.mark.parametrize(
    ("trouble", "codes"),
    [
        ("quota", {"business.quota_exhausted", "business.insufficient_balance"}),
        ("bad_key", {"auth.invalid_credential"}),
        ("forbidden", {"auth.forbidden"}),
        (
            "no_model",
            {
                "invalid_request.endpoint_not_found",
                "business.not_found",
                "invalid_request.parameter",
            },
        ),
        ("bad_request", {"invalid_request.parameter"}),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
async def test_what_does_not_pass_ends_with_a_report(
    provider: Provider, tools: failwise.Runtime, kind: str, trouble: str, codes: set[str]
) -> None:
    """One request, the right kind, and what the user can do; nothing of the key in it."""
    provider.server.script([Trouble(trouble)])
    result = await failwise.Agent(provider.model(kind), tools).run("hello")
    assert result.status == "failed"
    assert len(provider.server.requests) == 1
    assert result.cause is not None
    assert result.cause.failure is not None
    assert result.cause.failure.code in codes
    assert result.cause.failure.layer is failwise.Layer.TRANSPORT
    assert result.report().startswith("The task was stopped: no model could be asked")
    assert "test-key" not in result.report() + result.cause.to_json()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_history_that_is_too_long_is_made_shorter(
    provider: Provider, tools: failwise.Runtime, kind: str
) -> None:
    """The provider says so; what is old is shortened and the same model asked again."""

    def turn(body: Any) -> Says | Trouble:
        number = len(provider.server.requests)
        if len(str(body)) > 9000:
            return Trouble("context_too_long")
        if number > 14:
            return Says("Done.")
        return Says(calls=[("search", {"query": f"thing {number}", "limit": 80})])

    provider.server.script([turn] * 40)
    agent = failwise.Agent(provider.model(kind), tools, budget=Budget(turns=30), remind=False)
    result = await agent.run("Search a lot.")
    assert (result.status, result.cause) == ("done", None)
    assert sum(r.success for r in result.results) >= 5
    refused = [r for r in result.model_results if not r.success]
    assert {r.failure.code for r in refused if r.failure} == {"invalid_request.too_large"}
    assert 1 <= len(refused) <= 8


@pytest.mark.parametrize("kind", KINDS)
async def test_filtered_cut_and_refused_answers(
    provider: Provider, tools: failwise.Runtime, kind: str
) -> None:
    """A filter is a failure of the model's output; a refusal is an answer; a cut call is not sent."""
    provider.server.script([Says("x", stop="content_filter")])
    filtered = await failwise.Agent(provider.model(kind), tools).run("hello")
    if kind == "anthropic":
        assert filtered.status == "declined"
    else:
        assert filtered.cause is not None
        assert filtered.cause.failure is not None
        assert filtered.cause.failure.code == "model_output.content_filter"
        assert filtered.cause.failure.layer is failwise.Layer.MODEL_OUTPUT
    provider.server.script([Says("I will not.", stop="refusal")])
    refused = await failwise.Agent(provider.model(kind), tools).run("hello")
    assert (refused.status, refused.text) == ("declined", "I will not.")
    provider.server.script([Says(calls=[("search", '{"query": "sho')], stop="length"), Says("Hm.")])
    cut = await failwise.Agent(provider.model(kind), tools, remind=False).run("hello")
    assert cut.results[0].failure is not None
    assert cut.results[0].failure.code == "model_output.truncated"
    assert cut.text == "Hm."


@pytest.mark.parametrize("kind", KINDS)
async def test_broken_arguments_do_not_spoil_the_history(
    provider: Provider, tools: failwise.Runtime, kind: str
) -> None:
    """Arguments with one reading are repaired; what stands in the history is JSON all the same."""
    provider.server.script([Says(calls=[("search", "{'query': 'shoes',}")]), Says("Found.")])
    result = await failwise.Agent(provider.model(kind), tools).run("hello")
    assert (result.status, result.results[0].value) == ("done", ["shoes"] * 3)
    assert "unreadable" in str(provider.server.requests[-1])


async def test_another_provider_takes_over_in_the_middle(
    provider: Provider, tools: failwise.Runtime
) -> None:
    """The history of one API is told to another in its own shape."""
    turns: list[Any] = [
        Says("Looking.", calls=[("search", {"query": "shoes"})], thinking="hm"),
        Trouble("quota"),
        Says(calls=[("search", {"query": "socks"})]),
        Trouble("quota"),
        Says("All found."),
    ]
    provider.server.script(turns)
    models = [provider.model(kind, name) for kind, name in zip(KINDS, "abc", strict=True)]
    result = await failwise.Agent(models=models, runtime=tools).run("Find.")
    assert (result.status, result.degraded_to) == ("done", "c")
    assert [r.model for r in result.results] == ["a", "b"]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_limits_of_a_models_call(tools: failwise.Runtime, kind: str) -> None:
    """The first token has a limit of its own; so has the whole; both are told as what they are."""
    async with Provider() as provider, asyncio.timeout(20):
        rt = failwise.Runtime(":memory:", policy={"network": {"retries_read": 0}})
        provider.server.script([Says("late", delay=5)])
        limits = Limits(connect=1, first_token=0.15, whole=5)
        first = await failwise.Agent(provider.model(kind, limits=limits), rt).run("x")
        assert first.cause is not None
        assert first.cause.failure is not None
        assert first.cause.failure.code == "network.read_timeout"
        assert "no first token within 0.15 s" in first.cause.failure.message
        provider.server.script([Says("a long text that takes its time", pace=0.2)])
        limits = Limits(connect=1, first_token=5, whole=0.5)
        whole = await failwise.Agent(provider.model(kind, limits=limits), rt).run("x")
        assert whole.cause is not None
        assert whole.cause.failure is not None
        assert whole.cause.failure.code in ("network.timeout", "network.read_timeout")
        rt.close()


async def test_where_nobody_listens(tools: failwise.Runtime, clock: SteppingClock) -> None:
    """A refused connection is told as such: nothing was sent, four attempts."""
    async with Provider() as provider:
        url = provider.server.openai_url
    client = openai.AsyncOpenAI(base_url=url, api_key="x")
    result = await failwise.Agent(OpenAIChat(client, "m"), tools).run("x")
    assert result.cause is not None
    assert result.cause.failure is not None
    assert result.cause.failure.code == "network.connect_refused"
    assert result.cause.sent == 4
    await client.close()


async def test_pieces_of_text_are_events(provider: Provider, tools: failwise.Runtime) -> None:
    """Text streams as it comes; what a broken stream said is taken back."""
    provider.server.script([Trouble("broken_stream"), Says("Some words to say.")])
    agent = failwise.Agent(provider.model("chat"), tools)
    heard, retracted = "", 0
    async for event in agent.stream("x"):
        if event.kind == "text":
            heard += event.text
        elif event.kind == "retracted":
            heard, retracted = "", retracted + 1
    assert (heard, retracted) == ("Some words to say.", 1)


def test_clients_that_cannot_work_are_refused() -> None:
    """The sync client would block the loop: said, with what to give instead."""
    with pytest.raises(UsageError, match=r"openai\.AsyncOpenAI"):
        OpenAIChat(openai.OpenAI(api_key="x"), "m")
    with pytest.raises(UsageError, match=r"anthropic\.AsyncAnthropic"):
        AnthropicMessages(object(), "m")


def test_importing_the_agent_imports_no_sdk() -> None:
    """The SDKs are whoever has a client of theirs already."""
    import subprocess
    import sys

    script = (
        "import sys; from failwise.agent import Agent, OpenAIChat, AnthropicMessages, "
        "OpenAIResponses\nprint([m for m in ('openai', 'anthropic', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
