"""What is particular to one HTTP client, and how the connections refuse what cannot work."""

import asyncio
import logging
import threading
import time
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests

import failwise
from failwise.connect import aiohttp as connect_aiohttp
from failwise.connect import httpx as connect_httpx
from failwise.connect import httpx2 as connect_httpx2
from failwise.connect import requests as connect_requests
from failwise.connect.bodies import unpacked
from failwise.connect.transport import result_of
from failwise.faults import Fault, FaultServer
from failwise.testing import SteppingClock
from tests.connect.clients.conftest import TRUST

GOOD = Fault.json({"items": [1, 2]})


async def test_aiohttp_does_not_repeat_a_second_time(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """aiohttp repeats idempotent requests once after a lost connection: not on top of ours."""
    server.route("GET", "/items", Fault.reset())
    with failwise.Runtime(":memory:", clock=SteppingClock()) as other:
        async with aiohttp.ClientSession(
            middlewares=[connect_aiohttp.middleware(runtime)]
        ) as session:
            with pytest.raises(aiohttp.ClientError) as raised:
                await session.get(server.url("/items"))
            assert server.count("/items") == 4  # the first, and three repeats
            with pytest.raises(aiohttp.ClientError):
                await session.get(
                    server.url("/items"), middlewares=[connect_aiohttp.middleware(other)]
                )
            assert server.count("/items") == 8  # a later request is one of its own
    result = result_of(raised.value)
    assert result is not None
    assert result.sent == 4


async def test_aiohttp_streams_a_refusal_in_any_way_it_is_read(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Reading by pieces finds the beginning too, although it was read before."""
    server.route("GET", "/gone", Fault.json({"message": "gone" * 50_000}, 410))
    async with (
        aiohttp.ClientSession(middlewares=[connect_aiohttp.middleware(runtime)]) as session,
        session.get(server.url("/gone")) as answer,
    ):
        pieces = [piece async for piece in answer.content.iter_chunked(1_000)]
    assert b"".join(pieces).startswith(b'{"message": "gone')
    assert len(b"".join(pieces)) > 200_000


@pytest.mark.parametrize(("library", "connect"), [(httpx, connect_httpx), (httpx2, connect_httpx2)])
def test_attaching_keeps_a_clients_own_transports(
    library: Any, connect: Any, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """Proxies, certificates and mounts of a client stay; it only goes through the runtime."""
    server.route("GET", "/items", [Fault.status(503), GOOD])
    mocked = library.MockTransport(lambda request: library.Response(204))
    with library.Client(mounts={"https://": mocked, "all://no.example": None}) as client:
        assert connect.attach(client, runtime) is client
        connect.attach(client, runtime)  # once is enough, twice does no harm
        answer = client.get(server.url("/items"))
        assert (answer.status_code, answer.failwise.retries) == (200, 1)
        assert client.get("https://other.example/").status_code == 204
    with pytest.raises(failwise.UsageError, match="Client or AsyncClient"):
        connect.attach(object())


@pytest.mark.parametrize(("library", "connect"), [(httpx, connect_httpx), (httpx2, connect_httpx2)])
async def test_attaching_to_an_async_client(
    library: Any, connect: Any, server: FaultServer, runtime: failwise.Runtime
) -> None:
    """An async client gets the async transport."""
    server.route("GET", "/items", [Fault.status(503), GOOD])
    async with connect.attach(library.AsyncClient(), runtime) as client:
        answer = await client.get(server.url("/items"))
    assert (answer.status_code, answer.failwise.retries) == (200, 1)


def test_a_stream_is_handed_on_as_it_comes(server: FaultServer, runtime: failwise.Runtime) -> None:
    """A good answer is not read by anyone but its caller: its beginning arrives before its end."""
    server.route("GET", "/slow", Fault.trickle({"a": "b" * 40}, size=10, every=0.05))
    with (
        httpx.Client(transport=connect_httpx.transport(runtime)) as client,
        client.stream("GET", server.url("/slow")) as answer,
    ):
        assert not answer.is_stream_consumed
        assert answer.failwise.success  # type: ignore[attr-defined]
        first = next(answer.iter_raw())
        assert len(first) < 30
    with requests.Session() as session:
        connect_requests.attach(session, runtime)
        with session.get(server.url("/slow"), stream=True) as streamed:
            assert len(next(streamed.iter_content(10))) == 10


def test_an_error_raised_for_a_status_carries_the_result(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """``raise_for_status`` gives an exception whose response knows; so does `result_of`."""
    server.route("GET", "/items", Fault.status(403))
    client = httpx.Client(transport=connect_httpx.transport(runtime))
    with client, pytest.raises(httpx.HTTPStatusError) as raised:
        client.get(server.url("/items")).raise_for_status()
    result = result_of(raised.value)
    assert result is not None
    assert result.failure is not None
    assert result.failure.category is failwise.Category.AUTH
    assert result_of(ValueError()) is None


def test_what_is_declined_is_the_clients_own_kind_of_error() -> None:
    """`NotSent` is a connection error of the library: whoever handles those handles it."""
    assert issubclass(connect_httpx.NotSent, httpx.ConnectError)
    assert issubclass(connect_httpx2.NotSent, httpx2.ConnectError)
    assert issubclass(connect_requests.NotSent, requests.ConnectionError)
    assert issubclass(connect_aiohttp.NotSent, aiohttp.ClientConnectionError)


def test_retries_of_a_clients_own_are_refused_or_told_of(
    runtime: failwise.Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """Two layers that repeat would multiply."""
    with pytest.raises(failwise.UsageError, match="multiply"):
        connect_httpx.transport(runtime, retries=3)
    with pytest.raises(failwise.UsageError, match="multiply"):
        connect_requests.adapter(runtime, max_retries=3)
    session = requests.Session()
    session.mount("https://api.example", requests.adapters.HTTPAdapter(max_retries=3))
    with caplog.at_level(logging.WARNING, "failwise"):
        connect_requests.attach(session, runtime)
    assert "max_retries=3" in caplog.text
    session.close()


def test_options_that_cannot_work_are_refused(runtime: failwise.Runtime) -> None:
    """With what to write instead."""
    with pytest.raises(failwise.UsageError, match="give a Runtime, a Run"):
        connect_httpx.transport("runtime")  # type: ignore[arg-type]
    with pytest.raises(failwise.UsageError, match="name a header"):
        connect_httpx.transport(runtime, idempotency_key="two words")
    with pytest.raises(failwise.UsageError, match="names no request"):
        connect_httpx.transport(runtime, declare={"search": {"read_only": True}})
    with pytest.raises(failwise.ConfigurationError, match="did you mean read_only"):
        connect_httpx.transport(runtime, declare={"GET *": {"readonly": True}})
    with pytest.raises(failwise.UsageError, match="wrapped"):
        connect_httpx.transport(runtime, wrapped=httpx.HTTPTransport(), http2=False)
    with pytest.raises(failwise.UsageError, match=r"requests\.Session"):
        connect_requests.attach(object())  # type: ignore[arg-type]


def test_a_runs_deadline_limits_its_requests(server: FaultServer) -> None:
    """Nobody answers: the request ends with the run, whatever the client's own timeout."""
    server.route("GET", "/items", Fault.silent())
    with failwise.Runtime(":memory:") as runtime:
        for ask in (_by_httpx, _by_requests, _by_aiohttp):
            began = time.monotonic()
            error = ask(server.url("/items"), runtime.run(deadline=1.0))
            assert time.monotonic() - began < 30
            result = result_of(error)
            assert result is not None
            assert result.failure is not None
            assert result.failure.category is failwise.Category.NETWORK


def _by_httpx(url: str, run: Any) -> Exception:
    client = httpx.Client(transport=connect_httpx.transport(run, verify=TRUST), timeout=60)
    with client, pytest.raises(httpx.ReadTimeout) as raised:
        client.get(url)
    return raised.value


def _by_requests(url: str, run: Any) -> Exception:
    session = requests.Session()
    connect_requests.attach(session, run)
    with session, pytest.raises(requests.ReadTimeout) as raised:
        session.get(url, timeout=(60, 60))
    return raised.value


def _by_aiohttp(url: str, run: Any) -> Exception:
    async def ask() -> Exception:
        async with aiohttp.ClientSession(middlewares=[connect_aiohttp.middleware(run)]) as session:
            with pytest.raises(aiohttp.ServerTimeoutError) as raised:
                await session.get(url)
            return raised.value

    return asyncio.run(ask())


async def test_cancelling_a_request_closes_its_record(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The cancellation comes out; the write that was under way is on record as unknown."""
    kept: list[Any] = []
    runtime.on_result(kept.append)
    server.route("POST", "/orders", Fault.silent())
    async with httpx.AsyncClient(transport=connect_httpx.async_transport(runtime)) as client:
        task = asyncio.ensure_future(client.post(server.url("/orders"), json={}))
        while not server.count("/orders"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert kept[0].failure.code == "runtime.cancelled"
    assert kept[0].effect is failwise.Effect.UNKNOWN


def test_threads_share_a_transport(server: FaultServer, runtime: failwise.Runtime) -> None:
    """Each request finds its own answer."""
    server.route("GET", "/items/{number}", lambda request, _: Fault.json(request.parameters))
    found: dict[int, str] = {}
    with httpx.Client(transport=connect_httpx.transport(runtime)) as client:

        def ask(number: int) -> None:
            found[number] = client.get(server.url(f"/items/{number}")).json()["number"]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == {number: str(number) for number in range(20)}


def test_redirects_are_requests_of_their_own(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """The client follows, as it was told to; each hop is decided by itself."""
    server.route("GET", "/old", Fault.json({}, 302, headers={"Location": "/new"}))
    server.route("GET", "/new", [Fault.status(503), GOOD])
    client = httpx.Client(transport=connect_httpx.transport(runtime), follow_redirects=True)
    with client:
        answer = client.get(server.url("/old"))
    assert answer.json() == {"items": [1, 2]}
    assert [first.status_code for first in answer.history] == [302]
    assert server.count("/old") == 1
    assert server.count("/new") == 2


def test_requests_keeps_cookies_of_a_refusal(
    server: FaultServer, runtime: failwise.Runtime
) -> None:
    """A refusal whose beginning was read still sets its cookies, and raises by its status."""
    server.route("GET", "/items", Fault.status(403, headers={"Set-Cookie": "seen=1; Path=/"}))
    with requests.Session() as session:
        connect_requests.attach(session, runtime)
        answer = session.get(server.url("/items"))
        assert session.cookies["seen"] == "1"
        assert "403" in answer.text
        with pytest.raises(requests.HTTPError):
            answer.raise_for_status()


def test_lanes_are_bounded(runtime: failwise.Runtime) -> None:
    """A crawler that visits thousands of hosts does not grow without bound."""
    transport: Any = connect_httpx.transport(
        runtime, wrapped=httpx.MockTransport(lambda request: httpx.Response(200))
    )
    with httpx.Client(transport=transport) as client:
        for number in range(1_200):
            client.get(f"https://host-{number}.example/")
    assert len(transport.gate._lanes) <= 1_024


def test_packed_beginnings_are_read_within_bounds() -> None:
    """A bomb gives its first bytes and no more; what cannot be unpacked gives none."""
    import gzip
    import zlib

    bomb = gzip.compress(b"a" * 10_000_000)
    assert unpacked(bomb, "gzip") == b"a" * 65_536
    assert unpacked(zlib.compress(b"abc"), "deflate") == b"abc"
    raw = zlib.compressobj(wbits=-15)
    assert unpacked(raw.compress(b"abc") + raw.flush(), "deflate") == b"abc"
    assert unpacked(b"abc", "gzip") == b""
    assert unpacked(b"abc", "br") == b""
    assert unpacked(b"abc", "identity") == b"abc"


def test_a_storm_of_resets_is_held_back(server: FaultServer) -> None:
    """120 requests by threads against an upstream that drops each: at most 1.1 each."""
    server.route("GET", "/items", Fault.reset())
    calls = 120
    with (
        failwise.Runtime(":memory:", clock=SteppingClock()) as runtime,
        httpx.Client(transport=connect_httpx.transport(runtime)) as client,
    ):

        def ask() -> None:
            for _ in range(calls // 4):
                with pytest.raises(httpx.TransportError):
                    client.get(server.url("/items"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert server.count("/items") <= 1.1 * calls
