"""One look at a journal, or at what a log file has grown by, for `watching`."""

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Final

from failwise.insight.clusters import Cluster
from failwise.insight.logs import LogCounting
from failwise.insight.recorded import clusters
from failwise.insight.watching import BASELINE, PERIOD, Look, Sensitivity, State, look
from failwise.journal.reader import Filter, Place, open_reader
from failwise.redaction import Redactor
from failwise.vocabulary.errors import UsageError

_LINE_LIMIT: Final = 4_000_000
_MOST: Final = 500_000
"""Failures of one look that are counted."""


def look_at_journal(
    journal: Place,
    state: State | None,
    *,
    now: float,
    since: float | None = None,
    sensitivity: Sensitivity | None = None,
) -> Look:
    """What is new in a journal since the last look, or since the moment `since` (epoch seconds).

    The baseline is the week before, from the journal itself. Raises `ConfigurationError` where there
    is no journal.
    """
    begin = since if since is not None else state.at if state is not None else now - PERIOD
    with open_reader(journal) as reader:
        start = begin - BASELINE * PERIOD
        wide = clusters(reader, since=start, until=now + PERIOD)
        home = {one: cluster.id for cluster in wide.clusters for one in cluster.fingerprints}
        history: dict[str, Counter[int]] = {}
        began = begin
        edge = int(begin // PERIOD)
        for row in reader.fingerprints(start, begin, by=("hour",)):
            hour = int(row["hour"] // PERIOD)
            if row["asked"] and row["fingerprint"] in home and hour <= edge:
                began = min(began, row["first_seen"])
                if row["first_seen"] < begin:
                    counted = history.setdefault(home[row["fingerprint"]], Counter())
                    counted[hour] += row["calls"]
        counts: dict[str, Counter[int]] = {}
        last: dict[str, float] = {}
        for failed in reader.failures(begin, now, _MOST, Filter(asked=True)):
            one = home.get(failed["fingerprint"] or "")
            if one is not None:
                counts.setdefault(one, Counter())[int(failed["started"] // PERIOD)] += 1
                last[one] = max(last.get(one, 0.0), failed["started"])
    for one, hours in counts.items():  # what this look counts is no part of its own baseline
        past = history.get(one)
        if past and edge in past:
            past[edge] = max(0, past[edge] - hours.get(edge, 0))
            if not past[edge]:
                del past[edge]
    total = sum(sum(hours.values()) for hours in counts.values())
    found = [
        _recent(cluster, sum(counts[cluster.id].values()), total, last[cluster.id])
        for cluster in wide.clusters
        if cluster.id in counts
    ]
    return look(
        found,
        counts,
        state,
        now=now,
        since=begin,
        sensitivity=sensitivity,
        history=history,
        began=began,
    )


def look_at_log(
    path: str,
    state: State | None,
    *,
    now: float,
    redactor: Redactor,
    year: int = 1970,
    sensitivity: Sensitivity | None = None,
    stream: IO[bytes] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Look:
    """What a log file has grown by since the last look; a stream (`stream`) is read to its end.

    A file that was rotated or cut is read from its beginning. A last line without its end is left for
    the next look. Raises `UsageError` where the file cannot be read.
    """
    name = path if stream is not None else os.path.abspath(path)
    known = {
        one: tuple(seen.template.split())
        for one, seen in (state.known if state is not None else {}).items()
        if seen.template
    }
    counting = LogCounting(known=known, year=year)
    place: tuple[int, int, int] | None = None
    if stream is not None:
        counting.read(_whole_lines(stream), progress)
    else:
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                before = state.places.get(name) if state is not None else None
                inode, offset, read = before or (0, 0, 0)
                if inode != found.st_ino or offset > found.st_size:
                    offset = read = 0
                file.seek(offset)
                counting.read(_whole_lines(file, read), progress)
                place = found.st_ino, file.tell(), max(read, counting.lines)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    result = counting.result(redactor, name=os.path.basename(path) if stream is None else "")
    since = state.at if state is not None else now
    counts = {cluster.id: {int(now // PERIOD): cluster.count} for cluster in result.clusters}
    seen = look(result.clusters, counts, state, now=now, since=since, sensitivity=sensitivity)
    if place is None:
        return seen
    after = dataclasses.replace(seen.state, places={**seen.state.places, name: place})
    return dataclasses.replace(seen, state=after)


def _recent(cluster: Cluster, count: int, total: int, last: float) -> Cluster:
    """A cluster as it was since the last look."""
    return dataclasses.replace(cluster, count=count, share=count / total, last=last)


def _whole_lines(file: IO[bytes], number: int = 0) -> Iterator[tuple[int, str | None]]:
    """The lines that are complete, by number after `number`, from where the file stands."""
    while line := file.readline(_LINE_LIMIT):
        number += 1
        if not line.endswith(b"\n"):
            if len(line) == _LINE_LIMIT:
                while line and not line.endswith(b"\n"):
                    line = file.readline(_LINE_LIMIT)
                yield number, None
                continue
            if file.seekable():
                file.seek(-len(line), os.SEEK_CUR)
                return
        yield number, line.decode("utf-8", "replace").rstrip("\r\n")
