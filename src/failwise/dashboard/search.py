"""Calls that fit a filter, newest first, however many there are: each page looks at a bounded number."""

from dataclasses import replace
from typing import Any, Final

from failwise.dashboard.asked import Asked
from failwise.journal.reader import Cursor, Filter, Reader
from failwise.vocabulary.records import record

LOOKED_AT: Final = 20_000
"""Calls that one page looks at: where it finds too few, the next one goes on from there."""


@record
class Found:
    """`rows` of `Reader.calls`; `following` is where the next page begins, None where there is none.

    `searched_to`: epoch seconds down to which was looked, where the page is not full for that reason.
    """

    rows: list[dict[str, Any]]
    following: Cursor | None
    searched_to: float | None = None


def found_calls(reader: Reader, asked: Asked, limit: int) -> Found:
    """The page of calls that `asked` wants, from ``asked.before`` on."""
    where, before = asked.where, asked.before
    edge = None
    columns = getattr(reader.source, "engine", "") in ("clickhouse", "chdb")
    if where != Filter() and where.run is None and not columns:  # columns are searched quickly
        edge = _edge(reader, asked, before)
    since = asked.since if edge is None else max(edge, asked.since or edge)
    rows = reader.calls(where, before, limit + 1, since=since, until=asked.until)
    if len(rows) > limit:
        last = rows[limit - 1]
        return Found(rows[:limit], (last["started"], last["id"]))
    if edge is not None and since == edge:
        return Found(rows, (edge, 0), edge)
    return Found(rows, None)


def _edge(reader: Reader, asked: Asked, before: Cursor | None) -> float | None:
    """When the last of the calls began that this page may look at; None where there are fewer."""
    conditions, values = ["1 = 1"], list[Any]()
    if asked.where.of_failures or asked.where.success is False:
        conditions.append("success = 0")  # failures have an index of their own
    for condition, value in (
        ("started < ?", before[0] if before else None),
        ("started >= ?", asked.since),
        ("started < ?", asked.until),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    found = reader.source.rows(
        f"SELECT started FROM calls WHERE {' AND '.join(conditions)}"  # noqa: S608
        " ORDER BY started DESC LIMIT 1 OFFSET ?",
        [*values, LOOKED_AT],
    )
    return found[0]["started"] if found else None


def one_call(reader: Reader, run: str, call_id: str, at: float | None) -> dict[str, Any] | None:
    """A call with its attempts: of this id in this run, begun at `at` (epoch seconds) where given. By its
    id alone a failure is found however old it is, a success among the newest `LOOKED_AT` calls where
    the engine has no index of them."""
    since, until = (None, None) if at is None else (at - 0.001, at + 0.001)
    where = Filter(call_id=call_id, run=run or None)
    if not run and at is None:
        if getattr(reader.source, "engine", "sqlite") != "sqlite":
            return reader.call(call_id)
        rows = reader.calls(replace(where, success=False), None, 1)
        if not rows:
            everything = Asked("all", None, None, where, {})
            rows = reader.calls(where, None, 1, since=_edge(reader, everything, None))
        return reader.with_attempts(rows)[0] if rows else None
    rows = reader.calls(where, None, 1, since=since, until=until)
    if not rows and at is not None:
        return one_call(reader, run, call_id, None)
    return reader.with_attempts(rows)[0] if rows else None
