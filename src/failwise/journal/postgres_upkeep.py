"""What is done now and then in PostgreSQL: removing what is too old or too much, and summing up days."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from failwise.journal import postgres_schema as schema
from failwise.journal import rollups, spans
from failwise.journal.postgres_days import drop_days
from failwise.journal.store import Keeping

if TYPE_CHECKING:
    from psycopg import Connection

_PRUNED_AT_ONCE = 5_000
_MERGES = schema.merge_statements()
_SUMMING = schema.LOCK + 2
"""The advisory lock of whoever sums up days."""


def sum_up(connection: "Connection[Any]", now: float) -> bool:
    """Sum up one day or week that is over, unless another process does it just now; True when there
    is more."""

    def ask(sql: str, parameters: Sequence[Any]) -> list[Any]:
        return connection.execute(sql, list(parameters)).fetchall()

    if spans.following(ask, now) is None:
        return False
    with connection.transaction():
        found = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_SUMMING,)).fetchone()
        wanted = spans.following(ask, now) if found and found[0] else None
        if wanted is None:
            return False
        # In the order in which writers take them; they wait for a moment.
        connection.execute("LOCK TABLE rollup_calls, latency_days, rollup_failures IN SHARE MODE")
        for statement in spans.summing(*wanted):
            connection.execute(statement)
    return True


def prune(connection: "Connection[Any]", keeping: Keeping, now: float, days: set[int]) -> bool:
    """Remove a bounded piece of what is too old or too much; True when there is more. `days`: those
    whose partitions are known to be there."""
    oldest = now - keeping.calls_days * 86_400
    beyond = connection.execute(
        "SELECT started FROM calls ORDER BY started DESC, id DESC OFFSET %s LIMIT 1",
        (max(0, keeping.calls_rows - 1),),
    ).fetchone()
    cut = max(oldest, beyond[0]) if beyond is not None else oldest
    if drop_days(connection, cut):
        days.clear()
    gone = connection.execute(
        "DELETE FROM calls WHERE (id, started) IN"
        " (SELECT id, started FROM calls WHERE started < %s ORDER BY started LIMIT %s)",
        (cut, _PRUNED_AT_ONCE),
    ).rowcount
    connection.execute("DELETE FROM attempts WHERE at < %s", (cut,))
    connection.execute(
        "DELETE FROM claims WHERE settled_at < %s AND state IN ('done', 'not_done')", (oldest,)
    )
    connection.execute("DELETE FROM prevented WHERE at < %s", (oldest,))
    connection.execute("DELETE FROM raw_answers WHERE at < %s", (now - keeping.raw_days * 86_400,))
    connection.execute("DELETE FROM writers WHERE at < %s", (now - 7 * 86_400,))
    for rollup in rollups.ALL:
        connection.execute(
            f"DELETE FROM {rollup.table} WHERE {rollup.period} < %s",  # noqa: S608
            (now - keeping.figures_days * 86_400,),
        )
    for statement in spans.expired(now - keeping.figures_days * 86_400):
        connection.execute(statement)
    for statement in _MERGES:
        connection.execute(statement, {"now": int(now)})
    return gone >= _PRUNED_AT_ONCE
