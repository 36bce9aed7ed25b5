"""Upstreams and hosts over streamable HTTP: statuses, told waits, lost sessions, tokens, the front door."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from failwise import Runtime, UsageError
from failwise.connect.proxy import Proxy, ProxySettings, ServerSettings
from failwise.connect.proxy.serving import app
from tests.connect.proxy.conftest import Opened, shop, tools
from tests.connect.proxy.test_proxy import record, text

Reply = tuple[int, dict[str, str], bytes]


class Gateway:
    """A real MCP server over HTTP with something before it that answers by a script.

    `script` holds replies for the next ``tools/call`` requests; `calls` is when each came, `tokens` what
    it carried.
    """

    def __init__(self) -> None:
        server = MCPServer("remote")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look(text: str) -> str:
            return text

        @server.tool()
        def write(text: str) -> str:
            self.written.append(text)
            return text

        self.written: list[str] = []
        self.script: list[Reply | None] = []
        self.calls: list[float] = []
        self.tokens: list[str | None] = []
        self._inner = server.streamable_http_app()
        self.url = ""

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if b'"tools/call"' in body:
            self.calls.append(time.monotonic())
            self.tokens.append(dict(scope["headers"]).get(b"authorization", b"").decode() or None)
            reply = self.script.pop(0) if self.script else None
            if reply is not None:
                status, headers, content = reply
                raw = [(name.encode(), value.encode()) for name, value in headers.items()]
                await send({"type": "http.response.start", "status": status, "headers": raw})
                await send({"type": "http.response.body", "body": content})
                return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return given.pop() if given else await receive()

        await self._inner(scope, again, send)


@contextlib.asynccontextmanager
async def served(application: Any) -> AsyncIterator[int]:
    """An ASGI application on a port of loopback."""
    server = uvicorn.Server(
        uvicorn.Config(application, host="127.0.0.1", port=0, log_level="error", lifespan="on")
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        await task


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    made = Gateway()
    async with served(made) as port:
        made.url = f"http://127.0.0.1:{port}/mcp"
        yield made


def remote(gateway: Gateway, **options: Any) -> ServerSettings:
    return ServerSettings("remote", url=gateway.url, **options)


async def test_a_told_wait_is_obeyed(opened: Opened, gateway: Gateway) -> None:
    """429 with Retry-After before the call was taken up: once more, not a moment early, even for a write."""
    gateway.script = [(429, {"retry-after": "1"}, b"slow down")]
    async with opened(remote(gateway)) as (host, _):
        result = await host.call_tool("write", {"text": "x"})
    assert not result.is_error
    assert record(result)["retries"] == 1
    first, second = gateway.calls
    assert second - first >= 1.0
    assert gateway.written == ["x"]


@pytest.mark.parametrize(
    ("status", "code", "effect"),
    [
        (401, "auth.invalid_credential", "rejected"),
        (403, "auth.forbidden", "rejected"),
        (500, "server.internal", "unknown"),
        (503, "server.unavailable", "unknown"),
    ],
)
async def test_each_status_keeps_its_meaning(
    opened: Opened, gateway: Gateway, status: int, code: str, effect: str
) -> None:
    """What the SDK folds into one error is told apart; a write that may have happened is sent once."""
    gateway.script = [(status, {"content-type": "application/json"}, b'{"error": "no"}')] * 3
    async with opened(remote(gateway)) as (host, _):
        result = await host.call_tool("write", {"text": "x"})
    assert result.is_error
    assert record(result)["failure"]["code"] == code
    assert record(result)["failure"]["http_status"] == status
    assert record(result)["effect"] == effect
    assert len(gateway.calls) == 1


async def test_a_lost_session_is_opened_again_and_the_call_repeated(
    opened: Opened, gateway: Gateway
) -> None:
    """404 for the session: the call was not taken up, so that even a write goes again, and once."""
    gateway.script = [
        (404, {"content-type": "application/json"}, b'{"error": "Session not found"}')
    ]
    policy = {"network": {"connection_reset": {"base": 0.01}}}
    async with opened(remote(gateway), policy=policy) as (host, proxy):
        result = await host.call_tool("write", {"text": "x"})
        assert not result.is_error, text(result)
        assert proxy.upstreams[0].generation == 2
    assert gateway.written == ["x"]


async def test_a_connection_that_is_refused_was_not_sent(opened: Opened) -> None:
    """Nobody listens: `not_sent`, and the message says which server."""
    nobody = ServerSettings("gone", url="http://127.0.0.1:9/mcp")
    async with opened(nobody, start_wait=2.0) as (host, proxy):
        await host.list_tools()
        assert "connect" in proxy.status()["servers"][0]["error"].lower()


async def test_the_hosts_token_stays_here_unless_wanted(gateway: Gateway) -> None:
    """By default the caller's token is not forwarded; with the setting it is. Ours come from variables."""
    for forward in (False, True):
        with Runtime(":memory:") as runtime:
            proxy = Proxy(ProxySettings((remote(gateway, forward_authorization=forward),)), runtime)
            front = app(proxy, token="front-door-token")
            async with (
                proxy,
                served(front) as port,
                httpx2.AsyncClient(headers={"authorization": "Bearer front-door-token"}) as http,
            ):
                url = f"http://127.0.0.1:{port}/mcp"
                async with Client(streamable_http_client(url, http_client=http)) as host:
                    assert not (await host.call_tool("look", {"text": "x"})).is_error
    assert gateway.tokens == [None, "Bearer front-door-token"]


async def test_the_front_door(ledger: Path) -> None:
    """A token is asked for where there is one; foreign hosts and origins are refused; beyond loopback a
    token is a must."""
    with Runtime(":memory:") as runtime:
        proxy = Proxy(ProxySettings((shop(ledger),)), runtime)
        with pytest.raises(UsageError, match="token"):
            app(proxy, host="0.0.0.0")
        async with (
            proxy,
            served(app(proxy, token="let-me-in")) as port,
            httpx2.AsyncClient() as http,
        ):
            url = f"http://127.0.0.1:{port}/mcp"
            good = {"authorization": "Bearer let-me-in"}
            assert (await http.post(url, json={})).status_code == 401
            wrong = {"authorization": "Bearer let-me-on"}
            assert (await http.post(url, json={}, headers=wrong)).status_code == 401
            foreign = {**good, "host": "evil.example"}
            assert (await http.post(url, json={}, headers=foreign)).status_code in (403, 421)
            origin = {**good, "origin": "http://evil.example"}
            assert (await http.post(url, json={}, headers=origin)).status_code == 403


async def test_two_hosts_over_http_do_not_meet(ledger: Path) -> None:
    """One's open effect does not stop the other; each is told of its own."""
    with Runtime(":memory:") as runtime:
        server = shop(ledger, tools=tools(order_and_die={"read_only": False}))
        proxy = Proxy(ProxySettings((server,)), runtime)
        async with proxy, served(app(proxy)) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as two:
                first = await one.call_tool("order_and_die", {"item": "a"})
                again = await one.call_tool("order_and_die", {"item": "a"})
                other = await two.call_tool("order_and_die", {"item": "a"})
    codes = [record(result)["failure"]["code"] for result in (first, again, other)]
    assert codes[0] == codes[2] == "network.connection_reset"
    assert codes[1] == "runtime.effect_open"
