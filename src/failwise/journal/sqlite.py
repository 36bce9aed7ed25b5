"""The journal in SQLite: claims, records and rollups in one file."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import place as places
from failwise.journal import rollups, rows, schema, spans
from failwise.journal.clock import SystemClock
from failwise.journal.ledger import (
    CLAIM_COLUMNS,
    TOLD_A_FAILURE,
    Grant,
    Ledger,
    storable,
    stored_claim,
)
from failwise.journal.requests import Claiming, Settling
from failwise.journal.store import Keeping
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed


def insertion(table: str, columns: Sequence[str]) -> str:
    """An INSERT of one row."""
    places = ",".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608


_COLUMNS = ", ".join(CLAIM_COLUMNS)
_BY_KEY = f"SELECT {_COLUMNS} FROM claims WHERE key=?"  # noqa: S608 (constants only)
_OPEN = (
    f"SELECT {_COLUMNS} FROM claims WHERE run_id=? AND fingerprint=? AND key<>?"  # noqa: S608
    " AND (state='unknown' OR (state='claimed' AND (lease_until<=? OR owner<>?))"
    f" OR (state='done' AND result LIKE '{TOLD_A_FAILURE}'))"
    " ORDER BY claimed_at LIMIT 100"
)
_GRANT = (
    "INSERT INTO claims (key, run_id, fingerprint, tool, call_id, state, owner, claimed_at,"
    " lease_until, generation, arguments) VALUES (?,?,?,?,?,'claimed',?,?,?,?,?)"
    " ON CONFLICT (key) DO UPDATE SET state='claimed', owner=excluded.owner,"
    " claimed_at=excluded.claimed_at, lease_until=excluded.lease_until,"
    " generation=excluded.generation, arguments=excluded.arguments, settled_at=NULL, result=NULL"
)
_SETTLE = "UPDATE claims SET state=?, settled_at=?, result=coalesce(?, result) WHERE key=?"
_PREVENTED = "INSERT INTO prevented (at, key, run_id, tool, call_id, state) VALUES (?,?,?,?,?,?)"
_CALL = insertion("calls", rows.CALL_COLUMNS)
_ATTEMPT = insertion("attempts", rows.ATTEMPT_COLUMNS)
_RAW = insertion("raw_answers", rows.RAW_COLUMNS)
_ROLLUPS = tuple(rollup.insert(f"{rollup.id} > ?") for rollup in rollups.ALL)
_HOUR = rows.CALL_COLUMNS.index("hour")
_CHUNK = 32
"""Records between two looks whether somebody's claim waits."""
_PRUNED_AT_ONCE = 1_000
_PRUNE_EVERY = 300.0


class SqliteStore:
    """One journal file (see `Store`). Raises `sqlite3.Error`, `OSError` or `ConfigurationError`."""

    def __init__(self, place: str, keeping: Keeping) -> None:
        self.place = place
        self._keeping = keeping
        self._redactor = keeping.redactor
        self._clock: Clock = keeping.clock or SystemClock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._opened_place = place
        self._ledger = Ledger()
        self._prune_at = 0.0
        self._sum_up_at = 0.0
        self._synchronous = ""

    @property
    def redactor(self) -> rows.Redactor:
        if self._redactor is None:
            from failwise.redaction import default

            self._redactor = default()
        return self._redactor

    def connection(self) -> sqlite3.Connection:
        """The open connection, opened now if need be."""
        if self._connection is not None and self._same_file():
            return self._connection
        self.close()
        if self._opened_place != places.MEMORY:  # memory, once taken, stays: it holds claims
            self._opened_place = places.prepare(self.place)
        self._connection = schema.connect(self._opened_place, timeout=self._keeping.lock_timeout)
        self._synchronous = "NORMAL"
        if self._opened_place != places.MEMORY:
            status = os.stat(self._opened_place)
            self._identity = status.st_dev, status.st_ino
        return self._connection

    def check(self) -> None:
        if self._opened_place == places.MEMORY:
            raise ConfigurationError("a journal in memory ends with its process; name a file")
        self._connection = schema.connect_to_read(
            self._opened_place, timeout=self._keeping.lock_timeout
        )
        status = os.stat(self._opened_place)
        self._identity = status.st_dev, status.st_ino

    def _same_file(self) -> bool:
        """False where the file was moved or deleted under us: writing on would be lost."""
        if self._opened_place == places.MEMORY:
            return True
        try:
            status = os.stat(self._opened_place)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    @property
    def in_memory(self) -> bool:
        return self._opened_place == places.MEMORY

    def close(self) -> None:
        """Close the file. A journal in memory is gone with it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):  # nothing can be done about it, nothing is lost by it
                connection.close()

    def abandon(self) -> object:
        connection, self._connection = self._connection, None
        self._ledger.forget()
        self._opened_place = self.place
        return connection

    def effects(self, batch: Sequence[Claiming | Settling]) -> list[Claimed | Exception | None]:
        durable = any(isinstance(item, Claiming) for item in batch)
        prepared = self._ledger.prepare(batch, self.redactor)
        with self._transaction(durable) as connection:
            answers, granted = self._ledger.apply(
                batch, prepared, _Claims(connection), self._clock.time()
            )
        self._ledger.hold(granted)
        return answers

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        with self._transaction(True) as connection:
            return self._ledger.resolve(_Claims(connection), key, state, self._clock.time())

    def records(
        self, batch: Sequence[ToolResult[Any] | rows.Plain], pause: Callable[[], bool] | None = None
    ) -> tuple[int, int]:
        dealt = failed = 0
        redactor, keeping = self.redactor, self._keeping
        with self._transaction(False) as connection:
            found = connection.execute("SELECT coalesce(max(id), 0) FROM calls").fetchone()
            first = number = int(found[0])
            hours: set[int] = set()
            while dealt < len(batch):
                chunk = batch[dealt : dealt + _CHUNK]
                made = rows.built(chunk, number + 1, redactor, keeping.raw, keeping.raw_bytes)
                number += len(chunk)
                hours.update(row[_HOUR] for row in made.calls)
                failed += len(chunk) - len(made.calls) + _insert(connection, _CALL, made.calls)
                _insert(connection, _ATTEMPT, made.attempts)
                _insert(connection, _RAW, made.raw)
                dealt += len(chunk)
                if pause is not None and pause():
                    break
            for statement in _ROLLUPS:
                connection.execute(statement, (first,))
            for statement in spans.reopening(hours):
                connection.execute(statement)
        return dealt, failed

    def load(self, made: rows.Built) -> int:
        with self._transaction(False) as connection:
            found = connection.execute("SELECT coalesce(max(id), 0) FROM calls").fetchone()
            made = rows.renumbered(made, int(found[0]))
            failed = _insert(connection, _CALL, made.calls)
            _insert(connection, _ATTEMPT, made.attempts)
            _insert(connection, _RAW, made.raw)
            for statement in _ROLLUPS:
                connection.execute(statement, found)
            for statement in spans.reopening({row[_HOUR] for row in made.calls}):
                connection.execute(statement)
        return failed

    def add_counts(self, rollup: rollups.Rollup, counts: Sequence[Sequence[Any]]) -> None:
        with self._transaction(True) as connection:
            connection.executemany(rollup.addition(), counts)
            connection.execute("DELETE FROM spans")  # of whichever days it was

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        cursor = self.connection().cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(sql, parameters).fetchall()

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        with self._transaction(True) as connection:
            for sql, parameters in statements:
                connection.execute(sql, parameters)

    def prune(self, *, at_once: bool = False) -> bool:
        now = self._clock.time()
        if now < self._prune_at and not at_once:
            return False
        keeping = self._keeping
        oldest = now - keeping.calls_days * 86_400
        with self._transaction(False) as connection:
            row = connection.execute("SELECT min(id), max(id) FROM calls").fetchone()
            surplus = (row[1] or 0) - keeping.calls_rows
            ids = connection.execute(
                "SELECT id FROM calls WHERE started < ? ORDER BY started LIMIT ?",
                (oldest, _PRUNED_AT_ONCE),
            ).fetchall()
            if len(ids) < _PRUNED_AT_ONCE:
                ids += connection.execute(
                    "SELECT id FROM calls WHERE id <= ? ORDER BY id LIMIT ?",
                    (surplus, _PRUNED_AT_ONCE - len(ids)),
                ).fetchall()
            connection.executemany("DELETE FROM attempts WHERE call=?", ids)
            connection.executemany("DELETE FROM calls WHERE id=?", ids)
            connection.execute(
                "DELETE FROM raw_answers WHERE at < ?", (now - keeping.raw_days * 86_400,)
            )
            if len(ids) < _PRUNED_AT_ONCE:
                connection.execute(
                    "DELETE FROM claims WHERE key IN (SELECT key FROM claims WHERE settled_at < ?"
                    " AND state IN ('done', 'not_done') LIMIT ?)",
                    (oldest, _PRUNED_AT_ONCE),
                )
                connection.execute("DELETE FROM prevented WHERE at < ?", (oldest,))
                for rollup in rollups.ALL:
                    connection.execute(
                        f"DELETE FROM {rollup.table} WHERE {rollup.period} < ?",  # noqa: S608
                        (now - keeping.figures_days * 86_400,),
                    )
                for statement in spans.expired(now - keeping.figures_days * 86_400):
                    connection.execute(statement)
        more = len(ids) >= _PRUNED_AT_ONCE
        if not more:
            self._prune_at = now + _PRUNE_EVERY
        return more

    def sum_up(self, *, at_once: bool = False) -> bool:
        now = self._clock.time()
        if now < self._sum_up_at and not at_once:
            return False
        if spans.following(self._ask, now) is not None:
            with self._transaction(False) as connection:
                wanted = spans.following(self._ask, now)  # another process may have been faster
                if wanted is not None:
                    for statement in spans.summing(*wanted):
                        connection.execute(statement)
                    return True
        self._sum_up_at = now + spans.EVERY
        return False

    def _ask(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        return self.connection().execute(sql, parameters).fetchall()

    @contextmanager
    def _transaction(self, durable: bool) -> Iterator[sqlite3.Connection]:
        """One immediate transaction; after any error the connection is closed, the next is new."""
        connection = self.connection()
        try:
            mode = "FULL" if durable else "NORMAL"
            if self._synchronous != mode:
                connection.execute(f"PRAGMA synchronous={mode}")
                self._synchronous = mode
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # perhaps none was open, or it is gone already
                connection.execute("ROLLBACK")
            if not self.in_memory:
                self.close()
            raise


class _Claims:
    """The table ``claims``, inside a transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, key: str) -> StoredClaim | None:
        return stored_claim(self._connection.execute(_BY_KEY, (key,)).fetchone())

    def find_open(
        self, run_id: str, fingerprint: str, key: str, now: float, owner: str
    ) -> StoredClaim | None:
        found = self._connection.execute(_OPEN, (run_id, fingerprint, key, now, owner))
        claims = filter(None, map(stored_claim, found))
        return next((claim for claim in claims if claim.stands_against(owner, now)), None)

    def grant(self, grant: Grant) -> None:
        values = (getattr(grant, name) for name in Grant.__slots__)  # type: ignore[attr-defined]
        self._connection.execute(_GRANT, tuple(values))

    def settle(self, key: str, state: Settled, now: float, result: str | None) -> None:
        self._connection.execute(_SETTLE, (state, now, result, key))

    def prevent(self, now: float, ids: Sequence[str], state: str) -> None:
        self._connection.execute(_PREVENTED, (now, *ids, state))


_UNSTORABLE = (UnicodeError, OverflowError, sqlite3.IntegrityError, sqlite3.ProgrammingError)


def _insert(connection: sqlite3.Connection, sql: str, batch: list[tuple[Any, ...]]) -> int:
    """Insert all; gives back how many could not be, each tried alone once the whole failed."""
    if not batch:
        return 0
    try:
        connection.execute("SAVEPOINT batch")
        connection.executemany(sql, batch)
        connection.execute("RELEASE batch")
        return 0
    except _UNSTORABLE:
        connection.execute("ROLLBACK TO batch")
        connection.execute("RELEASE batch")
    failed = 0
    for row in batch:
        try:
            connection.execute(sql, tuple(map(storable, row)))
        except _UNSTORABLE:
            failed += 1
    return failed
