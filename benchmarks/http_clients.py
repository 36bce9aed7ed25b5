"""What a request through a runtime costs beside the bare client, over loopback.

``python benchmarks/http_clients.py``: processor time of this process per request (the server is another
process), the median of several rounds that take turns; and how many requests a storm and a permanent
fault cost.
"""

import asyncio
import multiprocessing
import ssl
import statistics
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import requests

import failwise
from failwise.connect import aiohttp as connect_aiohttp
from failwise.connect import httpx as connect_httpx
from failwise.connect import httpx2 as connect_httpx2
from failwise.connect import requests as connect_requests
from failwise.faults import Fault, FaultServer
from failwise.testing import SteppingClock

ROUNDS, REQUESTS = 5, 100
TRUST = ssl.create_default_context()
Round = Callable[[str, str], float]


def serve(address: Any, end: Any) -> None:
    with FaultServer() as server:
        server.route("GET", "/items", Fault.json({"items": list(range(50))}))
        server.route("POST", "/items", Fault.json({"made": 1}))
        server.route("GET", "/down", Fault.status(503))
        server.route("GET", "/gone", Fault.status(410))
        address.put(server.url())
        end.wait()


def by_httpx(library: Any, connect: Any, runtime: Any) -> Round:
    transport = library.HTTPTransport(verify=TRUST)
    if runtime is not None:
        transport = connect.transport(runtime, wrapped=transport)
    client = library.Client(transport=transport)

    def round_(method: str, url: str) -> float:
        began = time.process_time()
        for _ in range(REQUESTS):
            client.request(method, url, json=BODY[method])
        return time.process_time() - began

    return round_


def by_async_httpx(library: Any, connect: Any, runtime: Any) -> Round:
    transport = library.AsyncHTTPTransport(verify=TRUST)
    if runtime is not None:
        transport = connect.async_transport(runtime, wrapped=transport)
    client = library.AsyncClient(transport=transport)
    runner = asyncio.Runner()

    async def many(method: str, url: str) -> float:
        began = time.process_time()
        for _ in range(REQUESTS):
            await client.request(method, url, json=BODY[method])
        return time.process_time() - began

    return lambda method, url: runner.run(many(method, url))


def by_requests(library: Any, connect: Any, runtime: Any) -> Round:
    session = library.Session()
    session.trust_env = False
    if runtime is not None:
        connect.attach(session, runtime)

    def round_(method: str, url: str) -> float:
        began = time.process_time()
        for _ in range(REQUESTS):
            session.request(method, url, json=BODY[method])
        return time.process_time() - began

    return round_


def by_aiohttp(library: Any, connect: Any, runtime: Any) -> Round:
    runner = asyncio.Runner()
    given = {} if runtime is None else {"middlewares": [connect.middleware(runtime)]}
    kept: list[Any] = []

    async def many(method: str, url: str) -> float:
        if not kept:
            kept.append(library.ClientSession(**given))
        began = time.process_time()
        for _ in range(REQUESTS):
            async with kept[0].request(method, url, json=BODY[method]) as answer:
                await answer.read()
        return time.process_time() - began

    return lambda method, url: runner.run(many(method, url))


BODY: dict[str, Any] = {"GET": None, "POST": {"sku": "A-1", "count": 2}}


def main() -> None:
    """Print the table."""
    started = multiprocessing.get_context("spawn")
    address, end = started.Queue(), started.Event()
    process = started.Process(target=serve, args=(address, end), daemon=True)
    process.start()
    root = address.get(timeout=60)
    ways: dict[str, tuple[Any, Any, Any]] = {
        "httpx": (by_httpx, httpx, connect_httpx),
        "httpx async": (by_async_httpx, httpx, connect_httpx),
        "httpx2": (by_httpx, httpx2, connect_httpx2),
        "httpx2 async": (by_async_httpx, httpx2, connect_httpx2),
        "requests": (by_requests, requests, connect_requests),
        "aiohttp": (by_aiohttp, aiohttp, connect_aiohttp),
    }
    runtime = failwise.Runtime(":memory:")
    print(
        f"{'client':14} {'':5} {'bare':>8} {'through':>8} {'ratio':>6}  (µs of processor time a request)"
    )
    for name, (way, library, connect) in ways.items():
        bare, through = way(library, connect, None), way(library, connect, runtime)
        for method in ("GET", "POST"):
            url = f"{root}/items"
            bare(method, url), through(method, url)
            pairs = [(bare(method, url), through(method, url)) for _ in range(ROUNDS)]
            ratio = statistics.median(after / before for before, after in pairs)
            one, other = (min(pair[at] for pair in pairs) * 1e6 / REQUESTS for at in (0, 1))
            print(f"{name:14} {method:5} {one:8.0f} {other:8.0f} {ratio:6.2f}")
    for name, (way, library, connect) in ways.items():
        print(f"{name:14} {storm(way, library, connect, root)}")
    end.set()
    process.join(10)


def storm(way: Any, library: Any, connect: Any, root: str) -> str:
    """Requests sent for each call: of an upstream that is down, and of a permanent fault."""
    told = []
    for path in ("/down", "/gone"):
        sent: list[int] = []
        with failwise.Runtime(":memory:", clock=SteppingClock()) as runtime:
            runtime.on_result(lambda result, sent=sent: sent.append(result.sent))
            ask = way(library, connect, runtime)
            while len(sent) < REQUESTS:
                try:
                    ask("GET", f"{root}{path}")
                except Exception:  # declined: the circuit is open
                    continue
        told.append(f"{path} {sum(sent) / len(sent):.2f} requests a call")
    return ", ".join(told)


if __name__ == "__main__":
    main()
