"""Clusters of a log, without any database: which failures it tells of, how often, since when.

One pass, bounded memory. Lines are counted by template; what a template means is asked of the
classifier once, on an example of it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final

from failwise.classify.fingerprint import ignores_text
from failwise.insight.clusters import Cluster, clusters_of, values_in
from failwise.insight.loglines import Entry, Level, entries
from failwise.insight.masking import Template
from failwise.insight.mining import Miner
from failwise.insight.tally import EXAMPLES, Example, Tally
from failwise.redaction import Redactor
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record

_RECENT: Final = 20_000
"""Entries remembered in their order, for what is said of the last failures."""
_EXAMPLE: Final = 300
_READ: Final = 4_000
_VARIANTS: Final = 50


@record
class LogClusters:
    """What a log tells of. `clusters` are failures; `others` the templates that tell of none.

    `recent` are the ids of the clusters of the last failures, oldest first.
    """

    lines: int
    entries: int
    failures: int
    clusters: tuple[Cluster, ...]
    others: tuple[Cluster, ...]
    recent: tuple[str, ...]


class _Seen:
    """What is kept of a template while lines go by: counts, and whole entries as examples."""

    __slots__ = ("entries", "level", "tally")

    def __init__(self, entry: Entry) -> None:
        self.tally = Tally("", ())
        self.entries: list[Entry] = [entry]
        self.level: Level = entry.level


class LogCounting:
    """Counts the entries of a log as they come.

    `known` are templates seen earlier, by the id of their cluster: what is like one gets its id.
    `year` is for times that do not tell theirs.
    """

    def __init__(self, *, known: Mapping[str, Template] | None = None, year: int = 1970) -> None:
        self._miner = Miner(on_fold=self._fold)
        self._known = {self._miner.know(words): one for one, words in (known or {}).items()}
        self._seen: dict[int, _Seen] = {}
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._year = year
        self.lines = 0
        self.entries = 0

    def read(
        self,
        lines: Iterable[tuple[int, str | None]],
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Count numbered lines; `progress` is told the number of the line now and then."""
        for entry in entries(self._counted(lines), year=self._year):
            self.entries += 1
            number = self._miner.add(entry.head)
            seen = self._seen.get(number)
            if seen is None:
                seen = self._seen[number] = _Seen(entry)
            elif len(seen.entries) < EXAMPLES:
                seen.entries.append(entry)
            else:
                seen.entries[-1] = entry
            if entry.level == "error":
                seen.level = "error"
            seen.tally.seen(entry.at)
            self._recent.append(number)
            if progress is not None and not self.entries % 5_000:
                progress(entry.line)

    def _counted(self, lines: Iterable[tuple[int, str | None]]) -> Iterator[tuple[int, str | None]]:
        for numbered in lines:
            self.lines = numbered[0]
            yield numbered

    def _fold(self, number: int, into: int) -> None:
        """The miner made two templates one."""
        if number in self._known:
            self._known.setdefault(into, self._known.pop(number))
        gone = self._seen.pop(number, None)
        if gone is None:
            return
        kept = self._seen.get(into)
        if kept is None:
            self._seen[into] = gone
            return
        kept.tally.absorb(gone.tally)
        kept.entries = [*kept.entries, *gone.entries][:EXAMPLES]

    def result(self, redactor: Redactor, *, name: str = "") -> LogClusters:
        """The clusters so far; everything shown has passed the redactor. `name` of the source stands
        before the line of each example."""
        from failwise.classify import classify_text
        from failwise.classify.gate import plainly_fine

        failing: dict[str, Tally] = {}
        fine: list[Tally] = []
        ids: dict[int, str] = {}
        templates = self._miner.templates()
        for template, numbers in self._miner.groups().items():
            members = [number for number in numbers if number in self._seen]
            seen = [self._seen[number] for number in members]
            if not seen:
                continue
            most = max(seen, key=lambda one: one.tally.count)
            level: Level = "error" if any(one.level == "error" for one in seen) else most.level
            text = redactor.text(most.entries[-1].text[:_READ])
            judged = None if plainly_fine(text) and level != "error" else classify_text(text)
            failure = _failure(judged, level)
            kind = (failure.category.value, failure.code) if failure else ("", "")
            shown = tuple(redactor.text(" ".join(template)).split())
            if failure and ignores_text(failure.code):
                shown = (failure.code,)
                key = _key(*kind)
            else:
                before = (self._known[number] for number in numbers if number in self._known)
                key = next(before, None) or _key(*kind, *template)
            tally = Tally(key, shown, category=kind[0], code=kind[1])
            for number, one in zip(members, seen, strict=True):
                tally.absorb(one.tally)
                ids[number] = key if failure else ""
                for word in values_in(templates[number], template):
                    if len(tally.variants) < _VARIANTS and _is_shown(
                        word, one.entries[0], redactor
                    ):
                        tally.variants[word] += one.tally.count
            self._describe(tally, seen, failure, redactor, name)
            if not failure:
                fine.append(tally)
            elif key in failing:
                failing[key].absorb(tally)
            else:
                failing[key] = tally
        total = sum(tally.count for tally in failing.values())
        found = clusters_of(failing.values(), total=total)
        home = {one: cluster.id for cluster in found for one in cluster.fingerprints}
        recent = (home.get(ids.get(self._miner.home(number), ""), "") for number in self._recent)
        return LogClusters(
            self.lines,
            self.entries,
            total,
            tuple(found),
            tuple(clusters_of(fine, total=self.entries)),
            tuple(filter(None, recent)),
        )

    def _describe(
        self,
        tally: Tally,
        seen: list[_Seen],
        failure: Failure | None,
        redactor: Redactor,
        name: str,
    ) -> None:
        """Examples, and what the verdict knew."""
        tally.failure = failure
        if failure is not None:
            tally.http_status = failure.http_status
            host = failure.detail("host")
            if isinstance(host, str):
                tally.upstreams[host] += tally.count
        shown: list[str] = []
        for entry in (entry for one in seen for entry in one.entries):
            said = _cut(redactor.text(entry.text[:_READ]))
            if said not in shown:
                shown.append(said)
                source = f"{name}:{entry.line}" if name else f"line {entry.line}"
                tally.examples.append(Example(said, entry.at, source))
            if len(shown) == EXAMPLES:
                break


def _key(*words: str) -> str:
    return blake2b("\x1f".join(words).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _is_shown(word: str, entry: Entry, redactor: Redactor) -> bool:
    """A word may be shown where it is not taken out of the entry it stood in."""
    return word in redactor.text(entry.text[:_READ])


def _failure(judged: Failure | None, level: Level) -> Failure | None:
    """What a level adds: an error is a failure; a note of information needs a known kind to be one."""
    from failwise.vocabulary.kinds import Category

    known = judged is not None and judged.category is not Category.UNKNOWN
    if level == "error":
        return judged or Failure(Category.UNKNOWN, "unknown.unclassified")
    return judged if known or (judged is not None and level != "info") else None


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _EXAMPLE else flat[: _EXAMPLE - 1] + "…"
