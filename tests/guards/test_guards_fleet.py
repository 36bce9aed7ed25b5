"""Several processes with many threads over one Valkey: real sockets, real processes, exact counts."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise.faults import Fault, FaultServer, Reply
from tests.guards import fleet

PROCESSES = 4
THREADS = 16

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@contextlib.contextmanager
def running(target: Callable[..., None], each: list[tuple[Any, ...]], method: str) -> Iterator[Any]:
    """Processes with these arguments; the queue of their answers."""
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    processes = [context.Process(target=target, args=(*args, answers)) for args in each]
    for process in processes:
        process.start()
    try:
        yield answers
    finally:
        for process in processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                process.join()


def begin(began: Any, answers: Any) -> float:
    """Wait until all processes are ready, and let them begin; the moment of it."""
    for _ in range(PROCESSES):
        assert answers.get(timeout=60) == "ready"
    began.value = time.monotonic() + 0.1
    return float(began.value)


def configuration(folder: Path, server: FaultServer, valkey: str, namespace: str) -> str:
    """A runtime of one tool, with short waits; each process has the same file."""
    file = folder / f"{namespace}.toml"
    file.write_text(
        f"""
[journal]
path = "{namespace}.db"
[guards]
url = "{valkey}"
namespace = "{namespace}"
[guards.shared]
slow = 10.0
connect = 10.0
[guards.breaker]
open_seconds = 0.5
open_limit = 0.5
[policy.server]
base = 0.02
[policy.rate_limit]
base = 0.02
[tools.look]
url = "{server.url("/look")}"
[tools.warm]
url = "{server.url("/warm")}"
""",
        "utf-8",
    )
    return str(file)


def test_sixty_four_callers_in_four_processes_meet_an_outage_and_its_end(
    tmp_path: Path, valkey: str
) -> None:
    """At most 1.1 requests a call while every answer is a 500; well again within a probe interval."""
    recovers: list[float] = [float("inf")]

    def answer(_request: Any, _number: int) -> Reply:
        well = time.monotonic() >= recovers[0]
        return Fault.json({"ok": True}) if well else Fault.status(500, json={"error": "broken"})

    with FaultServer() as server:
        server.route("GET", "/look", [answer])
        file = configuration(tmp_path, server, valkey, "outage")
        began = multiprocessing.get_context("spawn").Value("d", 0.0)
        each = [(file, THREADS, 4.0, 0.05, began)] * PROCESSES
        with running(fleet.call, each, "spawn") as answers:
            recovers[0] = begin(began, answers) + 2.0
            time.sleep(max(0.0, recovers[0] - time.monotonic()))
            sent = server.count("/look")
            counts = [answers.get(timeout=60) for _ in range(PROCESSES)]
    calls = sum(calls for calls, _, _ in counts)
    done = sorted(moment for _, _, moments in counts for moment in moments)
    outage_calls = calls * 2.0 / 4.0
    assert sent >= 5, "the outage was met"
    assert sent <= 1.1 * outage_calls
    assert sent <= 1.1 * PROCESSES * THREADS, "a first call of each, and not more"
    assert done[0] - recovers[0] < 0.5 + 2.0, (
        "one opening of the circuit, and a busy machine's delay"
    )
    assert len(done) > PROCESSES * THREADS


def test_a_told_wait_holds_all_processes(tmp_path: Path, valkey: str) -> None:
    """One 429 with Retry-After: nobody's request, from any process, comes before its end."""
    told: list[float] = []
    arrived: list[float] = []
    tells: list[float] = [float("inf")]

    def answer(_request: Any, _number: int) -> Reply:
        now = time.monotonic()
        arrived.append(now)
        if not told and now > tells[0]:
            told.append(now)
            return Fault.status(429, json={"error": "slow down"}, retry_after=2)
        return Fault.json({"ok": True})

    with FaultServer() as server:
        server.route("GET", "/look", [answer])
        file = configuration(tmp_path, server, valkey, "told")
        began = multiprocessing.get_context("spawn").Value("d", 0.0)
        each = [(file, 4, 3.5, 0.02, began)] * PROCESSES
        with running(fleet.call, each, "spawn") as answers:
            tells[0] = begin(began, answers) + 0.5
            for _ in range(PROCESSES):
                answers.get(timeout=60)
    # What had left before the answer was read is no early request: that much time is allowed it.
    early = [at - told[0] for at in arrived if told[0] + 0.6 < at < told[0] + 2.0]
    after = [at for at in arrived if at >= told[0] + 2.0]
    assert early == []
    assert len(after) > 20


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_threads_and_processes_neither_lose_a_slot_nor_break_the_quota(
    method: str, tmp_path: Path, valkey: str
) -> None:
    """64 threads in 4 processes, one journal: the quota stays in its bounds, every count is exact."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs fork")
    namespace, rounds = f"stress-{method}", 8
    journal = tmp_path / "journal.db"
    each = [(valkey, namespace, str(journal), THREADS, rounds)] * PROCESSES
    with running(fleet.stress, each, method) as answers:
        answered = [answers.get(timeout=90) for _ in range(PROCESSES)]
    assert [row for _, wrong in answered for row in wrong] == []
    total = {name: sum(counted[name] for counted, _ in answered) for name in answered[0][0]}
    calls = PROCESSES * THREADS * rounds
    assert total["first"] == calls
    assert total["retried"] + total["refused"] == calls
    guards = fleet.guards_of(valkey, namespace)
    (row,) = guards.statistics()
    guards.close()
    assert (row["in_flight"], row["waiting"], row["retrying"]) == (0, 0, 0)
    lost = total["retried"] - total["cured"]
    assert row["quota"] == 200 - 14 * lost
    assert total["refused"] > 0
    assert _recorded(journal) == calls


def _recorded(journal: Path) -> int:
    import sqlite3

    with contextlib.closing(sqlite3.connect(journal)) as database:
        (number,) = database.execute("SELECT count(*) FROM calls").fetchone()
        return int(number)
