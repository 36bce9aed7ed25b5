"""Finished calls become rows; recording never blocks and never raises."""

import contextlib
import logging
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, StandingClock, bad, claim_of, good

from failwise.journal import place, read, schema
from failwise.journal.journal import Journal, JournalUnavailable
from failwise.journal.reader import open_reader
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.kinds import Category, Grade
from failwise.vocabulary.result import Repair

Make = Callable[..., Journal]


def test_nothing_is_opened_before_the_first_record(make: Make, tmp_path: Path) -> None:
    """A journal that nobody used leaves no file and no thread."""
    threads = threading.active_count()
    journal = make()
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == threads
    journal.put(good())
    assert journal.flush()
    assert (tmp_path / "journal.db").exists()


def test_a_first_try_success_is_one_row_without_attempts(make: Make) -> None:
    """Good calls keep who, what, when, how long; nothing of their arguments."""
    journal = make()
    journal.put(good())
    (call,) = read.calls(journal)
    assert (call.tool, call.call_id, call.run_id) == ("search", "c1", "run")
    assert (call.success, call.sent, call.failed_attempts, call.duration_ms) == (True, 1, 0, 12.5)
    assert call.arguments is None
    assert call.failure is None
    assert read.attempts(journal, call) == []


def test_a_failure_keeps_what_a_person_needs(make: Make) -> None:
    """The failure reads back as a Failure, its attempts with each decision and its reason."""
    journal = make()
    journal.put(bad())
    (call,) = read.calls(journal, success=False)
    assert (call.category, call.code, call.effect) == ("network", "network.read_timeout", "unknown")
    assert (call.stop_reason, call.action, call.sent) == ("retries_exhausted", "ask_model", 2)
    assert call.arguments == {"query": "shoes"}
    assert call.failure is not None
    assert call.failure.category is Category.NETWORK
    assert call.failure.details == {"limit": 10}
    first, second = read.attempts(journal, call)
    assert (first.action, first.delay, first.reason) == (
        "retry_backoff",
        1,
        "a read may be repeated",
    )
    assert (second.number, second.action, second.code) == (2, None, "network.read_timeout")


def test_many_records_come_in_order(make: Make) -> None:
    """More records than a batch holds are all there, in the order they were put."""
    journal = make()
    for number in range(1800):
        journal.put(good(f"c{number}"))
    assert journal.flush()
    rows = journal.rows("SELECT call_id FROM calls ORDER BY id")
    assert [row["call_id"] for row in rows] == [f"c{n}" for n in range(1800)]


def test_a_full_queue_drops_counts_and_says_so_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond its bound nothing waits; the number lost is known; the log has one line."""
    journal = make(queue=10)
    with journal._writer.door, caplog.at_level(logging.WARNING, "failwise"):  # the writer stands
        for number in range(1000):
            journal.put(good(f"c{number}"))
        assert journal.dropped > 400
    assert journal.flush()
    assert journal.written + journal.dropped == 1000
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"call_id": "\ud800"},
        {"run_id": "\udcff", "arguments": {"\ud800": "\udfff"}},
        {"arguments": {"n": 10**400, "when": object(), "bytes": b"\xff"}},
        {"arguments": {"text": "x" * 500_000}},
        {"parent_id": 10**30},
        {"duration_ms": float("inf")},
        {"duration_ms": float("nan")},
        {"repairs": None},
    ],
)
def test_an_odd_record_never_costs_the_others(make: Make, odd: dict[str, Any]) -> None:
    """Text that is no UTF-8, numbers out of range, a broken record: the rest is written."""
    journal = make()
    journal.put(good("before"))
    journal.put(bad("odd", **odd))
    journal.put(good("after"))
    assert journal.flush()
    ids = {row["call_id"] for row in journal.rows("SELECT call_id FROM calls")}
    assert {"before", "after"} <= ids
    assert journal.written + journal.dropped == 3
    assert all(len(row[0] or "") < 5000 for row in journal.rows("SELECT arguments FROM calls"))


def test_a_self_containing_argument_is_bounded(make: Make) -> None:
    """Data that contains itself ends at the bound of depth."""
    loop: dict[str, Any] = {}
    loop["again"] = loop
    journal = make()
    journal.put(bad(arguments=loop))
    assert journal.flush()
    assert journal.written == 1


def test_files_are_private(make: Make, tmp_path: Path) -> None:
    """The file and its companions are 0600; `.failwise` is 0700 and ignores itself."""
    file = tmp_path / ".failwise" / "journal.db"
    journal = make(file)
    journal.put(good())
    assert journal.flush()
    for path in file.parent.glob("journal.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert len(list(file.parent.glob("journal.db*"))) == 3
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert (file.parent / ".gitignore").read_text() == "*\n"


def test_where_the_disk_cannot_be_written_memory_takes_over(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning that claims will not survive a crash; then everything works."""
    (tmp_path / "file").write_text("")
    journal = make(tmp_path / "file" / "journal.db")
    with caplog.at_level(logging.WARNING, "failwise"):
        assert journal.claim(claim_of("1")).result(5).state == "granted"
        journal.put(bad())
        assert len(read.calls(journal)) == 1
        assert journal.claim(claim_of("1")).result(5).state == "in_flight"
    assert [record.message.count("will not survive") for record in caplog.records] == [1]


def test_the_place_is_said_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """At INFO, when it is opened."""
    with caplog.at_level(logging.INFO, "failwise"):
        journal = make()
        for _ in range(3):
            journal.put(good())
            journal.flush()
    assert [r.message for r in caplog.records] == [f"journal: {journal.place}"]


def test_the_place_follows_path_then_environment_then_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explicit path wins over FAILWISE_JOURNAL, that over .failwise here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILWISE_JOURNAL", raising=False)
    assert Journal().place == str(tmp_path / ".failwise" / "journal.db")
    monkeypatch.setenv("FAILWISE_JOURNAL", ":memory:")
    assert Journal().place == ":memory:"
    assert Journal(tmp_path / "x.db").place == str(tmp_path / "x.db")
    monkeypatch.setenv("FAILWISE_JOURNAL", "sqlite:///sub/y.db")
    assert Journal().place == str(tmp_path / "sub" / "y.db")
    assert Journal(f"sqlite:///{tmp_path}/z.db").place == str(tmp_path / "z.db")
    assert Journal("sqlite://").place == ":memory:"
    shown = Journal("postgresql://user:password@host/db?schema=a&sslpassword=b").place
    assert shown == "postgresql://user:****@host/db?schema=a&sslpassword=****"
    with pytest.raises(UsageError, match="begins with sqlite, postgresql"):
        Journal("mysql://user:password@host/db")


def test_network_file_systems_are_known() -> None:
    """The innermost mount counts; blanks in mount points are escaped."""
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n"
        "tmpfs /home/me/fast tmpfs rw 0 0\n//nas/s /mnt/my\\040share cifs rw 0 0\nbroken\n"
    )
    assert place.network_file_system("/home/me/journal.db", mounts) == "nfs4"
    assert place.network_file_system("/home/me/fast/journal.db", mounts) is None
    assert place.network_file_system("/homely/journal.db", mounts) is None
    assert place.network_file_system("/mnt/my share/journal.db", mounts) == "cifs"


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, saying what to set instead."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr(place, "Path", lambda _: mounts)
    with pytest.raises(ConfigurationError, match="FAILWISE_JOURNAL"):
        Journal(tmp_path / "journal.db")


def test_recording_heals(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While another process holds the file nothing is lost; one line says so, one that it is over."""
    journal = make(lock_timeout=0.01)
    journal.put(good("first"))
    assert journal.flush()
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.INFO, "failwise"):
        caplog.clear()
        journal.put(good("second"))
        assert not journal.flush()
        journal.put(good("third"))
        assert not journal.flush()
        other.execute("ROLLBACK")
        other.close()
        assert journal.flush()
    assert [c.call_id for c in read.calls(journal)] == ["third", "second", "first"]
    assert [r.levelname for r in caplog.records if "written" in r.message].count("ERROR") == 1
    assert journal.dropped == 0


def test_a_file_that_was_moved_away_is_made_anew(make: Make, tmp_path: Path) -> None:
    """Records are not written into a file that nobody can find."""
    journal = make()
    journal.put(good("old"))
    assert journal.flush()
    for path in list(tmp_path.glob("journal.db*")):
        with contextlib.suppress(FileNotFoundError):  # SQLite may have put it away meanwhile
            path.rename(tmp_path / f"moved-{path.name}")
    journal.put(good("new"))
    assert [c.call_id for c in read.calls(journal)] == ["new"]


def test_what_is_no_journal_is_not_touched(make: Make, tmp_path: Path) -> None:
    """A file of another kind is left as it is; claims are refused, records counted."""
    file = tmp_path / "journal.db"
    file.write_bytes(b"this is not a database, but somebody's text" * 50)
    before = file.read_bytes()
    journal = make()
    with pytest.raises(JournalUnavailable, match="not a database"):
        journal.claim(claim_of("1")).result(5)
    journal.put(good())
    journal.close()
    assert journal.dropped == 1
    assert file.read_bytes() == before
    with pytest.raises(ConfigurationError), read.opened(file):
        pass


def test_after_close_records_are_counted_as_lost(make: Make) -> None:
    """Nothing raises, nothing hangs."""
    journal = make()
    journal.put(good())
    journal.close()
    assert journal.written == 1
    journal.put(good())
    journal.settle("k", "done")
    assert journal.dropped == 1
    with pytest.raises(JournalUnavailable):
        journal.claim(claim_of("1")).result(5)
    journal.close()


def test_old_and_surplus_records_go_open_claims_stay(make: Make) -> None:
    """By age and by number; an effect that may have happened is kept for a person."""
    clock = StandingClock()
    journal = make(clock=clock, retention_days=30, retention_rows=100)
    journal.put(bad("old", timestamp=clock.now - 31 * 86_400))
    for number in range(150):
        journal.put(good(f"c{number}", timestamp=clock.now))
    done, unknown = claim_of("1"), claim_of("2", arguments="b")
    for step in (done, unknown):
        journal.claim(step).result(5)
    journal.settle(done.key, "done", good())
    journal.settle(unknown.key, "unknown")
    journal.flush()
    clock.now += 31 * 86_400
    journal.put(good("last", timestamp=clock.now))
    journal.flush()
    journal.put(good("again", timestamp=clock.now))
    journal.flush()
    assert {c.call_id for c in read.calls(journal)} == {"last", "again"}
    assert journal.rows("SELECT count(*) FROM attempts")[0][0] == 0
    assert [o.key for o in read.open_effects(journal, now=clock.now)] == [unknown.key]


def test_a_number_of_rows_is_kept(make: Make) -> None:
    """Beyond it the oldest go."""
    journal = make(clock=StandingClock(), retention_rows=100)
    for number in range(250):
        journal.put(good(f"c{number}"))
    journal.flush()
    journal.flush()
    ids = [c.call_id for c in read.calls(journal, limit=1000)]
    assert ids[0] == "c249"
    assert len(ids) == 100


def test_a_newer_file_is_refused_with_what_to_do(make: Make, tmp_path: Path) -> None:
    """Upgrade, or use another file; the file stays as it is."""
    journal = make()
    journal.put(good())
    journal.close()
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        connection.execute("UPDATE meta SET value='99' WHERE name='schema_version'")
    connection.close()
    with pytest.raises(ConfigurationError, match=r"version 99.*upgrade"):
        read.File(tmp_path / "journal.db")
    with pytest.raises(JournalUnavailable, match="newer"):
        make().claim(claim_of("1")).result(5)


def test_an_older_file_is_brought_forward_once(tmp_path: Path) -> None:
    """A file of version 1 gets the steps it lacks, keeps its rows, and is not migrated twice."""
    old = str(tmp_path / "old.db")
    fixture = Path(__file__).parent / "version_1.sql"
    connection = sqlite3.connect(old)
    connection.executescript(fixture.read_text())
    connection.close()
    connection = schema.connect(old)
    steps = (*schema.MIGRATIONS, ("ALTER TABLE calls ADD COLUMN extra_column TEXT DEFAULT 'x'",))
    for _ in range(2):
        schema.migrate(connection, old, steps)
    found = connection.execute("SELECT call_id, extra_column FROM calls").fetchall()
    counted = connection.execute(
        "SELECT hour, tool, upstream, code, calls, requests, wasted FROM rollup_calls"
    ).fetchall()
    version = connection.execute("SELECT value FROM meta").fetchall()
    connection.close()
    assert found == [("call_old", "x")]
    assert counted == [
        (1_800_000_000, "search", "search", "network.read_timeout", 1, 2, 1)
    ]  # what was recorded before there were counts is counted
    assert version == [(str(len(steps)),)]


def test_a_failing_step_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """All steps or none."""
    connection = schema.connect(str(tmp_path / "j.db"))
    steps = (*schema.MIGRATIONS, ("ALTER TABLE calls ADD COLUMN a TEXT", "not sql"))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, "", steps)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(calls)")]
    schema.migrate(connection, "")
    connection.close()
    assert "a" not in columns


class Hiding(OpenBorder):
    """A redactor that knows one secret."""

    def text(self, text: str) -> str:
        return text.replace("hunter2hunter2", "****")

    def data(self, data: Any) -> Any:
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {self.text(key): self.data(value) for key, value in data.items()}
        if isinstance(data, list):
            return [self.data(value) for value in data]
        return data


def plant(journal: Journal, secret: str) -> None:
    """Put a secret wherever a result and a claim have room for free text."""
    from dataclasses import replace

    from failwise.vocabulary.failure import Excerpt

    result = bad()
    assert result.failure is not None
    failure = replace(
        result.failure,
        message=f"{'m' * 290} password={secret}",
        details={"deep": [{"password": secret}], "note": f"password={secret}"},
        likely_causes=(f"password={secret}",),
        evidence=Excerpt(message=f"password={secret}", snippet=f'{{"password": "{secret}"}}'),
    )
    decision = result.attempts[0].decision
    assert decision is not None
    attempt = replace(
        result.attempts[0],
        failure=failure,
        decision=replace(decision, reason=f"password={secret}"),
    )
    planted = bad(attempts=(attempt,), arguments={"password": secret, "x": f"password={secret}"})
    planted.failure = failure
    planted.value = {"password": secret}
    planted.extra["password"] = secret
    step = claim_of("1")
    step.arguments = {"password": secret, "url": f"https://x.example/?password={secret}"}
    journal.claim(step).result(5)
    journal.settle(step.key, "done", planted)
    journal.put(planted)
    assert journal.flush()


def test_everything_stored_passes_the_border(make: Make, tmp_path: Path) -> None:
    """No byte of the file holds the secret; text is cut after it was redacted."""
    journal = make(redactor=Hiding())
    plant(journal, "hunter2hunter2")
    data = b"".join(path.read_bytes() for path in tmp_path.glob("journal.db*"))
    assert b"****" in data
    assert b"hunter2" not in data


def test_the_border_is_there_without_being_asked_for(tmp_path: Path) -> None:
    """A journal that was given no redactor uses the package's own."""
    journal = Journal(tmp_path / "journal.db", clock=StandingClock())
    plant(journal, "tr0ub4dor-and-3-Zebras")
    journal.close()
    data = b"".join(path.read_bytes() for path in tmp_path.glob("journal.db*"))
    assert b"tr0ub4dor" not in data
    assert journal.written == 1


def test_without_a_thread_nothing_raises(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be had records are counted as lost and claims refused; later it works."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    journal = make()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        journal.put(good())
        with pytest.raises(JournalUnavailable, match="thread"):
            journal.claim(claim_of("1")).result(5)
    assert journal.dropped == 1
    assert journal.claim(claim_of("1")).result(5).state == "granted"


def test_sqlite_is_imported_by_the_first_record(tmp_path: Path) -> None:
    """Making a journal imports neither the database nor asyncio."""
    script = (
        "import sys; from failwise.journal.journal import Journal; Journal(sys.argv[1]);"
        "assert not {'sqlite3', 'asyncio'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "j.db")], check=True)


def test_repairs_are_kept_without_secrets(make: Make) -> None:
    """What was before and after, where it stood: redacted by its name too, cut when it is long."""
    from failwise.redaction import default

    journal = make(redactor=default())
    repairs = (
        Repair("type", "/count", "4", 4, Grade.LOSSLESS),
        Repair("type", "/login/password", 12345678, "hunter2hunter2", Grade.LOSSLESS),
        Repair("quotes", "", "{'password': 'hunter2hunter2'}", '{"a": 1}', Grade.LOSSLESS),
        Repair("type", "/note", "x" * 5_000, ["y"] * 5_000, Grade.LOSSLESS),
    )
    journal.put(good(repairs=repairs))
    journal.put(good("c2"))
    with open_reader(journal) as reader:
        plain, call = sorted(reader.calls(), key=lambda one: one["repairs"])
    assert plain["changes"] is None
    count, password, quotes, note = call["changes"]
    assert count == {
        "kind": "type",
        "path": "/count",
        "before": "4",
        "after": 4,
        "grade": "lossless",
    }
    assert password["path"] == "/login/password"
    assert "12345678" not in str(call["changes"])
    assert "hunter2" not in str(call["changes"])
    assert quotes["after"] == '{"a": 1}'
    assert len(str(note)) < 1_000
