"""Imported calls → records of a journal: classified as a runtime would have, each once."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from failwise.arguments.reader import ArgumentReader
from failwise.classify.classifier import Classifier
from failwise.classify.gate import plainly_fine
from failwise.evidence import from_text, from_value
from failwise.insight.importing.calls import ImportedCall
from failwise.journal.journal import Journal
from failwise.journal.reader import Filter, open_reader
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, StopReason
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, ToolResult

_BATCH: Final = 2_000
_CLASSIFIER: Final = Classifier()


@record
class Taken:
    """What an import did. `calls` were found, `known` were in the journal already, `failures` of the
    `added` ones failed. `codes` counts them by code. `oldest` in epoch seconds."""

    calls: int = 0
    added: int = 0
    failures: int = 0
    known: int = 0
    unanswered: int = 0
    codes: tuple[tuple[str, int], ...] = ()
    oldest: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "calls": self.calls,
            "added": self.added,
            "failures": self.failures,
            "known": self.known,
            "unanswered": self.unanswered,
            "codes": dict(self.codes),
            "oldest": self.oldest,
        }


def take_over(
    calls: Iterable[ImportedCall],
    journal: Journal,
    *,
    moment: float,
    failures_only: bool = False,
    upstream: str = "",
    progress: Callable[[int], None] | None = None,
) -> Taken:
    """Record calls in a journal, redacted as everything there. What it holds already, by run and call
    id, is passed over: an import may be repeated. `moment` (epoch seconds) is for calls that nothing
    dates. Raises `UsageError` where the journal cannot take them.
    """
    found = added = failures = known = unanswered = 0
    codes: Counter[str] = Counter()
    oldest: float | None = None
    waiting = iter(calls)
    while batch := list(islice(waiting, _BATCH)):
        found += len(batch)
        there = _there(journal, batch)
        for call in batch:
            key = (call.run_id[:200], call.call_id[:200])
            if key in there:
                known += 1
                continue
            result = judged(call, moment=moment, upstream=upstream)
            if result is None:
                unanswered += 1
                continue
            there.add(key)
            if result.success and failures_only:
                continue
            journal.put(result)
            added += 1
            oldest = result.timestamp if oldest is None else min(oldest, result.timestamp)
            if result.failure is not None:
                failures += 1
                codes[result.failure.code] += 1
        if not journal.flush(60.0):
            raise UsageError(f"the journal {journal.place} does not take records: see the log")
        if progress is not None:
            progress(found)
    return Taken(found, added, failures, known, unanswered, tuple(codes.most_common()), oldest)


def judged(call: ImportedCall, *, moment: float, upstream: str = "") -> ToolResult[Any] | None:
    """The result that a runtime would have recorded; None where no end was recorded, and none can be
    told from what the model sent."""
    arguments, mistake = _arguments(call)
    failure = _failure(call)
    if failure is None and mistake is not None and not call.answered:
        failure = mistake
    if failure is None and not call.answered:
        return None
    if failure is not None and mistake is not None and failure.category is Category.UNKNOWN:
        failure = mistake  # the answer complains, and what was sent could not be read
    if failure is None and call.failed is None and call.error and call.answer is None:
        return None  # a line of a log that tells of no failure
    started = call.started if call.started is not None else moment
    return ToolResult(
        call.tool[:200],
        failure is None,
        failure=failure,
        suggested_action=Action.ASK_MODEL if failure is not None and call.by_model else None,
        attempts=(Attempt(1, 0.0, call.duration_ms, failure),) if failure is not None else (),
        stop_reason=StopReason.SUCCEEDED if failure is None else StopReason.OBSERVED,
        duration_ms=call.duration_ms,
        timestamp=started,
        call_id=call.call_id,
        run_id=call.run_id,
        arguments=arguments if failure is not None else None,
        upstream=upstream or call.upstream,
        model=call.model or None,
        extra={"imported": call.source},
    )


def _failure(call: ImportedCall) -> Failure | None:
    if not call.answered:
        return None
    failure: Failure | None = None
    if call.status is not None and call.status >= 400:
        from failwise.classify.contract import RecordedAnswer
        from failwise.evidence import from_response

        body = call.answer if isinstance(call.answer, str) else call.error
        answer = RecordedAnswer(call.status, {}, body or "")
        failure = _CLASSIFIER.classify(from_response(answer), tool=call.tool)
    elif call.error:
        if call.failed is None and plainly_fine(call.error):
            return None
        failure = _CLASSIFIER.classify(from_text(call.error), tool=call.tool)
        if call.failed is None and failure is not None and failure.category is Category.UNKNOWN:
            return None
    else:
        answer_of: Any = call.answer
        if call.failed:
            text = answer_of if isinstance(answer_of, str) else str(answer_of)
            answer_of = {"isError": True, "content": [{"type": "text", "text": text}]}
        failure = _CLASSIFIER.classify(from_value(answer_of), tool=call.tool)
    if failure is None and call.failed:
        return Failure(Category.UNKNOWN, "unknown.unclassified", call.error[:300], Effect.UNKNOWN)
    return failure


def _arguments(call: ImportedCall) -> tuple[dict[str, Any] | None, Failure | None]:
    """The arguments as an object, or what is wrong with the text that the model sent."""
    given = call.arguments
    if isinstance(given, dict):
        return given, None
    if not isinstance(given, str) or not given.strip():
        return None, None
    reading = ArgumentReader(None, call.tool).read(given)
    return reading.arguments, reading.failure


def _there(journal: Journal, batch: list[ImportedCall]) -> set[tuple[str, str]]:
    """Which of these calls the journal holds: run id and call id."""
    found: set[tuple[str, str]] = set()
    with open_reader(journal) as reader:
        for runs in _portions(sorted({call.run_id[:200] for call in batch}), 200):
            before = None
            while True:
                page = reader.calls(Filter(run=tuple(runs)), before, 10_000)
                found.update((row["run_id"], row["call_id"]) for row in page)
                if len(page) < 10_000:
                    break
                before = page[-1]["started"], page[-1]["id"]
    return found


def _portions(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
