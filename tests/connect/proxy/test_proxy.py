"""The proxy between a real client and a real server over stdio, in both eras of the protocol."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters

from failwise.connect.proxy import ServerSettings
from tests.connect.proxy.conftest import ROOT, Opened, shop, tools

ERAS = ["legacy", "2026-07-28"]
SECRET = "sk-" + "ant-api03-" + "Ab3d" * 12


def text(result: Any) -> str:
    return "\n".join(item.text for item in result.content)


def record(result: Any) -> dict[str, Any]:
    return (result.meta or {})["dev.failwise/result"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("era", ERAS)
async def test_listing_and_calling_are_as_without_it(
    opened: Opened, ledger: Path, era: str
) -> None:
    """Tools, schemas, results, structured content, resources, prompts: equal to direct use."""
    server = shop(ledger)
    direct = StdioServerParameters(
        command=server.command or "", args=list(server.args), cwd=server.cwd
    )
    async with Client(direct, mode="auto") as alone, opened(mode=era) as (host, _):
        ours, theirs = await host.list_tools(), await alone.list_tools()
        assert [t.model_dump() for t in ours.tools] == [t.model_dump() for t in theirs.tools]
        for name, arguments in (("echo", {"text": "你好"}), ("add", {"a": 1, "b": 2})):
            got, wanted = (
                await host.call_tool(name, arguments),
                await alone.call_tool(name, arguments),
            )
            assert got.content == wanted.content
            assert got.structured_content == wanted.structured_content
        assert (await host.list_resources()).resources == (await alone.list_resources()).resources
        read = await host.read_resource("shop://sign")
        assert read.contents == (await alone.read_resource("shop://sign")).contents
        assert (await host.list_prompts()).prompts == (await alone.list_prompts()).prompts
        greeting = await host.get_prompt("greet", {"name": "Ann"})
        assert greeting.messages == (await alone.get_prompt("greet", {"name": "Ann"})).messages


@pytest.mark.parametrize("era", ERAS)
async def test_a_failure_comes_back_as_a_tool_error_with_its_record(
    opened: Opened, era: str
) -> None:
    """`isError`, our feedback as text, the record in `_meta`; no secret of the upstream's."""
    async with opened(mode=era) as (host, _):
        result = await host.call_tool("fail", {"text": f"403 Forbidden for key {SECRET}"})
    assert result.is_error
    assert text(result).startswith("FAILED: tool fail · auth")
    assert record(result)["failure"]["category"] == "auth"
    assert record(result)["upstream"] == "shop"
    assert SECRET not in result.model_dump_json()
    assert len(text(result)) <= 900


async def test_a_failure_told_as_a_success_is_one(opened: Opened) -> None:
    """A business code in a plain result: `isError`, with the provider's code."""
    async with opened(lang="zh") as (host, _):
        result = await host.call_tool("says", {"text": "账户余额不足"})
    assert result.is_error
    assert record(result)["failure"]["category"] == "business"
    assert "余额" in text(result)


async def test_arguments_are_repaired_or_refused_before_they_are_sent(opened: Opened) -> None:
    """A number as text is one reading: repaired and said. A missing argument is refused, unsent."""
    async with opened() as (host, _):
        repaired = await host.call_tool("add", {"a": "1", "b": 2})
        assert repaired.structured_content == {"sum": 3}
        assert "/a" in text(repaired)
        refused = await host.call_tool("add", {"a": 1})
    assert refused.is_error
    assert record(refused)["failure"]["category"] == "model_output"
    assert [attempt["number"] for attempt in record(refused)["attempts"]] == [0]


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(opened: Opened) -> None:
    async with opened() as (host, _):
        with pytest.raises(MCPError) as caught:
            await host.call_tool("ehco", {})
    assert caught.value.code == types.INVALID_PARAMS
    assert "nearest first: echo" in caught.value.message


@pytest.mark.parametrize("era", ERAS)
async def test_an_upstream_that_dies_in_a_read_is_started_and_asked_again(
    opened: Opened, ledger: Path, era: str
) -> None:
    """A declared read is repeated on the new connection; the host sees a success."""
    server = shop(ledger, tools=tools(look_and_die={"read_only": True}))
    async with opened(server, mode=era, policy={"network": {"base": 0.01}}) as (host, proxy):
        result = await host.call_tool("look_and_die", {"text": "still here"})
        assert not result.is_error
        assert text(result).startswith("still here")
        assert record(result)["retries"] == 1
        assert proxy.upstreams[0].generation == 2


async def test_an_untrusted_annotation_allows_no_repeat(opened: Opened, ledger: Path) -> None:
    """The server calls its tool read-only; unless it is trusted, a lost answer is not asked for again."""
    async with opened() as (host, _):
        result = await host.call_tool("look_and_die", {"text": "x"})
    assert result.is_error
    assert record(result)["effect"] == "unknown"
    assert record(result)["extra"]["declared"]["read_only"] == "server, not trusted"
    ledger.with_suffix(".died").unlink()
    trusted = shop(ledger, trust_annotations=True)
    async with opened(trusted, policy={"network": {"base": 0.01}}) as (host, _):
        result = await host.call_tool("look_and_die", {"text": "x"})
    assert not result.is_error
    assert record(result)["extra"]["declared"]["read_only"] == "server"


@pytest.mark.parametrize("era", ERAS)
async def test_a_write_whose_answer_was_lost_happens_once_and_says_so(
    opened: Opened, ledger: Path, era: str
) -> None:
    """Committed, reply lost: one effect, the message says it may have happened and who can tell; the same
    order again is refused until then."""
    server = shop(ledger, tools=tools(order_and_die={"verified_by": "echo"}))
    async with opened(server, mode=era) as (host, _):
        result = await host.call_tool("order_and_die", {"item": "shoes"})
        assert result.is_error
        assert record(result)["effect"] == "unknown"
        assert "may have taken effect" in text(result)
        assert "call echo" in text(result)
        again = await host.call_tool("order_and_die", {"item": "shoes"})
        assert record(again)["failure"]["code"] == "runtime.effect_open"
        other = await host.call_tool("order", {"item": "socks"})
        assert not other.is_error
    assert ledger.read_text() == "shoes\nsocks\n"


async def test_a_server_that_never_starts_hides_nobody(opened: Opened, ledger: Path) -> None:
    """Its calls say why; the other server's tools are there at once."""
    broken = ServerSettings("broken", "/nonexistent/server")
    noisy = ServerSettings("noisy", "sh", ("-c", f"echo no such database {SECRET} >&2; exit 1"))
    async with opened(shop(ledger), broken, noisy, start_wait=5.0) as (host, proxy):
        began = time.monotonic()
        names = [tool.name for tool in (await host.list_tools()).tools]
        assert "shop__echo" in names
        assert time.monotonic() - began < 4.5
        states = {row["name"]: row for row in proxy.status()["servers"]}
        assert states["broken"]["state"] in ("down", "starting")
        assert "no such database" in states["noisy"]["error"]
        assert SECRET not in str(states)


async def test_two_servers_share_names_by_prefix(
    opened: Opened, ledger: Path, tmp_path: Path
) -> None:
    """The same tool of two servers is two tools; each goes to its own."""
    second = tmp_path / "second.txt"
    async with opened(shop(ledger, "one"), shop(second, "two")) as (host, _):
        await host.call_tool("one__order", {"item": "a"})
        await host.call_tool("two__order", {"item": "b"})
    assert (ledger.read_text(), second.read_text()) == ("a\n", "b\n")


@pytest.mark.parametrize("era", ERAS)
async def test_time_is_counted_from_the_last_news_with_a_cap(
    opened: Opened, ledger: Path, era: str
) -> None:
    """Silent: ends after the limit. With progress: goes on, forwards it; past the cap: ends all the same."""
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    said = tools(slow={"timeout": 0.4, "timeout_limit": 1.5})
    async with opened(shop(ledger, tools=said), mode=era) as (host, _):
        silent = await host.call_tool("slow", {"seconds": 3})
        assert record(silent)["failure"]["code"] == "network.read_timeout"
        assert record(silent)["effect"] == "unknown"
        with_news = await host.call_tool(
            "slow", {"seconds": 0.8, "progress": True}, progress_callback=progress
        )
        assert not with_news.is_error
        assert heard
        capped = await host.call_tool("slow", {"seconds": 5, "progress": True})
        assert record(capped)["failure"]["code"] == "network.read_timeout"


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_is_recorded_and_cancelled_upstream(
    opened: Opened, ledger: Path, era: str
) -> None:
    """The host gives up: the record says so, and the server's work ends."""
    async with opened(mode=era) as (host, proxy):
        await host.list_tools()
        task = asyncio.create_task(host.call_tool("slow", {"seconds": 1.0}))
        while not proxy.upstreams[0].under_way:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, MCPError)):
            await task
        async with asyncio.timeout(5):
            while proxy.upstreams[0].under_way:
                await asyncio.sleep(0.01)
        proxy.runtime.flush()
        rows = proxy.runtime.journal.rows("SELECT code, effect FROM calls WHERE tool = 'slow'")
        assert [tuple(row) for row in rows] == [("runtime.cancelled", "unknown")]
        await asyncio.sleep(1.2)
    assert not ledger.exists()


@pytest.mark.parametrize("upstream_era", ERAS)
@pytest.mark.parametrize("host_era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_question_reaches_the_user_in_all_pairings(
    opened: Opened, ledger: Path, host_era: str, upstream_era: str, action: str
) -> None:
    """The upstream asks, the host's user answers, whatever eras the two speak."""
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        content = {"sure": True} if action == "accept" else None
        return types.ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    module = "tests.connect.proxy.asking"
    server = ServerSettings(
        "asking",
        sys.executable,
        ("-m", module, upstream_era),
        cwd=str(ROOT),
        protocol="legacy" if upstream_era == "legacy" else "auto",
    )
    async with opened(server, mode=host_era, client={"elicitation_callback": answer}) as (host, _):
        result = await host.call_tool("ask", {})
    assert asked == ["Really?"]
    assert text(result).startswith(f"{action} {True if action == 'accept' else None}")


@pytest.mark.parametrize("era", ERAS)
async def test_a_new_tool_is_announced_and_listed(opened: Opened, era: str) -> None:
    """`list_changed` of the upstream arrives at the host, and the list has the tool."""
    heard = asyncio.Event()

    async def message(what: Any) -> None:
        if isinstance(what, types.ToolListChangedNotification):
            heard.set()

    async with opened(mode=era, client={"message_handler": message}) as (host, proxy):
        await host.list_tools()
        await host.call_tool("later", {})
        async with asyncio.timeout(10):
            while "brand_new" not in proxy.runtime.tools:
                await asyncio.sleep(0.02)
            if era == "legacy":
                await heard.wait()
        assert "brand_new" in [tool.name for tool in (await host.list_tools()).tools]
        assert text(await host.call_tool("brand_new", {})) == "new"


async def test_fifty_calls_at_once(opened: Opened) -> None:
    """Each gets its own answer."""
    async with opened() as (host, _):
        results = await asyncio.gather(
            *(host.call_tool("echo", {"text": str(n)}) for n in range(50))
        )
    assert [text(result) for result in results] == [str(n) for n in range(50)]


async def test_a_tool_that_keeps_failing_is_described_as_such(opened: Opened, ledger: Path) -> None:
    """After most of its last calls failed the listing says so; an open circuit can hide it."""
    server = shop(ledger, tools=tools(fail={"read_only": False}))
    async with opened(server, hide_open=True) as (host, _):
        for number in range(5):
            await host.call_tool("fail", {"text": f"503 Service Unavailable {number}"})
        listed = {tool.name: tool.description or "" for tool in (await host.list_tools()).tools}
    if "fail" in listed:
        assert listed["fail"].startswith("[Failing at the moment: 5 of the last 5 calls failed")
    else:
        assert not listed, "an open circuit hides every tool of its server"


async def test_hidden_tools_are_not_listed(opened: Opened, ledger: Path) -> None:
    async with opened(shop(ledger, tools=tools(order={"hidden": True}))) as (host, _):
        names = [tool.name for tool in (await host.list_tools()).tools]
    assert "order" not in names
    assert "echo" in names
