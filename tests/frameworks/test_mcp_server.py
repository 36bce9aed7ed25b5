"""Servers written with the ``mcp`` SDK, protected: in memory, over stdio, over streamable HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

import failwise
from failwise.connect.mcp_server import protect
from failwise.faults import FaultServer
from failwise.testing import recorded
from failwise.vocabulary.errors import UsageError
from tests.frameworks.driving import runtime
from tests.frameworks.scenarios import FOUND, SCENARIOS, Scenario
from tests.frameworks.serving import (
    OF_SERVERS,
    PLACES,
    Call,
    check_server,
    over_http,
    text_of,
    wire,
)
from tests.frameworks.shop import Function, Shop

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
RECORD = "dev.failwise/result"
scenarios = pytest.mark.parametrize("scenario", OF_SERVERS, ids=[one.name for one in OF_SERVERS])


def server_of(rt: Any, functions: Mapping[str, Function], **options: Any) -> MCPServer:
    server = MCPServer("shop", log_level="CRITICAL")
    for function in functions.values():
        server.add_tool(function)
    return protect(server, rt, **options)


def calling(client: Client) -> Call:
    async def call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return wire(await client.call_tool(name, dict(arguments)))

    return call


@asynccontextmanager
async def in_memory(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    async with Client(server_of(rt, functions)) as client:
        yield calling(client)


@asynccontextmanager
async def shaking_hands(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    async with Client(server_of(rt, functions), mode="legacy") as client:
        yield calling(client)


@asynccontextmanager
async def http(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    application = server_of(rt, functions).streamable_http_app()
    async with over_http(application) as address, Client(f"{address}/mcp") as client:
        yield calling(client)


def lowlevel_of(rt: Any, functions: Mapping[str, Function], **options: Any) -> Server[Any]:
    """A server by hand, that says nothing of failures."""
    ready = MCPServer("shop", log_level="CRITICAL")
    for function in functions.values():
        ready.add_tool(function)

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await ready.list_tools())

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        function = functions[params.name]
        value = await asyncio.to_thread(function, **(params.arguments or {}))
        text = types.TextContent(type="text", text="found shoes 1")
        return types.CallToolResult(content=[text], structured_content=value)

    return protect(Server("shop", on_list_tools=listed, on_call_tool=called), rt, **options)


@asynccontextmanager
async def by_hand(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    async with Client(lowlevel_of(rt, functions)) as client:
        yield calling(client)


@scenarios
@pytest.mark.parametrize("serve", [in_memory, by_hand])
async def test_a_server_under_faults(serve: Any, scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    await check_server(serve, scenario, shop)


@pytest.mark.parametrize("serve", [shaking_hands, http])
@pytest.mark.parametrize(
    "name", ["transport_recovered", "write_with_lost_answer", "secret_in_an_error"]
)
async def test_the_same_by_other_ways(serve: Any, name: str, shop: FaultServer) -> None:
    """The protocol's older era, and streamable HTTP, change nothing of it."""
    await check_server(serve, BY_NAME[name], shop)


SCRIPT = """
import sys
from mcp.server.mcpserver import MCPServer
import failwise
from failwise.connect.mcp_server import protect
from tests.frameworks.driving import runtime
from tests.frameworks.shop import Shop

class Far:
    def url(self, path):
        return sys.argv[1] + path

server = MCPServer("shop", log_level="CRITICAL")
for function in Shop(Far()).functions().values():
    server.add_tool(function)
protect(server, runtime()).run()
"""


@pytest.mark.parametrize(
    "name", ["transport_recovered", "permanent_once", "write_with_lost_answer"]
)
async def test_over_stdio(name: str, shop: FaultServer, tmp_path: Path) -> None:
    """A server in a process of its own: failures are answers, nothing is done twice."""
    scenario = BY_NAME[name]
    scenario.routes(shop)
    script = tmp_path / "server.py"
    script.write_text(SCRIPT, "utf-8")
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(script), shop.url("")], env=PLACES
    )
    async with Client(stdio_client(parameters)) as client:
        call = calling(client)
        answers = [await call(tool, raw) for tool, raw in scenario.calls]
    assert [bool(answer.get("isError")) for answer in answers] == list(scenario.told)
    assert scenario.holds(Shop(shop)) or name == "write_not_sent_again"


async def test_what_stands_beside_the_text(shop: FaultServer) -> None:
    """The record of a failure is in `_meta`, never in `structuredContent`; a good call is as it was, and one
    with corrected arguments says so."""
    BY_NAME["write_with_lost_answer"].routes(shop)
    shop.route("GET", "/search", FOUND)
    with runtime() as rt:
        async with in_memory(rt, Shop(shop).functions()) as call:
            lost = await call("create_order", {"sku": "A-1"})
            good = await call("search", {"query": "shoes"})
            mended = await call("search", {"query": "shoes", "limit": "2"})
    record = lost["_meta"][RECORD]
    assert (record["error_code"], record["effect"]) == ("network.gateway_timeout", "unknown")
    assert "structuredContent" not in lost
    assert RECORD not in good.get("_meta", {})
    assert len(good["content"]) == 1
    assert "limit" in mended["content"][-1]["text"]
    assert mended["structuredContent"] == good["structuredContent"]
    assert mended["_meta"][RECORD]["repairs"]


async def test_texts_in_chinese(shop: FaultServer) -> None:
    """`lang="zh"` is what the model reads."""
    BY_NAME["permanent_once"].routes(shop)
    with runtime() as rt:
        async with Client(server_of(rt, Shop(shop).functions(), lang="zh")) as client:
            answer = await calling(client)("profile", {"user": "ann"})
    assert text_of(answer).startswith("调用失败：工具 profile")


async def test_what_the_author_says_passes() -> None:
    """`ToolError` reaches the model as the author wrote it, `MCPError` is a protocol error; neither is tried
    again. A tool that is not there is answered by the SDK."""
    ran: list[str] = []
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def closed(day: str) -> str:
        ran.append("closed")
        raise ToolError("We are closed; try tomorrow.")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def refuse(day: str) -> str:
        ran.append("refuse")
        raise MCPError(code=-32001, message="no such session")

    with runtime() as rt:
        async with Client(protect(server, rt)) as client:
            answer = await client.call_tool("closed", {"day": "today"})
            assert answer.is_error
            assert (
                text_of(wire(answer)) == "Error executing tool closed: We are closed; try tomorrow."
            )
            with pytest.raises(MCPError, match="no such session"):
                await client.call_tool("refuse", {"day": "today"})
            missing = wire(await client.call_tool("opening", {}))
            assert text_of(missing) == "Unknown tool: opening"
    assert ran == ["closed", "refuse"]


async def test_a_question_to_the_user_passes_in_both_eras() -> None:
    """A tool that asks the user is answered by the user, pushed or by an answer, and runs on."""
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool()
    async def pay(amount: int, ctx: Context) -> Any:
        form = types.ElicitRequestFormParams(
            message=f"Pay {amount}?",
            requested_schema={"type": "object", "properties": {"yes": {"type": "boolean"}}},
        )
        if ctx.request_context.protocol_version >= "2026-07-28":
            answers = ctx.input_responses
            if answers is None:
                return types.InputRequiredResult(
                    input_requests={"pay": types.ElicitRequest(params=form)}, request_state="s"
                )
            said = answers["pay"]
        else:
            said = await ctx.request_context.session.elicit_form(
                form.message,
                form.requested_schema,
                related_request_id=ctx.request_context.request_id,
            )
        return "paid" if said.content == {"yes": True} else "declined"

    async def yes(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"yes": True})

    with runtime() as rt:
        protect(server, rt)
        for mode in ("auto", "legacy"):
            async with Client(server, mode=mode, elicitation_callback=yes) as client:
                answer = await client.call_tool("pay", {"amount": 5})
                assert text_of(wire(answer)) == "paid", mode


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_user_is_asked_about_a_guess(mode: Any, by_hand: bool) -> None:
    """A repair that is a guess goes to the user of the client, in both eras; a yes sends it."""
    sent: list[str] = []
    asked: list[str] = []

    def weather(city_code: str) -> dict[str, str]:
        sent.append(city_code)
        if len(city_code) != 3:
            raise failwise.ToolError(
                f"city_code must be 3 digits, got '{city_code}'",
                code="invalid_request.parameter",
                effect="rejected",
            )
        return {"found": "shoes 1"}

    async def yes(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"confirm": True})

    with runtime(declarations={"weather": {"read_only": True}}) as rt:
        server = (lowlevel_of if by_hand else server_of)(rt, {"weather": weather})
        async with Client(server, mode=mode, elicitation_callback=yes) as client:
            answer = wire(await client.call_tool("weather", {"city_code": "12"}))
    assert not answer.get("isError"), text_of(answer)
    assert len(asked) == 1
    assert "012" in asked[0]
    assert sent[-1] == "012"


async def test_progress_passes() -> None:
    """What a tool reports on its way is heard by the client."""
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool()
    async def slow(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        return "done"

    heard: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    with runtime() as rt:
        async with Client(protect(server, rt)) as client:
            await client.call_tool("slow", {}, progress_callback=progress)
    assert heard == [(1, 2, "half")]


async def test_a_cancelled_call_is_recorded(shop: FaultServer) -> None:
    """A client that gives up cancels the tool; the order stays open, and is not sent again."""
    began, ended = asyncio.Event(), asyncio.Event()
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool()
    async def create_order(sku: str) -> str:
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "placed"

    with runtime() as rt:
        results = recorded(rt)
        async with Client(protect(server, rt), mode="legacy") as client:
            task = asyncio.ensure_future(client.call_tool("create_order", {"sku": "A-1"}))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(ended.wait(), 5)
            again = await client.call_tool("create_order", {"sku": "A-1"})
        assert again.is_error
        assert [r.failure and r.failure.code for r in results] == [
            "runtime.cancelled",
            "runtime.effect_open",
        ]


async def test_annotations_are_the_servers_own_word() -> None:
    """`readOnlyHint` and `idempotentHint` let a tool be repeated; `meta` and the runtime's declarations win
    over them, in that order."""
    tries: list[str] = []

    def flaky(query: str) -> str:
        tries.append(query)
        if len(tries) == 1:
            raise ConnectionResetError("reset by peer")
        return "ok"

    for hints, meta, declared, expected in (
        (None, None, {}, 1),
        ({"read_only_hint": True}, None, {}, 2),
        ({"idempotent_hint": True}, None, {}, 2),
        ({"read_only_hint": True}, {"failwise": {"read_only": False}}, {}, 1),
        (None, {"failwise": {"read_only": False}}, {"fl*": {"read_only": True}}, 2),
    ):
        tries.clear()
        server = MCPServer("shop", log_level="CRITICAL")
        annotations = types.ToolAnnotations(**hints) if hints else None
        server.add_tool(flaky, annotations=annotations, meta=meta)
        with runtime(declarations=declared) as rt:
            async with Client(protect(server, rt)) as client:
                await client.call_tool("flaky", {"query": "x"})
        assert len(tries) == expected, (hints, meta, declared)


async def test_a_fallback_among_the_servers_own_tools() -> None:
    """A declared fallback runs another tool of the server; what it gives is told, and fits the promise of
    the first one's output schema, or is told as text."""
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool()
    def search(query: str) -> dict[str, int]:
        raise ConnectionRefusedError("nobody listens")

    @server.tool()
    def cached(query: str) -> dict[str, int]:
        return {query: 3}

    declared = {
        "search": {"read_only": True, "fallback": ["cached"]},
        "cached": {"read_only": True},
    }
    quick = {"network": {"retries": 0, "retries_read": 0}}
    with runtime(declarations=declared, policy=quick) as rt:
        async with Client(protect(server, rt)) as client:
            await client.list_tools()
            await client.call_tool("cached", {"query": "x"})
            answer = wire(await client.call_tool("search", {"query": "shoes"}))
    assert not answer.get("isError")
    assert answer["structuredContent"] == {"shoes": 3}
    assert "cached" in text_of(answer)


async def test_a_job_names_what_belongs_together(shop: FaultServer) -> None:
    """Two clients of one job share its open order; another job's is another order."""
    server = Shop(shop)
    BY_NAME["write_with_lost_answer"].routes(shop)
    job = ["ann"]
    with runtime() as rt:
        protected = server_of(rt, server.functions(), job=lambda context: job[0])
        for name, orders in (("ann", 1), ("ann", 1), ("bob", 2)):
            job[0] = name
            async with Client(protected, mode="legacy") as client:
                answer = await client.call_tool("create_order", {"sku": "A-1"})
            assert answer.is_error
            assert shop.ledger.count("order") == orders


async def test_a_result_that_says_it_failed_is_a_failure(shop: FaultServer) -> None:
    """A low-level server's own `isError` is judged like any failure: a transient one of a read is repeated."""
    tries: list[int] = []

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(read_only_hint=True)
        schema = {"type": "object", "properties": {"query": {"type": "string"}}}
        tool = types.Tool(name="search", input_schema=schema, annotations=hints)
        return types.ListToolsResult(tools=[tool])

    async def called(context: Any, params: Any) -> types.CallToolResult:
        tries.append(1)
        failed = len(tries) == 1
        text = "HTTP 503 Service Unavailable" if failed else "found"
        content: Any = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, is_error=failed)

    with runtime() as rt:
        server = protect(Server("shop", on_list_tools=listed, on_call_tool=called), rt)
        async with Client(server) as client:
            answer = wire(await client.call_tool("search", {"query": "x"}))
    assert text_of(answer) == "found"
    assert answer["_meta"][RECORD]["retries"] == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_watching_changes_nothing(mode: Any, shop: FaultServer) -> None:
    """In observe mode and switched off, a failure comes back as the SDK has it."""
    BY_NAME["permanent_once"].routes(shop)
    server = Shop(shop)
    plain = MCPServer("shop", log_level="CRITICAL")
    for function in server.functions().values():
        plain.add_tool(function)
    async with Client(plain) as client:
        expected = await calling(client)("profile", {"user": "ann"})
    with runtime(mode=mode) as rt:
        async with in_memory(rt, server.functions()) as call:
            assert await call("profile", {"user": "ann"}) == expected
    assert server.ran == {"profile": 2}


def test_what_cannot_be_protected(shop: FaultServer) -> None:
    """A second time, a server without tools, and anything else are refused, with what to do."""
    with runtime() as rt:
        server = protect(MCPServer("shop", log_level="CRITICAL"), rt)
        with pytest.raises(UsageError, match="already"):
            protect(server, rt)
        with pytest.raises(UsageError, match="on_call_tool"):
            protect(Server("empty"), rt)
        with pytest.raises(UsageError, match="MCPServer"):
            protect(object(), rt)
        with pytest.raises(UsageError, match="job"):
            protect(MCPServer("x", log_level="CRITICAL"), rt, job="ann")  # type: ignore[arg-type]


async def test_tenacity_on_a_tool_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that repeats itself would multiply: one warning."""
    import tenacity

    from failwise.connect.remarks import _said

    _said.clear()
    server = MCPServer("shop", log_level="CRITICAL")

    @server.tool()
    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def search(query: str) -> str:
        return "found"

    with caplog.at_level("WARNING", "failwise"), runtime() as rt:
        async with Client(protect(server, rt)) as client:
            await client.call_tool("search", {"query": "x"})
            await client.call_tool("search", {"query": "y"})
    assert sum("tenacity" in record.message for record in caplog.records) == 1
