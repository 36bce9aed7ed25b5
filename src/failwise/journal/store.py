"""The journal's side of SQLite: transactions over claims and records. Synchronous; one user at a time."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from failwise.effects.claims import Settled, StoredClaim, decide_claim, decide_settlement
from failwise.journal import place as places
from failwise.journal import rows, schema
from failwise.journal.requests import Claiming, Settling
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed

_CLAIM_COLUMNS = (
    "key, run_id, fingerprint, tool, call_id, state, owner, claimed_at, lease_until, generation,"
    " settled_at, result"
)
_BY_KEY = f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE key=?"  # noqa: S608 (constants only)
_OPEN = (
    f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE run_id=? AND fingerprint=? AND key<>?"  # noqa: S608
    " AND (state='unknown' OR (state='claimed' AND lease_until<=?)) ORDER BY claimed_at LIMIT 1"
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
_HELD = 100_000
_PRUNED_AT_ONCE = 1_000
_PRUNE_EVERY = 300.0


class Store:
    """One open journal. Every method is a transaction of its own and raises `sqlite3.Error`,
    `OSError` or `ConfigurationError` where it cannot be; the next one opens the file afresh."""

    def __init__(
        self,
        place: str,
        redactor: rows.Redactor | None,
        clock: Clock,
        retention_days: float,
        retention_rows: int,
        lock_timeout: float = 5.0,
    ) -> None:
        self.place = place
        self._redactor = redactor
        self._clock = clock
        self._lock_timeout = lock_timeout
        self._retention = retention_days * 86_400, retention_rows
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._opened_place = place
        self._held: dict[str, int] = {}
        self._prune_at = 0.0
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
        self._connection = schema.connect(self._opened_place, timeout=self._lock_timeout)
        self._synchronous = "NORMAL"
        if self._opened_place != places.MEMORY:
            status = os.stat(self._opened_place)
            self._identity = status.st_dev, status.st_ino
        return self._connection

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
        """Forget the connection without touching it (after a fork it is another process's)."""
        connection, self._connection = self._connection, None
        self._held.clear()
        self._opened_place = self.place
        return connection

    def effects(self, batch: Sequence[Claiming | Settling]) -> list[Claimed | Exception | None]:
        """Claims and settlements in order, in one transaction; claims are on disk on return."""
        durable = any(isinstance(item, Claiming) for item in batch)
        prepared = [self._prepared(item) for item in batch]
        granted: list[tuple[str, int]] = []
        answers: list[Claimed | Exception | None] = []
        with self._transaction(durable) as connection:
            now = self._clock.time()
            for item, text in zip(batch, prepared, strict=True):
                if isinstance(text, Exception):
                    answers.append(text)
                elif isinstance(item, Settling):
                    self._settle(connection, item, text, now)
                    answers.append(None)
                else:
                    answers.append(self._claim(connection, item, text, now, granted))
        for key, generation in granted:
            self._held.pop(key, None)
            self._held[key] = generation
        while len(self._held) > _HELD:
            del self._held[next(iter(self._held))]
        return answers

    def _prepared(self, item: Claiming | Settling) -> str | Exception | None:
        try:
            if isinstance(item, Claiming):
                return rows.arguments_json(item.step.arguments, self.redactor)
            return rows.result_json(item.result, self.redactor) if item.result else None
        except Exception as error:
            # A settlement counts without its result; a claim nobody could settle later does not.
            return error if isinstance(item, Claiming) else None

    def _claim(
        self,
        connection: sqlite3.Connection,
        item: Claiming,
        arguments: str | None,
        now: float,
        granted: list[tuple[str, int]],
    ) -> Claimed:
        step = item.step
        key, run_id, fingerprint, tool, call_id = ids = tuple(
            map(_storable, (step.key, step.run_id, step.fingerprint, step.tool, step.call_id))
        )
        existing = stored_claim(connection.execute(_BY_KEY, (key,)).fetchone())
        open_effect = None
        if run_id:  # calls outside of any run have nothing in common
            found = connection.execute(_OPEN, (run_id, fingerprint, key, now))
            open_effect = stored_claim(found.fetchone())
        answer = decide_claim(existing, open_effect, step, now)
        if answer.state == "granted":
            generation = existing.generation + 1 if existing else 1
            lease = (item.owner, now, now + item.lease, generation, arguments)
            connection.execute(_GRANT, ids + lease)
            granted.append((step.key, generation))
        elif answer.state != "in_flight":
            connection.execute(_PREVENTED, (now, key, run_id, tool, call_id, answer.state))
        return answer

    def _settle(
        self, connection: sqlite3.Connection, item: Settling, result: str | None, now: float
    ) -> bool:
        existing = stored_claim(connection.execute(_BY_KEY, (item.key,)).fetchone())
        if existing is None:
            return False
        holder = self._held.get(item.key)
        if not decide_settlement(existing, item.state, now, holder=holder):
            return False
        connection.execute(_SETTLE, (item.state, now, result, item.key))
        return True

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        """Settle an open effect by a person's word; gives back the claim as it was.

        Raises `UsageError` where there is no such claim, it is done, or it is being sent now.
        """
        with self._transaction(True) as connection:
            now = self._clock.time()
            existing = stored_claim(connection.execute(_BY_KEY, (key,)).fetchone())
            if existing is None:
                raise UsageError(f"no effect has the key {key}")
            if state != existing.state and not decide_settlement(existing, state, now):
                found = "is done" if existing.state == "done" else "is being sent just now"
                raise UsageError(f"effect {key} of {existing.tool} {found}: it cannot be {state}")
            connection.execute(_SETTLE, (state, now, None, key))
        return existing

    def records(
        self, batch: Sequence[ToolResult[Any] | rows.Plain], pause: Callable[[], bool] | None = None
    ) -> tuple[int, int]:
        """Write finished calls; gives back how many were dealt with and how many of them were
        impossible to store. `pause()` is asked now and then: True ends the transaction early."""
        dealt = failed = 0
        redactor = self.redactor
        with self._transaction(False) as connection:
            found = connection.execute("SELECT coalesce(max(id), 0) FROM calls").fetchone()
            number = int(found[0])
            while dealt < len(batch):
                chunk = batch[dealt : dealt + 32]
                calls: list[tuple[Any, ...]] = []
                attempts: list[tuple[Any, ...]] = []
                for result in chunk:
                    number += 1
                    try:
                        calls.append(rows.call_row(number, result, redactor))
                        if not isinstance(result, tuple) and result.attempts:
                            attempts += rows.attempt_rows(number, result, redactor)
                    except Exception:  # one record that cannot be built must not cost the others
                        failed += 1
                failed += _insert(connection, rows.CALL, calls)
                _insert(connection, rows.ATTEMPT, attempts)
                dealt += len(chunk)
                if pause is not None and pause():
                    break
        return dealt, failed

    def prune(self) -> bool:
        """Remove what is too old or too much, a bounded piece of it; True when there is more.

        Claims that are open are kept for ever: a person has to settle them.
        """
        now = self._clock.time()
        if now < self._prune_at:
            return False
        age, limit = self._retention
        with self._transaction(False) as connection:
            row = connection.execute("SELECT min(id), max(id) FROM calls").fetchone()
            surplus = (row[1] or 0) - limit
            ids = connection.execute(
                "SELECT id FROM calls WHERE started < ? ORDER BY started LIMIT ?",
                (now - age, _PRUNED_AT_ONCE),
            ).fetchall()
            if len(ids) < _PRUNED_AT_ONCE:
                ids += connection.execute(
                    "SELECT id FROM calls WHERE id <= ? ORDER BY id LIMIT ?",
                    (surplus, _PRUNED_AT_ONCE - len(ids)),
                ).fetchall()
            connection.executemany("DELETE FROM attempts WHERE call=?", ids)
            connection.executemany("DELETE FROM calls WHERE id=?", ids)
            if len(ids) < _PRUNED_AT_ONCE:
                connection.execute(
                    "DELETE FROM claims WHERE key IN (SELECT key FROM claims WHERE settled_at < ?"
                    " AND state IN ('done', 'not_done') LIMIT ?)",
                    (now - age, _PRUNED_AT_ONCE),
                )
                connection.execute("DELETE FROM prevented WHERE at < ?", (now - age,))
        more = len(ids) >= _PRUNED_AT_ONCE
        if not more:
            self._prune_at = now + _PRUNE_EVERY
        return more

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


def stored_claim(row: Sequence[Any] | None) -> StoredClaim | None:
    """A row of `claims` as the rules read it."""
    if row is None:
        return None
    return StoredClaim(*[*row[:-1], rows.result_from_json(row[-1], row[3])])


def _insert(connection: sqlite3.Connection, sql: str, batch: list[tuple[Any, ...]]) -> int:
    """Insert all; gives back how many could not be, each tried alone once the whole failed."""
    if not batch:
        return 0
    try:
        connection.execute("SAVEPOINT batch")
        connection.executemany(sql, batch)
        connection.execute("RELEASE batch")
        return 0
    except (UnicodeError, OverflowError, sqlite3.IntegrityError, sqlite3.ProgrammingError):
        connection.execute("ROLLBACK TO batch")
        connection.execute("RELEASE batch")
    failed = 0
    for row in batch:
        try:
            connection.execute(sql, tuple(map(_storable, row)))
        except (UnicodeError, OverflowError, sqlite3.IntegrityError, sqlite3.ProgrammingError):
            failed += 1
    return failed


def _storable(value: Any) -> Any:
    """A lone surrogate is no UTF-8, an integer beyond 64 bits no number of SQLite's."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value
