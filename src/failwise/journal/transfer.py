"""A journal from one place to another, whatever the engines: `copy`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from failwise.journal import rollups, rows
from failwise.journal.place import Target, claims_target, locate
from failwise.journal.read import File
from failwise.journal.store import Keeping, Store, open_store
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

PAGE = 2_000
"""Calls that are read and written at once."""
FOR_EVER = Keeping(calls_days=36_500, calls_rows=2**62, figures_days=36_500, raw_days=36_500)
"""What is moved is not pruned on the way."""
_BESIDE = {
    "claims": (
        "key", "run_id", "fingerprint", "tool", "call_id", "state", "owner", "claimed_at",
        "lease_until", "generation", "settled_at", "arguments", "result",
    ),
    "prevented": ("at", "key", "run_id", "tool", "call_id", "state"),
    "cluster_names": ("fingerprint", "cluster", "name", "muted", "at"),
    "advice": (
        "fingerprint", "code", "message", "tool", "provider", "advisor", "asker", "at",
        "answered_at", "accepted",
    ),
}  # fmt: skip
_UNIQUE = {"claims": "key", "cluster_names": "fingerprint", "advice": "fingerprint"}

Progress = Callable[[int, int], None]
"""Told how many calls are done, of how many."""


@record
class Copied:
    """What was copied. `known`: calls that were there already; `failed`: that could not be stored.
    `counts`: rows of counts of calls that are gone. `beside`: claims and what people noted."""

    calls: int
    known: int
    failed: int
    counts: int
    beside: int


def copy(
    source: File,
    place: str,
    *,
    claims: str | None = None,
    raw: bool = False,
    now: float,
    progress: Progress | None = None,
) -> Copied:
    """Copy a whole journal to a place that holds nothing, or a part of the same journal (a copy that
    broke off goes on). `raw`: the raw answers too.

    Raises `UsageError` where an effect is being sent just now, or where the place holds other calls.
    """
    under_way = source.rows(
        "SELECT count(*) AS n FROM claims WHERE state = 'claimed' AND lease_until > ?", (now,)
    )
    if under_way and under_way[0][0]:
        raise UsageError(
            f"{under_way[0][0]} effects are being sent just now: stop the processes that write to "
            f"{source.place} first"
        )
    target = locate(place)
    store = open_store(target, FOR_EVER)
    beside_target = claims_target(target, claims)
    beside = store if beside_target == target else open_store(beside_target, FOR_EVER)
    try:
        copied = _calls(source, store, raw=raw, progress=progress)
        counts = sum(_counts(source, store, rollup) for rollup in rollups.ALL)
        noted = sum(_noted(source, beside, table) for table in _BESIDE)
        _agree(source, store, target)
    finally:
        for one in {id(one): one for one in (store, beside)}.values():
            one.close()
    return Copied(*copied, counts, noted)


def pages(source: File, *, raw: bool = False) -> Iterator[rows.Built]:
    """All calls, oldest first, with attempts and raw answers, each page numbered from 1."""
    columns, after = ", ".join(rows.CALL_COLUMNS), (float("-inf"), -(2**62))
    started = rows.CALL_COLUMNS.index("started")
    while True:
        found = source.rows(
            f"SELECT {columns} FROM calls WHERE started > ? OR (started = ? AND id > ?)"  # noqa: S608
            " ORDER BY started, id LIMIT ?",
            (after[0], after[0], after[1], PAGE),
        )
        if not found:
            return
        calls = [tuple(row) for row in found]
        after = calls[-1][started], calls[-1][0]
        numbers = {call[0]: number for number, call in enumerate(calls, 1)}
        attempts = _of_calls(source, "attempts", rows.ATTEMPT_COLUMNS, numbers)
        answers = _of_calls(source, "raw_answers", rows.RAW_COLUMNS, numbers) if raw else []
        yield rows.Built([(numbers[call[0]], *call[1:]) for call in calls], attempts, answers)


def _of_calls(
    source: File, table: str, columns: Sequence[str], numbers: dict[int, int]
) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    ids = list(numbers)
    for start in range(0, len(ids), 500):
        part = ids[start : start + 500]
        places = ", ".join("?" * len(part))
        for row in source.rows(
            f"SELECT {', '.join(columns)} FROM {table} WHERE call IN ({places})",  # noqa: S608
            part,
        ):
            number, *rest = row
            found.append((numbers[number], *rest))
    return found


def missing(store: Store, made: rows.Built) -> rows.Built:
    """The calls of a page that a store does not have yet: same id, run, tool and moment."""
    names = [rows.CALL_COLUMNS.index(name) for name in ("started", "call_id", "run_id", "tool")]
    moments = list({call[names[0]] for call in made.calls})
    there: set[tuple[Any, ...]] = set()
    for start in range(0, len(moments), 500):
        part = moments[start : start + 500]
        places = ", ".join("?" * len(part))
        there |= {
            tuple(row)
            for row in store.rows(
                f"SELECT started, call_id, run_id, tool FROM calls WHERE started IN ({places})",  # noqa: S608
                part,
            )
        }
    if not there:
        return made
    fresh = [call for call in made.calls if tuple(call[name] for name in names) not in there]
    numbers = {call[0]: number for number, call in enumerate(fresh, 1)}
    return rows.Built(
        *[
            [(numbers[row[0]], *row[1:]) for row in block if row[0] in numbers]
            for block in (fresh, made.attempts, made.raw)
        ]
    )


def _calls(
    source: File, store: Store, *, raw: bool, progress: Progress | None
) -> tuple[int, int, int]:
    whole = int(source.rows("SELECT count(*) AS n FROM calls")[0][0])
    done = known = failed = 0
    for page in pages(source, raw=raw):
        made = missing(store, page)
        known += len(page.calls) - len(made.calls)
        done += len(page.calls)
        if made.calls:
            failed += store.load(made)
        if progress is not None:
            progress(done, whole)
    return done - known - failed, known, failed


def _counts(source: File, store: Store, rollup: rollups.Rollup) -> int:
    """Add what the source counts and the store, which counted its calls, does not."""
    keys, sums = len(rollup.keys), len(rollup.sums)
    there = {tuple(row)[:keys]: tuple(row) for row in store.rows(rollup.counts())}
    more: list[tuple[Any, ...]] = []
    for row in map(tuple, source.rows(rollup.counts())):
        before = there.get(row[:keys])
        if before is not None:
            left = [
                max(0, one - other) for one, other in zip(row[keys:], before[keys:], strict=True)
            ]
            if not left[0]:
                continue
            row = (*row[:keys], *left[:sums], *row[keys + sums :])  # noqa: PLW2901
        more.append(row)
    for start in range(0, len(more), 10_000):
        store.add_counts(rollup, more[start : start + 10_000])
    return len(more)


def _noted(source: File, beside: Store, table: str) -> int:
    columns = _BESIDE[table]
    listed, places = ", ".join(columns), ", ".join("?" * len(columns))
    found = [tuple(row) for row in source.rows(f"SELECT {listed} FROM {table}")]  # noqa: S608
    there = {tuple(row) for row in beside.rows(f"SELECT {listed} FROM {table}")}  # noqa: S608
    insert = f"INSERT INTO {table} ({listed}) VALUES ({places})"  # noqa: S608
    if table in _UNIQUE:
        insert += f" ON CONFLICT ({_UNIQUE[table]}) DO NOTHING"
    fresh = [row for row in found if row not in there]
    for start in range(0, len(fresh), 1_000):
        beside.write([(insert, row) for row in fresh[start : start + 1_000]])
    return len(fresh)


def _agree(source: File, store: Store, target: Target) -> None:
    """Both hold as many calls, and count as many."""
    for what, sql in (
        ("holds", "SELECT count(*) AS n FROM calls"),
        ("counts", "SELECT coalesce(sum(calls), 0) AS n FROM rollup_calls"),
    ):
        here, there = int(source.rows(sql)[0][0]), int(store.rows(sql)[0][0])
        if here != there:
            raise UsageError(
                f"{target.shown} {what} {there:,} calls, {source.place} {here:,}: a journal is "
                "copied to a place of its own; to add one to another, export and import it"
            )
