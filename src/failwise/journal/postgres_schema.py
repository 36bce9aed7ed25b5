"""The journal's tables in PostgreSQL, and how older ones are brought forward. Forward only.

``calls`` and ``attempts`` are partitioned by day (UTC) of the call's beginning; the partitions are
made as they are needed and dropped when they are too old. Rollups have a `shard`, so that processes
that write at once do not wait for each other's rows; readers sum.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwise.journal import rollups
from failwise.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "failwise"
"""Where the tables live, unless the URL says ``?schema=``."""
SHARDS = 8
LOCK = 0x6661696C77697365
"""The advisory lock for whoever changes tables."""

_DIMENSIONS = (
    "tool text NOT NULL, upstream text NOT NULL, model text NOT NULL, provider text NOT NULL,"
    " category text NOT NULL, code text NOT NULL"
)
_LATENCY = (
    "CREATE TABLE {table} ({period} bigint NOT NULL, bucket integer NOT NULL, "
    + _DIMENSIONS
    + ", asked smallint NOT NULL, shard smallint NOT NULL, calls bigint NOT NULL, PRIMARY KEY"
    " ({period}, bucket, tool, upstream, model, provider, category, code, asked, shard))"
)
_FIRST = (
    "CREATE TABLE calls ("
    " id bigint NOT NULL, call_id text NOT NULL, run_id text NOT NULL, parent_id text,"
    " tool text NOT NULL, started double precision NOT NULL, duration_ms double precision NOT NULL,"
    " latency_bucket integer NOT NULL, success smallint NOT NULL, stop_reason text NOT NULL,"
    " sent integer NOT NULL, hour bigint NOT NULL, upstream text NOT NULL, model text NOT NULL,"
    " failed_attempts integer NOT NULL, repairs integer NOT NULL, degraded_to text,"
    " verified smallint, retry_at double precision, action text,"
    " waited_ms double precision NOT NULL, told_waits integer NOT NULL,"
    " waits_obeyed integer NOT NULL, category text, code text, http_status integer, effect text,"
    " retry_after double precision, provider text, fingerprint text, rule text, message text,"
    " failure text, body_length bigint, fed_length bigint, arguments text, parameters integer,"
    " body_tokens bigint, fed_tokens bigint,"
    " PRIMARY KEY (id, started)) PARTITION BY RANGE (started)",
    "CREATE INDEX calls_by_time ON calls (started, id)",
    "CREATE INDEX calls_by_run ON calls (run_id) WHERE run_id <> ''",
    "CREATE INDEX calls_by_call ON calls (call_id)",
    "CREATE INDEX calls_failed ON calls (started, id) WHERE success = 0",
    "CREATE TABLE attempts ("
    " call bigint NOT NULL, position integer NOT NULL, number integer NOT NULL,"
    " started double precision NOT NULL, duration_ms double precision NOT NULL, category text,"
    " code text, http_status integer, effect text, message text, failure_rule text, action text,"
    " delay double precision, reason text, rule text, at double precision NOT NULL, provider text,"
    " fingerprint text, retry_after double precision, hour bigint NOT NULL, tool text NOT NULL,"
    " upstream text NOT NULL, model text NOT NULL, success smallint NOT NULL,"
    " PRIMARY KEY (call, position, at))"
    " PARTITION BY RANGE (at)",
    "CREATE INDEX attempts_by_time ON attempts (at)",
    # What no day is made for: moments that are none.
    "CREATE TABLE calls_before PARTITION OF calls FOR VALUES FROM (MINVALUE) TO (0)",
    "CREATE TABLE calls_after PARTITION OF calls FOR VALUES FROM (8e9) TO (MAXVALUE)",
    "CREATE TABLE attempts_before PARTITION OF attempts FOR VALUES FROM (MINVALUE) TO (0)",
    "CREATE TABLE attempts_after PARTITION OF attempts FOR VALUES FROM (8e9) TO (MAXVALUE)",
    "CREATE TABLE claims ("
    " key text PRIMARY KEY, run_id text NOT NULL, fingerprint text NOT NULL, tool text NOT NULL,"
    " call_id text NOT NULL, state text NOT NULL, owner text NOT NULL,"
    " claimed_at double precision NOT NULL, lease_until double precision NOT NULL,"
    " generation bigint NOT NULL, settled_at double precision, arguments text, result text)",
    "CREATE INDEX claims_by_fingerprint ON claims (run_id, fingerprint)"
    " WHERE state IN ('claimed', 'unknown')",
    "CREATE INDEX claims_settled ON claims (settled_at) WHERE state IN ('done', 'not_done')",
    "CREATE TABLE prevented ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at double precision NOT NULL,"
    " key text NOT NULL, run_id text NOT NULL, tool text NOT NULL, call_id text NOT NULL,"
    " state text NOT NULL)",
    "CREATE INDEX prevented_by_time ON prevented (at)",
    "CREATE TABLE rollup_calls (hour bigint NOT NULL, "
    + _DIMENSIONS
    + ", asked smallint NOT NULL, shard smallint NOT NULL, calls bigint NOT NULL,"
    " successes bigint NOT NULL, first_try bigint NOT NULL, recovered bigint NOT NULL,"
    " degraded bigint NOT NULL, refusals bigint NOT NULL, rounds bigint NOT NULL,"
    " requests bigint NOT NULL, retried bigint NOT NULL, retries bigint NOT NULL,"
    " wasted bigint NOT NULL, failed_attempts bigint NOT NULL, told_waits bigint NOT NULL,"
    " waits_obeyed bigint NOT NULL, waited_ms double precision NOT NULL, repaired bigint NOT NULL,"
    " repairs bigint NOT NULL, verified bigint NOT NULL, body_length bigint NOT NULL,"
    " fed_length bigint NOT NULL, body_tokens bigint NOT NULL, fed_tokens bigint NOT NULL,"
    " duration_ms double precision NOT NULL,"
    " PRIMARY KEY (hour, tool, upstream, model, provider, category, code, asked, shard))",
    _LATENCY.format(table="latency_hours", period="hour"),
    _LATENCY.format(table="latency_days", period="day"),
    "CREATE TABLE rollup_attempts (hour bigint NOT NULL, "
    + _DIMENSIONS
    + ", shard smallint NOT NULL, attempts bigint NOT NULL, cured bigint NOT NULL,"
    " PRIMARY KEY (hour, tool, upstream, model, provider, category, code, shard))",
    "CREATE TABLE rollup_failures (hour bigint NOT NULL, fingerprint text NOT NULL,"
    " code text NOT NULL, tool text NOT NULL, upstream text NOT NULL, category text NOT NULL,"
    " provider text NOT NULL, asked smallint NOT NULL, shard smallint NOT NULL,"
    " calls bigint NOT NULL, first_seen double precision NOT NULL,"
    " last_seen double precision NOT NULL, PRIMARY KEY (hour, fingerprint, code, tool, upstream,"
    " category, provider, asked, shard))",
    "CREATE TABLE rollup_arguments (hour bigint NOT NULL, tool text NOT NULL, model text NOT NULL,"
    " parameters integer NOT NULL, shard smallint NOT NULL, calls bigint NOT NULL,"
    " wrong bigint NOT NULL, refused bigint NOT NULL, repaired bigint NOT NULL,"
    " PRIMARY KEY (hour, tool, model, parameters, shard))",
    "CREATE TABLE cluster_names (fingerprint text PRIMARY KEY, cluster text NOT NULL,"
    " name text NOT NULL, muted smallint NOT NULL, at double precision NOT NULL)",
    "CREATE TABLE advice (fingerprint text PRIMARY KEY, code text, message text NOT NULL,"
    " tool text NOT NULL, provider text, advisor text NOT NULL, asker text NOT NULL,"
    " at double precision NOT NULL, answered_at double precision, accepted smallint)",
    "CREATE INDEX advice_by_time ON advice (at)",
    "CREATE TABLE raw_answers (call bigint NOT NULL, position integer NOT NULL,"
    " call_id text NOT NULL, at double precision NOT NULL, content_type text, length bigint,"
    " body text NOT NULL, PRIMARY KEY (call, position))",
    "CREATE INDEX raw_answers_by_time ON raw_answers (at)",
    "CREATE INDEX raw_answers_by_call ON raw_answers (call_id)",
    # Which batch of which writer is in: after a connection that broke at its commit, whoever wrote
    # finds out whether it counted.
    "CREATE TABLE writers (writer bigint PRIMARY KEY, batch bigint NOT NULL,"
    " at double precision NOT NULL)",
)

_SPAN = "days bigint NOT NULL, day bigint NOT NULL, tool text NOT NULL, upstream text NOT NULL, "
_SECOND = (
    "CREATE TABLE spans (days bigint NOT NULL, day bigint NOT NULL, PRIMARY KEY (days, day))",
    f"CREATE TABLE span_calls ({_SPAN}model text NOT NULL, provider text NOT NULL,"
    " category text NOT NULL, code text NOT NULL, asked smallint NOT NULL, calls bigint NOT NULL,"
    " successes bigint NOT NULL, first_try bigint NOT NULL, recovered bigint NOT NULL,"
    " degraded bigint NOT NULL, refusals bigint NOT NULL, rounds bigint NOT NULL,"
    " requests bigint NOT NULL, retried bigint NOT NULL, retries bigint NOT NULL,"
    " wasted bigint NOT NULL, failed_attempts bigint NOT NULL, told_waits bigint NOT NULL,"
    " waits_obeyed bigint NOT NULL, waited_ms double precision NOT NULL, repaired bigint NOT NULL,"
    " repairs bigint NOT NULL, verified bigint NOT NULL, body_length bigint NOT NULL,"
    " fed_length bigint NOT NULL, body_tokens bigint NOT NULL, fed_tokens bigint NOT NULL,"
    " duration_ms double precision NOT NULL, PRIMARY KEY (days, day, tool, upstream, model, provider,"
    " category, code, asked))",
    f"CREATE TABLE span_failures ({_SPAN}fingerprint text NOT NULL, code text NOT NULL,"
    " category text NOT NULL, provider text NOT NULL, asked smallint NOT NULL,"
    " calls bigint NOT NULL, first_seen double precision NOT NULL,"
    " last_seen double precision NOT NULL, PRIMARY KEY (days, day, fingerprint, code, tool,"
    " upstream, category, provider, asked))",
    f"CREATE TABLE span_latencies ({_SPAN}asked smallint NOT NULL, bucket integer NOT NULL,"
    " calls bigint NOT NULL, PRIMARY KEY (days, day, tool, upstream, asked, bucket))",
    "CREATE INDEX claims_open ON claims (claimed_at) WHERE state IN ('claimed', 'unknown')",
    "ALTER TABLE calls ADD COLUMN changes text",
)

MIGRATIONS: tuple[Sequence[str], ...] = (_FIRST, _SECOND)
"""Item n takes tables from version n to n + 1. Never change one that was released: append."""


def has_table(connection: "Connection[Any]", name: str, schema: str | None = None) -> bool:
    """There is such a table, in the schema in use unless another is named. Asks the catalogue:
    after waiting for a lock, ``to_regclass`` may still answer from before."""
    found = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace"
        " WHERE relname = %s AND nspname = coalesce(%s::text, current_schema())",
        (name, schema),
    )
    return found.fetchone() is not None


def version(connection: "Connection[Any]", schema: str) -> int:
    """The version of the tables in a schema; 0 for none."""
    if not has_table(connection, "meta", schema):
        return 0
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    return int(row[0]) if row else 0


def migrate(
    connection: "Connection[Any]",
    schema: str,
    shown: str,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
) -> None:
    """Bring the tables to the newest version: all steps in one transaction, or none.

    Raises `ConfigurationError` for tables of a newer Failwise, or of another program.
    """
    newest = len(migrations)
    if version(connection, schema) == newest:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        found = version(connection, schema)  # another process may have been faster
        if found > newest:
            raise ConfigurationError(
                f"this journal has schema version {found}, written by a newer Failwise; this one "
                f"knows up to {newest}: upgrade, or use another schema",
                file=shown,
            )
        if not connection.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone()[0]:  # type: ignore[index]
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        elif found == 0 and any(
            has_table(connection, name, schema) for name in ("calls", "claims", "meta")
        ):
            raise ConfigurationError(
                f"the schema {schema} has tables of another program; say ?schema= in the URL",
                file=shown,
            )
        for statements in migrations[found:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL)"
        )
        connection.execute(
            "INSERT INTO meta VALUES ('schema_version', %s)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (str(newest),),
        )


def rollup_statements() -> dict[str, str]:
    """For each rollup's table, what adds the calls numbered from ``%(first)s`` to ``%(last)s``, that began between
    ``%(since)s`` and ``%(until)s``, on shard ``%(shard)s``."""
    found: dict[str, str] = {}
    for rollup in rollups.ALL:
        statement = rollup.insert(
            f"{rollup.id} BETWEEN %(first)s AND %(last)s",
            f"{rollup.moment} BETWEEN %(since)s AND %(until)s",
            least="least",
            greatest="greatest",
            shard="%(shard)s::smallint",
        )
        found[rollup.table] = statement.replace(" % ", " %% ")
    return found


def merge_statements() -> list[str]:
    """For each rollup, what makes one row of the shards of each key, for hours (or days) that are over,
    two days back from ``%(now)s``. Readers sum: they see no difference, but have an eighth to read.
    Rows that somebody writes just now are left for another time."""
    found: list[str] = []
    for rollup in rollups.ALL:
        table, period = rollup.table, rollup.period
        size = rollups.DAY if period == "day" else rollups.HOUR
        within = (
            f"{period} >= %(now)s - {2 * rollups.DAY + size} AND {period} < %(now)s - {2 * size}"
        )
        merged = rollups.Rollup(
            table,
            "gone",
            {name: name for name in rollup.keys},
            {name: name for name in rollup.sums},
            ends={name: (end, name) for name, (end, _) in (rollup.ends or {}).items()},
        ).insert(least="least", greatest="greatest", shard="CAST(0 AS smallint)")
        found.append(
            f"WITH gone AS (DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table}"  # noqa: S608
            f" WHERE shard > 0 AND {within} FOR UPDATE SKIP LOCKED)) RETURNING *) {merged}"
        )
    return found
