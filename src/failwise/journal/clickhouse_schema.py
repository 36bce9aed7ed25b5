"""The journal's tables in ClickHouse, and how older ones are brought forward. Forward only.

Calls, attempts and raw answers are partitioned by week and expire by TTL. The rollups are filled by
materialized views: their rows for one key are merged in the background, and readers sum.
"""

import math
from collections.abc import Callable, Sequence

from failwise.journal import rollups
from failwise.vocabulary.errors import ConfigurationError


def expiry(period: str, days: float) -> str:
    """When a row of this hour or day expires. A DateTime ends in 2106: what is no moment, and what
    is kept for ever, must not run over it."""
    moment = f"toDateTime(greatest(0, least({period}, 2000000000)), 'UTC')"
    return f"{moment} + toIntervalDay({min(20_000, math.ceil(days))})"


_PARTITIONED = " PARTITION BY toMonday(toDateTime(greatest(0, least({moment}, 2000000000)), 'UTC'))"
_DEDUPLICATED = " SETTINGS non_replicated_deduplication_window = 1000"
"""A block that is sent again, because nobody knows whether it arrived, counts once."""
_WORD = "LowCardinality(String)"
_DIMENSIONS = ", ".join(
    f"{name} {_WORD}" for name in ("tool", "upstream", "model", "provider", "category", "code")
)
_SUM = "SimpleAggregateFunction(sum, UInt64)"
_REAL = "SimpleAggregateFunction(sum, Float64)"
_LATENCY = (
    "CREATE TABLE {table} ({period} Int64, bucket Int32, "
    + _DIMENSIONS
    + ", asked UInt8, calls "
    + _SUM
    + ") ENGINE = AggregatingMergeTree ORDER BY ({period}, bucket, tool, upstream, model, provider,"
    " category, code, asked)" + _DEDUPLICATED
)
_FIRST = (
    "CREATE TABLE calls (id Int64, call_id String, run_id String, parent_id Nullable(String),"
    f" tool {_WORD}, started Float64, duration_ms Float64, latency_bucket Int32, success UInt8,"
    f" stop_reason {_WORD}, sent UInt32, hour Int64, upstream {_WORD}, model {_WORD},"
    " failed_attempts UInt32, repairs UInt32, degraded_to Nullable(String),"
    " verified Nullable(UInt8), retry_at Nullable(Float64), action Nullable(String),"
    " waited_ms Float64, told_waits UInt32, waits_obeyed UInt32, category Nullable(String),"
    " code Nullable(String), http_status Nullable(Int32), effect Nullable(String),"
    " retry_after Nullable(Float64), provider Nullable(String), fingerprint Nullable(String),"
    " rule Nullable(String), message Nullable(String), failure Nullable(String),"
    " body_length Nullable(Int64), fed_length Nullable(Int64), arguments Nullable(String),"
    " parameters Nullable(Int32), body_tokens Nullable(Int64), fed_tokens Nullable(Int64),"
    " INDEX by_call call_id TYPE bloom_filter(0.001) GRANULARITY 4,"
    " INDEX by_run run_id TYPE bloom_filter(0.001) GRANULARITY 4)"
    " ENGINE = MergeTree" + _PARTITIONED.format(moment="hour") + " ORDER BY (started, id)"
    " TTL " + expiry("hour", 30) + _DEDUPLICATED,
    "CREATE TABLE attempts (call Int64, position Int32, number Int32, started Float64,"
    " duration_ms Float64, category Nullable(String), code Nullable(String),"
    " http_status Nullable(Int32), effect Nullable(String), message Nullable(String),"
    " failure_rule Nullable(String), action Nullable(String), delay Nullable(Float64),"
    " reason Nullable(String), rule Nullable(String), at Float64, provider Nullable(String),"
    " fingerprint Nullable(String), retry_after Nullable(Float64), hour Int64,"
    f" tool {_WORD}, upstream {_WORD}, model {_WORD}, success UInt8)"
    " ENGINE = MergeTree" + _PARTITIONED.format(moment="hour") + " ORDER BY (call, position)"
    " TTL " + expiry("hour", 30) + _DEDUPLICATED,
    "CREATE TABLE raw_answers (call Int64, position Int32, call_id String, at Float64,"
    " content_type Nullable(String), length Nullable(Int64), body String, hour Int64)"
    " ENGINE = MergeTree" + _PARTITIONED.format(moment="hour") + " ORDER BY (call_id, at, position)"
    " TTL " + expiry("hour", 7) + _DEDUPLICATED,
    f"CREATE TABLE rollup_calls (hour Int64, {_DIMENSIONS}, asked UInt8, calls {_SUM},"
    f" successes {_SUM}, first_try {_SUM}, recovered {_SUM}, degraded {_SUM}, refusals {_SUM},"
    f" rounds {_SUM}, requests {_SUM}, retried {_SUM}, retries {_SUM}, wasted {_SUM},"
    f" failed_attempts {_SUM}, told_waits {_SUM}, waits_obeyed {_SUM}, waited_ms {_REAL},"
    f" repaired {_SUM}, repairs {_SUM}, verified {_SUM}, body_length {_SUM}, fed_length {_SUM},"
    f" body_tokens {_SUM}, fed_tokens {_SUM}, duration_ms {_REAL}) ENGINE = AggregatingMergeTree"
    " ORDER BY (hour, tool, upstream, model, provider, category, code, asked)" + _DEDUPLICATED,
    _LATENCY.format(table="latency_hours", period="hour"),
    _LATENCY.format(table="latency_days", period="day"),
    f"CREATE TABLE rollup_attempts (hour Int64, {_DIMENSIONS}, attempts {_SUM}, cured {_SUM})"
    " ENGINE = AggregatingMergeTree"
    " ORDER BY (hour, tool, upstream, model, provider, category, code)" + _DEDUPLICATED,
    f"CREATE TABLE rollup_failures (hour Int64, fingerprint String, code {_WORD}, tool {_WORD},"
    f" upstream {_WORD}, category {_WORD}, provider {_WORD}, asked UInt8, calls {_SUM},"
    " first_seen SimpleAggregateFunction(min, Float64),"
    " last_seen SimpleAggregateFunction(max, Float64)) ENGINE = AggregatingMergeTree"
    " ORDER BY (hour, fingerprint, code, tool, upstream, category, provider, asked)"
    + _DEDUPLICATED,
    f"CREATE TABLE rollup_arguments (hour Int64, tool {_WORD}, model {_WORD}, parameters Int32,"
    f" calls {_SUM}, wrong {_SUM}, refused {_SUM}, repaired {_SUM}) ENGINE = AggregatingMergeTree"
    " ORDER BY (hour, tool, model, parameters)" + _DEDUPLICATED,
)

_SECOND = ("ALTER TABLE calls ADD COLUMN IF NOT EXISTS changes Nullable(String)",)

MIGRATIONS: tuple[Sequence[str], ...] = (_FIRST, _SECOND)
"""Item n takes tables from version n to n + 1. Never change one that was released: append. The views
are made anew after any step, from `rollups`."""


def migrate(
    command: Callable[[str], object],
    version: int,
    shown: str,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
) -> None:
    """Bring tables of this version (0: none) to the newest. ClickHouse has no transactions: each
    step may be done twice, the version is noted after it, and while views are made anew nobody else
    should write.

    Raises `ConfigurationError` for tables of a newer Failwise.
    """
    if version == len(migrations):
        return
    if version > len(migrations):
        raise ConfigurationError(
            f"this journal has schema version {version}, written by a newer Failwise; this one "
            f"knows up to {len(migrations)}: upgrade, or use another database",
            file=shown,
        )
    for number, statements in enumerate(migrations[version:], version + 1):
        for statement in statements:
            command(statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1))
        for rollup in rollups.ALL:
            view = f"{rollup.table}_view"
            if version:
                command(f"DROP VIEW IF EXISTS {view}")
            command(
                f"CREATE MATERIALIZED VIEW IF NOT EXISTS {view} TO {rollup.table} AS {rollup.select()}"
                " SETTINGS prefer_column_name_to_alias = 1"
            )
        command(
            "CREATE TABLE IF NOT EXISTS meta (name String, value String)"
            " ENGINE = ReplacingMergeTree ORDER BY (name, value)"
        )
        command(f"INSERT INTO meta VALUES ('schema_version', '{number}')")  # noqa: S608
