"""What the dashboard's pages cost on a large journal, asked for the first time, and with many viewers.

    python scripts/bench_dashboard.py fill    PLACE --calls 5000000   made-up calls and effects
    python scripts/bench_dashboard.py pages   PLACE                   each page and filter, cold
    python scripts/bench_dashboard.py viewers PLACE --viewers 100     all at once, over sockets

PLACE is a path or URL of a journal, as for bench_report.py, which makes the calls. *Cold* is an answer
that nobody asked for before; the operating system may know the file. `pages` prints milliseconds of
processor and wall time, the best of some rounds, and how much came back.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn
from bench_report import BEGIN, fill, own_server

from failwise.dashboard import app
from failwise.journal.reader import open_reader
from failwise.journal.rollups import DAY

PERIODS = ("24h", "7d", "30d")
PAGES = ("/", "/tools", "/upstreams", "/clusters", "/calls")
FILTERS: tuple[dict[str, str], ...] = (
    {}, {"tool": "tool_07"}, {"upstream": "api3.example"}, {"category": "network"},
    {"code": "network.read_timeout"},
)  # fmt: skip
_CLAIM = (
    "INSERT INTO claims (key, run_id, fingerprint, tool, call_id, state, owner, claimed_at, lease_until,"
    " generation, settled_at, arguments, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PREVENTED = "INSERT INTO prevented (at, key, run_id, tool, call_id, state) VALUES (?,?,?,?,?,?)"


def add_effects(place: str, calls: int, days: int) -> None:
    """An effect for every twentieth call: all but a few are settled."""
    statements: list[tuple[str, tuple[Any, ...]]] = []
    with open_reader(place) as reader:
        for number in range(20, calls, 20):
            at = BEGIN + days * DAY * number / calls
            state = "unknown" if number % 200_000 == 0 else "done"
            key, run, call = f"{number:032x}", f"r{number // 8}", f"c{number}"
            settled = at + 1 if state == "done" else None
            claim = (
                key,
                run,
                "f" * 32,
                "tool_07",
                call,
                state,
                "me",
                at,
                at + 60,
                1,
                settled,
                "{}",
                "{}",
            )
            statements.append((_CLAIM, claim))
            if number % 1_000 == 0:
                statements.append((_PREVENTED, (at, key, run, "tool_07", call, "done")))
            if len(statements) >= 20_000 or number + 20 >= calls:
                reader.source.write([one for one in statements if one[0] == _CLAIM])
                reader.source.write([one for one in statements if one[0] == _PREVENTED])
                statements = []


def end_of(place: str) -> float:
    """A moment in the last day of the calls, which is none of the easy ones."""
    with open_reader(place) as reader:
        return float(reader.calls(None, None, 1)[0]["started"]) - 8.6 * 3_600


class Client:
    """Asks an ASGI application without a network."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def get(self, path: str, query: str, **headers: str) -> tuple[int, int]:
        """Status and length of an answer."""
        told = {"host": "localhost", **headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "root_path": "", "headers": [(k.encode(), v.encode()) for k, v in told.items()],
            "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        found = [0, 0]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found[0] = message["status"]
            else:
                found[1] += len(message.get("body", b""))

        await self._application(scope, receive, send)
        return found[0], found[1]


def addresses(place: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Every page, in every period, with every filter; and single things."""
    for period in PERIODS:
        for page in PAGES:
            for one in FILTERS:
                yield page, {"period": period, **one}
    with open_reader(place) as reader:
        call = next(reader.failures(None, None, 1))
        mark = f"{call['started']!r}-{call['id']}"
    for period in PERIODS:
        yield "/cluster", {"id": call["fingerprint"], "period": period}
        yield "/calls", {"period": period, "success": "no"}
        yield "/calls", {"period": period, "text": "nothing of the kind"}
        yield "/calls", {"period": period, "effect": "unknown"}
        yield "/calls", {"period": period, "verified": "yes"}
        yield "/calls", {"period": period, "before": mark}
    yield "/calls", {"run": call["run_id"], "period": "all"}
    yield "/", {"period": "all"}
    yield "/call", {"id": call["call_id"], "run": call["run_id"], "at": f"{call['started']:.6f}"}
    yield "/call", {"id": call["call_id"]}
    yield "/run", {"id": call["run_id"]}
    yield "/effects", {}
    yield "/policy", {}


def worked(postmaster: int | None) -> float:
    """Processor seconds of this process, and of the server's where PostgreSQL is of our own."""
    spent = time.process_time()
    for stat in Path("/proc").glob("[0-9]*/stat") if postmaster else ():
        with suppress(OSError):
            after = stat.read_text().rpartition(")")[2].split()
            if int(after[1]) == postmaster:
                spent += (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")
    return spent


async def pages(place: str, rounds: int, only: str, postmaster: int | None) -> None:
    now = end_of(place)
    with open_reader(place) as reader:
        while reader.sum_up():
            pass
    client = Client(app(place, clock=lambda: now))
    await client.get("/policy", "")
    slow = []
    for path, parameters in addresses(place):
        shown = f"{path} {' '.join(f'{k}={v}' for k, v in parameters.items())}"[:70]
        if only not in shown:
            continue
        works, walls, status, length = [], [], 0, 0
        for number in range(rounds):
            query = urlencode({**parameters, "again": str(number)})
            work, wall = worked(postmaster), time.perf_counter()
            status, length = await client.get(path, query)
            works.append((worked(postmaster) - work) * 1000)
            walls.append((time.perf_counter() - wall) * 1000)
        print(
            f"{shown:70} {status} cpu {min(works):6.0f} ms  wall {min(walls):6.0f} ms"
            f"  {length / 1024:5.0f} kB",
            flush=True,
        )
        if min(works) > 200:
            slow.append(shown)
    print(f"{len(slow)} pages took more than 200 ms of processor time")


# -- many viewers ----------------------------------------------------------------------------------


async def ask(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One request over a socket of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{lines}\r\n"
    writer.write(head.encode())
    front, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    first, *rest = front.decode("latin-1").split("\r\n")
    told = dict(line.lower().split(": ", 1) for line in rest)
    return int(first.split(" ")[1]), told, body


async def watch(port: int) -> None:
    """A browser that waits for changes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n")
    try:
        while await reader.read(65_536):
            pass
    finally:
        writer.close()


def start(words: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


async def viewers(place: str, count: int) -> None:
    now = end_of(place)
    words = [sys.executable, __file__, "serve", place, "--now", repr(now)]
    with start(words) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            await ask(port, "/policy")
            live = [asyncio.ensure_future(watch(port)) for _ in range(count)]
            await asyncio.sleep(1)
            marks: dict[str, str] = {}
            for turn in ("first", "second", "third"):
                await asyncio.sleep(2.5)
                spent = _worked(server.pid)
                taken: list[float] = []
                statuses: dict[int, int] = {}

                async def view(
                    path: str,
                    taken: list[float] = taken,
                    statuses: dict[int, int] = statuses,
                ) -> None:
                    known = {"cookie": "failwise_visitor=one-of-them-and-all-the-same"}
                    if path in marks:
                        known["if-none-match"] = marks[path]
                    began = time.perf_counter()
                    status, told, _ = await ask(port, path, **known)
                    taken.append((time.perf_counter() - began) * 1000)
                    statuses[status] = statuses.get(status, 0) + 1
                    if "etag" in told:
                        marks[path] = told["etag"]

                began = time.perf_counter()
                for path in ("/?period=7d", "/calls", "/upstreams"):
                    await asyncio.gather(*(view(path) for _ in range(count)))
                whole = time.perf_counter() - began
                print(
                    f"{turn}: {len(taken)} pages for {count} viewers in {whole:.2f} s; median"
                    f" {statistics.median(taken):.0f} ms, 99 % {sorted(taken)[-len(taken) // 100]:.0f}"
                    f" ms, server's processor {(_worked(server.pid) - spent) * 1000:.0f} ms, {statuses}",
                    flush=True,
                )
            for one in live:
                one.cancel()
        finally:
            server.terminate()


def _worked(pid: int) -> float:
    """Processor seconds of a process."""
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def serve(place: str, now: float) -> None:
    bound = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(bound.getsockname()[1], flush=True)
    config = uvicorn.Config(app(place, clock=lambda: now), log_level="error", access_log=False)
    asyncio.run(uvicorn.Server(config).serve([bound]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("fill", "pages", "viewers", "serve"))
    parser.add_argument("place")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="pages whose line holds this")
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--now", type=float, default=0.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    place, postmaster = arguments.place, None
    if place.startswith("own:"):
        folder, place = Path(place[4:]), own_server(place[4:])
        postmaster = int((folder / "postmaster.pid").read_text().split()[0])
    if arguments.what == "fill":
        fill(place, arguments.calls, arguments.days)
        add_effects(place, arguments.calls, arguments.days)
    elif arguments.what == "pages":
        asyncio.run(pages(place, arguments.rounds, arguments.only, postmaster))
    elif arguments.what == "viewers":
        asyncio.run(viewers(place, arguments.viewers))
    else:
        serve(place, arguments.now)


if __name__ == "__main__":
    main()
