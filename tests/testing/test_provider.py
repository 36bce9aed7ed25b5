"""The scripted chat providers, driven by the official SDKs over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import openai
import pytest

from failwise.testing import ProviderServer, Says, Trouble
from failwise.vocabulary.errors import UsageError

USER = [{"role": "user", "content": "hello"}]
CALLS = [("search", {"query": "shoes and socks"}), ("search", '{"query": "socks"}', "own_id")]
APIS = ("chat", "responses", "messages")


class Clients:
    """Both SDKs on one server, their own retries off."""

    def __init__(self, server: ProviderServer) -> None:
        self.openai = openai.AsyncOpenAI(
            base_url=server.openai_url, api_key="test", max_retries=0, timeout=5
        )
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=server.anthropic_url, api_key="test", max_retries=0, timeout=5
        )

    async def ask(self, api: str, **options: Any) -> Any:
        if api == "chat":
            return await self.openai.chat.completions.create(
                model="m", messages=options.pop("messages", USER), **options
            )
        if api == "responses":
            return await self.openai.responses.create(
                model="m", input=options.pop("input", USER), **options
            )
        return await self.anthropic.messages.create(
            model="m", max_tokens=100, messages=options.pop("messages", USER), **options
        )


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    async with ProviderServer() as running:
        yield running


@pytest.fixture
async def clients(server: ProviderServer) -> AsyncIterator[Clients]:
    both = Clients(server)
    yield both
    await both.openai.close()
    await both.anthropic.close()


async def test_a_turn_reads_the_same_in_every_api(server: ProviderServer, clients: Clients) -> None:
    """Text, calls, ids, stop reason and usage arrive as the SDKs' own objects."""
    server.script([Says("Let me look.", calls=CALLS, usage=(11, 7), thinking="hm")])
    chat = await clients.ask("chat")
    message = chat.choices[0].message
    assert (message.content, chat.choices[0].finish_reason) == ("Let me look.", "tool_calls")
    assert [c.function.arguments for c in message.tool_calls][1] == '{"query": "socks"}'
    assert message.tool_calls[1].id == "own_id"
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (11, 7)
    response = await clients.ask("responses")
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response.output_text == "Let me look."
    said = await clients.ask("messages")
    assert [block.type for block in said.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert said.content[2].input == {"query": "shoes and socks"}
    assert (said.stop_reason, said.usage.output_tokens) == ("tool_use", 7)


async def test_the_sdks_assemble_its_streams(server: ProviderServer, clients: Clients) -> None:
    """What the SDKs' own stream readers put together is what an unstreamed answer holds."""
    server.script([Says("A longer text than one piece.", calls=CALLS, usage=(11, 7))])
    async with clients.openai.responses.stream(model="m", input="hi") as stream:
        final = await stream.get_final_response()
    assert final.output_text == "A longer text than one piece."
    assert final.output[1].arguments == '{"query": "shoes and socks"}'
    async with clients.anthropic.messages.stream(model="m", max_tokens=9, messages=USER) as other:
        message = await other.get_final_message()
    assert message.content[0].text == "A longer text than one piece."
    assert message.content[2].input == {"query": "socks"}
    pieces = [chunk async for chunk in await clients.ask("chat", stream=True)]
    text = "".join(c.choices[0].delta.content or "" for c in pieces)
    assert text == "A longer text than one piece."
    assert pieces[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("stop", ["length", "content_filter", "refusal"])
async def test_stop_reasons_are_the_providers_own(
    server: ProviderServer, clients: Clients, stop: str
) -> None:
    """Cut, filtered and refused answers look as the APIs make them look."""
    server.script([Says("no", stop=stop)])  # type: ignore[arg-type]
    chat = (await clients.ask("chat")).choices[0]
    response = await clients.ask("responses")
    message = await clients.ask("messages")
    if stop == "length":
        assert chat.finish_reason == "length"
        assert response.incomplete_details.reason == "max_output_tokens"
        assert message.stop_reason == "max_tokens"
    elif stop == "content_filter":
        assert chat.finish_reason == "content_filter"
        assert response.incomplete_details.reason == "content_filter"
        assert message.stop_reason == "refusal"
    else:
        assert chat.message.refusal == "no"
        assert response.output[0].content[0].refusal == "no"
        assert message.stop_reason == "refusal"


STATUSES: dict[str, tuple[int, int]] = {
    "rate_limit": (429, 429),
    "quota": (429, 400),
    "overloaded": (503, 529),
    "server_error": (500, 500),
    "context_too_long": (400, 400),
    "bad_request": (400, 400),
    "bad_key": (401, 401),
    "forbidden": (403, 403),
    "no_model": (404, 404),
    "gateway": (502, 502),
}


@pytest.mark.parametrize("kind", STATUSES)
async def test_refusals_have_the_statuses_of_the_apis(
    server: ProviderServer, clients: Clients, kind: str
) -> None:
    """Each kind of refusal is an exception of the SDK with the status that API uses for it."""
    server.script([Trouble(kind, retry_after=3)])
    for api in APIS:
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as caught:
            await clients.ask(api)
        error: Any = caught.value
        assert error.status_code == STATUSES[kind][api == "messages"], api
        if kind == "rate_limit":
            assert error.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("kind", ["reset", "broken_stream", "stream_error", "stream_end"])
@pytest.mark.parametrize("api", APIS)
async def test_answers_break_off(
    server: ProviderServer, clients: Clients, api: str, kind: str
) -> None:
    """A reset, a broken stream, an error in a stream and one that just ends never look complete."""
    server.script([Trouble(kind)])
    seen: list[Any] = []
    failed = False
    try:
        async for event in await clients.ask(api, stream=True):
            seen.append(event)  # noqa: PERF401 - what came before a failure counts
    except Exception:
        failed = True
    ends = {"response.completed", "message_stop"}
    assert not any(getattr(event, "type", "") in ends for event in seen)
    assert not any(
        c.finish_reason for event in seen for c in getattr(event, "choices", ()) if api == "chat"
    )
    if kind in ("reset", "broken_stream"):
        assert failed


async def test_a_history_that_the_apis_would_refuse_is_refused(
    server: ProviderServer, clients: Clients
) -> None:
    """Calls without answers, answers without calls, names no provider takes: 400, in their words."""
    server.script([Says("fine")])
    function = {"name": "a", "arguments": "{}"}
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    with pytest.raises(openai.BadRequestError, match="did not have response messages: c1"):
        await clients.ask("chat", messages=[*USER, asked, *USER])
    told = {"role": "tool", "tool_call_id": "c2", "content": "x"}
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding"):
        await clients.ask("chat", messages=[*USER, told])
    call = {"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{}"}
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        await clients.ask("responses", input=[*USER, call])
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}
    with pytest.raises(openai.BadRequestError, match="No tool call found"):
        await clients.ask("responses", input=[*USER, output])
    used = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "a", "input": {}}],
    }
    with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
        await clients.ask("messages", messages=[*USER, used, *USER])
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}],
    }
    with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
        await clients.ask("messages", messages=[*USER, result])
    bad = {"name": "查询.天气", "input_schema": {"type": "object"}}
    with pytest.raises(anthropic.BadRequestError, match="does not match pattern"):
        await clients.ask("messages", tools=[bad])
    assert len(server.requests) == 7


async def test_a_script_may_be_a_function_of_the_request(
    server: ProviderServer, clients: Clients
) -> None:
    """A simulated model sees the request's JSON and says what it says; the last turn repeats."""
    turns: list[Any] = [Says("first"), lambda body: Says(f"{len(body['messages'])} messages")]
    server.script(turns)
    texts = [(await clients.ask("chat")).choices[0].message.content for _ in range(3)]
    assert texts == ["first", "1 messages", "1 messages"]


async def test_an_answer_that_never_comes_is_waited_for(
    server: ProviderServer, clients: Clients
) -> None:
    """`silent` holds the connection until the client gives up."""
    server.script([Trouble("silent")])
    quick = clients.openai.with_options(timeout=0.2)
    with pytest.raises(openai.APITimeoutError):
        await quick.chat.completions.create(model="m", messages=USER)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [lambda: Trouble("no such kind"), lambda: ProviderServer(["text"])],  # type: ignore[list-item]
)
def test_scripts_that_cannot_work_are_refused(wrong: Callable[[], object]) -> None:
    """A kind that is none, a turn that is none: said when they are written."""
    with pytest.raises(UsageError):
        wrong()


async def test_delay_and_pace_take_time(server: ProviderServer, clients: Clients) -> None:
    """`delay` comes before the first byte, `pace` between two pieces."""
    server.script([Says("some words to stream", delay=0.05, pace=0.01)])
    loop = asyncio.get_running_loop()
    began = loop.time()
    stream = await clients.ask("chat", stream=True)
    async for _ in stream:
        pass
    assert loop.time() - began >= 0.05
