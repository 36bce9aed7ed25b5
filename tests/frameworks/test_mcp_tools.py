"""Tools of MCP servers in a runtime: of a session that somebody holds, of a server that is connected to."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer

import failwise
from failwise.cli.configuration import load
from failwise.connect import mcp_tools
from failwise.connect.proxy import ServerSettings, ToolSettings
from failwise.vocabulary.errors import ConfigurationError, UsageError
from tests.frameworks.driving import runtime
from tests.frameworks.serving import over_http

READS = types.ToolAnnotations(read_only_hint=True)


class Store:
    """A server, and how often each of its tools ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.server = MCPServer("store", log_level="CRITICAL")

        @self.server.tool(annotations=READS)
        def search(query: str, limit: int = 10) -> dict[str, Any]:
            """Search the catalogue."""
            self.ran.append("search")
            return {"items": [f"{query} {n}" for n in range(1, limit + 1)]}

        @self.server.tool()
        def create_order(sku: str) -> Any:
            """Place an order."""
            self.ran.append("create_order")
            return {
                "ok": False,
                "error": {"code": "insufficient_balance", "message": "12.50 short"},
            }

        @self.server.tool(annotations=types.ToolAnnotations(destructive_hint=True))
        def wipe(sku: str) -> str:
            """Remove it."""
            self.ran.append("wipe")
            return "wiped"


@pytest.fixture
def store() -> Store:
    return Store()


async def test_tools_of_a_session(store: Store) -> None:
    """Names, descriptions, schemas and the server's name are there; arguments are repaired, values are data,
    a "no" in a good answer is a failure."""
    with runtime(declarations={}) as rt:
        async with Client(store.server) as client:
            specs = await mcp_tools.load(rt, client)
            assert [spec.name for spec in specs] == ["search", "create_order", "wipe"]
            assert specs[0].description == "Search the catalogue."
            assert {spec.upstream for spec in specs} == {"store"}
            assert rt.schemas("openai")[0]["function"]["parameters"]["properties"]["limit"]
            good = await rt.call("search", "{'query': 'shoes', 'limit': '2'}")
            refused = await rt.call("create_order", {"sku": "A-1"})
            other_loop = await asyncio.to_thread(rt.call_sync, "search", {"query": "x", "limit": 1})
    assert good.value == {"items": ["shoes 1", "shoes 2"]}
    assert other_loop.value == {"items": ["x 1"]}
    assert refused.failure is not None
    assert refused.failure.code == "business.insufficient_balance"
    assert store.ran == ["search", "create_order", "search"]


async def test_annotations_are_hints_and_the_person_has_the_last_word(store: Store) -> None:
    """Untrusted annotations only narrow; trusted ones are believed; what is declared wins over both."""
    for trusted, declared, expected in (
        (False, {}, (None, True)),
        (True, {}, (True, True)),
        (True, {"sea*": {"read_only": False}}, (False, True)),
        (False, {"search": {"read_only": True, "timeout": 3}}, (True, True)),
    ):
        with runtime(declarations=declared) as rt:
            async with Client(store.server) as client:
                search, _, wipe = await mcp_tools.load(rt, client, trust_annotations=trusted)
        assert (search.read_only, wipe.destructive) == expected
        assert search.timeout == declared.get("search", {}).get("timeout", 60.0)


async def test_the_file_declares_too(store: Store, tmp_path: Path) -> None:
    """`[declare."glob"]` of a failwise.toml holds for tools that are loaded."""
    file = tmp_path / "failwise.toml"
    file.write_text('[declare."shop_s*"]\nread_only = true\nupstream = "shop.example"\n', "utf-8")
    with load(file) as rt:
        async with Client(store.server) as client:
            search, *_ = await mcp_tools.load(rt, client, prefix="shop_")
    assert (search.name, search.read_only, search.upstream) == ("shop_search", True, "shop.example")


async def test_loading_again_takes_what_there_is_now(store: Store) -> None:
    """What the server lists no more is gone, what is new is there; another's tool is not overwritten."""
    with runtime(declarations={}) as rt:
        rt.add(failwise.ToolSpec("mine", call=lambda arguments, context: "mine"))
        async with Client(store.server) as client:
            await mcp_tools.load(rt, client)
            store.server.remove_tool("wipe")
            store.server.add_tool(lambda: "new", name="new")
            await client.list_tools(cache_mode="refresh")
            specs = await mcp_tools.load(rt, client)
            assert [spec.name for spec in specs] == ["search", "create_order", "new"]
            assert set(rt.tools) == {"mine", "search", "create_order", "new"}
            store.server.add_tool(lambda: "x", name="mine")
            await client.list_tools(cache_mode="refresh")
            with pytest.raises(UsageError, match="prefix"):
                await mcp_tools.load(rt, client)
        with pytest.raises(UsageError, match="ClientSession"):
            await mcp_tools.load(rt, object())


async def test_a_session_that_ended_is_a_failure(store: Store) -> None:
    """A call of a session that is closed comes back as data."""
    with runtime(declarations={}) as rt:
        async with Client(store.server) as client:
            await mcp_tools.load(rt, client)
        result = await rt.call("search", {"query": "x"})
    assert not result.success


class Gate:
    """An ASGI application before another one: answers the first tool calls itself, as told."""

    def __init__(self, inner: Any, *statuses: int) -> None:
        self.inner, self.statuses = inner, list(statuses)
        self.calls = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if json.loads(body).get("method") == "tools/call":
            self.calls += 1
            if self.statuses:
                headers = [(b"retry-after", b"0"), (b"content-type", b"text/plain")]
                status = self.statuses.pop(0)
                start = {"type": "http.response.start", "status": status, "headers": headers}
                await send(start)
                await send({"type": "http.response.body", "body": b"not now"})
                return

        async def again() -> Any:
            nonlocal body
            if body is not None:
                message, body = {"type": "http.request", "body": body}, None  # type: ignore[assignment]
                return message
            return await receive()

        await self.inner(scope, again, send)


@pytest.mark.parametrize(
    ("tool", "statuses", "calls", "code"),
    [
        ("search", (429, 503), 3, None),
        ("create_order", (429,), 2, "business.insufficient_balance"),
        ("create_order", (503,), 1, "server.unavailable"),
    ],
)
async def test_the_status_behind_a_servers_answer(
    store: Store, tool: str, statuses: tuple[int, ...], calls: int, code: str | None
) -> None:
    """Connected over HTTP, 429 and 503 are seen for what they are: a read is tried again, a write only where
    it was certainly not taken up."""
    gate = Gate(store.server.streamable_http_app(), *statuses)
    with runtime(declarations={}) as rt:
        async with (
            over_http(gate) as address,
            mcp_tools.connected(rt, f"{address}/mcp", trust_annotations=True) as names,
        ):
            assert names == ("search", "create_order", "wipe")
            arguments = {"query": "x", "limit": 1} if tool == "search" else {"sku": "A-1"}
            result = await rt.call(tool, arguments)
        assert rt.tools == {}
    assert gate.calls == calls
    assert (result.failure and result.failure.code) == code
    if code is None:
        assert result.value == {"items": ["x 1"]}


SCRIPT = """
import os, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("frail", log_level="CRITICAL")

@server.tool()
def look(path: str) -> str:
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(1)
    return "seen"

server.run()
"""


async def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    """The command's process ends in the middle of a read: it is started again, and asked again."""
    script = tmp_path / "server.py"
    script.write_text(SCRIPT, "utf-8")
    declared = {"look": {"read_only": True}}
    with runtime(declarations=declared) as rt:
        async with mcp_tools.connected(rt, [sys.executable, str(script)], name="frail"):
            result = await rt.call("look", {"path": str(tmp_path / "mark")})
    assert (result.value, result.retries, result.upstream) == ("seen", 1, "frail")


async def test_settings_of_a_server(store: Store) -> None:
    """`ServerSettings` bring what can be said of a server and its tools."""
    said = (("cre*", ToolSettings(read_only=True)),)
    with runtime(declarations={}) as rt:
        async with over_http(store.server.streamable_http_app()) as address:
            settings = ServerSettings("shop", url=f"{address}/mcp", tools=said)
            async with mcp_tools.connected(rt, settings, prefix="a_") as names:
                assert names == ("a_search", "a_create_order", "a_wipe")
                assert rt.tools["a_create_order"].read_only is True


async def test_a_server_that_is_not_there() -> None:
    """It is said at once, with what was tried; what cannot be a server is refused."""
    with runtime(declarations={}) as rt:
        with pytest.raises(ConfigurationError, match="cannot be reached"):
            async with mcp_tools.connected(rt, ["no-such-program-at-all"]):
                pass
        with pytest.raises(UsageError, match="http://"):
            async with mcp_tools.connected(rt, "store"):
                pass
