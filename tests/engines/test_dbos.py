"""Calls as steps of a DBOS workflow, on SQLite and PostgreSQL, with real processes that are killed."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise.effects.identity import effect_key
from failwise.faults import Fault, FaultServer, Reply, Request
from failwise.journal.read import open_effects, opened
from tests.crash.shop import Shop

pytestmark = pytest.mark.timeout(900)  # dozens of processes, on whatever machine this is

ROOT = Path(__file__).parents[2]
CALLS: list[tuple[str, str]] = [
    ("look", ""),
    ("plain", "a"),
    ("plain", "a"),
    ("keyed", "b"),
    ("verified", "c"),
    ("final", "d"),
]
"""A tool, and the order that it places; the second ``a`` is a model that asks again."""


class Engine:
    """Gives birth to processes that run workflows of one database, and says how they died."""

    _numbers = itertools.count(1)

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self.folder = database, folder
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.engines.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FAILWISE": ""},
        )

    def live(self, order: dict[str, Any]) -> str:
        """One life: ``killed`` or ``done``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ended = str(json.loads(self._process.stdout.readline()))
        assert ended in ("killed", "done"), ended
        return ended

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()


class Job:
    """One workflow, over any number of processes."""

    def __init__(self, engine: Engine, url: str, calls: list[Any], **options: Any) -> None:
        self.engine, self.lives = engine, 0
        self.id = f"job-{os.getpid()}-{next(Engine._numbers)}"
        self.journal = engine.folder / f"{self.id}.db"
        self.results = engine.folder / f"{self.id}.json"
        self.process = engine.folder / f"{self.id}.pid"
        self.order = {
            "id": self.id,
            "database": engine.database,
            "journal": str(self.journal),
            "url": url,
            "results": str(self.results),
            "process": str(self.process),
            "calls": calls,
            "lease": 1.0,
            **options,
        }

    def live(self, kill: tuple[str, int] | None = None) -> str:
        self.lives += 1
        return self.engine.live({**self.order, "kill": kill})

    def end(self) -> list[dict[str, Any]]:
        """Let it come to its end; what the workflow gave."""
        assert self.live() == "done"
        results: list[dict[str, Any]] = self.said["results"]
        return results

    @property
    def said(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.results.read_text("utf-8"))
        return said

    def open_keys(self) -> set[str]:
        """The effects that the journal reports as open."""
        with opened(str(self.journal)) as source:
            return {effect.key for effect in open_effects(source, now=4e9)}

    def claimed_keys(self) -> set[str]:
        with opened(str(self.journal)) as source:
            return {row["key"] for row in source.rows("SELECT key FROM claims")}


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """DBOS with a file."""
    folder = tmp_path_factory.mktemp("dbos")
    engine = Engine(f"sqlite:///{folder}/dbos.sqlite", folder)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def server(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """DBOS with a server."""
    postgres.psql("CREATE DATABASE engine")
    uri = postgres.get_uri().replace("postgresql://", "postgresql+psycopg://")
    engine = Engine(uri.replace("/postgres?", "/engine?"), tmp_path_factory.mktemp("dbos"))
    yield engine
    engine.close()


def survive(engine: Engine, shop: Shop, seed: int, *kills: tuple[str, int]) -> int:
    """A job that is killed at these points and then comes to its end; how often it was killed.

    Whatever happened: no order is placed twice, none is said to be done that is not, and one that may
    have been placed is said to be so and stands in the journal as open.
    """
    names = {order: f"{seed}-{order}" for _, order in CALLS}
    calls = [(tool, {"order": names[order]} if order else {}) for tool, order in CALLS]
    job = Job(engine, shop.url, calls)
    killed = sum(job.live(kill) == "killed" for kill in kills)
    results = job.end()
    story = (seed, kills, results)
    claimed, unknown = job.claimed_keys(), job.open_keys()
    for number, (tool, order) in enumerate(CALLS, 1):
        said = results[number - 1]
        assert (said["tool"], said["call_id"], said["run_id"]) == (tool, f"call-{number}", job.id)
        if not order:
            continue
        happened, key = shop.placed(names[order]), effect_key(job.id, f"call-{number}")
        both = [each for each, (_, asked) in zip(results, CALLS, strict=True) if asked == order]
        assert happened <= 1 + (tool == "plain" and both[0]["success"]), ("done twice", story)
        if said["success"]:
            assert happened, ("said to be done, and is not", story)
        elif happened and not any(each["success"] for each in both):
            assert said["effect"] in ("unknown", "applied"), ("a lost claim", story)
        if said["code"] != "runtime.effect_open" and shop.asked(names[order]):
            assert key in claimed, ("sent without a claim", story)
        if key in unknown:
            assert said["effect"] == "unknown", ("open, and not said so", story)
        if tool == "keyed":
            assert len(shop.keys[names[order]]) == 1, ("another key", story)
    return killed


def test_a_job_that_nobody_kills(sqlite: Engine, shop: Shop) -> None:
    """All calls end as without an engine; each attempt is a step, each wait a sleep."""
    for seed in range(3):
        assert survive(sqlite, shop, seed) == 0


@pytest.mark.parametrize("kind", ["step", "sent", "answered", "recording", "recorded"])
def test_killed_on_sqlite(sqlite: Engine, shop: Shop, kind: str) -> None:
    """SIGKILL in the middle of a request, with its answer in hand, at the machine's steps, before and
    after the engine's own commits, also twice in one job."""
    points = {"step": range(1, 32, 5), "sent": range(1, 5), "answered": range(1, 5)}
    killed = 0
    for seed in points.get(kind, range(1, 8)):
        again = [(kind, 2)] if seed % 3 == 0 else []
        killed += survive(sqlite, shop, 100 + seed, (kind, seed), *again)
    assert killed >= 4


@pytest.mark.parametrize("kind", ["step", "sent", "answered", "recording"])
def test_killed_on_postgresql(server: Engine, shop: Shop, kind: str) -> None:
    """The same on a real server."""
    killed = sum(survive(server, shop, 200 + seed, (kind, seed)) for seed in (1, 2, 4))
    assert killed >= 2


def scripted(upstream: FaultServer, *replies: Any, tool: str = "plain") -> str:
    """An upstream where a tool meets just these answers."""
    upstream.route("GET" if tool == "look" else "POST", f"/{tool}", list(replies))
    return upstream.url()


def moments(upstream: FaultServer) -> list[float]:
    """When each request came, from the first one."""
    times = [request.time for request in upstream.requests]
    return [time - times[0] for time in times]


def fatal(job: Job, reply: Reply) -> Any:
    """A script: the first request that arrives is its sender's end."""

    def answer(request: Request, number: int) -> Reply:
        if number == 1:
            os.kill(int(job.process.read_text("utf-8")), signal.SIGKILL)
        return reply

    return answer


def test_a_write_in_flight_is_unknown_after_a_crash(sqlite: Engine) -> None:
    """The process dies while the order is under way: it was placed once, and is not placed again."""
    with FaultServer() as upstream:
        job = Job(sqlite, upstream.url(), [("look", {}), ("plain", {"order": "x"})])
        upstream.route("GET", "/look", Fault.json({"items": []}))
        upstream.route("POST", "/plain", fatal(job, Fault.effect("order", Fault.json({"id": 1}))))
        assert job.live() == "killed"
        look, order = job.end()
        assert look["success"]
        assert (order["code"], order["effect"]) == ("runtime.effect_open", "unknown")
        assert upstream.ledger.count("order") == upstream.count("/plain") == 1
        assert upstream.count("/look") == 1, "a finished step was repeated"
        assert job.open_keys() == {effect_key(job.id, "call-2")}


def test_a_write_in_flight_is_verified_after_a_crash(sqlite: Engine) -> None:
    """Where somebody can be asked, the order in flight turns out to be done."""
    with FaultServer() as upstream:
        job = Job(sqlite, upstream.url(), [("verified", {"order": "x"})])
        good = Fault.effect("order", Fault.json({"id": 1}))
        upstream.route("POST", "/verified", fatal(job, good))
        upstream.route("GET", "/placed/x", Fault.json({"placed": True}))
        assert job.live() == "killed"
        (said,) = job.end()
        assert said["success"]
        assert said["verified"]
        assert upstream.ledger.count("order") == upstream.count("/verified") == 1
        assert job.open_keys() == set()


def test_a_write_in_flight_with_a_key_is_sent_again(sqlite: Engine) -> None:
    """Where the upstream honours the key, the order is sent again under the same one, and placed once."""
    with FaultServer() as upstream:
        job = Job(sqlite, upstream.url(), [("keyed", {"order": "x"})])
        good = Fault.effect("order", Fault.json({"id": 1}))
        upstream.route("POST", "/keyed", fatal(job, good), honours_key=True)
        assert job.live() == "killed"
        (said,) = job.end()
        assert said["success"]
        assert upstream.count("/keyed") == 2
        assert len({request.idempotency_key for request in upstream.requests}) == 1
        assert upstream.ledger.count("order") == 1


POLICY = {"wait_ceiling": 0.3, "server": {"strategy": "linear", "base": 0.4}}


def test_delays_are_as_decided_and_attempts_go_on(sqlite: Engine) -> None:
    """0.4 s, then 0.8 s: never earlier. A process that dies in between changes neither, nor the numbers."""
    with FaultServer() as upstream:
        url = scripted(upstream, Fault.status(503), Fault.status(503), Fault.json(1), tool="look")
        job = Job(sqlite, url, [("look", {})], policy=POLICY)
        assert job.live(("recorded", 2)) == "killed"  # an attempt, and the sleep after it
        (said,) = job.end()
        assert said["success"]
        assert said["attempts"] == [1, 2, 3]
        assert said["delays"] == [0.4, 0.8]
        first, second, third = moments(upstream)
        assert second - first >= 0.4
        assert third - second >= 0.8
        assert job.said["steps"] == [
            "failwise.look", "DBOS.sleep", "failwise.look", "DBOS.sleep", "failwise.look",
        ]  # fmt: skip


def test_a_long_wait_is_the_engines(sqlite: Engine) -> None:
    """A told wait above the runtime's ceiling is slept by the workflow, over a crash, never cut short."""
    with FaultServer() as upstream:
        slow = Fault.status(429, headers={"Retry-After": "1"})
        url = scripted(upstream, slow, Fault.effect("order", Fault.json({"id": 1})))
        job = Job(sqlite, url, [("plain", {"order": "x"})], policy=POLICY)
        assert job.live(("recorded", 2)) == "killed"
        (said,) = job.end()
        assert said["success"]
        assert upstream.count("/plain") == 2
        assert moments(upstream)[1] >= 1.0
        assert upstream.ledger.count("order") == 1


def test_retries_do_not_multiply(sqlite: Engine) -> None:
    """An upstream that is down sees what the policy allows: three requests, and no more after a crash."""
    with FaultServer() as upstream:
        url = scripted(upstream, Fault.status(503), tool="look")
        job = Job(sqlite, url, [("look", {})])
        assert job.live(("recorded", 2)) == "killed"
        (said,) = job.end()
        assert said["stop"] == "retries_exhausted"
        assert upstream.count("/look") == 3


def test_what_stopped_a_run_stops_it_after_a_crash(sqlite: Engine) -> None:
    """A dead credential ends the chain; the process that comes after knows it from the kept result."""
    with FaultServer() as upstream:
        url = scripted(upstream, Fault.status(401))
        scripted(upstream, Fault.effect("order", Fault.json({"id": 1})), tool="keyed")
        job = Job(sqlite, url, [("plain", {"order": "x"}), ("keyed", {"order": "x"})])
        assert job.live(("recorded", 1)) == "killed"
        denied, aborted = job.end()
        assert denied["code"] == "auth.invalid_credential"
        assert aborted["code"] == "runtime.chain_aborted"
        assert upstream.count() == 1
