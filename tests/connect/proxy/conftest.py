"""A proxy before real servers, with a real client as its host."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from failwise import Runtime
from failwise.connect.proxy import Proxy, ProxySettings, ServerSettings, ToolSettings

ROOT = Path(__file__).parents[3]
Opened = Callable[..., AbstractAsyncContextManager[tuple[Client, Proxy]]]


def shop(ledger: Path, name: str = "shop", **options: Any) -> ServerSettings:
    """The settings of the shop, which writes its orders to `ledger`."""
    arguments = ("-m", "tests.connect.proxy.shop", str(ledger))
    return ServerSettings(name, sys.executable, arguments, cwd=str(ROOT), **options)


def tools(**patterns: dict[str, Any]) -> tuple[tuple[str, ToolSettings], ...]:
    """What a person says of tools, by name."""
    return tuple((name, ToolSettings(**said)) for name, said in patterns.items())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.txt"


@pytest.fixture
def opened(ledger: Path) -> Opened:
    """Opens a client on a proxy before some servers (without any: the shop)."""

    @asynccontextmanager
    async def open_(
        *servers: ServerSettings,
        mode: str = "auto",
        policy: Any = None,
        journal: Any = ":memory:",
        client: dict[str, Any] | None = None,
        **settings: Any,
    ) -> AsyncIterator[tuple[Client, Proxy]]:
        with Runtime(journal, jitter=0.0, policy=policy) as runtime:
            proxy = Proxy(ProxySettings(servers or (shop(ledger),), **settings), runtime)
            async with proxy, Client(proxy.server, mode=mode, **(client or {})) as host:
                yield host, proxy

    return open_
