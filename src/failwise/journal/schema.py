"""The tables, and how older files are brought forward. Forward only."""

import contextlib
import sqlite3
import time
from collections.abc import Sequence

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

MIGRATIONS: tuple[Sequence[str], ...] = (_FIRST,)
"""Item n takes a file from version n to n + 1. Never change one that was released: append."""


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
