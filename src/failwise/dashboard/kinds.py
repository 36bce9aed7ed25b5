"""Clusters: the kinds of failure, and one of them in full."""

from dataclasses import replace
from typing import Any, Final, Literal

from failwise.dashboard.asked import Asked
from failwise.dashboard.overview import FEW, HEAT, brief
from failwise.dashboard.search import found_calls
from failwise.insight.clusters import Cluster, find
from failwise.insight.recorded import Clusters, clusters
from failwise.journal.reader import Filter, Reader
from failwise.journal.rollups import DAY, HOUR

_FULL: Final = 2_000
"""Failures up to which trends and what helped are counted while somebody waits."""
_LISTED: Final = 200
_EXAMPLES: Final = 20
_PARTS: Final = 62
"""Columns of a cluster's course, at most."""
_MEMBERS: Final = 500
"""Fingerprints of a cluster that are asked for."""


def _found(reader: Reader, asked: Asked) -> tuple[Clusters, bool]:
    rows = reader.figures(
        asked.since,
        asked.until,
        (),
        replace(asked.where, success=False, asked=True),
        latency=False,
        counters=FEW,
    )
    full = sum(row["calls"] for row in rows) <= _FULL
    found = clusters(
        reader, since=asked.since, until=asked.until, where=asked.where, brief=not full
    )
    return found, full


def kinds(reader: Reader, asked: Asked, *, muted: bool) -> dict[str, Any]:
    """The clusters of a stretch, most frequent first; `muted`: those that nobody wants to hear of too.

    `trends` is false where there were too many failures to tell trends at once.
    """
    found, full = _found(reader, asked)
    rows = [one for one in found.clusters if muted or not one.muted]
    return {
        "failures": found.failures,
        "kinds": len(rows),
        "muted": sum(1 for one in found.clusters if one.muted),
        "trends": full,
        "verdict": {"en": found.verdict.text("en"), "zh": found.verdict.text("zh")},
        "rows": [brief(one.to_dict()) for one in rows[:_LISTED]],
    }


def kind(reader: Reader, asked: Asked, wanted: str, now: float) -> dict[str, Any] | None:
    """One cluster with its newest calls and the clusters it could be merged with; None for none."""
    found, full = _found(reader, asked)
    cluster = find(found.clusters, wanted)
    if cluster is None:
        return None
    data = cluster.to_dict()
    members = replace(asked.where, fingerprint=cluster.fingerprints[:_MEMBERS], asked=True)
    data["hours"] = _hours(reader, cluster, members)
    begin = asked.since if asked.since is not None else cluster.first or now
    end = max(now if asked.until is None else asked.until, begin + HOUR)
    data["course"] = _course(reader, begin, end, members)
    listed = replace(asked, where=members, given={}, before=None)
    return {
        "cluster": data,
        "course_from": begin,
        "course_to": end,
        "trends": full,
        "calls": found_calls(reader, listed, _EXAMPLES).rows,
        "others": [
            {"id": one.id, "code": one.code, "name": one.name, "template": one.template}
            for one in found.clusters
            if one.id != cluster.id
        ][:_LISTED],
    }


def _hours(reader: Reader, cluster: Cluster, members: Filter) -> list[int]:
    """Counts by hour of the day, over its last days at most."""
    hours, last = [0] * 24, cluster.last or 0.0
    begin = max(cluster.first or 0.0, last - HEAT)
    for row in reader.fingerprints(begin, last + 1, ("hour",), members):
        hours[int(row["hour"]) // HOUR % 24] += row["calls"]
    return hours


def _course(reader: Reader, begin: float, end: float, members: Filter) -> list[int]:
    """Counts over a stretch in equal parts: by hours, or by days where it is long."""
    by: Literal["hour", "day"] = "hour" if end - begin <= HEAT else "day"
    size = HOUR if by == "hour" else DAY
    first, last = int(begin // size), int((end - 1) // size)
    width = max(1, -(-(last - first + 1) // _PARTS))
    course = [0] * (-(-(last - first + 1) // width))
    for row in reader.fingerprints(begin, end, (by,), members):
        place = (int(row[by]) // size - first) // width
        if 0 <= place < len(course):
            course[place] += row["calls"]
    return course
