"""`HttpTool` over real sockets: limits, redirects, secrets, loops, threads and forks."""

import asyncio
import gzip
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from loopback_site import Request, Site

from failwise.tools import send
from failwise.tools.answer import HttpAnswer
from failwise.tools.http import HttpTool
from failwise.vocabulary.spec import CallContext

Sender = Callable[..., HttpAnswer]


def send_sync(tool: HttpTool, arguments: dict[str, Any] | None = None, **context: Any) -> Any:
    call = tool.spec().call
    assert call is not None
    return call(arguments or {}, CallContext(**context))


async def in_loop(tool: HttpTool, arguments: dict[str, Any] | None = None, **context: Any) -> Any:
    call = tool.spec().call_async
    assert call is not None
    return await call(arguments or {}, CallContext(**context))


def send_in_loop(*arguments: Any, **context: Any) -> Any:
    return asyncio.run(in_loop(*arguments, **context))


@pytest.fixture(params=[send_sync, send_in_loop], ids=["sync", "async"])
def sender(request: pytest.FixtureRequest) -> Sender:
    """Each claim holds for both senders."""
    chosen: Sender = request.param
    return chosen


def test_a_good_answer(site: Site, sender: Sender) -> None:
    """Status, headers, body and place come back as plain data; the request is as declared."""
    site.default = lambda request: request.reply(b'{"id": 7}', 201, X_Request_Id="r-1")
    tool = HttpTool(
        "order",
        "POST",
        site.url + "/orders/{user}",
        idempotency_key="Idempotency-Key",
        credential="shop",
    )
    answer = sender(
        tool, {"user": "a/b c", "sku": "茶"}, idempotency_key="key-1", credential="s3cret"
    )
    assert (answer.status, answer.reason, answer.value) == (201, "Created", {"id": 7})
    assert (answer.method, answer.url) == ("POST", site.url + "/orders/a%2Fb%20c")
    assert answer.headers["x-request-id"] == "r-1"
    assert answer.expects_json
    assert not answer.too_large
    assert answer.elapsed_ms > 0
    [seen] = site.requests
    assert (seen.path, seen.body) == ("/orders/a%2Fb%20c", '{"sku":"茶"}'.encode())
    assert seen.headers["Authorization"] == "Bearer s3cret"
    assert seen.headers["Idempotency-Key"] == "key-1"
    assert seen.headers["Accept"] == "application/json"
    assert seen.headers["User-Agent"].startswith("failwise/")
    assert seen.headers["Content-Type"] == "application/json"


def test_errors_are_answers(site: Site, sender: Sender) -> None:
    """A status above 400 is an answer as well; who reads it decides."""
    site.default = lambda request: request.reply(
        b"<html>502</html>", 502, "text/html", Retry_After="3"
    )
    answer = sender(HttpTool("tool", "GET", site.url))
    assert (answer.status, answer.value) == (502, "<html>502</html>")
    assert answer.headers["retry-after"] == "3"


def test_no_content(site: Site, sender: Sender) -> None:
    """204 and HEAD have no value."""
    site.default = lambda request: request.reply(b"", 204, None)
    assert sender(HttpTool("tool", "DELETE", site.url)).value is None
    site.default = lambda request: request.reply(b'{"a":1}')
    answer = sender(HttpTool("tool", "HEAD", site.url))
    assert (answer.value, answer.expects_json) == (None, False)


@pytest.mark.parametrize("packed", [False, True])
def test_the_size_limit(site: Site, sender: Sender, packed: bool) -> None:
    """No more than the limit is kept, counted after decompression."""
    content = b"x" * 500_000
    headers = {"Content_Encoding": "gzip"} if packed else {}
    site.default = lambda request: request.reply(
        gzip.compress(content) if packed else content, **headers
    )
    tool = HttpTool("tool", "GET", site.url, max_response_bytes=1000)
    answer = sender(tool)
    assert answer.too_large
    assert len(answer.content) == 1000
    exact = HttpTool("tool", "GET", site.url, max_response_bytes=500_000)
    assert not sender(exact).too_large


def test_connection_refused(site: Site, sender: Sender) -> None:
    """httpx's exceptions pass as they are."""
    tool = HttpTool("tool", "GET", "http://127.0.0.1:1/x")
    with pytest.raises(httpx.ConnectError):
        sender(tool)


def test_the_read_timeout(site: Site, sender: Sender) -> None:
    """A silent server is left after the read timeout, which the request names."""
    site.default = site.hang
    with pytest.raises(httpx.ReadTimeout) as caught:
        sender(HttpTool("tool", "GET", site.url, read_timeout=0.1))
    assert caught.value.request.extensions["timeout"]["read"] == 0.1


def test_remaining_time_cuts_the_timeouts(site: Site, sender: Sender) -> None:
    """What is left of the attempt is the upper limit of each step."""
    site.default = site.hang
    with pytest.raises(httpx.ReadTimeout) as caught:
        sender(HttpTool("tool", "GET", site.url), until=10.1, clock=lambda: 10.0)
    limits = caught.value.request.extensions["timeout"]
    assert limits["read"] == limits["connect"] == pytest.approx(0.1)


def test_a_dripping_server(site: Site, sender: Sender) -> None:
    """Each byte in time, the whole never: the attempt ends when its time is over."""

    def drip(request: Request) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        while not site.released.wait(0.01):
            request.wfile.write(b"x")
            request.wfile.flush()

    site.default = drip
    with pytest.raises(httpx.ReadTimeout) as caught:
        sender(
            HttpTool("tool", "GET", site.url), until=time.monotonic() + 1.0, clock=time.monotonic
        )
    arrived = caught.value.answer  # type: ignore[attr-defined]
    assert arrived.status == 200
    assert arrived.content.startswith(b"x")


def test_a_cut_answer_keeps_what_arrived(site: Site, sender: Sender) -> None:
    """The exception of an answer cut short carries status, headers and the bytes so far."""

    def cut(request: Request) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(b'{"id"')
        request.close_connection = True

    site.default = cut
    with pytest.raises(httpx.RemoteProtocolError) as caught:
        sender(HttpTool("tool", "POST", site.url))
    arrived = caught.value.answer  # type: ignore[attr-defined]
    assert (arrived.status, arrived.content) == (200, b'{"id"')
    assert arrived.headers["content-length"] == "1000"


def test_redirects_of_a_read(site: Site, sender: Sender) -> None:
    """A GET follows within its host, credentials included, at most three times."""
    for number in range(6):
        site.routes[f"/{number}"] = lambda request, to=number + 1: request.reply(
            b"", 302, Location=f"/{to}"
        )
    site.routes["/end"] = lambda request: request.reply(b'"there"')
    site.routes["/3"] = lambda request: request.reply(b"", 308, Location="/end")
    tool = HttpTool("tool", "GET", site.url + "/1", credential="shop")
    answer = sender(tool, credential="s3cret")
    assert (answer.value, answer.url) == ("there", site.url + "/end")
    assert [seen.headers["Authorization"] for seen in site.requests] == ["Bearer s3cret"] * 4
    too_many = HttpTool("tool", "GET", site.url + "/0", credential="shop")
    assert sender(too_many, credential="s3cret").status == 308


def test_a_redirect_elsewhere_gets_no_secret(site: Site, other_site: Site, sender: Sender) -> None:
    """Another origin, even on the same machine, sees no credential of any kind."""
    site.default = lambda request: request.reply(b"", 302, Location=other_site.url + "/x")
    tool = HttpTool(
        "tool",
        "GET",
        site.url,
        credential="shop",
        credential_header="X-Api-Key",
        credential_format="{}",
        headers={"Cookie": "session=1", "X-Kind": "a"},
    )
    assert sender(tool, credential="s3cret").status == 200
    [seen] = other_site.requests
    assert "s3cret" not in str(seen.headers)
    assert "Cookie" not in seen.headers
    assert seen.headers["X-Kind"] == "a"


def test_a_write_follows_no_redirect(site: Site, other_site: Site, sender: Sender) -> None:
    """A redirect that answers a POST is an answer: following would send it twice."""
    site.default = lambda request: request.reply(b"", 307, Location=other_site.url)
    assert sender(HttpTool("tool", "POST", site.url)).status == 307
    assert (len(site.requests), other_site.requests) == (1, [])


@pytest.mark.parametrize(
    "location", ["ftp://x/", "http://", "http://a:b@127.0.0.1/", "http://[", ""]
)
def test_odd_redirects_are_answers(site: Site, sender: Sender, location: str) -> None:
    """A place that is no place is not followed."""
    site.default = lambda request: request.reply(b"", 302, Location=location)
    assert sender(HttpTool("tool", "GET", site.url)).status == 302


def test_cookies_are_never_kept(site: Site) -> None:
    """One tenant's session is not sent with another's call over the same client."""
    site.default = lambda request: request.reply(Set_Cookie="session=1; Path=/")
    tool = HttpTool("tool", "GET", site.url)
    send_sync(tool)
    send_sync(tool)
    assert [seen.headers["Cookie"] for seen in site.requests] == [None, None]


def test_connections_are_reused(site: Site) -> None:
    """Calls of one tool, and of others of the same host, share a connection."""
    tools = [HttpTool(name, "GET", site.url + f"/{name}") for name in ("a", "b")]
    for tool in [*tools, *tools]:
        send_sync(tool)
    assert len(site.connections) == 1

    async def four() -> None:
        for tool in [*tools, *tools]:
            await in_loop(tool)

    asyncio.run(four())
    assert len(site.connections) == 2


def test_one_tool_on_many_loops(site: Site) -> None:
    """Loops one after another, side by side in threads, and by turns in one thread."""
    tool = HttpTool("tool", "GET", site.url)
    for _ in range(3):
        assert send_in_loop(tool).status == 200
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(send_in_loop(tool).status))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert statuses == [200] * 4
    with asyncio.Runner() as first, asyncio.Runner() as second:
        for runner in (first, second, first, second):
            assert runner.run(in_loop(tool)).status == 200
    assert not [loop for loop in send._loops.by_loop if not loop.is_closed()]


def test_many_threads_share_a_client(site: Site) -> None:
    """Threads send at once over the one sync client."""
    tool = HttpTool("tool", "GET", site.url + "/{n}")
    found: list[str] = []

    def work(number: int) -> None:
        found.extend(send_sync(tool, {"n": f"{number}-{i}"}).url for i in range(5))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(found)) == len(site.requests) == 40


async def test_concurrent_calls_in_one_loop(site: Site) -> None:
    """Many calls at once on one loop each get their own answer."""
    site.default = lambda request: request.reply(b'"%s"' % request.path.encode())
    tool = HttpTool("tool", "GET", site.url + "/{n}")
    answers = await asyncio.gather(*(in_loop(tool, {"n": n}) for n in range(30)))
    assert [answer.value for answer in answers] == [f"/{n}" for n in range(30)]


async def test_cancelling_frees_the_connection(site: Site) -> None:
    """A cancelled call leaves a client that goes on working."""
    site.routes["/slow"] = site.hang
    slow, quick = HttpTool("slow", "GET", site.url + "/slow"), HttpTool("quick", "GET", site.url)
    task = asyncio.create_task(in_loop(slow))
    while not site.requests:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await in_loop(quick)).status == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_opens_its_own_connections(site: Site) -> None:
    """A child never talks over its parent's connection, and the parent's goes on."""
    tool = HttpTool("tool", "GET", site.url)
    send_sync(tool)
    assert len(site.connections) == 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if send_sync(tool).status == 200 else 2
        finally:
            os._exit(status)
    _, state = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(state) == 0
    assert len(site.connections) == 2
    send_sync(tool)
    assert len(site.connections) == 2
