"""Claims: durable before they are answered, granted once, over threads, forks and processes."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, StandingClock, claim_of, good

from failwise.journal import read
from failwise.journal.journal import Journal, JournalUnavailable
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.steps import Claimed

Make = Callable[..., Journal]


def ask(journal: Journal, call: str, **options: Any) -> Claimed:
    return journal.claim(claim_of(call, **options), "me", 60).result(10)


def test_a_claim_is_granted_once_and_its_answer_kept(make: Make) -> None:
    """In flight while it is sent, done with its result after, also for the next process."""
    journal = make()
    step = claim_of("1")
    assert ask(journal, "1").state == "granted"
    second = ask(journal, "1")
    assert second.state == "in_flight"
    assert second.wait is not None
    assert 0 < second.wait <= 60
    journal.settle(step.key, "done", good("1", run_id="run"))
    journal.close()
    third = ask(make(), "1")
    assert third.state == "done"
    assert third.result is not None
    assert (third.result.success, third.result.value, third.result.call_id) == (True, 1, "1")


def test_other_arguments_under_the_same_key_are_refused(make: Make) -> None:
    """The same call id never means two things."""
    journal = make()
    ask(journal, "1")
    assert ask(journal, "1", arguments="b").state == "conflict"


def test_the_same_order_under_a_new_call_id_is_refused_while_open(make: Make) -> None:
    """Only within the run, only for the same arguments, only until it is settled."""
    journal = make()
    first = claim_of("1")
    ask(journal, "1")
    journal.settle(first.key, "unknown")
    answer = ask(journal, "2")
    assert (answer.state, answer.key) == ("open", first.key)
    assert ask(journal, "3", arguments="b").state == "granted"
    assert ask(journal, "4", run="other").state == "granted"
    assert read.settle(journal, first.key, "not_done").state == "unknown"
    assert ask(journal, "2").state == "granted"


def test_a_lease_that_ran_out_is_an_unknown(make: Make) -> None:
    """Nobody needs to sweep; its holder can still say that it happened."""
    clock = StandingClock()
    journal = make(clock=clock)
    ask(journal, "1")
    clock.now += 61
    assert ask(journal, "1").state == "unknown"
    (open_effect,) = read.open_effects(journal, now=clock.now)
    assert (open_effect.tool, open_effect.arguments) == ("order", {"what": "a"})
    journal.settle(claim_of("1").key, "done", good())
    assert ask(journal, "1").state == "done"
    assert read.open_effects(journal, now=clock.now) == []


def test_not_done_may_be_claimed_again(make: Make) -> None:
    """An earlier holder, coming late, cannot free what somebody else is sending now."""
    clock = StandingClock()
    journal, other = make(clock=clock), make(clock=clock)
    key = claim_of("1").key
    ask(journal, "1")
    clock.now += 61
    other.resolve(key, "not_done")
    assert ask(other, "1").state == "granted"
    journal.settle(key, "not_done")
    journal.settle(key, "unknown")
    journal.flush()
    assert ask(other, "1").state == "in_flight"
    journal.settle(key, "done", good())
    journal.flush()
    other.settle(key, "not_done")
    other.flush()
    assert ask(other, "1").state == "done"


def test_a_person_cannot_overrule_what_is_known(make: Make, tmp_path: Path) -> None:
    """Settling is for open effects; the message says why not."""
    journal = make()
    key = claim_of("1").key
    ask(journal, "1")
    with pytest.raises(UsageError, match="being sent"):
        read.settle(journal, key, "not_done")
    journal.settle(key, "done")
    journal.flush()
    with pytest.raises(UsageError, match="done"):
        read.settle(tmp_path / "journal.db", key, "not_done")
    with pytest.raises(UsageError, match="no effect"):
        read.settle(journal, "nothing", "done")
    with pytest.raises(UsageError, match="one of"):
        journal.settle(key, "maybe")


def test_what_was_prevented_is_counted(make: Make) -> None:
    """Each answer that kept an effect from happening twice; waiting is none."""
    journal = make()
    ask(journal, "1")
    ask(journal, "1")
    ask(journal, "1", arguments="b")
    journal.settle(claim_of("1").key, "done")
    ask(journal, "1")
    rows = journal.rows("SELECT state FROM prevented ORDER BY id")
    assert [row["state"] for row in rows] == ["conflict", "done"]


def test_claims_that_come_together_share_commits(make: Make) -> None:
    """Five hundred at once are all granted; asked again, none is."""
    journal = make()
    for expected in ("granted", "in_flight"):
        futures = [journal.claim(claim_of(str(n), arguments=str(n)), "me", 60) for n in range(500)]
        assert {future.result(20).state for future in futures} == {expected}


def test_one_key_from_many_threads_is_granted_once(make: Make) -> None:
    """Whoever is second is told."""
    journal = make()
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda _: ask(journal, "1").state, range(64)))
    assert states.count("granted") == 1
    assert set(states) == {"granted", "in_flight"}


def test_a_cancelled_claim_claims_nothing(make: Make) -> None:
    """Cancelled before it is written, it leaves no row, and the writer lives."""
    journal = make()
    with journal._writer.door:  # the writer stands
        blocker = journal.claim(claim_of("0"))
        time.sleep(0.05)
        future = journal.claim(claim_of("1", arguments="b"))
        cancelled = future.cancel()
    assert cancelled
    assert blocker.result(5).state == "granted"
    assert ask(journal, "1", arguments="b").state == "granted"


def test_a_storm_of_cancellations(make: Make) -> None:
    """Cancelled at random moments: a future that was cancelled left no claim, one that was
    answered did; the writer lives."""
    journal = make()
    chance = random.Random(7)
    futures: dict[str, Future[Claimed]] = {}
    for number in range(400):
        call = str(number)
        futures[call] = journal.claim(claim_of(call, arguments=call))
        if chance.random() < 0.7:
            end = time.perf_counter() + chance.random() * 0.001
            while time.perf_counter() < end:
                pass
            futures[call].cancel()
    assert journal.flush(20)
    kept = {row["call_id"] for row in journal.rows("SELECT call_id FROM claims")}
    assert all(future.done() for future in futures.values())
    assert kept == {call for call, future in futures.items() if not future.cancelled()}
    assert 0 < len(kept) < 400


def test_what_cannot_be_claimed_must_not_be_sent(make: Make, tmp_path: Path) -> None:
    """While the file is locked a claim is refused with the reason; then it works again."""
    import sqlite3

    journal = make(lock_timeout=0.01)
    ask(journal, "0")
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match="locked"):
        ask(journal, "1")
    journal.settle(claim_of("0").key, "done")
    assert not journal.flush()
    other.execute("ROLLBACK")
    other.close()
    assert ask(journal, "1").state == "granted"
    assert ask(journal, "0").state == "done"


def test_a_full_disk_refuses_claims_and_heals(make: Make) -> None:
    """Records wait, claims are refused, and both work once there is room."""
    journal = make()
    ask(journal, "0")
    assert journal.flush()
    with journal._writer.door:
        connection = journal._writer.store.connection()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")
    answers: list[BaseException | None] = []
    for number in range(200):
        step = claim_of(f"x{number}", arguments=str(number))
        step.arguments = {"long": "z" * 3000}
        answers.append(journal.claim(step).exception(10))
        if answers[-1] is not None:
            break
    assert isinstance(answers[-1], JournalUnavailable)
    assert "full" in str(answers[-1])
    assert ask(journal, "1").state == "granted"  # the file was opened anew, without the bound


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork_child_and_parent_both_claim(make: Make, tmp_path: Path) -> None:
    """The writer does not follow a fork; the child gets its own, and neither disturbs the other."""
    journal = make()
    ask(journal, "before")
    for number in range(50):
        journal.put(good(f"parent-{number}"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            states = [ask(journal, c).state for c in ("before", "child")]
            journal.put(good("child"))
            code = 0 if states == ["in_flight", "granted"] and journal.flush(10) else 2
        finally:
            os._exit(code)
    assert ask(journal, "parent", arguments="b").state == "granted"
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert ask(journal, "child").state == "in_flight"
    ids = [row["call_id"] for row in journal.rows("SELECT call_id FROM calls")]
    assert len(ids) == len(set(ids)) == 51


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks_under_load(make: Make) -> None:
    """Forked while claims and records stream: every child claims, the parent goes on."""
    journal = make()
    ending = threading.Event()

    def load() -> None:
        number = 0
        while not ending.is_set():
            journal.put(good())
            journal.claim(claim_of(f"load-{number}", arguments=f"{number}")).result(10)
            number += 1

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for number in range(8):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    fresh = ask(journal, f"child-{number}", arguments=f"c{number}").state
                    code = 0 if fresh == "granted" else 2
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        ending.set()
        thread.join()
    assert journal.rows("PRAGMA integrity_check")[0][0] == "ok"


def _race(place: str, start: Any, answers: Any) -> None:
    journal = Journal(place, redactor=OpenBorder())
    start.wait()
    states = [journal.claim(claim_of(str(n), arguments=str(n))).result(20).state for n in range(30)]
    answers.put(states)
    journal.close()


def test_of_several_processes_exactly_one_is_granted(tmp_path: Path) -> None:
    """Four processes, thirty keys, one file that is made while they race."""
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(4), context.Queue()
    place = str(tmp_path / "journal.db")
    processes = [context.Process(target=_race, args=(place, start, answers)) for _ in range(4)]
    for process in processes:
        process.start()
    all_states = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    for states in zip(*all_states, strict=True):
        assert sorted(states) == ["granted", "in_flight", "in_flight", "in_flight"]


_VICTIM = """
import sys, threading, time
from failwise.journal.journal import Journal
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim

class Border:
    def text(self, text): return text
    def data(self, data): return data

journal = Journal(sys.argv[1], redactor=Border())

def work(name):
    number = 0
    while True:
        call = f"{name}-{number}"
        journal.put(ToolResult("search", True, 1, timestamp=time.time()))
        journal.claim(Claim(f"key-{call}", call, "run", "order", call, {})).result()
        sys.stdout.write(call + "\\n")
        sys.stdout.flush()
        number += 1

for name in "abcd":
    threading.Thread(target=work, args=(name,), daemon=True).start()
threading.Event().wait()
"""


def test_a_kill_loses_no_acknowledged_claim(make: Make, tmp_path: Path) -> None:
    """Killed under load, every claim that was answered is in the file, and reads as open later."""
    place = tmp_path / "journal.db"
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    told = [victim.stdout.readline().strip() for _ in range(300)]
    os.kill(victim.pid, signal.SIGKILL)
    rest = victim.stdout.read().splitlines(keepends=True)
    told += [line.strip() for line in rest if line.endswith("\n")]
    victim.stdout.close()
    victim.wait()
    journal = make()
    kept = {row["call_id"] for row in journal.rows("SELECT call_id FROM claims")}
    assert set(told) <= kept
    assert len(told) >= 300
    assert journal.rows("PRAGMA integrity_check")[0][0] == "ok"


def test_the_exit_of_the_interpreter_flushes(tmp_path: Path) -> None:
    """What was put right before the end of a script is there afterwards."""
    place = tmp_path / "journal.db"
    script = _VICTIM.partition("def work")[0] + (
        "for n in range(2000): journal.put(ToolResult('search', True, 1, timestamp=time.time()))\n"
        "journal.claim(Claim('k', 'f', 'run', 'order', 'c', {})).result()\n"
        "journal.settle('k', 'done')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(place)], check=True)
    with read.opened(place) as source:
        assert source.rows("SELECT count(*) FROM calls")[0][0] == 2000
        assert source.rows("SELECT state FROM claims")[0][0] == "done"
