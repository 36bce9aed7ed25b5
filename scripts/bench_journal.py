"""What the journal costs and bears: put, claims, a sustained load, a report over many calls.

    python scripts/bench_journal.py                 # all, SQLite; a minute of load
    python scripts/bench_journal.py --seconds 5     # shorter
    python scripts/bench_journal.py --url postgresql://me@host/db?schema=bench

Figures are of this machine at this moment; the ratios and the rows scanned are not.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from failwise.journal.journal import Journal
from failwise.journal.latency import bucket_of
from failwise.journal.reader import Filter, open_reader
from failwise.journal.rollups import ALL, COUNTERS, DAY, HOUR
from failwise.testing.journal_samples import claim_of, good


def put(journal: Journal) -> None:
    """The caller's side of recording, in bursts that the writer can follow."""
    results = [good(f"c{number}") for number in range(2_000)]
    costs: list[float] = []
    for _ in range(20):
        for result in results:
            started = time.perf_counter_ns()
            journal.put(result)
            costs.append(time.perf_counter_ns() - started)
        journal.flush(60)
    costs.sort()
    empty = statistics.median(_empty() for _ in range(10_000))
    print(f"put: median {(costs[len(costs) // 2] - empty) / 1e3:.2f} µs, "
          f"p99 {(costs[len(costs) * 99 // 100] - empty) / 1e3:.2f} µs")  # fmt: skip


def _empty() -> int:
    started = time.perf_counter_ns()
    return time.perf_counter_ns() - started


def claims(journal: Journal, count: int = 500) -> None:
    """One durable claim after the other, and the same while records stream in."""
    for title in ("claim", "claim, while 2,000 records/s are written"):
        costs: list[float] = []
        for number in range(count):
            if "while" in title:
                for call in range(4):
                    journal.put(good(f"r{number}-{call}", timestamp=time.time()))
                time.sleep(0.002)
            step = claim_of(f"{title}-{number}-{time.time_ns()}", arguments=f"{time.time_ns()}")
            started = time.perf_counter()
            journal.claim(step).result(30)
            costs.append(time.perf_counter() - started)
        costs.sort()
        print(
            f"{title}: median {costs[count // 2] * 1e3:.2f} ms, p99 {costs[count * 99 // 100] * 1e3:.2f} ms"
        )


def load(journal: Journal, seconds: int, rate: int = 10_000) -> None:
    """A sustained load; every call is counted afterwards."""
    before = sum(row["calls"] for row in open_reader(journal).figures())
    cpu, begun = time.process_time(), time.perf_counter()
    longest, step = 0, rate // 100
    for tick in range(seconds * 100):
        moment = time.time()
        for call in range(step):
            journal.put(good(f"{tick}-{call}", timestamp=moment, duration_ms=float(call)))
        longest = max(longest, len(journal._writer.records))
        time.sleep(max(0.0, begun + (tick + 1) / 100 - time.perf_counter()))
    took = time.perf_counter() - begun
    journal.flush(120)
    whole = time.perf_counter() - begun
    counted = sum(row["calls"] for row in open_reader(journal).figures()) - before
    wanted = seconds * 100 * step
    print(f"load: {wanted:,} calls in {took:.1f} s ({wanted / took:,.0f}/s), written after {whole:.1f} s; "
          f"counted {counted:,}, dropped {journal.dropped}; longest queue {longest:,}; "
          f"{(time.process_time() - cpu) / wanted * 1e6:.1f} µs of CPU a call, caller included")  # fmt: skip
    assert counted == wanted, "calls were lost"


def report(journal: Journal, calls: int = 10_000_000, days: int = 30, tools: int = 20) -> None:
    """Figures over the rollups of so many calls (made directly, as the writer would have)."""
    hours, per_cell = days * 24, calls // (days * 24 * tools)
    names = {rollup.table: rollup for rollup in ALL}
    begun = time.time() // DAY * DAY - days * DAY
    rows: dict[str, list[tuple[Any, ...]]] = {
        "rollup_calls": [],
        "latency_hours": [],
        "latency_days": [],
    }
    for hour in range(hours):
        moment = int(begun + hour * HOUR)
        for tool in range(tools):
            key = (f"tool_{tool:02}", f"api{tool % 8}.example", "m-1", "")
            for category, code, share in (("", "", 0.93), ("network", "network.read_timeout", 0.04),
                                          ("server", "server.internal", 0.02), ("business", "business.not_found", 0.01)):  # fmt: skip
                count = max(1, int(per_cell * share))
                cell = (*key, category, code, 1)
                rows["rollup_calls"].append((moment, *cell, *([count] * len(COUNTERS))))
                spread = 80 if not code else 10
                middle = bucket_of(20.0 + 10 * tool)
                rows["latency_hours"] += [
                    (moment, middle + b, *cell, max(1, count // spread)) for b in range(spread)
                ]
                if hour % 24 == 0:
                    rows["latency_days"] += [
                        (moment, middle + b, *cell, max(1, 24 * count // spread))
                        for b in range(spread)
                    ]
    shard = journal._target.engine == "postgresql"
    for table, values in rows.items():
        columns = [*names[table].columns, *(["shard"] if shard else [])]
        places = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        rest = (0,) if shard else ()
        for start in range(0, len(values), 50_000):
            journal.write([(insert, (*row, *rest)) for row in values[start : start + 50_000]])
    print("rows:", ", ".join(f"{table} {len(values):,}" for table, values in rows.items()))
    reader = open_reader(journal)
    questions: dict[str, Callable[[], Any]] = {
        "total": reader.figures,
        "by tool": lambda: reader.figures(by=("tool",)),
        "by code": lambda: reader.figures(by=("category", "code"), latency=False),
        "by hour": lambda: reader.figures(by=("hour",)),
        "one tool by hour": lambda: reader.figures(by=("hour",), where=Filter(tool="tool_03")),
    }
    whole = 0.0
    for title, ask in questions.items():
        best = min(_timed(ask) for _ in range(3))
        whole += best[0]
        print(f"report {title}: {best[0] * 1e3:.0f} ms, {best[1] * 1e3:.0f} ms of CPU here")
    print(f"report over {calls:,} calls, all of them: {whole:.2f} s")


def _timed(ask: Callable[[], Any]) -> tuple[float, float]:
    started, cpu = time.perf_counter(), time.process_time()
    ask()
    return time.perf_counter() - started, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="where to write (default: a new SQLite file)")
    parser.add_argument("--seconds", type=int, default=60, help="of sustained load")
    parser.add_argument("--only", choices=("put", "claims", "load", "report"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.url or str(Path(folder) / "bench.db")
        journal = Journal(place, queue=10_000_000, retention_rows=100_000_000)
        print(f"journal: {journal.place}")
        steps: dict[str, Callable[[], None]] = {
            "put": lambda: put(journal),
            "claims": lambda: claims(journal),
            "load": lambda: load(journal, arguments.seconds),
            "report": lambda: report(journal),
        }
        for name, step in steps.items():
            if arguments.only in (None, name):
                step()
        journal.close(60)


if __name__ == "__main__":
    main()
