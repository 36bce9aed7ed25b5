"""Real exceptions of real clients against real sockets: the phase each of them tells."""

import asyncio
import gc
import http.client
import json
import socket
import struct
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import httpx2
import pytest
import requests

from failwise.evidence import from_exception
from tests.evidence import conftest as peers

# Clients leave sockets to the garbage collector when they fail; that is theirs, not ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LIMIT = 0.05


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what a client left behind within the test that made it."""
    yield
    gc.collect()


def with_httpx(url: str) -> object:
    with httpx.Client(timeout=LIMIT, trust_env=False, follow_redirects=True) as client:
        return client.get(url).raise_for_status()


def with_httpx2(url: str) -> object:
    with httpx2.Client(timeout=LIMIT, trust_env=False, follow_redirects=True) as client:
        return client.get(url).raise_for_status()


def with_httpx_async(url: str) -> object:
    async def fetch() -> object:
        async with httpx.AsyncClient(
            timeout=LIMIT, trust_env=False, follow_redirects=True
        ) as client:
            return (await client.get(url)).raise_for_status()

    return asyncio.run(fetch())


def with_requests(url: str) -> object:
    with requests.Session() as session:
        session.trust_env = False
        response = session.get(url, timeout=LIMIT)
        response.raise_for_status()
        return response


def with_urllib(url: str) -> object:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=LIMIT) as answer:
        return answer.read()


def with_http_client(url: str) -> object:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=LIMIT)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read()
    finally:
        connection.close()


def with_aiohttp(url: str) -> object:
    async def fetch() -> object:
        timeout = aiohttp.ClientTimeout(
            total=None, connect=LIMIT, sock_connect=LIMIT, sock_read=LIMIT
        )
        session = aiohttp.ClientSession(timeout=timeout, raise_for_status=True)
        async with session, session.get(url) as answer:
            return await answer.read()

    return asyncio.run(fetch())


CLIENTS: dict[str, Callable[[str], object]] = {
    "httpx": with_httpx,
    "httpx2": with_httpx2,
    "httpx_async": with_httpx_async,
    "requests": with_requests,
    "urllib": with_urllib,
    "http.client": with_http_client,
    "aiohttp": with_aiohttp,
}


def tls_reset(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def tls_closed(connection: socket.socket) -> None:
    connection.recv(4_096)


# fault → (handler, scheme, phases that are right)
FAULTS: dict[str, tuple[peers.Handler, str, set[str]]] = {
    "reset after the request": (peers.reset, "http", {"read"}),
    "closed without an answer": (peers.closed, "http", {"read"}),
    "silent": (peers.silent, "http", {"read"}),
    "garbage": (peers.garbage, "http", {"read"}),
    "truncated body": (peers.truncated, "http", {"body"}),
    "body never ends": (peers.slow_body, "http", {"read", "body"}),
    "plain HTTP on a TLS port": (peers.plain_http, "https", {"tls"}),
    "silent during the handshake": (peers.silent, "https", {"tls", "connect"}),
    "reset during the handshake": (tls_reset, "https", {"tls", "connect"}),
    "closed during the handshake": (tls_closed, "https", {"tls", "connect"}),
}


def failure_of(client: Callable[[str], object], url: str) -> BaseException:
    try:
        client(url)
    except Exception as error:
        return error
    raise AssertionError("the peer did not make it fail")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_phase(client: str, fault: str, peer: Callable[[peers.Handler], peers.Peer]) -> None:
    """Whatever the client, its exception tells how far the request had come."""
    handler, scheme, phases = FAULTS[fault]
    url = peer(handler).url.replace("http:", f"{scheme}:")
    evidence = from_exception(failure_of(CLIENTS[client], url))
    assert evidence.phase in phases, evidence.exceptions
    assert evidence.status is None


@pytest.mark.parametrize("client", CLIENTS)
def test_refused(client: str, closed_port: int) -> None:
    """A refused connection is told as such, with the errno's name."""
    evidence = from_exception(failure_of(CLIENTS[client], f"http://127.0.0.1:{closed_port}/"))
    assert evidence.phase == "connect"
    assert any(fact.attributes.get("symbol") == "ECONNREFUSED" for fact in evidence.exceptions)
    assert any(fact.kind == "refused" for fact in evidence.exceptions)


@pytest.mark.parametrize("client", CLIENTS)
def test_unknown_name(client: str) -> None:
    """A name that does not resolve is `dns`, not merely `connect`."""
    evidence = from_exception(failure_of(CLIENTS[client], "http://nonexistent.invalid/"))
    assert evidence.phase == "dns"
    assert evidence.exceptions[-1].name == "socket.gaierror"


@pytest.mark.parametrize("client", ["httpx", "httpx2", "requests", "urllib", "aiohttp"])
def test_answer_within(client: str, peer: Callable[[peers.Handler], peers.Peer]) -> None:
    """`raise_for_status` and its like: the answer is read from the exception."""
    handler = peers.answer(
        "429 Too Many Requests",
        b'{"error": "slow down"}',
        "Content-Type: application/json",
        "Retry-After: 3",
    )
    evidence = from_exception(failure_of(CLIENTS[client], peer(handler).url))
    assert (evidence.status, evidence.method) == (429, "GET")
    assert evidence.host == "127.0.0.1"
    assert [wait.seconds for wait in evidence.waits] == [3.0]
    if client != "aiohttp":  # its exception has no body
        assert evidence.body == {"error": "slow down"}


@pytest.mark.parametrize("client", ["httpx", "httpx_async", "requests", "aiohttp"])
def test_pool_and_url_mistakes_are_not_sent(client: str) -> None:
    """A URL that no client can send is a mistake of configuration."""
    assert from_exception(failure_of(CLIENTS[client], "ftpx://example.invalid/")).phase == "config"


def test_pool_timeout(peer: Callable[[peers.Handler], peers.Peer]) -> None:
    """Waiting for a connection of the pool: nothing was sent."""

    async def run(url: str) -> BaseException:
        limits = httpx.Limits(max_connections=1)
        timeout = httpx.Timeout(1, pool=LIMIT)
        async with httpx.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as client:
            first = asyncio.create_task(client.get(url))
            await asyncio.sleep(0)
            try:
                await client.get(url)
            except httpx.PoolTimeout as error:
                return error
            finally:
                first.cancel()
                await asyncio.gather(first, return_exceptions=True)
        raise AssertionError

    assert from_exception(asyncio.run(run(peer(peers.silent).url))).phase == "pool"


def test_earlier_request_counts() -> None:
    """A connect error while a read timeout was being handled: the first request may have been sent."""
    try:
        try:
            raise httpx.ReadTimeout("read timed out")
        except httpx.ReadTimeout:
            raise httpx.ConnectTimeout("timed out")  # noqa: B904
    except httpx.ConnectTimeout as error:
        evidence = from_exception(error)
    assert evidence.exceptions[0].name == "httpx.ConnectTimeout"
    assert evidence.phase == "read"


def test_earlier_answer_counts() -> None:
    """A connect error after an answered request: not `not sent`, and not the earlier status."""
    request = httpx.Request("POST", "https://api.example/orders")
    answered = httpx.Response(500, request=request)
    try:
        try:
            answered.raise_for_status()
        except httpx.HTTPStatusError:
            raise httpx.ConnectError("refused")  # noqa: B904
    except httpx.ConnectError as error:
        evidence = from_exception(error)
    assert (evidence.phase, evidence.status) == ("read", None)


def test_wrapper_raised_while_handling_an_answer() -> None:
    """A tool's own exception raised while a status error was handled keeps that answer."""
    response = httpx.Response(403, request=httpx.Request("GET", "https://api.example/x"))
    try:
        try:
            response.raise_for_status()
        except httpx.HTTPStatusError:
            raise RuntimeError("cannot list")  # noqa: B904
    except RuntimeError as error:
        assert from_exception(error).status == 403  # noqa: PT017


def test_wrapped_cause_tells() -> None:
    """A tool's own wrapper around a connect error hides nothing."""
    try:
        try:
            raise httpx.ConnectTimeout("timed out")
        except httpx.ConnectTimeout as inner:
            raise RuntimeError("search failed") from inner
    except RuntimeError as error:
        evidence = from_exception(error)
    assert evidence.phase == "connect"
    assert [fact.name for fact in evidence.exceptions] == ["RuntimeError", "httpx.ConnectTimeout"]
    assert "httpx.TimeoutException" in evidence.exceptions[1].bases


def test_group_is_looked_into() -> None:
    """The members of a group are facts, and the worst phase counts."""
    group = ExceptionGroup("two", [httpx.ConnectError("refused"), httpx.ReadError("reset")])
    evidence = from_exception(group)
    assert {fact.name for fact in evidence.exceptions} >= {"httpx.ConnectError", "httpx.ReadError"}
    assert evidence.phase == "read"


def test_timeout_of_asyncio_is_any_phase() -> None:
    """`asyncio.timeout` cannot tell how far the request had come."""

    async def run() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(run())
    evidence = from_exception(caught.value, limit=2.0)
    assert (evidence.phase, evidence.limit) == ("any", 2.0)


class StatusError(Exception):
    """An SDK's exception of a class nobody knows."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("refused")
        self.__dict__.update(attributes)


@pytest.mark.parametrize("name", ["status_code", "status", "code", "http_status"])
def test_unknown_class_with_a_status(name: str) -> None:
    """An unknown class is read by its attributes."""
    error = StatusError(**{name: 403}, headers={"Retry-After": "7"}, body='{"error": "no"}')
    evidence = from_exception(error)
    assert evidence.status == 403
    assert evidence.body == {"error": "no"}
    assert evidence.waits[0].seconds == 7


def test_botocore_shape() -> None:
    """The response of a botocore error is plain data."""
    error = StatusError(
        response={
            "Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"},
            "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"x-amzn-requestid": "r1"}},
        }
    )
    evidence = from_exception(error)
    assert evidence.status == 400
    assert evidence.headers == {"x-amzn-requestid": "r1"}
    assert evidence.body["Error"]["Code"] == "ThrottlingException"


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (StatusError(sqlstate="40001"), {"sqlstate": "40001"}),
        (StatusError(pgcode="23505"), {"pgcode": "23505"}),
        (ModuleNotFoundError("No module named 'x'", name="x"), {"name": "x"}),
        (
            FileNotFoundError(2, "No such file", "/data/a"),
            {"symbol": "ENOENT", "filename": "/data/a"},
        ),
        (PermissionError(13, "Permission denied"), {"symbol": "EACCES"}),
    ],
)
def test_attributes(error: BaseException, attributes: dict[str, Any]) -> None:
    """Codes are read from whichever attribute holds them."""
    found = from_exception(error).exceptions[0].attributes
    assert attributes.items() <= found.items()


def test_json_error_keeps_its_place() -> None:
    """A parse error names the position and the text around it, not the whole document."""
    try:
        json.loads('{"a": ' + "x" * 100_000)
    except json.JSONDecodeError as error:
        fact = from_exception(error).exceptions[0]
    assert (fact.phase, fact.attributes["pos"]) == ("decode", 6)
    assert fact.attributes["length"] == 100_006
    assert len(fact.attributes["excerpt"]) <= 80


def test_message_is_taken_apart_when_nothing_else_tells() -> None:
    """A tool that pastes an answer into its exception."""
    evidence = from_exception(RuntimeError("Error code: 429 - {'error': {'code': 'slow'}}"))
    assert evidence.status == 429
    assert evidence.body == {"error": {"code": "slow"}}


def test_no_credentials_of_urls() -> None:
    """User name and password of a URL appear nowhere."""
    request = httpx.Request("GET", "https://user:hunter2@api.example/x")
    error = httpx.ConnectError("cannot reach https://user:hunter2@api.example/x", request=request)
    evidence = from_exception(error)
    assert "hunter2" not in repr(evidence).replace(repr(error), "")
    assert evidence.host == "api.example"


def test_cycles_end() -> None:
    """An exception that is its own cause does not loop."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert len(from_exception(first).exceptions) == 2


def test_hostile_attributes() -> None:
    """A class whose every attribute raises is still read."""

    class Hostile(Exception):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __str__(self) -> str:
            raise RuntimeError

    assert from_exception(Hostile()).exceptions[0].name.endswith("Hostile")
