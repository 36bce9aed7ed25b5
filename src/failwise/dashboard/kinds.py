"""Clusters: the kinds of failure, and one of them in full."""

from typing import Any, Final

from failwise.dashboard.asked import Asked
from failwise.dashboard.overview import FEW, brief
from failwise.dashboard.search import found_calls
from failwise.insight.clusters import Cluster, find
from failwise.insight.recorded import Clusters, clusters
from failwise.journal.reader import Filter, Reader

_FULL: Final = 2_000
"""Failures up to which trends and what helped are counted while somebody waits."""
_LISTED: Final = 200
_EXAMPLES: Final = 20
_MEMBERS: Final = 500
"""Fingerprints of a cluster that are asked for."""


def _found(reader: Reader, asked: Asked) -> tuple[Clusters, bool]:
    rows = reader.figures(
        asked.since,
        asked.until,
        (),
        Filter(success=False, asked=True),
        latency=False,
        counters=FEW,
    )
    full = sum(row["calls"] for row in rows) <= _FULL
    return clusters(reader, since=asked.since, until=asked.until, brief=not full), full


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


def kind(reader: Reader, asked: Asked, wanted: str) -> dict[str, Any] | None:
    """One cluster with its newest calls and the clusters it could be merged with; None for none."""
    found, full = _found(reader, asked)
    cluster = find(found.clusters, wanted)
    if cluster is None:
        return None
    data = cluster.to_dict()
    if not full:
        data["hours"], data["course"] = _hours(reader, asked, cluster)
    where = Filter(fingerprint=cluster.fingerprints[:_MEMBERS], asked=True)
    asked = Asked(asked.period, asked.since, asked.until, where, {})
    return {
        "cluster": data,
        "trends": full,
        "calls": found_calls(reader, asked, _EXAMPLES).rows,
        "others": [
            {"id": one.id, "code": one.code, "name": one.name, "template": one.template}
            for one in found.clusters
            if one.id != cluster.id
        ][:_LISTED],
    }


def _hours(reader: Reader, asked: Asked, cluster: Cluster) -> tuple[list[int], list[int]]:
    """Counts by hour of the day, and over the stretch, from the rollups alone."""
    members = cluster.fingerprints[:_MEMBERS]
    conditions = [f"fingerprint IN ({', '.join('?' * len(members))})"]
    values: list[Any] = [*members]
    for condition, value in (("hour >= ?", asked.since), ("hour < ?", asked.until)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    found = reader.source.rows(
        "SELECT hour, sum(calls) AS counted FROM rollup_failures"  # noqa: S608
        f" WHERE asked = 1 AND {' AND '.join(conditions)} GROUP BY hour",
        values,
    )
    by_hour = {int(row["hour"]): int(row["counted"]) for row in found if row["counted"]}
    hours = [0] * 24
    for hour, count in by_hour.items():
        hours[int(hour // 3_600) % 24] += count
    if not by_hour:
        return hours, []
    first, last = min(by_hour) // 3_600, max(by_hour) // 3_600
    width = max(1, -(-(last - first + 1) // 24))
    course = [0] * (-(-(last - first + 1) // width))
    for hour, count in by_hour.items():
        course[int((hour // 3_600 - first) // width)] += count
    return hours, course
