"""The days of a journal in PostgreSQL: each is a partition of calls and one of attempts."""

import contextlib
import datetime
from typing import TYPE_CHECKING, Any

from failwise.journal import postgres_schema as schema
from failwise.journal.rollups import DAY

if TYPE_CHECKING:
    from psycopg import Connection

DATED = range(int(8e9))
"""Epoch seconds for which days are made; the tables ``_before`` and ``_after`` take the others."""


def make_day(connection: "Connection[Any]", day: int) -> None:
    """Make the partitions of a day that begins at `day` (epoch s), unless they are there. Attached
    rather than made in place: that keeps nobody from reading and writing meanwhile."""
    date = datetime.datetime.fromtimestamp(day, datetime.UTC).strftime("%Y%m%d")
    for table in ("calls", "attempts"):
        name = f"{table}_{date}"
        if schema.has_table(connection, name):
            continue
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (schema.LOCK,))
            if schema.has_table(connection, name):
                continue
            connection.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS)")
            connection.execute(
                f"ALTER TABLE {table} ATTACH PARTITION {name}"
                f" FOR VALUES FROM ({day}) TO ({day + DAY})"
            )


def days_of(connection: "Connection[Any]") -> list[tuple[str, float]]:
    """The partitions of a day each: the table's name, and when its day ends (epoch s)."""
    found = connection.execute(
        "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid"
        " WHERE inhparent IN (to_regclass('calls'), to_regclass('attempts')) ORDER BY 1"
    ).fetchall()
    days: list[tuple[str, float]] = []
    for (name,) in found:
        with contextlib.suppress(ValueError):
            date = datetime.datetime.strptime(name.rpartition("_")[2], "%Y%m%d")
            days.append((name, date.replace(tzinfo=datetime.UTC).timestamp() + DAY))
    return days


def drop_days(connection: "Connection[Any]", cut: float) -> bool:
    """Drop the days that ended before `cut`; False where there were none, or somebody reads for long:
    then another time."""
    import psycopg

    old = [name for name, end in days_of(connection) if end <= cut]
    if not old:
        return False
    with contextlib.suppress(psycopg.errors.LockNotAvailable), connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '2s'")
        connection.execute("LOCK TABLE attempts, calls IN ACCESS EXCLUSIVE MODE")
        for name in old:
            connection.execute(f'DROP TABLE "{name}"')
        return True
    return False
