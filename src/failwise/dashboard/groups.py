"""Tools and upstreams: rates, latencies, retries, and what the guards know now."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from failwise.dashboard.asked import Asked
from failwise.dashboard.overview import FEW
from failwise.insight.figures import rate
from failwise.journal.latency import quantiles
from failwise.journal.reader import Reader
from failwise.journal.rollups import HOUR
from failwise.vocabulary.errors import UsageError

Kind: TypeAlias = Literal["tool", "upstream"]
Look: TypeAlias = Callable[[], list[dict[str, Any]]]

SORTS: Final = ("calls", "failures", "success_rate", "p99_ms", "retries", "wasted")
_COUNTED: Final = (
    "calls", "successes", "refusals", "recovered", "degraded", "repaired", "requests", "retries",
    "wasted", "verified",
)  # fmt: skip
_MOST: Final = 500
_DRAWN: Final = 48


def groups(
    reader: Reader, asked: Asked, kind: Kind, sort: str, now: float, look: Look | None = None
) -> dict[str, Any]:
    """One row for each tool or upstream. Fallbacks count for their own. `look` tells of the guards of
    this process."""
    if sort not in SORTS:
        raise UsageError(f"sort={sort}: say one of {', '.join(SORTS)}")
    rows = [
        _row(row, kind)
        for row in reader.figures(asked.since, asked.until, (kind,), asked.where, counters=_COUNTED)
    ]
    rows.sort(key=lambda row: (row[sort] if sort == "success_rate" else -row[sort], row["name"]))
    rows = rows[:_MOST]
    courses = _courses(reader, asked, kind, now)
    guards = _guards(look) if kind == "upstream" else {}
    for row in rows:
        row["course"] = courses.get(row["name"], [])
        if kind == "upstream":
            row["guards"] = guards.get(row["name"], [])
    return {"kind": kind, "sort": sort, "rows": rows, "guards_known": look is not None}


def _row(row: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    half, most, nearly_all = quantiles(row["latency"].items(), (0.5, 0.9, 0.99))
    return {
        "name": row[kind],
        **{name: row[name] for name in (*_COUNTED, "failures", "faults")},
        "success_rate": rate(row["successes"], row["calls"]),
        "fault_rate": rate(row["faults"], row["calls"]),
        "amplification": rate(row["requests"], row["calls"]),
        "cured": row["retries"] - row["wasted"],
        "cured_rate": rate(row["retries"] - row["wasted"], row["retries"]),
        "p50_ms": half,
        "p90_ms": most,
        "p99_ms": nearly_all,
    }


def _courses(reader: Reader, asked: Asked, kind: Kind, now: float) -> dict[str, list[int]]:
    """Failures by hour of the last two days, for a small drawing."""
    end = int((asked.until if asked.until is not None else now) // HOUR * HOUR)
    begin = end - (_DRAWN - 1) * HOUR
    if asked.since is not None:
        begin = max(begin, int(asked.since // HOUR * HOUR))
    length = max(1, (end - begin) // HOUR + 1)
    found: dict[str, list[int]] = {}
    where = asked.where
    for row in reader.figures(
        begin, asked.until, ("hour", kind), where, latency=False, counters=FEW
    ):
        if row["failures"]:
            place = int((row["hour"] - begin) // HOUR)
            if 0 <= place < length:
                found.setdefault(row[kind], [0] * length)[place] += row["failures"]
    return found


def _guards(look: Look | None) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in look() if look is not None else []:
        found.setdefault(row["upstream"], []).append(row)
    return found
