"""Is a journal whole? `check` looks, and changes nothing; `info` says what it holds."""

from typing import Any

from failwise.journal import rollups, spans
from failwise.journal.read import File
from failwise.journal.rollups import DAY
from failwise.vocabulary.records import record

_TABLES = (
    "calls", "attempts", "raw_answers", "claims", "prevented", "cluster_names", "advice",
    *(rollup.table for rollup in rollups.ALL), "spans", *(sums.table for sums in spans.ALL),
)  # fmt: skip


@record
class Finding:
    """Something that is not as it should be: ``file``, ``attempts`` (without their call) or
    ``counts`` (that differ from the calls of their hours), with what was found."""

    what: str
    text: str


def info(source: File, now: float) -> dict[str, Any]:
    """What a journal holds: ``place``, ``engine``, ``rows`` by table, ``oldest`` and ``newest`` call
    (epoch s), ``calls_counted`` (records that are gone included), ``open_effects``, ``bytes``."""
    rows = {table: int(source.rows(f"SELECT count(*) AS n FROM {table}")[0][0])  # noqa: S608
            if _readable(source, table) else None for table in _TABLES}  # fmt: skip
    oldest, newest = source.rows("SELECT min(started) AS a, max(started) AS b FROM calls")[0]
    opened = source.rows(
        "SELECT count(*) AS n FROM claims WHERE state IN ('claimed', 'unknown')"
        " AND (state = 'unknown' OR lease_until <= ?)",
        (now,),
    )
    counted = source.rows("SELECT coalesce(sum(calls), 0) AS n FROM rollup_calls")[0][0]
    return {
        "place": source.place,
        "engine": source.engine,
        "rows": rows,
        "oldest": oldest if rows["calls"] else None,
        "newest": newest if rows["calls"] else None,
        "calls_counted": int(counted),
        "open_effects": int(opened[0][0]) if opened else 0,
        "bytes": _size(source),
    }


def _readable(source: File, table: str) -> bool:
    """Raw answers may be kept from whoever looks; a table beside may not be there yet."""
    try:
        return bool(source.rows(f"SELECT count(*) AS n FROM {table}"))  # noqa: S608
    except Exception:
        return False


def _size(source: File) -> int | None:
    """Bytes on disk, where that can be told."""
    sql = {
        "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        "postgresql": "SELECT sum(pg_total_relation_size(c.oid))::bigint AS n FROM pg_class c"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
        "clickhouse": "SELECT sum(bytes_on_disk) AS n FROM system.parts"
        " WHERE active AND database = currentDatabase()",
    }.get("clickhouse" if source.engine == "chdb" else source.engine)
    found = source.rows(sql) if sql else []
    return int(found[0][0]) if found and found[0][0] is not None else None


def check(source: File) -> list[Finding]:
    """What is wrong with a journal; nothing for a sound one."""
    found: list[Finding] = []
    if source.engine == "sqlite":
        for (text,) in source.rows("PRAGMA integrity_check(20)"):
            if text != "ok":
                found.append(Finding("file", text))
    alone = source.rows(
        "SELECT count(*) AS n FROM attempts WHERE call NOT IN (SELECT id FROM calls)"
    )[0][0]
    if alone:
        found.append(Finding("attempts", f"{alone:,} without their call"))
    first = source.rows("SELECT min(hour) AS n FROM calls")[0][0]
    if not source.rows("SELECT 1 AS n FROM calls LIMIT 1"):
        return found
    calls = _by_hour(
        source, "SELECT hour, count(*) AS n FROM calls WHERE hour > ? GROUP BY 1", first
    )
    for rollup in (rollups.CALLS, rollups.LATENCY_HOURS):
        counted = _by_hour(
            source,
            f"SELECT hour, sum(calls) AS n FROM {rollup.table} WHERE hour > ? GROUP BY 1",  # noqa: S608
            first,
        )
        # Of the first hour some calls may be gone. Rows beyond a bound may be too, counts stay.
        short = {hour: count for hour, count in calls.items() if counted.get(hour, 0) < count}
        if short:
            missing = sum(count - counted.get(hour, 0) for hour, count in short.items())
            found.append(
                Finding("counts", f"{rollup.table} lacks {missing:,} calls in {len(short):,} hours")
            )
    return found + _short_days(source)


def _short_days(source: File) -> list[Finding]:
    """Days that were summed up, and sum up less than their hours. (More may be: old hours go first.)"""
    if not _readable(source, "spans"):
        return []
    summed = source.rows(
        "SELECT day, sum(calls) AS n FROM span_calls WHERE days = 1"
        " AND day IN (SELECT day FROM spans WHERE days = 1) GROUP BY 1"
    )
    sums = {int(day): int(count) for day, count in summed}
    days = source.rows(
        f"SELECT hour - hour % {DAY} AS day, sum(calls) AS n FROM rollup_calls GROUP BY 1"  # noqa: S608
    )
    short = [count - sums[day] for day, count in days if day in sums and sums[day] < count]
    if not short:
        return []
    return [Finding("counts", f"span_calls lacks {int(sum(short)):,} calls in {len(short):,} days")]


def _by_hour(source: File, sql: str, first: int) -> dict[int, int]:
    return {int(hour): int(count) for hour, count in source.rows(sql, (first,))}
