"""The verdict over the last failures: what most of them are, of whom, and whose turn it is.

Two lines for a person who has ten seconds: the largest cause, and what else counts.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from failwise.insight.clusters import Cluster
from failwise.insight.turns import Turn
from failwise.vocabulary import documents, words
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Language

LOOKED_AT: Final = 100
"""Failures that the verdict is over: the last ones."""
_CAUSE: Final = 0.2
"""The share from which a cluster is named as a cause of its own."""
_ONE_OF: Final = 0.8
"""The share of a cluster's failures that one upstream must have to be named alone."""
_NAMES: Final = 3


@record
class Part:
    """A cluster's part in the last failures: `count` of them."""

    cluster: Cluster
    count: int
    share: float


@record
class Verdict:
    """What the last failures say. `looked` of them were looked at; `parts` largest first.

    `turn` is whose turn it is for most of them: None where no one has half of them.
    """

    looked: int
    parts: tuple[Part, ...]
    turn: Turn | None

    def text(self, lang: Language = "en") -> str:
        """One paragraph of at most two lines."""
        return "\n".join(_lines(self, lang))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, with the paragraph in both languages."""
        return {
            "looked": self.looked,
            "turn": self.turn,
            "parts": [
                {
                    "cluster": part.cluster.id,
                    "code": part.cluster.code,
                    "turn": part.cluster.turn,
                    "count": part.count,
                    "share": part.share,
                }
                for part in self.parts
            ],
            "text": {"en": self.text("en"), "zh": self.text("zh")},
        }


def verdict(clusters: Iterable[Cluster], recent: Sequence[str]) -> Verdict:
    """The verdict. `recent` are the ids of the clusters of the last failures, oldest first; of them
    the last `LOOKED_AT` count."""
    by_id = {cluster.id: cluster for cluster in clusters}
    last = [one for one in recent if one in by_id][-LOOKED_AT:]
    counts = Counter(last)
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = tuple(Part(by_id[one], count, count / len(last)) for one, count in order)
    turns: Counter[Turn] = Counter()
    for part in parts:
        turns[part.cluster.turn] += part.count
    turn, most = turns.most_common(1)[0] if turns else (None, 0)
    return Verdict(len(last), parts, turn if 2 * most >= len(last) else None)


@functools.cache
def _words(lang: Language) -> Mapping[str, str]:
    found: Mapping[str, str] = documents.read("failwise.insight", "verdict.toml")[1][lang]
    return found


def _lines(found: Verdict, lang: Language) -> list[str]:
    say = _words(lang)
    if not found.parts:
        return [say["none"]]
    causes = [part for part in found.parts if part.share >= _CAUSE]
    rest = found.parts[len(causes) :]
    if not causes:
        largest, others = found.parts[0], found.parts[1 : 1 + _NAMES]
        return [
            say["several"].format(
                count=found.looked,
                looked=found.looked,
                what=_what(largest.cluster, lang),
                part=largest.count,
                share=_percent(largest.share),
                others=_named(others, lang) or "-",
            )
        ]
    form = "all" if causes[0].count == found.looked else "main"
    lines = [_sentence(say[form], causes[0], found.looked, lang)]
    lines += [_sentence(say["second"], part, found.looked, lang) for part in causes[1:2]]
    left = [*causes[2:], *rest]
    if left:
        part = sum(one.count for one in left)
        if len(left) <= _NAMES:
            text = say["rest"].format(part=part, others=_named(left, lang))
        else:
            share = _percent(left[0].share)
            text = say["rest_many"].format(part=part, kinds=len(left), share=share)
        gap = " " if lang == "en" else ""
        lines = [*lines[:-1], lines[-1] + gap + text] if len(lines) > 1 else [*lines, text]
    return lines


def _sentence(form: str, part: Part, looked: int, lang: Language) -> str:
    say, cluster = _words(lang), part.cluster
    names = _owners(cluster)
    if cluster.turn == "upstream":
        turn = (
            say["upstream"].format(names=say["and"].join(names))
            if names
            else say["upstream_unnamed"]
        )
    else:
        turn = say[cluster.turn]
    cure = ""
    if cluster.failure is not None and cluster.turn in ("trust", "environment"):
        cure = say["remedy"].format(sentence=words.remedy(cluster.failure, lang))
    return form.format(
        part=part.count,
        looked=looked,
        share=_percent(part.share),
        what=_what(cluster, lang),
        where=say["where"].format(names=say["and"].join(names)) if names else "",
        turn=turn,
        remedy=cure,
    )


def _what(cluster: Cluster, lang: Language) -> str:
    """The cluster in a few words: its own name, else what its code means, with status and date."""
    say = _words(lang)
    entry = lookup(cluster.code)
    if cluster.name:
        what = f"“{cluster.name}”"
    elif entry is None or cluster.category == "unknown":
        what = f"“{cluster.template[:80]}”"
    else:
        meaning, status = entry.meaning[lang], _status(cluster.http_status)
        if lang == "en":
            what = f"{status or f'“{meaning}”'} ({cluster.code})"
        else:
            what = (
                f" {status}（{meaning}，{cluster.code}）"
                if status
                else f"“{meaning}”（{cluster.code}）"
            )
    date = str((cluster.facts or {}).get("not_after", ""))[:10]
    if date:
        expired = cluster.code == "security.certificate_expired"
        what += say["expired" if expired else "expires"].format(date=date)
    return what


def _status(number: int | None) -> str:
    """``502 Bad Gateway``; only the number where it has no phrase."""
    from http import HTTPStatus

    if number is None or number < 400:
        return ""
    try:
        return f"{number} {HTTPStatus(number).phrase}"
    except ValueError:
        return str(number)


def _owners(cluster: Cluster) -> list[str]:
    """Who was called: one name where one has most of it, else the few that have."""
    host = (cluster.facts or {}).get("host")
    if not cluster.upstreams:
        return [str(host)] if host else []
    total = sum(count for _, count in cluster.upstreams)
    name, most = cluster.upstreams[0]
    if most >= _ONE_OF * total:
        return [str(host) if host and cluster.turn == "trust" else name]
    return [name for name, _ in cluster.upstreams[:_NAMES]]


def _named(parts: Sequence[Part], lang: Language) -> str:
    say = _words(lang)
    return say["and"].join(
        say["also"].format(name=_what(part.cluster, lang), part=part.count) for part in parts
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
