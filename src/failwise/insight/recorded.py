"""Clusters of what a journal holds: counted from its rollups, described by the newest records.

However many calls were recorded: counts come by hour and fingerprint, texts from a bounded number of
failures.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from failwise.classify.fingerprint import ignores_text
from failwise.insight.clusters import Cluster, Curation, Help, clusters_of, find
from failwise.insight.masking import Masker
from failwise.insight.tally import EXAMPLES, Example, Tally, count_name
from failwise.insight.verdict import LOOKED_AT, Verdict, verdict
from failwise.journal.reader import Filter, Place, Reader, open_reader
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record

_READ: Final = 20_000
"""Newest failures that are looked at for texts and examples."""
_ASKED_BRIEFLY: Final = 100
_ASKED_SINGLY: Final = 300
"""Fingerprints that are not among them and are asked for besides, the most frequent first."""
_RUNS: Final = 200
"""Runs that are looked at for what helped after a failure that the model could cure."""
_BY_MODEL: Final = ("ask_model", "repair_arguments", "ask_user")
_HOUR: Final = 3_600


@record
class Clusters:
    """The clusters of a stretch of a journal, most frequent first, and the verdict over the last
    failures in it. `failures` counts failed calls, fallbacks not counted."""

    since: float | None
    until: float | None
    failures: int
    clusters: tuple[Cluster, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; moments in epoch seconds."""
        return {
            "since": self.since,
            "until": self.until,
            "failures": self.failures,
            "verdict": self.verdict.to_dict(),
            "clusters": [cluster.to_dict() for cluster in self.clusters],
        }


def clusters(
    journal: Place = None,
    *,
    since: float | None = None,
    until: float | None = None,
    where: Filter | None = None,
    brief: bool = False,
) -> Clusters:
    """The clusters of a journal: a path, a URL, an open one, or None for the usual place.

    `since` (included) and `until` (not included) in epoch seconds; counts are by whole hours. `where`
    keeps to the failures that fit; fallbacks are never counted. `brief`
    is for headlines, and quick however many calls there are: the same clusters and counts, without
    trends and without what helped. Raises `ConfigurationError` where there is no journal.
    """
    with open_reader(journal) as reader:
        wanted = replace(where or Filter(), success=False, asked=True)
        tallies: dict[str, Tally] = {}
        if where is None or (where.success is not True and where.asked is not False):
            tallies = _counted(reader, since, until, wanted, hourly=not brief)
        last: list[dict[str, Any]] = []
        if tallies:
            read = LOOKED_AT if brief else _READ
            last = _described(reader, tallies, since, until, wanted, read)
        found = clusters_of(
            tallies.values(),
            total=sum(tally.count for tally in tallies.values()),
            curation=curation_of(reader),
            helps={} if brief else _helps(reader, tallies, last, since, until),
            since=since,
            until=until,
        )
    home = {one: cluster.id for cluster in found for one in cluster.fingerprints}
    recent = [home.get(row["fingerprint"], "") for row in reversed(last[:LOOKED_AT])]
    return Clusters(
        since, until, sum(one.count for one in found), tuple(found), verdict(found, recent)
    )


def name_cluster(journal: Place, wanted: str, name: str) -> Cluster:
    """Call a cluster by a name, from now on; `wanted` as `find` has it. Gives it as it was.

    Raises `UsageError` where no cluster, or more than one, is meant.
    """
    with open_reader(journal) as reader:
        cluster = _wanted(reader, wanted)
        reader.name(cluster.fingerprints, cluster.id, name)
    return cluster


def merge_clusters(journal: Place, wanted: Sequence[str], name: str = "") -> Cluster:
    """Make several clusters one, under the id of the first; gives the first as it was."""
    with open_reader(journal) as reader:
        several = [_wanted(reader, one) for one in wanted]
        if len({cluster.id for cluster in several}) < 2:
            raise UsageError("a merge needs two clusters or more that are not one already")
        called = name or next((cluster.name for cluster in several if cluster.name), "")
        ids = [one for cluster in several for one in cluster.fingerprints]
        reader.name(ids, several[0].id, called)
    return several[0]


def split_cluster(journal: Place, fingerprint: str) -> Cluster:
    """Take one fingerprint out of its cluster: it stands alone, the others stay together.

    Gives the cluster as it was. Raises `UsageError` for an unknown fingerprint, or where it is alone.
    """
    with open_reader(journal) as reader:
        cluster = _wanted(reader, fingerprint)
        near = [one for one in cluster.fingerprints if one.startswith(fingerprint)]
        if len(near) != 1:
            raise UsageError(
                f"{fingerprint} is not one fingerprint of that cluster; it has "
                + ", ".join(cluster.fingerprints[:20])
            )
        rest = [one for one in cluster.fingerprints if one != near[0]]
        if not rest:
            raise UsageError(f"{near[0]} is a cluster of its own already")
        reader.name(rest, rest[0], cluster.name)
        reader.split(near)
    return cluster


def mute_cluster(journal: Place, wanted: str, muted: bool = True) -> Cluster:
    """Leave a cluster out of lists and alarms, or bring it back; gives it as it was."""
    with open_reader(journal) as reader:
        cluster = _wanted(reader, wanted)
        reader.mute(cluster.fingerprints, muted)
    return cluster


def _wanted(reader: Reader, wanted: str) -> Cluster:
    found = find(clusters(reader).clusters, wanted)
    if found is None:
        raise UsageError(
            f"{wanted!r} names no cluster, or more than one; `failwise clusters` has the ids"
        )
    return found


def curation_of(reader: Reader) -> Curation:
    """What people said of this journal's fingerprints."""
    said = reader.names().values()
    return Curation(
        {one.fingerprint: one.cluster for one in said if one.cluster},
        {one.cluster: one.name for one in said if one.cluster and one.name},
        frozenset(one.fingerprint for one in said if one.muted),
    )


def _counted(
    reader: Reader, since: float | None, until: float | None, where: Filter, *, hourly: bool
) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for row in reader.fingerprints(since, until, ("hour",) if hourly else (), where):
        fingerprint = row["fingerprint"]
        if not fingerprint or not row["asked"]:
            continue
        tally = tallies.get(fingerprint)
        if tally is None:
            tally = tallies[fingerprint] = Tally(
                fingerprint, (row["code"],), category=row["category"], code=row["code"]
            )
        calls = row["calls"]
        tally.seen(float(row["hour"]) if hourly else None, calls)
        first, last = row["first_seen"], row["last_seen"]
        tally.first = first if tally.first is None else _within(tally.first, first, min)
        tally.last = last if tally.last is None else max(tally.last, last)
        count_name(tally.tools, row["tool"], calls)
        count_name(tally.upstreams, row["upstream"], calls)
    return tallies


def _within(hour: float, moment: float, choose: Any) -> float:
    """The moment itself, where what is known is only the beginning of its hour."""
    return moment if hour <= moment < hour + _HOUR else float(choose(hour, moment))


def _described(
    reader: Reader,
    tallies: Mapping[str, Tally],
    since: float | None,
    until: float | None,
    where: Filter,
    read: int,
) -> list[dict[str, Any]]:
    """Give the tallies their templates and examples; gives the newest failures, newest first."""
    masker = Masker()
    untold = set(tallies)
    last: list[dict[str, Any]] = []
    for row in _newest(reader, since, until, where, read, tallies):
        last.append(row)
        tally = tallies.get(row["fingerprint"] or "")
        if tally is not None and len(tally.examples) < EXAMPLES:
            _describe(tally, row, masker, first=tally.fingerprint in untold)
            untold.discard(tally.fingerprint)
    order = sorted(untold, key=lambda one: (-tallies[one].count, one))
    order = order[: _ASKED_SINGLY if read == _READ else _ASKED_BRIEFLY]
    known = {
        one: at
        for one in order
        if (at := tallies[one].last) is not None and _inside(at, since, until)
    }
    for row in reader.failures_at(known):
        if row["fingerprint"] in untold:
            _describe(tallies[row["fingerprint"]], row, masker, first=True)
            untold.discard(row["fingerprint"])
    for fingerprint in order:
        if fingerprint in untold:
            wanted = replace(where, fingerprint=fingerprint)
            for row in reader.failures(since, until, 1, wanted):
                _describe(tallies[fingerprint], row, masker, first=True)
    return last


def _newest(
    reader: Reader,
    since: float | None,
    until: float | None,
    where: Filter,
    limit: int,
    tallies: Mapping[str, Tally],
) -> list[dict[str, Any]]:
    """The newest failures; looked for in a short stretch first, which is all that most engines read
    then."""
    end = max((one.last for one in tallies.values() if one.last is not None), default=0.0)
    for length in (_HOUR, 24 * _HOUR):
        begin = end - length
        if end and (since is None or begin > since):
            found = list(reader.failures(begin, until, limit, where))
            if len(found) >= limit:
                return found
    return list(reader.failures(since, until, limit, where))


def _inside(at: float, since: float | None, until: float | None) -> bool:
    return (since is None or at >= since) and (until is None or at < until)


def _describe(tally: Tally, row: Mapping[str, Any], masker: Masker, *, first: bool) -> None:
    message = row["message"] or ""
    if all(message != one.text for one in tally.examples):
        tally.examples.appendleft(Example(message, row["started"], row["call_id"]))
    if not first:
        return
    data = row["failure"]
    failure = Failure.from_dict(data) if isinstance(data, dict) and "code" in data else None
    tally.failure, tally.http_status = failure, row["http_status"]
    if ignores_text(tally.code):
        return
    tally.template = masker.mask(message) or tally.template
    tally.subject = _subject(failure, row)


def _subject(failure: Failure | None, row: Mapping[str, Any]) -> str:
    """What the upstream said in a code: the provider's, the status, or the type of the error."""
    if failure is not None and failure.provider_code:
        return failure.provider_code
    if row["http_status"]:
        return str(row["http_status"])
    if failure is None or failure.category not in (Category.TOOL, Category.UNKNOWN):
        return ""
    parts = failure.detail("parts")
    wrapper = parts.get("wrapper") if isinstance(parts, Mapping) else None
    if wrapper:
        return str(wrapper).rpartition(".")[2]
    said = failure.evidence.message if failure.evidence else ""
    name = said.partition(":")[0]
    return name.rpartition(".")[2] if name and name.replace(".", "").isidentifier() else ""


def _helps(
    reader: Reader,
    tallies: Mapping[str, Tally],
    last: Sequence[dict[str, Any]],
    since: float | None,
    until: float | None,
) -> dict[str, list[Help]]:
    """What was done after failures of a fingerprint, and how often it worked.

    What the runtime did itself counts by the end of the call; what it asked of the model or a person,
    by the tool's next call in the same run.
    """
    found: dict[str, list[Help]] = defaultdict(list)
    for row in reader.cures(since, until):
        if row["fingerprint"] and row["action"] not in (*_BY_MODEL, "abort", "retry_later"):
            found[row["fingerprint"]].append(Help(row["action"], row["tried"], row["cured"]))
    runs: dict[str, None] = {}
    for row in last:
        if row["run_id"] and row["action"] in _BY_MODEL and row["fingerprint"] in tallies:
            runs.setdefault(row["run_id"])
        if len(runs) >= _RUNS:
            break
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    open_ones: dict[tuple[str, str], dict[str, Any]] = {}
    for call in reader.courses(list(runs)):
        which = call["run_id"], call["tool"]
        earlier = open_ones.pop(which, None)
        if earlier is not None:
            pair = counts[earlier["fingerprint"], earlier["action"]]
            pair[0] += 1
            pair[1] += 1 if call["success"] else 0
        if not call["success"] and call["action"] in _BY_MODEL and call["fingerprint"]:
            open_ones[which] = call
    for left in open_ones.values():
        counts[left["fingerprint"], left["action"]][0] += 1
    for (fingerprint, action), (tried, worked) in counts.items():
        found[fingerprint].append(Help(action, tried, worked))
    return found
