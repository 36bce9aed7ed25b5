"""The journal in a real PostgreSQL: what only it has, and what happens when it goes away."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, StandingClock, bad, claim_of, good

from failwise.journal import postgres_schema, read
from failwise.journal.journal import Journal, JournalUnavailable
from failwise.journal.rollups import DAY
from failwise.testing.journal_samples import many
from failwise.vocabulary.errors import ConfigurationError

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

Make = Callable[..., Journal]


@pytest.fixture
def journals(postgres: str) -> Iterator[Make]:
    """Makes journals in the test's own schema, and closes them."""
    made: list[Journal] = []

    def build(place: str = postgres, **options: Any) -> Journal:
        options.setdefault("redactor", OpenBorder())
        journal = Journal(place, **options)
        made.append(journal)
        return journal

    yield build
    for journal in made:
        journal.close()


@pytest.fixture
def sql(postgres: str) -> Iterator[Callable[..., list[Any]]]:
    """Runs SQL in the test's own schema."""
    url, _, schema = postgres.partition("&schema=")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}")

        def run(statement: str) -> list[Any]:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

        yield run


def tables(sql: Callable[..., list[Any]]) -> set[str]:
    found = sql("SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace")
    return {name for (name,) in found}


def test_days_are_partitions_that_are_dropped(
    journals: Make, sql: Callable[..., list[Any]]
) -> None:
    """A day of calls is a table; when it is too old it is dropped as a whole, attempts too."""
    clock = StandingClock()
    patient = journals(clock=clock, retention_days=100)
    for days in range(5):
        patient.put(bad(f"c{days}", timestamp=clock.now - days * DAY))
    patient.flush()
    before = {name for name in tables(sql) if name.startswith("calls_2")}
    assert len([name for name in before if name[6:].isdigit()]) == 5
    patient.close()
    journal = journals(clock=clock, retention_days=2)
    while journal.prune():
        pass
    left = {name for name in tables(sql) if name[:7] == "calls_2" and name[6:].isdigit()}
    assert left == {"calls_20270113", "calls_20270114", "calls_20270115"}
    kept = [call["call_id"] for call in read.open_reader(journal).calls()]
    assert kept == ["c0", "c1", "c2"]
    assert sql("SELECT count(*) FROM attempts")[0][0] == 6


def test_two_processes_make_the_same_day_once(
    journals: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Eight journals that write the first record of a day at the same moment, of days so long ago
    that they are dropped meanwhile."""
    made = [journals(retention_days=d, figures_days=9_999) for d in (30, 30, *[10_000] * 6)]
    barrier = threading.Barrier(8)

    def write(journal: Journal) -> None:
        barrier.wait()
        for number in range(20):
            journal.put(good(timestamp=1_700_000_000.0 + number * DAY))

    threads = [threading.Thread(target=write, args=(journal,)) for journal in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(journal.flush(30) for journal in made)
    assert [row["calls"] for row in read.open_reader(made[0]).figures()] == [160]
    assert sum(journal.dropped for journal in made) == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_what_is_no_journal_is_refused_with_what_to_do(
    journals: Make, postgres: str, sql: Callable[..., list[Any]]
) -> None:
    """No schema, another program's tables, a newer version: nothing is changed."""
    with pytest.raises(ConfigurationError, match="no journal here"), read.opened(postgres):
        pass
    schema = postgres.rpartition("=")[2]
    sql(f"CREATE SCHEMA {schema}")
    sql("CREATE TABLE calls (mine text)")
    with pytest.raises(JournalUnavailable, match="another program"):
        journals().claim(claim_of("1")).result(10)
    sql("DROP TABLE calls")
    journals().claim(claim_of("1")).result(10)
    sql("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    with pytest.raises(JournalUnavailable, match="upgrade"):
        journals().claim(claim_of("2")).result(10)
    with pytest.raises(ConfigurationError, match="upgrade"), read.opened(postgres):
        pass


def test_migrations_go_forward_all_or_nothing(journals: Make, postgres: str) -> None:
    """A later version's steps are applied once, a failing step leaves everything as it was."""
    journal = journals()
    journal.put(good("old"))
    assert journal.flush(10)
    url, _, schema = postgres.partition("&schema=")
    step = ("ALTER TABLE calls ADD COLUMN later text DEFAULT 'x'",)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}")
        with pytest.raises(psycopg.Error):
            postgres_schema.migrate(
                connection, schema, "", (*postgres_schema.MIGRATIONS, step, ("no sql",))
            )
        columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s"
        assert ("later",) not in connection.execute(columns, (schema,)).fetchall()
        for _ in range(2):
            postgres_schema.migrate(connection, schema, "", (*postgres_schema.MIGRATIONS, step))
        assert connection.execute("SELECT call_id, later FROM calls").fetchall() == [("old", "x")]


def test_a_role_reads_everything_but_raw_answers(
    journals: Make, postgres: str, sql: Callable[..., list[Any]]
) -> None:
    """The grants of docs/journal.md, as they stand there: reports work, raw answers are refused."""
    from dataclasses import replace

    journal = journals(raw="as is")
    result = bad()
    failure = replace(result.attempts[0].failure, raw="<html>secret</html>")  # type: ignore[type-var]
    result.attempts = (replace(result.attempts[0], failure=failure),)
    journal.put(result)
    assert journal.flush(10)
    schema = postgres.rpartition("=")[2]
    page = (Path(__file__).parents[2] / "docs" / "journal.md").read_text("utf-8")
    grants = page.partition("```sql\n")[2].partition("```")[0]
    for statement in grants.replace("failwise_reader", f"reader_{schema}").split(";"):
        if statement.strip():
            sql(
                statement.replace("failwise.", f"{schema}.").replace(
                    "SCHEMA failwise", f"SCHEMA {schema}"
                )
            )
    url = postgres.replace("postgres:@", f"reader_{schema}:@")
    try:
        with read.open_reader(url) as reader:
            assert [row["calls"] for row in reader.figures()] == [1]
            assert reader.call("c2") is not None
            assert reader.open_effects() == []
            with pytest.raises(Exception, match="permission denied for table raw_answers"):
                reader.raw_answers("c2")
            with pytest.raises(Exception, match="permission denied"):
                reader.source.write([("DELETE FROM calls", ())])
        assert len(read.open_reader(journal).raw_answers("c2")) == 1
    finally:
        sql(f"DROP OWNED BY reader_{schema}; DROP ROLE reader_{schema}")


def test_no_secret_of_the_url_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Neither by the journal's place, nor by its log, nor by its errors."""
    url = "postgresql://me:s3cr3t%21pass@127.0.0.1:1/db?connect_timeout=2"
    with caplog.at_level(logging.DEBUG, "failwise"):
        journal = Journal(url, redactor=OpenBorder())
        with pytest.raises(JournalUnavailable) as caught:
            journal.claim(claim_of("1")).result(20)
        journal.put(good())
        journal.flush()
        journal.close()
    said = f"{journal.place} {caught.value} {caught.value.__cause__!r} {caplog.text}"
    assert "refused" in said
    assert "s3cr3t" not in said


def _stop(server: Any, mode: str) -> None:
    server.get_postmaster_info().process.send_signal(
        signal.SIGQUIT if mode == "immediate" else signal.SIGINT
    )
    server.get_postmaster_info().process.wait(30)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_costs_nothing_and_heals(
    journals: Make, postgres_server: Any, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """While it is down records wait and claims are refused; one line says so, one that it is over;
    after that every record is there, once."""
    journal = journals()
    assert journal.claim(claim_of("1")).result(10).state == "granted"
    stop = threading.Event()
    put = [0]

    def load() -> None:
        while not stop.is_set():
            journal.put(good(f"c{put[0]}"))
            put[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=load)
    with caplog.at_level(logging.INFO, "failwise"):
        thread.start()
        time.sleep(0.3)
        _stop(postgres_server, mode)
        with pytest.raises(JournalUnavailable, match="nothing may be sent"):
            journal.claim(claim_of("2", arguments="b")).result(30)
        journal.settle(claim_of("1").key, "done", good("1"))
        time.sleep(0.3)
        postgres_server.ensure_postgres_running()
        stop.set()
        thread.join()
        until = time.monotonic() + 60
        while not journal.flush() and time.monotonic() < until:
            time.sleep(0.2)
    reader = read.open_reader(journal)
    assert [row["calls"] for row in reader.figures()] == [put[0]]
    assert journal.rows("SELECT count(DISTINCT call_id), count(*) FROM calls") == [(put[0], put[0])]
    assert (journal.dropped, journal.written) == (0, put[0])
    assert journal.claim(claim_of("1")).result(10).state == "done"
    levels = [record.levelname for record in caplog.records if "written" in record.message]
    assert levels.count("ERROR") <= 2  # one for the claims' connection, one for the records'


def test_a_commit_of_unknown_outcome_is_found_out(journals: Make) -> None:
    """The connection breaks at the commit, once before it counted and once after: no record is
    lost or doubled, in the calls or in the rollups."""
    journal = journals()
    journal.put(good("first"))
    assert journal.flush(10)
    store: Any = journal._writer.store

    class Breaking:
        """A connection that breaks when it is told to commit."""

        def __init__(self, inner: Any, *, committed: bool) -> None:
            self.inner, self.committed = inner, committed

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def execute(self, sql: str, *values: Any) -> Any:
            if sql == "COMMIT":
                if self.committed:
                    self.inner.execute(sql)
                self.inner.close()
                raise psycopg.OperationalError("the connection broke")
            return self.inner.execute(sql, *values)

    for number, committed in enumerate((True, False, True)):
        with journal._writer.door:
            store._connection = Breaking(store.connection(), committed=committed)
        for call in range(10):
            journal.put(good(f"{number}-{call}"))
        until = time.monotonic() + 20
        while not journal.flush() and time.monotonic() < until:
            time.sleep(0.05)
    assert journal.rows("SELECT count(DISTINCT call_id), count(*) FROM calls") == [(31, 31)]
    assert [row["calls"] for row in read.open_reader(journal).figures()] == [31]
    assert (journal.written, journal.dropped) == (31, 0)


_VICTIM = """
import sys, threading, time
from failwise.journal.journal import Journal
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim

class Border:
    def text(self, text): return text
    def data(self, data): return data

journal = Journal(sys.argv[1], redactor=Border())
number = 0
while True:
    for _ in range(20):
        journal.put(ToolResult("search", True, 1, call_id=f"r{number}", timestamp=time.time()))
        number += 1
    journal.claim(Claim(f"k{number}", f"{number}", "run", "order", f"c{number}", {})).result()
    if journal.flush(30):
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def test_a_kill_loses_nothing_that_was_acknowledged(journals: Make, postgres: str) -> None:
    """Killed under load: every claim answered and every record flushed is there, once."""
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, postgres], stdout=subprocess.PIPE, text=True
    )
    assert victim.stdout is not None
    told = [int(victim.stdout.readline()) for _ in range(40)]
    os.kill(victim.pid, signal.SIGKILL)
    told += [
        int(line) for line in victim.stdout.read().splitlines(keepends=True) if line[-1] == "\n"
    ]
    victim.stdout.close()
    victim.wait()
    journal = journals()
    kept = {row[0] for row in journal.rows("SELECT call_id FROM calls")}
    assert {f"r{number}" for number in range(told[-1])} <= kept
    (count,) = read.open_reader(journal).figures()
    assert count["calls"] == len(kept) == journal.rows("SELECT count(*) FROM calls")[0][0]
    claimed = {row[0] for row in journal.rows("SELECT key FROM claims")}
    assert {f"k{number}" for number in told} <= claimed


_SHOPPER = textwrap.dedent(
    """
    import sys, time
    import failwise
    rt = failwise.Runtime(journal=sys.argv[1])
    @rt.tool
    def order(sku: str) -> str:
        print("sent", flush=True)
        time.sleep(0.6)
        return f"order of {sku}"
    with rt.run(id="job", deadline=float(sys.argv[3])) as run:
        result = run.call_sync("order", {"sku": sys.argv[2]}, call_id="call_1")
    code = result.failure.code if result.failure else None
    print("got", result.success, result.value, code, flush=True)
    """
)


def test_an_identical_call_of_another_process_is_waited_for(postgres: str) -> None:
    """Both get the one result; other arguments under the same id are refused; one that has no time
    to wait is told so, and nothing is sent twice."""

    def start(sku: str, deadline: str = "20") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", _SHOPPER, postgres, sku, deadline],
            stdout=subprocess.PIPE,
            text=True,
        )

    first = start("A-1")
    assert first.stdout is not None
    assert first.stdout.readline() == "sent\n"
    others = {name: start(*given) for name, given in
              {"same": ("A-1",), "other": ("B-2",), "hasty": ("A-1", "0.05")}.items()}  # fmt: skip
    said = {name: process.communicate(timeout=60)[0] for name, process in others.items()}
    assert first.communicate(timeout=60)[0] == "got True order of A-1 None\n"
    assert said["same"] == "got True order of A-1 None\n"
    assert said["other"] == "got False None runtime.key_conflict\n"
    assert said["hasty"].startswith(("got False None runtime.", "got True order of A-1"))


def test_shards_of_hours_that_are_over_become_one_row(
    journals: Make, sql: Callable[..., list[Any]]
) -> None:
    """Pruning joins them: fewer rows, the same figures, first and last moments too."""
    clock = StandingClock()
    calls = many(600, start=clock.now - DAY, span=DAY / 2)
    writers = [journals(clock=clock) for _ in range(8)]
    for part in (calls[:8], calls[8:]):  # each prunes after its first records, not again so soon
        for number, call in enumerate(part):
            writers[number % 8].put(call)
        for writer in writers:
            assert writer.flush(20)
    reader = read.open_reader(writers[0])

    def told() -> list[Any]:
        counts = ("calls", "successes", "requests", "latency")
        figures = [
            [row[name] for name in ("tool", "hour", *counts)]
            for row in reader.figures(by=("tool", "hour"))
        ]
        attempts = reader.attempts(by=("code", "hour"))
        return [figures, reader.fingerprints(by=("hour",)), attempts, reader.argument_errors()]

    before, sharded = told(), sql("SELECT count(*) FROM rollup_failures WHERE shard > 0")[0][0]
    assert sharded > 0
    writers[0].prune()
    assert told() == before
    assert sql("SELECT count(*) FROM rollup_failures WHERE shard > 0")[0][0] == 0
    assert sql("SELECT count(*) FROM latency_hours WHERE shard > 0")[0][0] == 0
