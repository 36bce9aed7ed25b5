"""One process of a fleet: threads that call, over one Valkey and one journal. Started by the tests."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from failwise.guards import default_settings, parse_settings
from failwise.guards.shared import ValkeyGuards
from failwise.runtime.clock import SystemClock
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Admit, Admitted, Release


def in_threads(number: int, work: Callable[[int], None]) -> None:
    """The same work in many threads, which begin together; the first error is raised."""
    ready = threading.Barrier(number)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            ready.wait(30)
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def call(
    configuration: str, callers: int, seconds: float, pause: float, began: Any, answers: Any
) -> None:
    """Call the tool `look` again and again, from the moment `began` is given a value.

    Puts "ready", then (calls, successes, monotonic time of each success). A first failure of another
    tool is met before: rules and profiles are loaded then, which takes its time on a busy machine.
    """
    from failwise.cli.configuration import load

    runtime = load(configuration)
    assert not runtime.call_sync("warm", {}).success
    answers.put("ready")
    while not began.value:
        time.sleep(0.01)
    begin = began.value
    done: list[float] = []
    counts = [0] * callers
    lock = threading.Lock()

    def work(index: int) -> None:
        time.sleep(max(0.0, begin - time.monotonic()))
        while time.monotonic() < begin + seconds:
            counts[index] += 1
            if runtime.call_sync("look", {}).success:
                with lock:
                    done.append(time.monotonic())
            time.sleep(pause)

    in_threads(callers, work)
    runtime.close()
    answers.put((sum(counts), len(done), done))


FIGURES = """
[shared]
slow = 10.0
connect = 10.0
[concurrency]
limit = 24
[retries]
capacity = 200
floor = 1000000
parallel_floor = 1000000
[breaker]
consecutive = 1000000
lone_attempts = 1000000
ratio = 1.0
sample = 1000
minimum = 1000
"""
"""Slots and the quota are what is stressed; nothing else refuses."""


def guards_of(url: str, namespace: str) -> ValkeyGuards:
    settings = parse_settings(FIGURES, base=default_settings())
    return ValkeyGuards(url, SystemClock(), settings, namespace=namespace)


def stress(url: str, namespace: str, journal: str, threads: int, rounds: int, answers: Any) -> None:
    """Ask, hold and give back; puts what was counted, and what the shared figures showed."""
    from failwise.journal.journal import Journal
    from failwise.vocabulary.result import ToolResult

    guards = guards_of(url, namespace)
    records = Journal(Path(journal))
    lock = threading.Lock()
    counted = {"first": 0, "retried": 0, "cured": 0, "refused": 0}
    wrong: list[dict[str, Any]] = []
    failure = Failure(Category.SERVER, "server.internal")

    def count(name: str) -> None:
        with lock:
            counted[name] += 1

    def leave(step: Admit) -> bool:
        reply = guards.admit(step)
        verdict = reply.result(60) if isinstance(reply, Future) else reply
        return isinstance(verdict, Admitted)

    def work(index: int) -> None:
        for number in range(rounds):
            run = f"{index}.{number}"
            assert leave(Admit("u", None, run, 1)), "a first attempt is never refused here"
            count("first")
            guards.release(Release("u", None, run, 1, failure))
            if leave(Admit("u", None, run, 2, failure)):
                count("retried")
                cured = (index + number) % 4 == 0
                if cured:
                    count("cured")
                guards.release(Release("u", None, run, 2, None if cured else failure))
            else:
                count("refused")
            records.put(
                ToolResult("u", True, None, call_id=f"{os.getpid()}-{run}", timestamp=time.time())
            )
            if number % 8 == 0:
                wrong.extend(
                    row
                    for row in guards.statistics()
                    if not (0 <= row["quota"] <= 200 and 0 <= row["in_flight"] <= 24)
                )

    in_threads(threads, work)
    records.close()
    assert not guards._speaker.down
    guards.close()
    answers.put((counted, wrong))
