"""Recorded failures through another policy: which decisions change, and what that would have cost.

Nothing is sent, so nothing is known of attempts that were never made. What is known: which recorded
retries the other policy would have left out, and which calls those had saved.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from failwise.insight.replaying import (
    Replay,
    Step,
    decisions,
    failure_of,
    recorded_failure,
    replay,
    retried_unsafely,
)
from failwise.journal.reader import Filter, Place, Reader, open_reader
from failwise.policy.decide import TablePolicy
from failwise.vocabulary.records import record

_RETRIES: Final = ("retry_backoff", "retry_exact", "refresh_credential", "repair_arguments")
_EXAMPLES: Final = 3
_PAGE: Final = 5_000


@record
class Change:
    """Decisions on one code that differ: `count` of them, with a few call ids."""

    code: str
    before: str
    now: str
    count: int
    examples: tuple[str, ...]


@record
class Backtest:
    """What another policy changes. `calls` with failed attempts were looked at, `decisions` made.

    `left_out`: recorded retries that it would not have made; `lost`: calls that those retries saved.
    `added`: retries where the recorded call ended (nobody knows how they would have ended).
    `waited` and `waits`: seconds of waiting that both policies ask for, for the same failures.
    """

    calls: int
    decisions: int
    changed: int
    changes: tuple[Change, ...]
    left_out: int
    lost: int
    added: int
    waited: float
    waits: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "calls": self.calls,
            "decisions": self.decisions,
            "changed": self.changed,
            "retries_left_out": self.left_out,
            "recoveries_lost": self.lost,
            "retries_added": self.added,
            "wait_before_s": self.waited,
            "wait_now_s": self.waits,
            "changes": _rows(self.changes),
        }


@record
class Rejudged:
    """Recorded failures judged again: `looked` at, `stood` (nothing to judge them by), `changed`."""

    looked: int
    stood: int
    changed: int
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "looked": self.looked,
            "without_evidence": self.stood,
            "changed": self.changed,
            "changes": _rows(self.changes),
        }


def backtest(
    journal: Place,
    policy: TablePolicy,
    baseline: TablePolicy,
    *,
    since: float | None = None,
    until: float | None = None,
    read_only: Iterable[str] = (),
    limit: int = 100_000,
    progress: Callable[[int], None] | None = None,
) -> Backtest:
    """Run the failed attempts of a journal through two policies. `read_only` are patterns of tools
    that only read (``search_*``); of others the recorded retries tell, else they count as writes.

    `since` (included) and `until` (not included) in epoch seconds; at most `limit` calls, the newest.
    """
    patterns = tuple(read_only)
    looked = made = left_out = lost = added = 0
    waited = waits = 0.0
    counts: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    with open_reader(journal) as reader:
        for call in _failing(reader, since, until, limit):
            looked += 1
            if progress is not None and not looked % 1_000:
                progress(looked)
            last = recorded_failure(call) or failure_of(call["attempts"][-1])
            reads = any(fnmatchcase(call["tool"], one) for one in patterns)
            reads = reads or retried_unsafely(call["attempts"])
            pairs = zip(
                decisions(call, last, baseline, read_only=reads),
                decisions(call, last, policy, read_only=reads),
                strict=True,
            )
            gone = False
            for before, now in pairs:
                made += 1
                waited += _wait(before)
                waits += _wait(now)
                retried = before.recorded in _RETRIES
                if _retries(now) and not retried and not _retries(before):
                    added += 1
                if retried and _retries(before) and not _retries(now) and not gone:
                    left_out += 1
                    gone = True
                if before.now.action is not now.now.action:
                    key = (before.code, before.now.action.value, now.now.action.value)
                    counts[key] += 1
                    if len(examples[key]) < _EXAMPLES:
                        examples[key].append(call["call_id"])
            lost += 1 if gone and call["success"] else 0
    changes = _changes(counts, examples)
    changed = sum(one.count for one in changes)
    return Backtest(looked, made, changed, changes, left_out, lost, added, waited, waits)


def rejudge(
    journal: Place,
    *,
    since: float | None = None,
    until: float | None = None,
    limit: int = 100_000,
    progress: Callable[[int], None] | None = None,
) -> Rejudged:
    """Judge the failures of a journal by today's rules: which codes change."""
    looked = stood = 0
    counts: Counter[tuple[str, str, str]] = Counter()
    examples: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    policy = TablePolicy(jitter=0)
    with open_reader(journal) as reader:
        for row in reader.failures(since, until, limit):
            looked += 1
            if progress is not None and not looked % 1_000:
                progress(looked)
            if not row["code"]:
                stood += 1
                continue
            found: Replay = replay({**row, "attempts": ()}, policy=policy)
            if found.case is None:
                stood += 1
            elif found.before.code != found.now.code:
                key = (found.before.code, found.before.code, found.now.code)
                counts[key] += 1
                if len(examples[key]) < _EXAMPLES:
                    examples[key].append(found.call_id)
    changes = _changes(counts, examples)
    return Rejudged(looked, stood, sum(one.count for one in changes), changes)


def _failing(
    reader: Reader, since: float | None, until: float | None, limit: int
) -> Iterator[dict[str, Any]]:
    """Calls with a failed attempt, recovered ones too, newest first, each with ``attempts``."""
    before, left = None, limit
    while left > 0:
        page = reader.calls(Filter(), before, _PAGE, since=since, until=until)
        wanted = [call for call in page if call["failed_attempts"] or not call["success"]][:left]
        yield from (call for call in reader.with_attempts(wanted) if _judged(call))
        left -= len(wanted)
        if len(page) < _PAGE:
            return
        before = page[-1]["started"], page[-1]["id"]


def _judged(call: Mapping[str, Any]) -> bool:
    return bool(call["code"]) or any(row["code"] for row in call["attempts"])


def _retries(step: Step) -> bool:
    return step.now.action.value in _RETRIES


def _wait(step: Step) -> float:
    return step.now.delay if _retries(step) else 0.0


def _changes(
    counts: Mapping[tuple[str, str, str], int], examples: Mapping[tuple[str, str, str], list[str]]
) -> tuple[Change, ...]:
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Change(*key, count, tuple(examples[key])) for key, count in order)


def _rows(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [
        {
            "code": one.code,
            "before": one.before,
            "now": one.now,
            "count": one.count,
            "examples": list(one.examples),
        }
        for one in changes
    ]
