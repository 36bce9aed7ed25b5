"""The journal in PostgreSQL: claims that many machines share, records by COPY, rollups by upsert."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qsl, urlencode

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import postgres_schema as schema
from failwise.journal import rollups, rows, spans
from failwise.journal.ledger import Ledger, storable
from failwise.journal.named import DatabaseError, named_rows
from failwise.journal.numbers import Numbers
from failwise.journal.place import Target, censored
from failwise.journal.postgres_claims import grant_new, load
from failwise.journal.postgres_days import DATED, make_day
from failwise.journal.postgres_upkeep import prune, sum_up
from failwise.journal.requests import Claiming, Settling
from failwise.journal.rollups import DAY
from failwise.journal.store import Keeping
from failwise.vocabulary.errors import ConfigurationError, FailwiseError
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

_TABLES = {
    "calls": rows.CALL_COLUMNS,
    "attempts": rows.ATTEMPT_COLUMNS,
    "raw_answers": rows.RAW_COLUMNS,
}
_COPIES = {
    table: f"COPY {table} ({', '.join(columns)}) FROM STDIN" for table, columns in _TABLES.items()
}
_INSERTS = {
    table: f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({','.join(['%s'] * len(columns))})"  # noqa: S608
    for table, columns in _TABLES.items()
}
_STARTED = rows.CALL_COLUMNS.index("started")
_HOUR = rows.CALL_COLUMNS.index("hour")
_CHUNK = 64
_PRUNE_EVERY = 300.0
_STATEMENT_MS = 60_000
_WORK = "64MB"
"""Memory of one sorting or hashing: with less, reports sort what they could hash, at thrice the cost."""
_NUMERIC = 1700
"""The type's number in every PostgreSQL."""


class _MissingDay(Exception):
    """A partition that was there is gone."""


class PostgresStore:
    """One connection to a journal in PostgreSQL (see `Store`). Raises `DatabaseError` or
    `ConfigurationError`. The server's clock counts for leases, so that machines agree."""

    in_memory = False

    def __init__(self, target: Target, keeping: Keeping) -> None:
        self._target = target
        self._keeping = keeping
        self._redactor = keeping.redactor
        self._conninfo, self._schema = _conninfo(target)
        self._connection: Connection[Any] | None = None
        self._ledger = Ledger()
        self._numbers = Numbers()
        self._days: set[int] = set()
        self._batch = 0
        self._uncertain: tuple[int, int, int, int] | None = None
        self._prune_at = self._sum_up_at = -math.inf

    @property
    def redactor(self) -> rows.Redactor:
        if self._redactor is None:
            from failwise.redaction import default

            self._redactor = default()
        return self._redactor

    def connection(self) -> "Connection[Any]":
        """The open connection, opened now if need be, its tables made or brought forward."""
        if self._connection is None:
            connection = self._connect()
            try:
                schema.migrate(connection, self._schema, self._target.shown)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _connect(self) -> "Connection[Any]":
        try:
            import psycopg
        except ImportError as error:
            raise ConfigurationError(
                "a journal in PostgreSQL needs psycopg: pip install 'failwise[postgres]'"
            ) from error
        connection = psycopg.connect(
            self._conninfo, autocommit=True, fallback_application_name="failwise"
        )
        lock_ms = max(1, int(self._keeping.lock_timeout * 1000))
        connection.execute(
            f'SET search_path TO "{self._schema}"; SET lock_timeout = {lock_ms};'
            f" SET statement_timeout = {_STATEMENT_MS}; SET work_mem = '{_WORK}';"
            " SET default_transaction_isolation = 'read committed';"
            # What is acknowledged must be on disk, whatever the server is used to.
            " SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        return connection

    def check(self) -> None:
        with self._said():
            connection = self._connect()
            try:
                if schema.version(connection, self._schema) == 0:
                    raise ConfigurationError(
                        f"there is no journal here (schema {self._schema})", file=self._target.shown
                    )
                schema.migrate(connection, self._schema, self._target.shown)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be broken; nothing is lost by it
                connection.close()

    def abandon(self) -> object:
        connection, self._connection = self._connection, None
        self._ledger.forget()
        self._numbers = Numbers()
        self._uncertain = None
        return connection

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """After any error the connection is closed, the next is new; no secret leaves."""
        try:
            yield
        except FailwiseError:
            self._reset()
            raise
        except Exception as error:
            self.close()
            self._raise(error)
        except BaseException:
            self.close()
            raise

    def _reset(self) -> None:
        connection = self._connection
        if connection is not None:
            try:
                connection.execute("ROLLBACK")
            except Exception:
                self.close()

    def _raise(self, error: Exception) -> NoReturn:
        raise DatabaseError(censored(error, self._target)) from None

    # -- effects -----------------------------------------------------------------------------------

    def effects(self, batch: Sequence[Claiming | Settling]) -> list[Claimed | Exception | None]:
        prepared = self._ledger.prepare(batch, self.redactor)
        with self._said():
            connection = self.connection()
            item, text = batch[0], prepared[0]
            if (
                len(batch) == 1
                and isinstance(item, Claiming)
                and not isinstance(text, Exception)
                and grant_new(connection, item, text, self._keeping.clock)
            ):
                self._ledger.hold([(item.step.key, 1)])
                return [Claimed("granted", key=item.step.key)]
            claims = [item.step for item in batch if isinstance(item, Claiming)]
            keys = {storable(step.key) for step in claims}
            keys |= {storable(item.key) for item in batch if isinstance(item, Settling)}
            runs = {(storable(step.run_id), storable(step.fingerprint)) for step in claims}
            table, now = load(
                connection, keys, {run for run in runs if run[0]}, self._keeping.clock
            )
            answers, granted = self._ledger.apply(batch, prepared, table, now)
            table.store(connection)
        self._ledger.hold(granted)
        return answers

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        with self._said():
            connection = self.connection()
            table, now = load(connection, {key}, set(), self._keeping.clock)
            existing = self._ledger.resolve(table, key, state, now)
            table.store(connection)
        return existing

    # -- records -----------------------------------------------------------------------------------

    def records(
        self, batch: Sequence[ToolResult[Any] | rows.Plain], pause: Callable[[], bool] | None = None
    ) -> tuple[int, int]:
        with self._said():
            before = self._settled_doubt()
        if before is not None:
            return before
        dealt, keeping = 0, self._keeping
        first = self._numbers.take(len(batch))
        made = rows.Built([], [], [])
        while dealt < len(batch):
            chunk = batch[dealt : dealt + _CHUNK]
            part = rows.built(chunk, first + dealt, self.redactor, keeping.raw, keeping.raw_bytes)
            for rows_of_all, rows_of_part in zip(made, part, strict=True):
                rows_of_all.extend(rows_of_part)
            dealt += len(chunk)
            if pause is not None and pause():
                break
        failed = dealt - len(made.calls)
        return dealt, failed + self._send(made, first, dealt, failed)

    def load(self, made: rows.Built) -> int:
        count = len(made.calls)
        first = self._numbers.take(count)
        with self._said():
            self._settled_doubt()
        return self._send(rows.renumbered(made, first - 1), first, count, 0)

    def add_counts(self, rollup: rollups.Rollup, counts: Sequence[Sequence[Any]]) -> None:
        sql = _spelled(rollup.addition(least="least", greatest="greatest", shard="0"))
        with self._said(), self.connection().transaction(), self.connection().cursor() as cursor:
            cursor.executemany(sql, counts)
            cursor.execute("DELETE FROM spans")  # of whichever days it was

    def _send(self, made: rows.Built, first: int, dealt: int, failed: int) -> int:
        """`_write`, and once more where a day was dropped meanwhile: records that old are rare."""
        with self._said():
            connection = self.connection()
            try:
                return self._write(connection, made, first, dealt, failed)
            except _MissingDay:
                connection.execute("ROLLBACK")
                self._days.clear()
                return self._write(connection, made, first, dealt, failed)

    def _write(
        self, connection: "Connection[Any]", made: rows.Built, first: int, dealt: int, failed: int
    ) -> int:
        """One batch in one transaction; gives how many calls could not be stored."""
        if not made.calls:
            return 0
        self._make_days(connection, made.calls)
        connection.execute("BEGIN")
        # Attempts first: whoever reads both locks them in this order, and whoever drops days too.
        _copy(connection, "attempts", made.attempts)
        lost = _copy(connection, "calls", made.calls)
        _copy(connection, "raw_answers", made.raw)
        moments = [row[_STARTED] for row in made.calls]
        values = {
            "first": first,
            "last": first + dealt - 1,
            "since": min(moments),
            "until": max(moments),
            "shard": self._numbers.name % schema.SHARDS,
        }
        if any(map(math.isnan, moments)):
            values |= {"since": -math.inf, "until": math.nan}
        self._batch += 1
        with connection.pipeline():
            for table, statement in _ROLLUPS.items():
                if table != rollups.ATTEMPTS.table or made.attempts:
                    connection.execute(statement, values)
            # After the rollups: whoever sums up just now holds them until it is done.
            for statement in spans.reopening({row[_HOUR] for row in made.calls}):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO writers VALUES (%s, %s, extract(epoch FROM now())) ON CONFLICT (writer)"
                " DO UPDATE SET batch = excluded.batch, at = excluded.at",
                (self._numbers.name, self._batch),
            )
        # From here until the answer comes nobody knows: the next call finds out.
        self._uncertain = self._numbers.name, self._batch, dealt, failed + lost
        connection.execute("COMMIT")
        self._uncertain = None
        return lost

    def _settled_doubt(self) -> tuple[int, int] | None:
        """What became of a batch whose commit broke off: as it was counted, if it is in."""
        if self._uncertain is None:
            return None
        writer, batch, dealt, failed = self._uncertain
        found = self.connection().execute("SELECT batch FROM writers WHERE writer = %s", (writer,))
        row = found.fetchone()
        self._uncertain = None
        return (dealt, failed) if row is not None and row[0] >= batch else None

    def _make_days(self, connection: "Connection[Any]", calls: Sequence[Sequence[Any]]) -> None:
        wanted = {
            int(row[_STARTED] // DAY) * DAY
            for row in calls
            if isinstance(row[_STARTED], int | float) and DATED.start <= row[_STARTED] < DATED.stop
        }
        for day in sorted(wanted - self._days):
            make_day(connection, day)
            self._days.add(day)

    # -- reading, pruning --------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._said():
            cursor = self.connection().execute(_spelled(sql), list(parameters))
            columns = cursor.description or ()
            found: list[Any] = cursor.fetchall()
            # The sum of whole numbers is NUMERIC here; it is a whole number all the same.
            sums = [place for place, column in enumerate(columns) if column.type_code == _NUMERIC]
            if sums:
                found = [_whole(row, sums) for row in found]
            return named_rows([column.name for column in columns], found)

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        with self._said(), self.connection().transaction():
            for sql, parameters in statements:
                self.connection().execute(_spelled(sql), list(parameters))

    def sum_up(self, *, at_once: bool = False) -> bool:
        now = self._now()
        if now < self._sum_up_at and not at_once:
            return False
        with self._said():
            more = sum_up(self.connection(), now)
        if not more:
            self._sum_up_at = now + spans.EVERY
        return more

    def _now(self) -> float:
        import time

        clock = self._keeping.clock
        return clock.time() if clock is not None else time.time()

    def prune(self, *, at_once: bool = False) -> bool:
        now = self._now()
        if now < self._prune_at and not at_once:
            return False
        with self._said():
            connection = self.connection()
            # One process prunes; the others need not wait for it.
            found = connection.execute("SELECT pg_try_advisory_lock(%s)", (_PRUNING,)).fetchone()
            more = False
            if found and found[0]:
                try:
                    more = prune(connection, self._keeping, now, self._days)
                finally:
                    if not connection.closed:
                        connection.execute("SELECT pg_advisory_unlock(%s)", (_PRUNING,))
        if not more:
            self._prune_at = now + _PRUNE_EVERY
        return more


_ROLLUPS = schema.rollup_statements()
_PRUNING = schema.LOCK + 1
"""The advisory lock of whoever prunes."""


def _copy(connection: "Connection[Any]", table: str, batch: list[tuple[Any, ...]]) -> int:
    """COPY all; gives back how many could not be, each tried alone once the whole failed."""
    if not batch:
        return 0
    import psycopg

    unstorable = (psycopg.DataError, psycopg.IntegrityError, UnicodeError, ValueError)
    try:
        with connection.transaction(), connection.cursor() as cursor:
            _copy_rows(cursor, table, batch)
            return 0
    except psycopg.errors.CheckViolation as error:
        raise _MissingDay from error
    except unstorable:
        failed = 0
    for row in batch:
        try:
            with connection.transaction():
                connection.execute(_INSERTS[table], [storable(value) for value in row])
        except unstorable:
            failed += 1
    return failed


def _copy_rows(cursor: "Cursor[Any]", table: str, batch: list[tuple[Any, ...]]) -> None:
    with cursor.copy(_COPIES[table]) as copy:
        for row in batch:
            copy.write_row(row)


def _spelled(sql: str) -> str:
    """The journal's own dialect in psycopg's."""
    return sql.replace("%", "%%").replace("?", "%s")


def _whole(row: Sequence[Any], places: Sequence[int]) -> list[Any]:
    values = list(row)
    for place in places:
        value = values[place]
        if value is not None:
            values[place] = int(value) if value == int(value) else float(value)
    return values


def _conninfo(target: Target) -> tuple[str, str]:
    """What libpq takes, and the schema's name. Raises `ConfigurationError` for an odd name."""
    front, _, query = target.address.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    name = options.pop("schema", schema.SCHEMA)
    if not name.replace("_", "").isalnum() or not name.isascii():
        raise ConfigurationError(f"schema={name}: write letters, digits and _", file=target.shown)
    options.setdefault("connect_timeout", "5")
    return f"postgresql://{front.partition('://')[2]}?{urlencode(options)}", name
