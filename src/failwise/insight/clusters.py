"""Fingerprints that are one thing for a person: clusters, made anew at every question.

A fingerprint is fixed when a failure is recorded. A cluster is a group of them: same category, same
code, same status or provider code, and templates that differ in values only (`mining`). What a person
says of it is kept, and wins: a name, "these are one", "this stands alone".
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from failwise.insight.masking import MARK, Template
from failwise.insight.mining import merge
from failwise.insight.tally import Example, Tally
from failwise.insight.turns import Turn, turn_of
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record

Trend: TypeAlias = Literal["new", "rising", "steady", "falling", "gone", ""]

_HOUR: Final = 3_600
_SHOWN: Final = 10
_VARIANTS: Final = 8
_SIGNIFICANT: Final = 2.6
"""Standard deviations between the halves of a stretch: about one false word in a hundred."""


@record
class Curation:
    """What people said of fingerprints.

    `groups`: the cluster each was put into, by a merge, a split or a name. `names` by cluster.
    `muted`: nobody wants to hear of them (they are still counted).
    """

    groups: Mapping[str, str]
    names: Mapping[str, str]
    muted: frozenset[str] = frozenset()


NOTHING_SAID: Final = Curation({}, {})


@record
class Help:
    """What was done after a failure of a cluster, how often, and how often the next thing worked."""

    action: str
    tried: int
    worked: int

    @property
    def share(self) -> float:
        return self.worked / self.tried if self.tried else 0.0


@record
class Cluster:
    """Failures of one cause. Times in epoch seconds, `share` of all failures looked at.

    `id` is the fingerprint of it that was seen first, or the one a person chose by a merge or a name;
    any of `fingerprints` names it as well.
    `hours` are 24 counts by hour of the day (UTC), `course` the counts over the stretch in equal
    parts. `variants` are the values of words that vary, most frequent first. `facts` are what its
    newest failure knew: ``host``, ``not_after`` of a certificate, ``parameter``.
    """

    id: str
    template: str
    category: str
    code: str
    count: int
    share: float
    turn: Turn
    trend: Trend = ""
    name: str = ""
    http_status: int | None = None
    first: float | None = None
    last: float | None = None
    upstreams: tuple[tuple[str, int], ...] = ()
    tools: tuple[tuple[str, int], ...] = ()
    hours: tuple[int, ...] = ()
    course: tuple[int, ...] = ()
    variants: tuple[tuple[str, int], ...] = ()
    examples: tuple[Example, ...] = ()
    helps: tuple[Help, ...] = ()
    fingerprints: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    failure: Failure | None = None
    muted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, redacted as it was recorded."""
        data: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "id", "name", "template", "category", "code", "http_status", "count", "share", "turn",
                "trend", "first", "last", "muted",
            )
        }  # fmt: skip
        for name in ("upstreams", "tools", "variants"):
            data[name] = [{"name": one, "count": count} for one, count in getattr(self, name)]
        data["hours"], data["course"] = list(self.hours), list(self.course)
        data["examples"] = [
            {"text": one.text, "at": one.at, "source": one.source} for one in self.examples
        ]
        data["helps"] = [
            {"action": one.action, "tried": one.tried, "worked": one.worked} for one in self.helps
        ]
        data["fingerprints"] = list(self.fingerprints)
        data["facts"] = dict(self.facts or {})
        data["remedies"] = self.remedies()
        return data

    def remedies(self) -> dict[str, str]:
        """What cures it, by language; nothing where nothing is known."""
        from failwise.vocabulary.words import remedy

        if self.failure is None:
            return {}
        return {"en": remedy(self.failure, "en"), "zh": remedy(self.failure, "zh")}


def clusters_of(
    tallies: Iterable[Tally],
    *,
    total: int,
    curation: Curation = NOTHING_SAID,
    helps: Mapping[str, Sequence[Help]] | None = None,
    since: float | None = None,
    until: float | None = None,
) -> list[Cluster]:
    """Clusters of tallies, most frequent first: the same whatever their order."""
    counted = sorted(tallies, key=lambda tally: tally.fingerprint)
    moments = [moment for tally in counted for moment in (tally.first, tally.last) if moment]
    begin = since if since is not None else min(moments, default=0.0)
    end = until if until is not None else max(moments, default=0.0)
    made = [
        _cluster(told, group, template, total, curation, helps or {}, (begin, end))
        for told, group, template in _groups(counted, curation)
    ]
    return sorted(made, key=lambda cluster: (-cluster.count, cluster.id))


def find(clusters: Iterable[Cluster], wanted: str) -> Cluster | None:
    """The cluster that a fingerprint (or the beginning of one, 4 characters or more) or name means."""
    near: list[Cluster] = []
    for cluster in clusters:
        if wanted in (cluster.id, cluster.name) or wanted in cluster.fingerprints:
            return cluster
        if len(wanted) >= 4 and any(one.startswith(wanted) for one in cluster.fingerprints):
            near.append(cluster)
    return near[0] if len(near) == 1 else None


def _groups(
    tallies: Sequence[Tally], curation: Curation
) -> list[tuple[str, list[Tally], Template]]:
    """Tallies that belong together, under the id people gave it ("" for none), and their template.

    A fingerprint that nobody spoke of joins the cluster that its like were put into; where they were
    split, the one that most of them are in. One that was split off alone attracts nothing.
    """
    by_kind: dict[tuple[str, str, str], list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_kind[tally.category, tally.code, tally.subject].append(tally)
    sizes = Counter(curation.groups.values())
    groups: dict[str, list[Tally]] = defaultdict(list)
    templates: dict[str, Template] = {}
    for kind in sorted(by_kind):
        members = by_kind[kind]
        counts: Counter[Template] = Counter()
        for tally in members:
            counts[tally.template] += tally.count
        merged = merge(counts)
        alike: dict[Template, list[Tally]] = defaultdict(list)
        for tally in members:
            alike[merged[tally.template]].append(tally)
        for whole, several in alike.items():
            said = Counter(
                curation.groups[tally.fingerprint]
                for tally in several
                if tally.fingerprint in curation.groups
            )
            drawn = [one for one in said if sizes[one] > 1 or curation.names.get(one)]
            usual = max(drawn, key=lambda one: (said[one], one), default="")
            for tally in several:
                told = curation.groups.get(tally.fingerprint, usual)
                key = f"={told}" if told else "\x1f".join((*kind, *whole))
                groups[key].append(tally)
                alone = told and sizes[told] == 1 and not curation.names.get(told)
                templates.setdefault(key, tally.template if alone else whole)
    return [
        (key[1:] if key.startswith("=") else "", group, templates[key])
        for key, group in groups.items()
    ]


def _cluster(
    told: str,
    group: list[Tally],
    template: Template,
    total: int,
    curation: Curation,
    helps: Mapping[str, Sequence[Help]],
    stretch: tuple[float, float],
) -> Cluster:
    order = sorted(group, key=lambda tally: (tally.first or 0.0, tally.fingerprint))
    lead = order[0]
    whole = Tally(
        lead.fingerprint, template, category=lead.category, code=lead.code, subject=lead.subject
    )
    for tally in order:
        whole.absorb(tally)
    ids = tuple(tally.fingerprint for tally in order)
    newest = max(group, key=lambda tally: (tally.failure is not None, tally.last or 0.0))
    code = lead.code
    return Cluster(
        told or lead.fingerprint,
        _shown(template, whole),
        lead.category,
        code,
        whole.count,
        whole.count / total if total else 0.0,
        turn_of(lead.category, code),
        _trend(whole.hours, *stretch),
        curation.names.get(told, ""),
        whole.http_status,
        whole.first,
        whole.last,
        tuple(whole.upstreams.most_common(_SHOWN)),
        tuple(whole.tools.most_common(_SHOWN)),
        _by_hour(whole.hours),
        _course(whole.hours, *stretch),
        _variants(group, template, whole.variants),
        tuple(reversed(whole.examples)),
        _joined(helps.get(one, ()) for one in ids),
        ids,
        facts_of(newest.failure),
        newest.failure,
        any(one in curation.muted for one in ids),
    )


def _shown(template: Template, whole: Tally) -> str:
    """The template as text; where the text does not matter, what was last said."""
    if template == (whole.code,) and whole.failure is not None and whole.failure.message:
        return whole.failure.message
    if template == (whole.code,) and whole.examples:
        return whole.examples[-1].text
    return " ".join(template)


def facts_of(failure: Failure | None) -> dict[str, Any]:
    """What names the culprit: host, dates of a certificate, parameters, the provider's code."""
    if failure is None:
        return {}
    facts: dict[str, Any] = {}
    certificate = failure.detail("certificate")
    if isinstance(certificate, Mapping):
        for name in ("host", "not_after", "not_before", "issuer"):
            if certificate.get(name):
                facts[name] = certificate[name]
    for name in ("host", "limit"):
        if failure.detail(name) and name not in facts:
            facts[name] = failure.detail(name)
    violations = failure.detail("violations")
    if isinstance(violations, list | tuple):
        names = [row.get("parameter") for row in violations if isinstance(row, Mapping)]
        if any(names):
            facts["parameters"] = [str(name) for name in names if name][:5]
    for name in ("provider", "provider_code"):
        if getattr(failure, name):
            facts[name] = getattr(failure, name)
    return facts


def _variants(
    group: Collection[Tally], template: Template, known: "Counter[str]"
) -> tuple[tuple[str, int], ...]:
    """What stood where the template has a value and the words tell it."""
    found = Counter(known)
    for tally in group:
        for word in values_in(tally.template, template):
            found[word] += tally.count
    return tuple(found.most_common(_VARIANTS)) if len(found) > 1 else ()


def values_in(one: Template, whole: Template) -> Iterator[str]:
    """The words of a template that are values in the template of its cluster."""
    if len(one) == len(whole):
        for word, place in zip(one, whole, strict=True):
            if place == MARK and MARK not in word:
                yield word.strip(".,;:()[]\"'")


def _by_hour(hours: Mapping[int, int]) -> tuple[int, ...]:
    counts = [0] * 24
    for hour, count in hours.items():
        counts[hour % 24] += count
    return tuple(counts) if hours else ()


def _course(hours: Mapping[int, int], begin: float, end: float, parts: int = 24) -> tuple[int, ...]:
    """The counts over a stretch, in at most `parts` equal parts of whole hours."""
    if not hours:
        return ()
    first, last = int(begin // _HOUR), int(end // _HOUR)
    width = max(1, -(-(last - first + 1) // parts))
    counts = [0] * max(1, -(-(last - first + 1) // width))
    for hour, count in hours.items():
        if first <= hour <= last:
            counts[(hour - first) // width] += count
    return tuple(counts)


def _trend(hours: Mapping[int, int], begin: float, end: float) -> Trend:
    """How the later half of a stretch compares with the earlier: only what chance does not explain."""
    first, last = int(begin // _HOUR), int(end // _HOUR)
    length = last - first + 1
    if not hours or length < 4:
        return ""
    middle = first + length // 2
    early = sum(count for hour, count in hours.items() if first <= hour < middle)
    late = sum(count for hour, count in hours.items() if middle <= hour <= last)
    together = early + late
    share = (last - middle + 1) / length
    distance = late - together * share
    spread = (together * share * (1 - share)) ** 0.5
    if not spread or abs(distance) < _SIGNIFICANT * spread:
        return "steady"
    if distance > 0:
        return "rising" if early else "new"
    return "falling" if late else "gone"


def _joined(each: Iterable[Sequence[Help]]) -> tuple[Help, ...]:
    tried: Counter[str] = Counter()
    worked: Counter[str] = Counter()
    for helps in each:
        for one in helps:
            tried[one.action] += one.tried
            worked[one.action] += one.worked
    found = [Help(action, tried[action], worked[action]) for action in tried]
    return tuple(sorted(found, key=lambda one: (-one.worked, -one.tried, one.action)))
