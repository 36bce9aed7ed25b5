"""The fault server, driven by real clients: each fault gives the exception or answer it promises."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import requests

from failwise.faults import Fault, FaultServer, Reply, Request
from failwise.vocabulary.errors import UsageError


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=5, trust_env=False) as session:
        yield session


def exchange(server: FaultServer, data: bytes) -> bytes:
    """Send bytes as they are; everything that comes back until the server closes."""
    port = int(server.url().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
        raw.sendall(data)
        answer = b""
        while piece := raw.recv(65536):
            answer += piece
        return answer


# Answers


def test_a_script_is_played_in_order_and_its_last_entry_repeats(
    server: FaultServer, client: httpx.Client
) -> None:
    """502 with a page, 503 with a told wait, then 200 for ever; every request is recorded."""
    server.route(
        "POST",
        "/search",
        [
            Fault.status(502),
            Fault.status(503, json={"error": "busy"}, retry_after=3),
            Fault.json({"items": ["鞋"]}),
        ],
    )
    answers = [client.post(server.url("/search?page=2"), json={"q": n}) for n in range(4)]
    assert [answer.status_code for answer in answers] == [502, 503, 200, 200]
    assert answers[0].headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>502 Bad Gateway</title>" in answers[0].text
    assert answers[1].headers["retry-after"] == "3"
    assert answers[3].json() == {"items": ["鞋"]}
    assert server.count("/search") == 4
    assert server.count("/search", "GET") == 0
    last = server.requests[-1]
    assert (last.method, last.path, last.query, last.json) == (
        "POST",
        "/search",
        {"page": "2"},
        {"q": 3},
    )
    assert last.headers["content-type"] == "application/json"
    assert server.connections() == 1, "kept alive"


def test_an_entry_may_be_a_function_of_the_request_and_its_number(
    server: FaultServer, client: httpx.Client
) -> None:
    """With the values of the path's names."""

    def answer(request: Request, number: int) -> Reply:
        return Fault.json({"order": request.parameters["id"], "number": number})

    server.route("GET", "/orders/{id}/state", answer)
    client.get(server.url("/orders/a%20b/state"))
    assert client.get(server.url("/orders/7/state")).json() == {"order": "7", "number": 2}
    assert client.get(server.url("/orders/7/8/state")).status_code == 404
    assert client.delete(server.url("/orders/7/state")).status_code == 405


def test_a_function_that_fails_is_an_answer_not_a_hang(
    server: FaultServer, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """500 with the reason, and a line in the log."""
    wrong: Callable[[Request, int], Any] = lambda request, number: 1 / 0  # noqa: E731
    server.route("GET", "/a", wrong)
    server.route("GET", "/b", lambda request, number: "no reply")  # type: ignore[arg-type]
    assert "ZeroDivisionError" in client.get(server.url("/a")).text
    assert "not a Reply" in client.get(server.url("/b")).text
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("reply", "status", "content_type", "body"),
    [
        (Fault.html(), 200, "text/html; charset=utf-8", b"<!doctype html>"),
        (Fault.text('{"a":1}', content_type="text/html"), 200, "text/html", b'{"a":1}'),
        (Fault.mislabelled({"a": "余额"}), 200, "application/json; charset=utf-8", b'{"a": "\xd3'),
        (Fault.empty(), 200, "application/json", b""),
        (Fault.cut_off({"items": [1, 2, 3]}), 200, "application/json", b'{"items'),
        (Fault.chunked([1, 2, 3]), 200, "application/json", b"[1, 2, 3]"),
        (Fault.status(204), 204, "text/html; charset=utf-8", b""),
        (Fault.status(599, text="odd"), 599, "text/plain; charset=utf-8", b"odd"),
    ],
)
def test_bodies_that_are_not_what_was_promised(
    server: FaultServer,
    client: httpx.Client,
    reply: Reply,
    status: int,
    content_type: str,
    body: bytes,
) -> None:
    """HTTP is sound, what it carries is not."""
    server.route("GET", "/", reply)
    answer = client.get(server.url("/"))
    assert (answer.status_code, answer.headers["content-type"]) == (status, content_type)
    assert answer.content.startswith(body)
    assert bool(answer.content) == bool(body)


def test_gbk_under_a_utf_8_label_cannot_be_decoded_as_promised(
    server: FaultServer, client: httpx.Client
) -> None:
    """The bytes are GBK."""
    server.route("GET", "/", Fault.mislabelled({"msg": "账户余额不足"}))
    content = client.get(server.url("/")).content
    assert json.loads(content.decode("gbk")) == {"msg": "账户余额不足"}
    with pytest.raises(UnicodeDecodeError):
        content.decode("utf-8")


def test_a_page_of_ten_megabytes(server: FaultServer, client: httpx.Client) -> None:
    """Complete, and HTML to the last tag."""
    server.route("GET", "/", Fault.huge_html())
    answer = client.get(server.url("/"))
    assert (answer.status_code, len(answer.content)) == (502, 10_000_000)
    assert answer.content.endswith(b"</body></html>")


# Broken transport


BROKEN = [
    (Fault.reset(), httpx.ReadError, requests.ConnectionError, "reset by peer"),
    (Fault.close(), httpx.RemoteProtocolError, requests.ConnectionError, "without"),
    (
        Fault.truncated({"items": list(range(50))}),
        httpx.RemoteProtocolError,
        requests.exceptions.ChunkedEncodingError,
        "incomplete|IncompleteRead|complete message",
    ),
    (
        Fault.broken_chunks({"items": list(range(50))}),
        httpx.RemoteProtocolError,
        requests.exceptions.ChunkedEncodingError,
        "",
    ),
    (Fault.garbage(), httpx.RemoteProtocolError, requests.ConnectionError, ""),
]
BROKEN_NAMES = ["reset", "close", "truncated", "broken_chunks", "garbage"]


@pytest.mark.parametrize(("reply", "error", "_other", "says"), BROKEN, ids=BROKEN_NAMES)
def test_httpx_meets_the_real_exception(
    server: FaultServer,
    client: httpx.Client,
    reply: Reply,
    error: type[Exception],
    _other: object,
    says: str,
) -> None:
    """One request each, and the exception the library has for it."""
    server.route("GET", "/", reply)
    with pytest.raises(error, match=f"(?i){says}"):
        client.get(server.url("/"))
    assert server.count("/") == 1


@pytest.mark.parametrize(("reply", "error", "_other", "_says"), BROKEN, ids=BROKEN_NAMES)
async def test_httpx_on_a_loop_meets_it_too(
    reply: Reply, error: type[Exception], _other: object, _says: str
) -> None:
    """The same under asyncio, with `async with`."""
    async with FaultServer() as server:
        server.route("GET", "/", reply)
        async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
            with pytest.raises(error):
                await client.get(server.url("/"))


@pytest.mark.parametrize(("reply", "_other", "error", "_says"), BROKEN, ids=BROKEN_NAMES)
def test_requests_meets_the_real_exception(
    server: FaultServer, reply: Reply, _other: object, error: type[Exception], _says: str
) -> None:
    """The same through urllib3."""
    server.route("GET", "/", reply)
    with requests.Session() as session, pytest.raises(error):
        session.get(server.url("/"), timeout=5)
    assert server.count("/") == 1


@pytest.mark.parametrize("reply", [Fault.silent(), Fault.slow(30, Fault.json({}))])
def test_silence_is_a_read_timeout_and_ends_with_the_client(
    server: FaultServer, reply: Reply
) -> None:
    """The request was read; the client gives up; the server's thread does not wait on."""
    server.route("GET", "/", reply)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(server.url("/"), timeout=0.1, trust_env=False)
    assert server.count("/") == 1


def test_an_answer_may_be_late_or_trickle(server: FaultServer, client: httpx.Client) -> None:
    """The time to the first byte, and the time of the whole."""
    server.route("GET", "/late", Fault.json([1], delay=0.1))
    server.route("GET", "/slow", Fault.trickle([1, 2, 3], size=3, every=0.05))
    began = time.monotonic()
    assert client.get(server.url("/late")).json() == [1]
    assert time.monotonic() - began >= 0.1
    began = time.monotonic()
    assert client.get(server.url("/slow")).json() == [1, 2, 3]
    assert time.monotonic() - began >= 0.1


def test_nobody_listens_at_the_refused_address(server: FaultServer, client: httpx.Client) -> None:
    """A refused connection, the same address each time."""
    assert server.refused_url == server.refused_url
    with pytest.raises(httpx.ConnectError):
        client.get(server.refused_url)


# What clients send


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000, b"431"),
    ],
)
def test_requests_that_are_broken_or_too_large_are_answered_and_ended(
    server: FaultServer, data: bytes, status: bytes
) -> None:
    """Bounded whatever a client sends."""
    server.route("POST", "/", Fault.json({}))
    assert exchange(server, data).startswith(b"HTTP/1.1 " + status)
    assert server.count() == 0


def test_bodies_come_whole_however_they_are_sent(server: FaultServer, client: httpx.Client) -> None:
    """In chunks, after 100-continue, and two requests in one packet."""
    server.route("POST", "/", Fault.json({}))
    client.post(server.url("/"), content=iter([b'{"a"', b": 1}"]))
    assert server.requests[-1].json == {"a": 1}
    answer = exchange(
        server,
        b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n1"
        b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2",
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert b"100 Continue" in answer
    assert [request.json for request in server.requests[-2:]] == [1, 2]


def test_connections_are_bounded() -> None:
    """One more than allowed is closed, the others are served."""
    with FaultServer(connections=2) as server:
        server.route("GET", "/", Fault.json({}))
        port = int(server.url().rpartition(":")[2])
        address = ("127.0.0.1", port)
        with (
            socket.create_connection(address, timeout=5) as first,
            socket.create_connection(address, timeout=5) as second,
            socket.create_connection(address, timeout=5) as third,
        ):
            assert third.recv(1) == b""
            for kept in (first, second):
                kept.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert kept.recv(8) == b"HTTP/1.1"


# Life


def test_everything_ends_with_the_block() -> None:
    """Threads, held connections, late effects and files, at once and without noise."""
    before = set(threading.enumerate())
    with FaultServer() as server:
        server.route("GET", "/", Fault.silent())
        server.route("POST", "/", Fault.effect("late", Fault.json({}), after=3600))
        httpx.post(server.url("/"), trust_env=False)
        server.tls("good")
        port = int(server.url().rpartition(":")[2])
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        for raw in held:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while server.count("/", "GET") < 5:
            time.sleep(0.001)
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert set(threading.enumerate()) <= before
    assert [raw.recv(1) for raw in held] == [b""] * 5
    for raw in held:
        raw.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    assert server.ledger.count() == 0
    server.close()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: FaultServer(host="0.0.0.0"),
        lambda: FaultServer().url(),
        lambda: FaultServer().tls(),
        lambda: FaultServer().refused_url,
        lambda: FaultServer().route("GET", "/", []),
        lambda: FaultServer().route("GET", "x", Fault.reset()),
        lambda: FaultServer().route("GET", "/", ["200"]),  # type: ignore[list-item]
        lambda: Fault.huge_html(size=10**12),
        lambda: Fault.status(200, headers={"X": "a\r\nb"}),
        lambda: Fault.status(20),
    ],
)
def test_misuse_is_said_at_once(misuse: Callable[[], object]) -> None:
    """Also any wish to listen elsewhere than on loopback."""
    with pytest.raises(UsageError):
        misuse()


# Effects


def test_an_effect_is_done_before_the_answer_is_lost(server: FaultServer) -> None:
    """The order was placed, the client knows nothing."""
    server.route("POST", "/orders", Fault.effect("order", Fault.silent()))
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(server.url("/orders"), json={"sku": "a"}, timeout=0.1, trust_env=False)
    (entry,) = server.ledger.of("order")
    assert (entry.data, entry.key) == ({"sku": "a"}, None)


def test_an_effect_may_land_after_the_client_has_gone(
    server: FaultServer, client: httpx.Client
) -> None:
    """Not there when the failure is seen, there a little later."""
    server.route("POST", "/", Fault.effect("order", Fault.status(504), data={"n": 1}, after=0.1))
    assert client.post(server.url("/")).status_code == 504
    assert server.ledger.count("order") == 0
    until = time.monotonic() + 5
    while not len(server.ledger) and time.monotonic() < until:
        time.sleep(0.005)
    assert server.ledger.of()[0].data == {"n": 1}


def test_an_honoured_key_does_the_effect_once_and_repeats_its_answer(
    server: FaultServer, client: httpx.Client
) -> None:
    """After a lost answer the script goes on; after a sound one it is repeated; others are apart."""
    order = Fault.effect("order", Fault.json({"id": 1}))
    server.route(
        "POST",
        "/orders",
        [
            Fault.status(503),
            Fault.effect("order", Fault.reset()),
            order,
            Fault.effect("order", Fault.json({"id": 2})),
        ],
        honours_key=True,
    )

    def post(key: str, body: object = "a") -> httpx.Response:
        return client.post(server.url("/orders"), json=body, headers={"Idempotency-Key": key})

    assert post("k1").status_code == 503
    with pytest.raises(httpx.ReadError):
        post("k1")
    assert [post("k1").json()["id"] for _ in range(3)] == [1, 1, 1]
    assert post("k1", "b").status_code == 422
    assert post("k2").json() == {"id": 2}
    assert [entry.key for entry in server.ledger.of("order")] == ["k1", "k2"]
    assert [entry.key for entry in server.ledger.duplicates()] == ["k2"]


def test_without_honoured_keys_every_repeat_is_another_effect(
    server: FaultServer, client: httpx.Client
) -> None:
    """The ledger shows the harm, and names it."""
    server.route("POST", "/", Fault.effect("order", Fault.json({})))
    for _ in range(3):
        client.post(server.url("/"), json=1, headers={"Idempotency-Key": "k"})
    assert server.ledger.count() == 3
    assert len(server.ledger.duplicates("order")) == 2


@pytest.mark.parametrize("honours_key", [False, True])
def test_the_ledger_is_exact_under_fifty_parallel_clients(
    server: FaultServer, honours_key: bool
) -> None:
    """Fifty clients, each sending its order three times at once: 150 effects, or 50."""
    server.route("POST", "/orders", Fault.effect("order", Fault.json({})), honours_key=honours_key)
    url = server.url("/orders")

    def send(number: int) -> int:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(
                url, json=number // 3, headers={"Idempotency-Key": f'"{number // 3}"'}, timeout=20
            )
            return answer.status_code

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(send, range(150))) == {200}
    assert server.count("/orders") == 150
    assert server.ledger.count("order") == (50 if honours_key else 150)
    assert {entry.data for entry in server.ledger.of()} == set(range(50))


async def test_many_clients_of_one_loop_are_served_together() -> None:
    """Fifty answers of 0.1 s each do not queue behind each other."""
    async with FaultServer() as server:
        server.route("GET", "/", Fault.json({}, delay=0.1))
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=20, trust_env=False, limits=limits) as client:
            began = time.monotonic()
            answers = await asyncio.gather(*(client.get(server.url("/")) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
        assert time.monotonic() - began < 4


# Credentials


def test_a_route_may_require_a_token_that_can_expire(
    server: FaultServer, client: httpx.Client
) -> None:
    """401 with the reason, and the script does not move, until the token is a valid one."""
    from failwise.faults import Tokens

    tokens = Tokens("old")
    server.route("GET", "/", [Fault.json(1), Fault.json(2)], tokens=tokens)

    def get(token: str | None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return client.get(server.url("/"), headers=headers)

    assert get("old").json() == 1
    tokens.expire("old")
    tokens.allow("new")
    refused = get("old")
    assert refused.status_code == 401
    assert "expired" in refused.json()["error_description"]
    assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert get("new").json() == 2
    tokens.revoke("new")
    assert "invalid" in get("new").json()["error_description"]
    assert get(None).status_code == 401
    assert [request.bearer for request in server.requests] == ["old", "old", "new", "new", None]
