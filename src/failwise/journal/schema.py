"""The tables, and how older files are brought forward. Forward only."""

import contextlib
import sqlite3
import time
from collections.abc import Sequence

from failwise.journal import advice, rollups
from failwise.vocabulary.errors import ConfigurationError

_FIRST = (
    "CREATE TABLE calls ("
    " id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, run_id TEXT NOT NULL, parent_id TEXT,"
    " tool TEXT NOT NULL, started REAL NOT NULL, duration_ms REAL NOT NULL,"
    " latency_bucket INTEGER NOT NULL, success INTEGER NOT NULL, category TEXT, code TEXT,"
    " http_status INTEGER, effect TEXT, stop_reason TEXT NOT NULL, action TEXT,"
    " sent INTEGER NOT NULL, failed_attempts INTEGER NOT NULL, repairs INTEGER NOT NULL,"
    " degraded_to TEXT, verified INTEGER, retry_after REAL, retry_at REAL, provider TEXT,"
    " fingerprint TEXT, rule TEXT, message TEXT, failure TEXT, arguments TEXT)",
    "CREATE INDEX calls_by_time ON calls (started)",
    "CREATE TABLE attempts ("
    " call INTEGER NOT NULL, position INTEGER NOT NULL, number INTEGER NOT NULL,"
    " started REAL NOT NULL, duration_ms REAL NOT NULL, category TEXT, code TEXT,"
    " http_status INTEGER, effect TEXT, message TEXT, failure_rule TEXT, action TEXT, delay REAL,"
    " reason TEXT, rule TEXT, PRIMARY KEY (call, position)) WITHOUT ROWID",
    "CREATE TABLE claims ("
    " key TEXT PRIMARY KEY, run_id TEXT NOT NULL, fingerprint TEXT NOT NULL, tool TEXT NOT NULL,"
    " call_id TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, claimed_at REAL NOT NULL,"
    " lease_until REAL NOT NULL, generation INTEGER NOT NULL, settled_at REAL, arguments TEXT,"
    " result TEXT) WITHOUT ROWID",
    "CREATE INDEX claims_by_fingerprint ON claims (run_id, fingerprint)",
    "CREATE TABLE prevented ("
    " id INTEGER PRIMARY KEY, at REAL NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL,"
    " tool TEXT NOT NULL, call_id TEXT NOT NULL, state TEXT NOT NULL)",
    "CREATE INDEX prevented_by_time ON prevented (at)",
)

_ROLLUP_KEYS = (
    " tool TEXT NOT NULL, upstream TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,"
    " category TEXT NOT NULL, code TEXT NOT NULL,"
)
_LATENCY_TABLE = (
    "CREATE TABLE {table} ({period} INTEGER NOT NULL, bucket INTEGER NOT NULL,"
    + _ROLLUP_KEYS
    + " asked INTEGER NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY ({period}, bucket, tool,"
    " upstream, model, provider, category, code, asked)) WITHOUT ROWID"
)
_SECOND = (
    "ALTER TABLE calls ADD COLUMN hour INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE calls ADD COLUMN upstream TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE calls ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE calls ADD COLUMN waited_ms REAL NOT NULL DEFAULT 0",
    "ALTER TABLE calls ADD COLUMN told_waits INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE calls ADD COLUMN waits_obeyed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE calls ADD COLUMN parameters INTEGER",
    "ALTER TABLE calls ADD COLUMN body_length INTEGER",
    "ALTER TABLE calls ADD COLUMN fed_length INTEGER",
    "ALTER TABLE calls ADD COLUMN body_tokens INTEGER",
    "ALTER TABLE calls ADD COLUMN fed_tokens INTEGER",
    "UPDATE calls SET hour = CAST(started / 3600 AS INTEGER) * 3600, upstream = tool",
    "ALTER TABLE attempts ADD COLUMN at REAL NOT NULL DEFAULT 0",
    "ALTER TABLE attempts ADD COLUMN provider TEXT",
    "ALTER TABLE attempts ADD COLUMN fingerprint TEXT",
    "ALTER TABLE attempts ADD COLUMN retry_after REAL",
    "ALTER TABLE attempts ADD COLUMN hour INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE attempts ADD COLUMN tool TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE attempts ADD COLUMN upstream TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE attempts ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE attempts ADD COLUMN success INTEGER NOT NULL DEFAULT 0",
    "UPDATE attempts SET (at, hour, tool, upstream, success) = (SELECT started, calls.hour,"
    " calls.tool, calls.upstream, calls.success FROM calls WHERE id = call)"
    " WHERE call IN (SELECT id FROM calls)",
    "CREATE INDEX calls_by_run ON calls (run_id) WHERE run_id <> ''",
    "CREATE INDEX calls_failed ON calls (started) WHERE success = 0",
    "CREATE INDEX calls_failed_by_call ON calls (call_id) WHERE success = 0",
    "CREATE TABLE rollup_calls (hour INTEGER NOT NULL,"
    + _ROLLUP_KEYS
    + " asked INTEGER NOT NULL, calls INTEGER NOT NULL, successes INTEGER NOT NULL,"
    " first_try INTEGER NOT NULL, recovered INTEGER NOT NULL, degraded INTEGER NOT NULL,"
    " refusals INTEGER NOT NULL, rounds INTEGER NOT NULL, requests INTEGER NOT NULL,"
    " retried INTEGER NOT NULL, retries INTEGER NOT NULL, wasted INTEGER NOT NULL,"
    " failed_attempts INTEGER NOT NULL, told_waits INTEGER NOT NULL,"
    " waits_obeyed INTEGER NOT NULL, waited_ms REAL NOT NULL, repaired INTEGER NOT NULL,"
    " repairs INTEGER NOT NULL, verified INTEGER NOT NULL, body_length INTEGER NOT NULL,"
    " fed_length INTEGER NOT NULL, body_tokens INTEGER NOT NULL, fed_tokens INTEGER NOT NULL,"
    " duration_ms REAL NOT NULL,"
    " PRIMARY KEY (hour, tool, upstream, model, provider, category, code, asked)) WITHOUT ROWID",
    _LATENCY_TABLE.format(table="latency_hours", period="hour"),
    _LATENCY_TABLE.format(table="latency_days", period="day"),
    "CREATE TABLE rollup_attempts (hour INTEGER NOT NULL,"
    + _ROLLUP_KEYS
    + " attempts INTEGER NOT NULL, cured INTEGER NOT NULL,"
    " PRIMARY KEY (hour, tool, upstream, model, provider, category, code)) WITHOUT ROWID",
    "CREATE TABLE rollup_failures (hour INTEGER NOT NULL, fingerprint TEXT NOT NULL,"
    " code TEXT NOT NULL, tool TEXT NOT NULL, upstream TEXT NOT NULL, category TEXT NOT NULL,"
    " provider TEXT NOT NULL, asked INTEGER NOT NULL, calls INTEGER NOT NULL,"
    " first_seen REAL NOT NULL, last_seen REAL NOT NULL, PRIMARY KEY (hour, fingerprint, code,"
    " tool, upstream, category, provider, asked)) WITHOUT ROWID",
    "CREATE TABLE rollup_arguments (hour INTEGER NOT NULL, tool TEXT NOT NULL, model TEXT NOT NULL,"
    " parameters INTEGER NOT NULL, calls INTEGER NOT NULL, wrong INTEGER NOT NULL,"
    " refused INTEGER NOT NULL, repaired INTEGER NOT NULL,"
    " PRIMARY KEY (hour, tool, model, parameters)) WITHOUT ROWID",
    "CREATE TABLE cluster_names (fingerprint TEXT PRIMARY KEY, cluster TEXT NOT NULL,"
    " name TEXT NOT NULL, muted INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE raw_answers (call INTEGER NOT NULL, position INTEGER NOT NULL,"
    " call_id TEXT NOT NULL, at REAL NOT NULL, content_type TEXT, length INTEGER, body TEXT NOT NULL,"
    " PRIMARY KEY (call, position)) WITHOUT ROWID",
    "CREATE INDEX raw_answers_by_time ON raw_answers (at)",
)

_SPAN_KEYS = (
    "days INTEGER NOT NULL, day INTEGER NOT NULL, tool TEXT NOT NULL, upstream TEXT NOT NULL,"
)
_FOURTH = (
    "CREATE TABLE spans (days INTEGER NOT NULL, day INTEGER NOT NULL, PRIMARY KEY (days, day))"
    " WITHOUT ROWID",
    "CREATE TABLE span_calls ("
    + _SPAN_KEYS
    + " model TEXT NOT NULL, provider TEXT NOT NULL, category TEXT NOT NULL, code TEXT NOT NULL,"
    " asked INTEGER NOT NULL, calls INTEGER NOT NULL, successes INTEGER NOT NULL,"
    " first_try INTEGER NOT NULL, recovered INTEGER NOT NULL, degraded INTEGER NOT NULL,"
    " refusals INTEGER NOT NULL, rounds INTEGER NOT NULL, requests INTEGER NOT NULL,"
    " retried INTEGER NOT NULL, retries INTEGER NOT NULL, wasted INTEGER NOT NULL,"
    " failed_attempts INTEGER NOT NULL, told_waits INTEGER NOT NULL,"
    " waits_obeyed INTEGER NOT NULL, waited_ms REAL NOT NULL, repaired INTEGER NOT NULL,"
    " repairs INTEGER NOT NULL, verified INTEGER NOT NULL, body_length INTEGER NOT NULL,"
    " fed_length INTEGER NOT NULL, body_tokens INTEGER NOT NULL, fed_tokens INTEGER NOT NULL,"
    " duration_ms REAL NOT NULL, PRIMARY KEY (days, day, tool, upstream, model, provider, category,"
    " code, asked)) WITHOUT ROWID",
    "CREATE TABLE span_failures ("
    + _SPAN_KEYS
    + " fingerprint TEXT NOT NULL, code TEXT NOT NULL, category TEXT NOT NULL,"
    " provider TEXT NOT NULL, asked INTEGER NOT NULL, calls INTEGER NOT NULL,"
    " first_seen REAL NOT NULL, last_seen REAL NOT NULL, PRIMARY KEY (days, day, fingerprint, code,"
    " tool, upstream, category, provider, asked)) WITHOUT ROWID",
    "CREATE TABLE span_latencies ("
    + _SPAN_KEYS
    + " asked INTEGER NOT NULL, bucket INTEGER NOT NULL, calls INTEGER NOT NULL,"
    " PRIMARY KEY (days, day, tool, upstream, asked, bucket)) WITHOUT ROWID",
    "CREATE INDEX claims_open ON claims (claimed_at) WHERE state IN ('claimed', 'unknown')",
    "CREATE INDEX attempts_by_time ON attempts (at)",
    "ALTER TABLE calls ADD COLUMN changes TEXT",
)

MIGRATIONS: tuple[Sequence[str], ...] = (_FIRST, _SECOND, advice.TABLE, _FOURTH)
"""Item n takes a file from version n to n + 1. Never change one that was released: append."""

_ROLLED_UP = 2
"""The version that brought the rollups: they are filled from the calls of an older file."""


def connect(place: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    """Open a journal for writing and bring it to the present version.

    `timeout`: seconds to wait for another process's lock. Raises `ConfigurationError` for a file
    written by a newer version, `sqlite3.Error` for what SQLite cannot do.
    """
    connection = sqlite3.connect(
        place, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        _use_wal(connection, timeout)
        connection.execute("PRAGMA synchronous=NORMAL")
        migrate(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Switch to WAL. SQLite answers "locked" at once, whatever its timeout, where two processes
    open a new file together."""
    until = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)


def connect_to_read(place: str, *, timeout: float = 5.0) -> sqlite3.Connection:
    """Open an existing journal to read (and to settle). Raises `ConfigurationError` for none."""
    from pathlib import Path

    if not Path(place).is_file():
        raise ConfigurationError("there is no journal here; name the file to read", file=place)
    uri = Path(place).absolute().as_uri() + "?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False)
    try:
        # Looked at without being touched: a mistyped name must not make a journal of another file.
        if not _version(connection):
            raise ConfigurationError("this is not a journal: it has none of its tables", file=place)
        with contextlib.suppress(
            sqlite3.OperationalError
        ):  # a read-only place can be read as it is
            writing = connect(place, timeout=timeout)
            connection.close()
            return writing
        if _version(connection) < len(MIGRATIONS):
            raise ConfigurationError(
                "this journal is of an older Failwise and cannot be brought forward where it may only"
                " be read: copy it to a place that can be written",
                file=place,
            )
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise ConfigurationError(f"this is not a journal: {error}", file=place) from error
        raise
    return connection


def migrate(
    connection: sqlite3.Connection,
    place: str,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
) -> None:
    """Bring a file to the newest version: all steps in one transaction, or none."""
    if _version(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # another process may have been faster
        if version > len(migrations):
            raise ConfigurationError(
                f"this journal has schema version {version}, written by a newer Failwise; this one "
                f"knows up to {len(migrations)}: upgrade, or use another file",
                file=place,
            )
        if version == 0 and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise ConfigurationError(
                "this database belongs to another program; give the journal a file of its own",
                file=place,
            )
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        if 0 < version < _ROLLED_UP <= len(migrations):
            for rollup in rollups.ALL:
                connection.execute(rollup.insert())
        connection.execute(
            "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
        )
        connection.execute(
            "INSERT OR REPLACE INTO meta VALUES ('schema_version', ?)", (str(len(migrations)),)
        )
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    try:
        row = connection.execute("SELECT value FROM meta WHERE name='schema_version'").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return 0
        raise
    return int(row[0]) if row else 0
