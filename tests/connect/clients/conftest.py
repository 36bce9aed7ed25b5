"""Every client through the same window: one request, and what came of it."""

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

import failwise
from failwise.connect import aiohttp as connect_aiohttp
from failwise.connect import httpx as connect_httpx
from failwise.connect import httpx2 as connect_httpx2
from failwise.connect import requests as connect_requests
from failwise.connect.transport import result_of
from failwise.faults import FaultServer
from failwise.testing import SteppingClock


class Answer(NamedTuple):
    """What a client gave: its response as plain data, or its exception; and the runtime's result."""

    status: int | None
    content: bytes
    error: Exception | None
    result: failwise.ToolResult[Any] | None


Send = Callable[..., Answer]

TRUST = ssl.create_default_context()
"""Made once: a new one for each client takes most of a test's time."""


def by_httpx(library: Any, connect: Any) -> Send:
    def send(
        method: str, url: str, runtime: Any = None, *, timeout: float = 5.0, **given: Any
    ) -> Answer:
        options = given.pop("options", {})
        with library.Client(
            transport=connect.transport(runtime, verify=TRUST, **options), timeout=timeout
        ) as client:
            try:
                answer = client.request(method, url, **given)
            except library.HTTPError as error:
                return Answer(None, b"", error, result_of(error))
            return Answer(answer.status_code, answer.content, None, result_of(answer))

    return send


def by_async_httpx(library: Any, connect: Any) -> Send:
    def send(
        method: str, url: str, runtime: Any = None, *, timeout: float = 5.0, **given: Any
    ) -> Answer:
        options = given.pop("options", {})
        if not isinstance(given.get("content", b""), bytes):
            given["content"] = _slowly(given["content"])

        async def one() -> Answer:
            async with library.AsyncClient(
                transport=connect.async_transport(runtime, verify=TRUST, **options), timeout=timeout
            ) as client:
                try:
                    answer = await client.request(method, url, **given)
                except library.HTTPError as error:
                    return Answer(None, b"", error, result_of(error))
                return Answer(answer.status_code, answer.content, None, result_of(answer))

        return asyncio.run(one())

    return send


def by_requests(
    method: str, url: str, runtime: Any = None, *, timeout: float = 5.0, **given: Any
) -> Answer:
    import requests

    options = given.pop("options", {})
    if "content" in given:
        given["data"] = given.pop("content")
    with requests.Session() as session:
        session.trust_env = False
        for prefix in ("http://", "https://"):
            session.mount(prefix, connect_requests.adapter(runtime, **options))
        try:
            answer = session.request(method, url, timeout=timeout, **given)
        except requests.RequestException as error:
            return Answer(None, b"", error, result_of(error))
        return Answer(answer.status_code, answer.content, None, result_of(answer))


def by_aiohttp(
    method: str, url: str, runtime: Any = None, *, timeout: float = 5.0, **given: Any
) -> Answer:
    import aiohttp

    options = given.pop("options", {})
    if "content" in given:
        content = given.pop("content")
        given["data"] = content if isinstance(content, bytes) else _slowly(content)

    async def one() -> Answer:
        async with aiohttp.ClientSession(
            middlewares=[connect_aiohttp.middleware(runtime, **options)],
            timeout=aiohttp.ClientTimeout(sock_read=timeout, sock_connect=timeout),
        ) as session:
            try:
                async with session.request(method, url, **given) as answer:
                    return Answer(answer.status, await answer.read(), None, result_of(answer))
            except (aiohttp.ClientError, TimeoutError) as error:
                return Answer(None, b"", error, result_of(error))

    return asyncio.run(one())


async def _slowly(content: Any) -> Any:
    for piece in content:
        yield piece


def _clients() -> Mapping[str, Send]:
    import httpx
    import httpx2

    return {
        "httpx": by_httpx(httpx, connect_httpx),
        "httpx async": by_async_httpx(httpx, connect_httpx),
        "httpx2": by_httpx(httpx2, connect_httpx2),
        "httpx2 async": by_async_httpx(httpx2, connect_httpx2),
        "requests": by_requests,
        "aiohttp": by_aiohttp,
    }


CLIENTS = _clients()


@pytest.fixture(params=CLIENTS)
def send(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Send one request through a runtime, by each client in turn."""
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    return CLIENTS[request.param]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def runtime(clock: SteppingClock) -> Iterator[failwise.Runtime]:
    """A runtime whose waits take no time."""
    with failwise.Runtime(":memory:", clock=clock, jitter=0) as made:
        yield made
