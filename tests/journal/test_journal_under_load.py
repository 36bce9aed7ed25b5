"""One SQLite file under load: many processes, a kill, a caller who does not wait."""

import multiprocessing
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from journal_samples import OpenBorder, bad, claim_of, good

from failwise.journal import read
from failwise.journal.journal import Journal


class _Complaints:
    """Counts what the journal says at ERROR."""

    def __init__(self) -> None:
        import logging

        self.said: list[str] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: self.said.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("failwise").addHandler(handler)


def _write(place: str, name: int, count: int, start: Any, answers: Any) -> None:
    complaints = _Complaints()
    journal = Journal(place, redactor=OpenBorder())
    start.wait()
    granted = 0
    for number in range(count):
        journal.put(good(f"{name}-{number}") if number % 10 else bad(f"{name}-{number}"))
        if number % 50 == 0:
            step = claim_of(f"{name}-{number}", arguments=f"{name}-{number}")
            granted += journal.claim(step).result(60).state == "granted"
            journal.settle(step.key, "done", good())
    done = journal.flush(60)
    journal.close()
    answers.put((done, journal.written, journal.dropped, granted, complaints.said))


def test_eight_processes_write_one_file(tmp_path: Path) -> None:
    """Nothing is lost, nothing is counted twice, nobody is told that it is locked."""
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(8), context.Queue()
    place = str(tmp_path / "journal.db")
    processes = [
        context.Process(target=_write, args=(place, name, 500, start, answers)) for name in range(8)
    ]
    for process in processes:
        process.start()
    told = [answers.get(timeout=100) for _ in processes]
    for process in processes:
        process.join()
    assert told == [(True, 500, 0, 10, [])] * 8
    with read.open_reader(place) as reader:
        (total,) = reader.figures()
        assert (total["calls"], total["successes"], total["requests"]) == (4_000, 3_600, 4_400)
        assert sum(total["latency"].values()) == 4_000
        assert reader.source.rows("SELECT count(DISTINCT call_id) FROM calls")[0][0] == 4_000
        assert reader.source.rows("SELECT count(*) FROM claims WHERE state='done'")[0][0] == 80


_VICTIM = """
import sys, time
from failwise.journal.journal import Journal
from failwise.vocabulary.result import ToolResult

class Border:
    def text(self, text): return text
    def data(self, data): return data

journal = Journal(sys.argv[1], redactor=Border())
number = 0
while True:
    for _ in range(500):
        journal.put(ToolResult("search", True, 1, call_id=f"r{number}", timestamp=time.time()))
        number += 1
    if journal.flush(30):
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def test_a_kill_loses_no_acknowledged_record(tmp_path: Path) -> None:
    """Killed while it writes as fast as it can: what was flushed is there, the counts agree with the
    records, the file is whole."""
    place = tmp_path / "journal.db"
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    told = [int(victim.stdout.readline()) for _ in range(15)]
    os.kill(victim.pid, signal.SIGKILL)
    told += [
        int(line) for line in victim.stdout.read().splitlines(keepends=True) if line[-1] == "\n"
    ]
    victim.stdout.close()
    victim.wait()
    with read.open_reader(place) as reader:
        rows = reader.source.rows("SELECT call_id FROM calls")
        kept = {row[0] for row in rows}
        assert {f"r{number}" for number in range(told[-1])} <= kept
        (total,) = reader.figures()
        assert total["calls"] == len(kept) == len(rows)
    with sqlite3.connect(place) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


def test_ten_thousand_a_second_are_all_counted(tmp_path: Path) -> None:
    """Put at that pace for some seconds, every call is in the counts afterwards, and putting costs
    its caller little (`scripts/bench_journal.py` has the figures, over a minute)."""
    journal = Journal(tmp_path / "journal.db", redactor=OpenBorder(), queue=1_000_000)
    moment, costs = time.time(), []
    for second in range(3):
        begun = time.perf_counter()
        for number in range(100):
            started = time.thread_time()
            for call in range(100):
                journal.put(good(f"{second}-{number}-{call}", timestamp=moment, duration_ms=call))
            costs.append((time.thread_time() - started) / 100)
            time.sleep(max(0.0, begun + (number + 1) / 100 - time.perf_counter()))
    assert journal.flush(60)
    (total,) = read.open_reader(journal).figures()
    assert (total["calls"], journal.written, journal.dropped) == (30_000, 30_000, 0)
    journal.close()
    assert statistics.median(costs) < 50e-6  # with making the result; loaded machines vary


_FULL = """
import resource, signal, sys, time
sys.path.insert(0, sys.argv[2])
from journal_samples import OpenBorder, claim_of, good
from failwise.journal.journal import Journal
import logging
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.levelname)
logging.getLogger("failwise").addHandler(handler)

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(sys.argv[1], redactor=OpenBorder())
journal.put(good("first"))
assert journal.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
for number in range(20_000):
    journal.put(good(f"c{number}"))
assert not journal.flush(20), "the disk was not full"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert journal.claim(claim_of("1")).result(20).state == "granted"
until = time.monotonic() + 60
while not journal.flush(20) and time.monotonic() < until:
    time.sleep(0.1)
print(journal.written, journal.dropped, said.count("ERROR"))
"""


def test_a_full_disk_costs_nothing_and_heals(tmp_path: Path) -> None:
    """A real one: the system refuses to let the file grow. Records wait, it is said once; with room
    again every record is written."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "journal.db"), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout == "20001 0 1\n", done.stderr
