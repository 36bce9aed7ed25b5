"""One's own loop: tool calls in, exactly the messages to append out."""

import asyncio
from typing import Any

import anthropic
import openai
import pytest

import failwise
from failwise.faults import AfterCall, inject
from failwise.testing import ProviderServer, Says
from failwise.vocabulary.errors import UsageError


@pytest.fixture
def tools(rt: failwise.Runtime) -> failwise.Runtime:
    """A read, a write, a slow read, one that cancels itself, and one with a Chinese name."""

    @rt.tool(read_only=True)
    async def weather(city: str, day: str = "today") -> dict[str, str]:
        """The weather of a city."""
        if city == "Atlantis":
            raise failwise.ToolError(
                "no such city", code="business.not_found", effect="rejected", transient=False
            )
        return {"city": city, "day": day}

    @rt.tool
    async def order(sku: str) -> str:
        """Order something."""
        return f"ordered {sku}"

    @rt.tool(read_only=True)
    async def slow() -> str:
        """Takes its time."""
        await asyncio.sleep(30)
        return "done"

    @rt.tool(read_only=True)
    async def cancels_itself() -> None:
        """Waits for what was cancelled."""
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        await task

    @rt.tool(name="查询.天气", read_only=True)
    def chinese() -> str:
        """查询天气。"""
        return "晴"

    return rt


def openai_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def anthropic_block(number: int, name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


async def test_openai_gets_one_tool_message_for_each_call(tools: failwise.Runtime) -> None:
    """Order and ids are kept; a failure is said first in the text; broken JSON is repaired."""
    messages = await tools.answer_openai(
        [
            openai_call(1, "weather", "{'city': 'Paris',}"),
            openai_call(2, "weather", '{"city": "Atlantis"}'),
            openai_call(3, "wether", "{}"),
            openai_call(4, "order", '{"sku": "A-1"}'),
        ]
    )
    assert [m["tool_call_id"] for m in messages] == ["call_1", "call_2", "call_3", "call_4"]
    assert {m["role"] for m in messages} == {"tool"}
    assert '"city": "Paris"' in messages[0]["content"]
    assert messages[1]["content"].startswith("FAILED: tool weather · business (not_found)")
    assert "Tools there are: weather" in messages[2]["content"]
    assert messages[3]["content"] == "ordered A-1"


async def test_anthropic_gets_one_user_message_with_flags(tools: failwise.Runtime) -> None:
    """All results stand in one message; `is_error` is set on those that failed only."""
    content = [
        {"type": "text", "text": "let me see"},
        anthropic_block(1, "weather", {"city": "Paris"}),
        anthropic_block(2, "weather", {"city": "Atlantis"}),
    ]
    (message,) = await tools.answer_anthropic(content, lang="zh")
    good, bad = message["content"]
    assert message["role"] == "user"
    assert (good["tool_use_id"], "is_error" in good) == ("toolu_1", False)
    assert (bad["tool_use_id"], bad["is_error"]) == ("toolu_2", True)
    assert bad["content"].startswith("调用失败：工具 weather")


async def test_responses_get_an_output_item_for_each_call(tools: failwise.Runtime) -> None:
    """Function calls and custom calls are answered in kind; what the provider ran itself is not."""
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "weather",
            "arguments": '{"city":"Rom"}',
        },
        {"type": "custom_tool_call", "call_id": "c2", "name": "order", "input": "A-1"},
    ]
    first, second = await tools.answer_openai_responses(output)
    assert (first["type"], first["call_id"]) == ("function_call_output", "c1")
    assert '"city": "Rom"' in first["output"]
    assert (second["type"], second["output"]) == ("custom_tool_call_output", "ordered A-1")


@pytest.mark.parametrize("nothing", [None, [], "text", {"content": "text"}, {"tool_calls": None}])
async def test_nothing_asked_is_nothing_to_append(tools: failwise.Runtime, nothing: Any) -> None:
    """A message without tool calls adds no message."""
    assert await tools.answer_openai(nothing) == []
    assert await tools.answer_anthropic(nothing) == []
    assert tools.answer_openai_responses_sync(nothing) == []


async def test_the_sync_twins_say_the_same(tools: failwise.Runtime) -> None:
    """Without a loop of one's own the messages are the same."""
    asked = [openai_call(1, "weather", '{"city": "Paris"}'), openai_call(2, "order", "{}")]
    content = [anthropic_block(1, "weather", {"city": "Paris"})]

    def sync() -> tuple[Any, Any]:
        return tools.answer_openai_sync(asked), tools.answer_anthropic_sync(content)

    chat, blocks = await asyncio.to_thread(sync)
    assert chat == await tools.answer_openai(asked)
    assert blocks == await tools.answer_anthropic(content)


async def test_a_run_answers_too_and_the_aborted_ones(tools: failwise.Runtime) -> None:
    """After a dead credential every further call of the run is answered as aborted, unsent."""

    @tools.tool(read_only=True)
    async def account() -> None:
        """Fails for good."""
        raise failwise.ToolError(
            "key revoked", code="auth.account_disabled", effect="rejected", transient=False
        )

    async with tools.run("job-1") as run:
        await run.answer_openai([openai_call(1, "account", "{}")])
        (message,) = await run.answer_openai([openai_call(2, "order", '{"sku": "A-1"}')])
    assert message["content"].startswith("FAILED: tool order · runtime (chain_aborted)")
    assert "Effect: none, it was not sent." in message["content"]


async def test_a_truncated_turn_does_not_run_its_last_call(tools: failwise.Runtime) -> None:
    """With the output limit reached, only the last call can be cut: it is not sent, the rest are."""
    messages = await tools.answer_openai(
        [openai_call(1, "weather", '{"city": "Paris"}'), openai_call(2, "order", '{"sku": "A')],
        truncated=True,
    )
    assert '"city"' in messages[0]["content"]
    assert messages[1]["content"].startswith("FAILED: tool order · model_output (truncated)")


async def test_a_tool_that_cancels_itself_is_answered(tools: failwise.Runtime) -> None:
    """Nobody cancelled the caller: the other calls' answers are not lost."""
    messages = await tools.answer_openai(
        [openai_call(1, "cancels_itself", "{}"), openai_call(2, "weather", '{"city": "Paris"}')]
    )
    assert messages[0]["content"].startswith("FAILED: tool cancels_itself · runtime (cancelled)")
    assert "Paris" in messages[1]["content"]


async def test_after_a_cancellation_the_history_is_whole(tools: failwise.Runtime) -> None:
    """`into` gets an answer for every call, done or cancelled; then the cancellation goes on."""
    history: list[Any] = []
    working = asyncio.ensure_future(
        tools.answer_openai(
            [
                openai_call(1, "slow", "{}"),
                openai_call(2, "order", '{"sku": "A-1"}'),
                openai_call(3, "weather", '{"city": "Paris"}'),
            ],
            into=history,
        )
    )
    for _ in range(200):
        await asyncio.sleep(0.005)
        if len(tools._flights) == 0 and _ > 20:
            break
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert [m["tool_call_id"] for m in history] == ["call_1", "call_2", "call_3"]
    assert "runtime (cancelled)" in history[0]["content"]
    assert history[1]["content"] == "ordered A-1"
    assert "Paris" in history[2]["content"]


async def test_one_effect_for_one_call_id(tools: failwise.Runtime) -> None:
    """The model's call id names the effect in a run: the same message answered twice acts once."""
    placed: list[str] = []

    @tools.tool
    async def pay(amount: int) -> str:
        """Pay."""
        placed.append(str(amount))
        return "paid"

    asked = [openai_call(1, "pay", '{"amount": 5}')]
    async with tools.run("job-2") as run:
        first = await run.answer_openai(asked)
        second = await run.answer_openai(asked)
    assert (first, placed) == (second, ["5"])


async def test_a_lost_answer_says_that_it_may_have_happened(tools: failwise.Runtime) -> None:
    """A write whose answer was lost is not repeated, and the model is told so."""

    def order_now(sku: str) -> str:
        """Order."""
        return sku

    tools.add(inject(order_now, [AfterCall(TimeoutError("lost"))]), name="order_now")
    (message,) = await tools.answer_anthropic([anthropic_block(1, "order_now", {"sku": "A-1"})])
    (block,) = message["content"]
    assert block["is_error"] is True
    assert "may have taken effect" in block["content"]


def test_schemas_in_every_shape(tools: failwise.Runtime) -> None:
    """Each provider's own shape; MCP with its hints; a choice of tools keeps its order."""
    chat = tools.schemas("openai", tools=["order", "weather"])
    assert [tool["function"]["name"] for tool in chat] == ["order", "weather"]
    assert chat[0]["function"]["parameters"]["required"] == ["sku"]
    responses = tools.schemas("openai_responses", tools=["order"])[0]
    assert (responses["name"], responses["strict"]) == ("order", False)
    message = tools.schemas("anthropic", tools=["order"])[0]
    assert set(message) == {"name", "description", "input_schema"}
    described = tools.schemas("mcp")
    assert described[0]["annotations"] == {"readOnlyHint": True}
    assert "annotations" not in described[1]
    with tools.run() as run:
        assert run.schemas("openai") == tools.schemas("openai")


@pytest.mark.parametrize(
    ("dialect", "names", "said"),
    [("grpc", None, "say one of openai"), ("openai", ["nothing"], "'nothing' is not registered")],
)
def test_schemas_that_cannot_be(
    tools: failwise.Runtime, dialect: Any, names: Any, said: str
) -> None:
    """An unknown dialect, an unknown tool: said with what there is."""
    with pytest.raises(UsageError, match=said):
        tools.schemas(dialect, tools=names)


async def test_names_that_no_provider_takes_find_their_way_back(tools: failwise.Runtime) -> None:
    """A Chinese or dotted name goes out as one that providers accept, and its calls come home."""
    shown = tools.schemas("openai", tools=["查询.天气"])[0]["function"]["name"]
    assert shown.isascii()
    assert len(shown) <= 64
    (message,) = await tools.answer_openai([openai_call(1, shown, "{}")])
    assert message["content"] == "晴"


async def test_own_loops_with_the_official_sdks(tools: failwise.Runtime) -> None:
    """The histories that the answers make are taken by all three APIs, cancellations included."""
    calls = [("weather", {"city": "Atlantis"}), ("cancels_itself", {}), ("order", {"sku": "A-1"})]
    async with ProviderServer([Says("Looking.", calls=calls), Says("done")] * 3) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="t", max_retries=0)
        other = anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="t", max_retries=0)
        messages: list[Any] = [{"role": "user", "content": "go"}]
        offered: Any = tools.schemas("openai")
        for _ in range(2):
            chat = await client.chat.completions.create(model="m", messages=messages, tools=offered)
            messages.append(chat.choices[0].message)
            messages += await tools.answer_openai(chat.choices[0].message.tool_calls)
        assert messages[-1].content == "done"
        items: list[Any] = [{"role": "user", "content": "go"}]
        for _ in range(2):
            response = await client.responses.create(
                model="m",
                input=items,
                tools=tools.schemas("openai_responses"),  # type: ignore[arg-type]
            )
            items += response.output
            items += await tools.answer_openai_responses(response.output)
        assert response.output_text == "done"
        turns: list[Any] = [{"role": "user", "content": "go"}]
        for _ in range(2):
            message = await other.messages.create(
                model="m",
                max_tokens=99,
                messages=turns,
                tools=tools.schemas("anthropic"),  # type: ignore[arg-type]
            )
            turns.append({"role": "assistant", "content": message.content})
            turns += await tools.answer_anthropic(message.content)
        assert message.stop_reason == "end_turn"
        await client.close()
        await other.close()
