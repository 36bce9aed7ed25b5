"""FastMCP's servers with our middleware: in memory, over stdio, over streamable HTTP."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastmcp
import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware.error_handling import ErrorHandlingMiddleware, RetryMiddleware
from fastmcp.tools import ToolResult

from failwise.connect import mcp_tools
from failwise.connect.fastmcp import middleware
from failwise.connect.remarks import _said
from failwise.faults import FaultServer
from failwise.testing import recorded
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
VERSION = tuple(int(part) for part in fastmcp.__version__.split(".")[:2])
RECORDS = (3, 4)
"""Since then a result can say that it failed, and carry more than its text."""
scenarios = pytest.mark.parametrize("scenario", OF_SERVERS, ids=[one.name for one in OF_SERVERS])


def server_of(
    rt: Any, functions: Mapping[str, Function], *others: Any, lang: Any = "en", **options: Any
) -> FastMCP:
    mcp: FastMCP = FastMCP("shop", **options)
    for function in functions.values():
        mcp.tool(function)
    mcp.add_middleware(middleware(rt, lang=lang))
    for other in others:
        mcp.add_middleware(other)
    return mcp


def calling(client: Any) -> Call:
    async def call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return wire(await client.call_tool_mcp(name, dict(arguments)))

    return call


@asynccontextmanager
async def in_memory(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    async with Client(server_of(rt, functions)) as client:
        yield calling(client)


@asynccontextmanager
async def masked(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    server = server_of(rt, functions, ErrorHandlingMiddleware(), mask_error_details=True)
    async with Client(server) as client:
        yield calling(client)


@asynccontextmanager
async def http(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    application = server_of(rt, functions).http_app()
    async with over_http(application) as address, Client(f"{address}/mcp") as client:
        yield calling(client)


@asynccontextmanager
async def mounted(rt: Any, functions: Mapping[str, Function]) -> AsyncIterator[Call]:
    """The shop's server within another one; both have the middleware."""
    outer: FastMCP = FastMCP("mall")
    outer.add_middleware(middleware(rt))
    outer.mount(server_of(rt, functions))
    async with Client(outer) as client:
        yield calling(client)


@scenarios
async def test_a_server_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    await check_server(in_memory, scenario, shop, records=VERSION >= RECORDS)


@pytest.mark.parametrize("serve", [masked, http])
@pytest.mark.parametrize(
    "name", ["transport_recovered", "write_with_lost_answer", "secret_in_an_error"]
)
async def test_the_same_by_other_ways(serve: Any, name: str, shop: FaultServer) -> None:
    """Masked details, errors made into protocol errors within, and streamable HTTP change nothing of it."""
    await check_server(serve, BY_NAME[name], shop, records=VERSION >= RECORDS)


@pytest.mark.parametrize("name", ["transport_recovered", "write_with_lost_answer"])
async def test_a_mounted_server_that_has_it_too(name: str, shop: FaultServer) -> None:
    """Attempts are not multiplied where a protected server stands in another."""
    await check_server(mounted, BY_NAME[name], shop, records=VERSION >= RECORDS)


SCRIPT = """
import sys
from fastmcp import FastMCP
from failwise.connect.fastmcp import middleware
from tests.frameworks.driving import runtime
from tests.frameworks.shop import Shop

class Far:
    def url(self, path):
        return sys.argv[1] + path

mcp = FastMCP("shop")
for function in Shop(Far()).functions().values():
    mcp.tool(function)
mcp.add_middleware(middleware(runtime()))
mcp.run(show_banner=False)
"""


@pytest.mark.parametrize("name", ["transport_recovered", "write_with_lost_answer"])
async def test_over_stdio(name: str, shop: FaultServer, tmp_path: Path) -> None:
    """A server in a process of its own: failures are answers, nothing is done twice."""
    scenario = BY_NAME[name]
    scenario.routes(shop)
    script = tmp_path / "server.py"
    script.write_text(SCRIPT, "utf-8")
    transport = StdioTransport(sys.executable, [str(script), shop.url("")], env=PLACES)
    async with Client(transport) as client:
        call = calling(client)
        answers = [await call(tool, raw) for tool, raw in scenario.calls]
    assert [bool(answer.get("isError")) for answer in answers] == list(scenario.told)
    assert scenario.holds(Shop(shop))


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
    if VERSION >= RECORDS:
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
    """`ToolError` reaches the model as the author wrote it, also with a cause, and is not tried again; a tool
    that is not there is answered by FastMCP."""
    ran: list[str] = []
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool(annotations={"readOnlyHint": True})
    def closed(day: str) -> str:
        ran.append(day)
        try:
            raise ConnectionResetError("reset by peer")
        except ConnectionResetError as error:
            raise ToolError("We are closed; try tomorrow.") from error

    with runtime() as rt:
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            answer = await calling(client)("closed", {"day": "today"})
            missing = await calling(client)("opening", {})
    assert (text_of(answer), answer["isError"]) == ("We are closed; try tomorrow.", True)
    assert (missing["isError"], text_of(missing)[:13]) == (True, "Unknown tool:")
    assert ran == ["today"]


async def test_a_question_to_the_user_passes() -> None:
    """A tool that asks the user (`ctx.elicit`) is answered by the user and runs on."""
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    async def pay(amount: int, ctx: Context) -> str:
        answer = await ctx.elicit(f"Pay {amount}?", response_type=["yes", "no"])
        return f"{answer.action} {getattr(answer, 'data', None)}"

    async def yes(message: str, response_type: Any, params: Any, context: Any) -> Any:
        return {"value": "yes"}

    with runtime() as rt:
        mcp.add_middleware(middleware(rt))
        options: dict[str, Any] = {"mode": "legacy"} if VERSION >= (4, 0) else {}
        async with Client(mcp, elicitation_handler=yes, **options) as client:
            answer = await calling(client)("pay", {"amount": 5})
    assert text_of(answer) == "accept yes"


@pytest.mark.skipif(VERSION < (4, 0), reason="questions by an answer came with fastmcp 4")
async def test_a_question_by_an_answer_passes() -> None:
    """In the protocol's later era a tool asks by its answer; the second round is the call's end."""
    from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    async def pay(amount: int, ctx: Context) -> Any:
        answers = ctx.input_responses
        if answers:
            return f"paid {next(iter(answers.values())).content}"
        form = ElicitRequestFormParams(
            message="Pay?",
            requested_schema={"type": "object", "properties": {"value": {"type": "string"}}},
        )
        return InputRequiredResult(
            input_requests={"pay": ElicitRequest(params=form)}, request_state="s"
        )

    async def yes(message: str, response_type: Any, params: Any, context: Any) -> Any:
        return {"value": "yes"}

    with runtime() as rt:
        results = recorded(rt)
        mcp.add_middleware(middleware(rt))
        async with Client(mcp, elicitation_handler=yes) as client:
            answer = await calling(client)("pay", {"amount": 5})
    assert text_of(answer) == "paid {'value': 'yes'}"
    assert results[-1].success


async def test_progress_passes() -> None:
    """What a tool reports on its way is heard by the client."""
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    async def slow(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        return "done"

    heard: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    with runtime() as rt:
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            await client.call_tool("slow", {}, progress_handler=progress)
    assert heard == [(1, 2, "half")]


async def test_cancellation_passes_and_leaves_an_open_effect() -> None:
    """Where the server's work is cancelled, the tool is; the order stays open, and is not sent again."""
    began, ended = asyncio.Event(), asyncio.Event()
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    async def create_order(sku: str) -> str:
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "placed"

    with runtime() as rt:
        results = recorded(rt)
        mcp.add_middleware(middleware(rt))
        call = mcp.call_tool
        task = asyncio.ensure_future(call("create_order", {"sku": "A-1"}))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()
        with contextlib.suppress(ToolError):  # before 3.4
            await call("create_order", {"sku": "A-1"})
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
        ({"readOnlyHint": True}, None, {}, 2),
        ({"idempotentHint": True}, None, {}, 2),
        ({"readOnlyHint": True}, {"failwise": {"read_only": False}}, {}, 1),
        (None, {"failwise": {"read_only": False}}, {"fl*": {"read_only": True}}, 2),
    ):
        tries.clear()
        mcp: FastMCP = FastMCP("shop")
        mcp.tool(flaky, annotations=hints, meta=meta)
        with runtime(declarations=declared) as rt:
            mcp.add_middleware(middleware(rt))
            async with Client(mcp) as client:
                await calling(client)("flaky", {"query": "x"})
        assert len(tries) == expected, (hints, meta, declared)


async def test_annotations_of_another_server_only_narrow(shop: FaultServer) -> None:
    """What a server passes on from another is declared by neither: its hints do not let it be repeated."""
    tries: list[str] = []
    inner: FastMCP = FastMCP("inner")

    @inner.tool(annotations={"readOnlyHint": True})
    def flaky(query: str) -> str:
        tries.append(query)
        raise ConnectionResetError("connection reset by peer")

    outer: FastMCP = fastmcp.server.create_proxy(inner)
    with runtime() as rt:
        outer.add_middleware(middleware(rt))
        async with Client(outer) as client:
            answer = await calling(client)("flaky", {"query": "x"})
        assert rt.tools["flaky"].read_only is None
    assert answer["isError"]
    assert len(tries) == 1


async def test_a_tools_own_time_limit_is_one_attempts() -> None:
    """What a tool did when its time was up is not known: a write is not sent again."""
    tries: list[str] = []
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool(timeout=0.1)
    async def create_order(sku: str) -> str:
        tries.append(sku)
        await asyncio.sleep(5)
        return "placed"

    with runtime() as rt:
        results = recorded(rt)
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            answer = await calling(client)("create_order", {"sku": "A-1"})
    assert answer["isError"]
    assert tries == ["A-1"]
    assert results[0].failure is not None
    assert (results[0].failure.code, results[0].effect.value) == ("network.timeout", "unknown")


async def test_a_fallback_among_the_servers_own_tools() -> None:
    """A declared fallback runs another tool of the server; what it gives is told, and fits the promise of
    the first one's output schema."""
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    def search(query: str) -> dict[str, int]:
        raise ConnectionRefusedError("nobody listens")

    @mcp.tool
    def cached(query: str) -> dict[str, int]:
        return {query: 3}

    declared = {
        "search": {"read_only": True, "fallback": ["cached"]},
        "cached": {"read_only": True},
    }
    quick = {"network": {"retries": 0, "retries_read": 0}}
    with runtime(declarations=declared, policy=quick) as rt:
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            await client.call_tool("cached", {"query": "x"})
            answer = await calling(client)("search", {"query": "shoes"})
    assert not answer.get("isError")
    assert answer["structuredContent"] == {"shoes": 3}
    assert "cached" in text_of(answer)


async def test_contents_of_other_kinds_are_handed_on(shop: FaultServer) -> None:
    """Pictures and several blocks pass as they are; a result that says it failed is judged as a failure."""
    from fastmcp.utilities.types import Image

    mcp: FastMCP = FastMCP("shop")

    @mcp.tool
    def picture(query: str) -> Any:
        return ["here", Image(data=b"png", format="png")]

    with runtime() as rt:
        results = recorded(rt)
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            answer = await calling(client)("picture", {"query": "x"})
    assert [block["type"] for block in answer["content"]] == ["text", "image"]
    assert results[0].success


@pytest.mark.skipif(VERSION < RECORDS, reason="results say that they failed since 3.4")
async def test_a_result_that_says_it_failed_is_a_failure() -> None:
    """`ToolResult(is_error=True)` is judged: a transient one of a read is repeated."""
    tries: list[int] = []
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool(annotations={"readOnlyHint": True})
    def search(query: str) -> ToolResult:
        tries.append(1)
        failed = len(tries) == 1
        text = "HTTP 503 Service Unavailable" if failed else "found"
        return ToolResult(content=text, is_error=failed)

    with runtime() as rt:
        mcp.add_middleware(middleware(rt))
        async with Client(mcp) as client:
            answer = await calling(client)("search", {"query": "x"})
    assert text_of(answer) == "found"
    assert answer["_meta"][RECORD]["retries"] == 1


async def test_their_own_retries_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """`RetryMiddleware` within ours, and tenacity on a tool, would multiply: one warning each. Outside of
    ours nothing is left for it."""
    import tenacity

    _said.clear()
    tries: list[str] = []

    @tenacity.retry(stop=tenacity.stop_after_attempt(1), reraise=True)
    def create_order(query: str) -> str:
        tries.append(query)
        raise ConnectionResetError("reset by peer")

    with caplog.at_level("WARNING", "failwise"), runtime() as rt:
        server: FastMCP = FastMCP("shop")
        server.tool(create_order)
        server.add_middleware(RetryMiddleware(max_retries=2, base_delay=0.01))
        server.add_middleware(middleware(rt))
        async with Client(server) as client:
            await calling(client)("create_order", {"query": "x"})
        assert tries == ["x"] or VERSION < RECORDS
        assert not any("RetryMiddleware" in record.message for record in caplog.records)
        retrying = server_of(
            rt, {"s": create_order}, RetryMiddleware(max_retries=1, base_delay=0.01)
        )
        async with Client(retrying) as client:
            await calling(client)("create_order", {"query": "y"})
            await calling(client)("create_order", {"query": "z"})
    texts = [record.message for record in caplog.records if record.name == "failwise"]
    assert sum("RetryMiddleware" in text for text in texts) == 1
    assert sum("tenacity" in text for text in texts) == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_watching_changes_nothing(mode: Any, shop: FaultServer) -> None:
    """In observe mode and switched off, a failure comes back as FastMCP has it."""
    BY_NAME["permanent_once"].routes(shop)
    server = Shop(shop)
    plain: FastMCP = FastMCP("shop")
    plain.tool(server.functions()["profile"])
    async with Client(plain) as client:
        expected = await calling(client)("profile", {"user": "ann"})
    with runtime(mode=mode) as rt:
        async with in_memory(rt, server.functions()) as call:
            assert await call("profile", {"user": "ann"}) == expected
    assert server.ran == {"profile": 2}


async def test_a_client_of_fastmcp_is_a_session_too() -> None:
    """Its server's tools are loaded into a runtime; what they raise is a failure, what they give a value."""
    mcp: FastMCP = FastMCP("shop")

    @mcp.tool(annotations={"readOnlyHint": True})
    def search(query: str) -> list[str]:
        """Search."""
        if query == "boom":
            raise ToolError("HTTP 404 Not Found")
        return [query]

    with runtime(declarations={}) as rt:
        async with Client(mcp) as client:
            [spec] = await mcp_tools.load(rt, client, prefix="shop_")
            good = await rt.call("shop_search", {"query": "x"})
            bad = await rt.call("shop_search", {"query": "boom"})
    assert (spec.name, spec.read_only) == ("shop_search", None)
    assert good.value == ["x"]
    assert not bad.success
