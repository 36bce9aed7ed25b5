"""The first page: how it goes, what fails, since when, and what waits for a person."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from failwise.dashboard.asked import Asked
from failwise.dashboard.search import found_calls
from failwise.insight.figures import rate
from failwise.insight.recorded import clusters
from failwise.journal.latency import quantiles
from failwise.journal.reader import Filter, Reader
from failwise.journal.rollups import DAY, HOUR

_HOURLY: Final = 3 * DAY
"""Seconds up to which a stretch is drawn by hour, beyond it by day."""
HEAT: Final = 3 * DAY
"""Seconds that the map of hours looks back at most."""
_SHOWN: Final = 8
FEW: Final = ("calls", "successes", "refusals")
"""The counters that every question for figures needs."""
_COUNTED: Final = (
    "calls", "successes", "recovered", "degraded", "refusals", "retries", "wasted", "requests",
    "verified",
)  # fmt: skip


def overview(reader: Reader, asked: Asked, now: float) -> dict[str, Any]:
    """Everything of the page, as data. Figures count the calls that somebody asked for; requests those
    of fallbacks too."""
    first, last = reader.span(asked.since, asked.until)
    begin = asked.since if asked.since is not None else first
    end = asked.until if asked.until is not None else (now if asked.since is not None else last)
    step = HOUR if end - begin <= _HOURLY else DAY
    by: Literal["hour", "day"] = "hour" if step == HOUR else "day"
    total = dict.fromkeys(_COUNTED, 0)
    course: dict[int, dict[str, int]] = {}
    shares: dict[str, int] = defaultdict(int)
    rows = reader.figures(
        asked.since,
        asked.until,
        (by, "asked", "category"),
        asked.where,
        latency=False,
        counters=_COUNTED,
    )
    for row in rows:
        point = course.setdefault(row[by], defaultdict(int))
        total["requests"] += row["requests"]
        point["requests"] += row["requests"]
        if not row["asked"]:
            continue
        for name in _COUNTED:
            if name != "requests":
                total[name] += row[name]
        for name in ("calls", "recovered", "degraded"):
            point[name] += row[name]
        point["plain"] += row["successes"] - row["recovered"] - row["degraded"]
        point["failures"] += row["failures"]
        if row["category"]:
            shares[row["category"]] += row["calls"]
            point[f"={row['category']}"] += row["calls"]
    categories = sorted(shares, key=lambda one: (-shares[one], one))
    latencies = reader.latencies(asked.since, asked.until, (), replace(asked.where, asked=True))
    half, most = quantiles(latencies.get((), {}).items(), (0.5, 0.99))
    failures = total["calls"] - total["successes"]
    return {
        "span": {"first": first or None, "last": last or None},
        "total": total
        | {
            "failures": failures,
            "success_rate": rate(total["successes"], total["calls"]),
            "recovered_rate": rate(total["recovered"], total["calls"]),
            "degraded_rate": rate(total["degraded"], total["calls"]),
            "amplification": rate(total["requests"], total["calls"]),
            "p50_ms": half,
            "p99_ms": most,
        },
        "step": step,
        "course": _course(course, begin, end, step, categories),
        "categories": [
            {"name": name, "failures": shares[name], "share": rate(shares[name], failures)}
            for name in categories
        ],
        "heat": _heat(reader, asked, rows if by == "hour" else None, end, categories),
        "clusters": _clusters(reader, asked),
        "upstreams": _retried(reader, asked),
        "lost": _lost(reader, asked, total["verified"] > 0) if shares or total["verified"] else [],
        "stopped": _stopped(reader, asked) if shares["runtime"] else [],
        **_claimed(reader, asked, now),
    }


def _claimed(reader: Reader, asked: Asked, now: float) -> dict[str, int | None]:
    """What claims know: effects that are open, and repeats that were prevented. Claims have a tool and
    a run; under another filter nobody knows (None)."""
    where = asked.where
    if where != Filter(tool=where.tool, run=where.run):
        return {"open_effects": None, "prevented": None}
    effects = [
        one
        for one in reader.open_effects(now, limit=1_000)
        if where.tool in (None, one["tool"]) and where.run in (None, one["run_id"])
    ]
    prevented = reader.prevented(asked.since, asked.until, where=where)
    return {"open_effects": len(effects), "prevented": sum(row["calls"] for row in prevented)}


def _course(
    known: Mapping[int, Mapping[str, int]],
    begin: float,
    end: float,
    step: int,
    categories: list[str],
) -> list[dict[str, Any]]:
    """One point for each hour or day, those without calls too."""
    if not known:
        return []
    start, stop = int(begin // step * step), int(end // step * step)
    points = range(max(start, stop - 1_000 * step), max(stop, start) + step, step)
    names = ("calls", "plain", "recovered", "degraded", "failures", "requests")
    return [
        {"at": at}
        | {name: known.get(at, {}).get(name, 0) for name in names}
        | {"by_category": {one: known.get(at, {}).get(f"={one}", 0) for one in categories}}
        for at in points
    ]


def _heat(
    reader: Reader,
    asked: Asked,
    rows: list[dict[str, Any]] | None,
    end: float,
    categories: list[str],
) -> dict[str, Any]:
    """Failures by category and hour of the day (UTC): of `rows`, or of the last days."""
    since = asked.since
    if rows is None:
        since = max(asked.since or 0.0, (end - HEAT) // HOUR * HOUR)
        by: tuple[Literal["hour", "asked", "category"], ...] = ("hour", "asked", "category")
        where = replace(asked.where, success=False)
        rows = reader.figures(since, asked.until, by, where, latency=False, counters=FEW)
    cells: dict[str, list[int]] = {name: [0] * 24 for name in categories[:_SHOWN]}
    for row in rows:
        if row["asked"] and row["category"] in cells:
            cells[row["category"]][int(row["hour"] % DAY // HOUR)] += row["calls"]
    return {"since": since, "rows": [{"name": one, "hours": cells[one]} for one in cells]}


def _clusters(reader: Reader, asked: Asked) -> dict[str, Any]:
    found = clusters(reader, since=asked.since, until=asked.until, where=asked.where, brief=True)
    loud = [cluster for cluster in found.clusters if not cluster.muted]
    return {
        "verdict": {"en": found.verdict.text("en"), "zh": found.verdict.text("zh")},
        "kinds": len(loud),
        "rows": [brief(cluster.to_dict()) for cluster in loud[:_SHOWN]],
    }


def brief(cluster: dict[str, Any]) -> dict[str, Any]:
    """A cluster as a row of a list."""
    names = ("id", "name", "template", "category", "code", "count", "share", "turn", "trend")
    more = ("first", "last", "upstreams", "tools", "facts", "course", "remedies", "muted")
    return {name: cluster[name] for name in (*names, *more)}


def _retried(reader: Reader, asked: Asked) -> list[dict[str, Any]]:
    """The upstreams that got the most retries, and what those were worth."""
    rows = reader.figures(
        asked.since,
        asked.until,
        ("upstream",),
        asked.where,
        latency=False,
        counters=(*FEW, "retries", "wasted"),
    )
    found = sorted((row for row in rows if row["retries"]), key=lambda row: -row["retries"])
    return [
        {
            "name": row["upstream"],
            "calls": row["calls"],
            "retries": row["retries"],
            "cured": row["retries"] - row["wasted"],
            "wasted": row["wasted"],
        }
        for row in found[:5]
    ]


def _lost(reader: Reader, asked: Asked, verified: bool) -> list[dict[str, Any]]:
    """The newest calls whose answer was lost on the way: those of which it was found out that they had
    happened (`verified`: there are some), and those of which nobody knows. Calls that only read are
    left out."""
    done: list[dict[str, Any]] = []
    if verified:
        done = found_calls(
            reader, replace(asked, where=replace(asked.where, verified=True)), 5
        ).rows
    where = replace(asked.where, asked=True, effect=asked.where.effect or "unknown")
    rows = found_calls(reader, replace(asked, where=where), 40).rows
    unknown = [row for row in rows if not _reads(row)][:5]
    both = sorted([*done, *unknown], key=lambda row: -row["started"])
    return [_named(row) | {"verified": row["verified"]} for row in both[:_SHOWN]]


def _reads(row: Mapping[str, Any]) -> bool:
    failure = row["failure"]
    details = failure.get("details") if isinstance(failure, Mapping) else None
    return isinstance(details, Mapping) and details.get("read_only") is True


def _stopped(reader: Reader, asked: Asked) -> list[dict[str, Any]]:
    """The newest runs that were stopped, and by what."""
    where = replace(asked.where, code="runtime.chain_aborted")
    found: dict[str, dict[str, Any]] = {}
    for row in found_calls(reader, replace(asked, where=where), 50).rows:
        failure = row["failure"] if isinstance(row["failure"], Mapping) else {}
        details = failure.get("details")
        cause = details.get("cause") if isinstance(details, Mapping) else None
        told = found.setdefault(
            row["run_id"], _named(row) | {"calls": 0, "cause": cause if cause else {}}
        )
        told["calls"] += 1
    return list(found.values())[:5]


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("call_id", "run_id", "tool", "started", "code", "success")
    return {name: row[name] for name in names}
