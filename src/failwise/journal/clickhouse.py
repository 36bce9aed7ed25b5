"""The journal in ClickHouse: records and rollups. It keeps no claims, because it cannot grant one of
two that come at once; `Journal` keeps them beside it."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import clickhouse_schema as schema
from failwise.journal import rollups, rows
from failwise.journal.clickhouse_client import Client, connect
from failwise.journal.ledger import storable
from failwise.journal.named import DatabaseError, named_rows
from failwise.journal.numbers import Numbers
from failwise.journal.place import Target, censored
from failwise.journal.requests import Claiming, Settling
from failwise.journal.store import Keeping
from failwise.vocabulary.errors import ConfigurationError, FailwiseError, UsageError
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed

_READ = (
    " SETTINGS prefer_column_name_to_alias = 1, output_format_json_quote_64bit_integers = 0,"
    " output_format_json_quote_denormals = 1"
)
_WRITE = {
    "deduplicate_blocks_in_dependent_materialized_views": "1",
    "max_partitions_per_insert_block": "0",
    "input_format_null_as_default": "1",
}
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "attempts": rows.ATTEMPT_COLUMNS,
    "raw_answers": (*rows.RAW_COLUMNS, "hour"),
    "calls": rows.CALL_COLUMNS,
}
_HOUR = rows.CALL_COLUMNS.index("hour")
_PRUNE_EVERY = 300.0
_NO_CLAIMS = (
    "ClickHouse keeps no claims, because it cannot grant one of two that come at once: "
    "say Journal(..., claims=) with an SQLite file or a PostgreSQL URL"
)


class _Batch:
    """Rows that are on their way; sent again as they are until they have arrived."""

    __slots__ = ("dealt", "failed", "left", "token")

    def __init__(self, token: str, made: rows.Built, dealt: int) -> None:
        self.token, self.dealt = token, dealt
        self.failed = dealt - len(made.calls)
        hours = {row[0]: row[_HOUR] for row in made.calls}
        blocks = {
            "attempts": made.attempts,
            "raw_answers": [(*row, hours[row[0]]) for row in made.raw],
            "calls": made.calls,
        }
        self.left = {table: _block(block) for table, block in blocks.items() if block}


class ClickHouseStore:
    """One journal in ClickHouse (see `Store`). Raises `DatabaseError` or `ConfigurationError`;
    claims are refused with `UsageError`."""

    in_memory = False

    def __init__(self, target: Target, keeping: Keeping) -> None:
        self._target = target
        self._keeping = keeping
        self._redactor = keeping.redactor
        self._client: Client | None = None
        self._numbers = Numbers()
        self._count = 0
        self._batch: _Batch | None = None
        self._prune_at = -math.inf

    @property
    def redactor(self) -> rows.Redactor:
        if self._redactor is None:
            from failwise.redaction import default

            self._redactor = default()
        return self._redactor

    def client(self) -> Client:
        """The open client, opened now if need be, its tables made or brought forward."""
        if self._client is None:
            client = connect(self._target)
            try:
                schema.migrate(client.command, _version(client), self._target.shown)
                self._set_expiry(client)
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def _set_expiry(self, client: Client) -> None:
        """Rows expire by themselves, after the days that are wanted now."""
        keeping = self._keeping
        for table, days in (
            ("calls", keeping.calls_days),
            ("attempts", keeping.calls_days),
            ("raw_answers", keeping.raw_days),
            *((rollup.table, keeping.figures_days) for rollup in rollups.ALL),
        ):
            moment = "day" if table == rollups.LATENCY_DAYS.table else "hour"
            wanted = schema.expiry(moment, days)
            found = _rows(
                client.query(
                    "SELECT create_table_query FROM system.tables"  # noqa: S608 (constants only)
                    f" WHERE database = currentDatabase() AND name = '{table}'" + _READ
                )
            )
            if found and wanted not in found[0][0]:
                client.command(
                    f"ALTER TABLE {table} MODIFY TTL {wanted}"
                    " SETTINGS materialize_ttl_after_modify = 0"
                )

    def check(self) -> None:
        try:
            client = connect(self._target)
            found = _version(client)
        except FailwiseError:
            raise
        except Exception as error:
            self._raise(error)
        if found == 0:
            client.close()
            raise ConfigurationError("there is no journal here", file=self._target.shown)
        schema.migrate(client.command, found, self._target.shown)
        self._client = client

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # it may be gone; nothing is lost by it
                client.close()

    def abandon(self) -> object:
        client, self._client = self._client, None
        self._numbers, self._batch = Numbers(), None
        return client

    def effects(self, batch: Sequence[Claiming | Settling]) -> list[Claimed | Exception | None]:
        raise UsageError(_NO_CLAIMS)

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        raise UsageError(_NO_CLAIMS)

    def records(
        self, batch: Sequence[ToolResult[Any] | rows.Plain], pause: Callable[[], bool] | None = None
    ) -> tuple[int, int]:
        if self._batch is None:
            keeping = self._keeping
            first = self._numbers.take(len(batch))
            made = rows.built(batch, first, self.redactor, keeping.raw, keeping.raw_bytes)
            self._batch = self._noted(made, len(batch))
        return self._send(self._batch)

    def load(self, made: rows.Built) -> int:
        first = self._numbers.take(len(made.calls))
        self._batch = self._noted(rows.renumbered(made, first - 1), len(made.calls))
        return self._send(self._batch)[1]

    def add_counts(self, rollup: rollups.Rollup, counts: Sequence[Sequence[Any]]) -> None:
        try:
            self.client().insert(rollup.table, rollup.columns, _block(counts), _WRITE)
        except FailwiseError:
            raise
        except Exception as error:
            self.close()
            self._raise(error)

    def _noted(self, made: rows.Built, dealt: int) -> _Batch:
        self._count += 1
        return _Batch(f"{self._numbers.name}-{self._count}", made, dealt)

    def _send(self, sending: _Batch) -> tuple[int, int]:
        try:
            client = self.client()
            for table in list(sending.left):
                token = {"insert_deduplication_token": f"{sending.token}-{table}"}
                client.insert(table, _COLUMNS[table], sending.left[table], _WRITE | token)
                del sending.left[table]
        except FailwiseError:
            raise
        except Exception as error:
            self.close()
            self._raise(error)
        self._batch = None
        return sending.dealt, sending.failed

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return _rows(self.client().query(filled(sql, parameters) + _READ))
        except FailwiseError:
            raise
        except Exception as error:
            self.close()
            self._raise(error)

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        try:
            for sql, parameters in statements:
                self.client().command(filled(sql, parameters))
        except FailwiseError:
            raise
        except Exception as error:
            self.close()
            self._raise(error)

    def prune(self, *, at_once: bool = False) -> bool:
        """Rows expire by themselves; this removes at once what did, and what is too much."""
        import time

        keeping = self._keeping
        now = keeping.clock.time() if keeping.clock is not None else time.time()
        if now < self._prune_at and not at_once:
            return False
        oldest = now - keeping.calls_days * 86_400
        beyond = self.rows(
            "SELECT started FROM calls ORDER BY started DESC, id DESC LIMIT 1 OFFSET ?",
            (max(0, keeping.calls_rows - 1),),
        )
        cut = max(oldest, beyond[0][0]) if beyond else oldest
        statements: list[tuple[str, Sequence[Any]]] = [
            ("DELETE FROM calls WHERE started < ?", (cut,)),
            ("DELETE FROM attempts WHERE at < ?", (cut,)),
            ("DELETE FROM raw_answers WHERE at < ?", (now - keeping.raw_days * 86_400,)),
        ]
        kept_from = (int(now - keeping.figures_days * 86_400),)
        statements += [
            (f"DELETE FROM {rollup.table} WHERE {rollup.period} < ?", kept_from)  # noqa: S608
            for rollup in rollups.ALL
        ]
        for sql, parameters in statements:
            # A deletion costs a rewrite: only where there is something to delete.
            looked = sql.replace("DELETE", "SELECT 1", 1) + " LIMIT 1"
            if self.rows(looked, parameters):
                self.write([(sql, parameters)])
        self._prune_at = now + _PRUNE_EVERY
        return False

    def sum_up(self, *, at_once: bool = False) -> bool:
        """Nothing: a column of a year's hours is summed while it is asked for."""
        return False

    def _raise(self, error: Exception) -> NoReturn:
        raise DatabaseError(censored(error, self._target)[:2_000]) from None


def _version(client: Client) -> int:
    found = _rows(
        client.query(
            "SELECT count() FROM system.tables WHERE database = currentDatabase()"  # noqa: S608
            " AND name = 'meta'" + _READ
        )
    )
    if not found[0][0]:
        return 0
    versions = _rows(
        client.query(
            "SELECT max(toUInt32(value)) FROM meta"  # noqa: S608 (constants only)
            " WHERE name = 'schema_version'" + _READ
        )
    )
    return int(versions[0][0])


def _rows(answer: bytes) -> list[Any]:
    data = json.loads(answer)
    names = [column["name"] for column in data["meta"]]
    real = [place for place, column in enumerate(data["meta"]) if "Float" in column["type"]]
    for row in data["data"]:
        for place in real:
            if row[place] is not None:
                row[place] = float(row[place])
    return named_rows(names, data["data"])


def _block(batch: Sequence[Sequence[Any]]) -> bytes:
    try:
        return b"\n".join(
            json.dumps(list(map(_finite, row)), ensure_ascii=False).encode() for row in batch
        )
    except UnicodeEncodeError:  # half a surrogate pair somewhere
        return b"\n".join(
            json.dumps([_finite(storable(value)) for value in row], ensure_ascii=False).encode()
            for row in batch
        )


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0 if math.isnan(value) else math.copysign(1e308, value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\0": "\\0", "\n": "\\n", "\r": "\\r"})


def filled(sql: str, parameters: Sequence[Any]) -> str:
    """SQL with its values in the place of each ``?``."""
    values = iter(parameters)
    return re.sub(r"\?", lambda _: _literal(next(values)), sql)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return repr(_finite(value))
    return "'" + str(storable(str(value))).translate(_ESCAPES) + "'"
