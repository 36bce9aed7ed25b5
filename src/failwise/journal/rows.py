"""A finished call as rows: redacted first, then cut, never the other way round."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias

from failwise.journal.bounded import LONGEST, bounded, json_of
from failwise.journal.changes import changes_json
from failwise.journal.latency import bucket_of
from failwise.journal.rollups import HOUR
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import StopReason
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.tokens import estimated

MESSAGE = 300
"""Characters kept of a message."""
ARGUMENTS = 4_000
"""Characters kept of arguments, as JSON."""
FAILURE = 8_000
"""Characters kept of a failure, as JSON."""
RESULT = 64_000
"""Characters kept of the value of a settled effect, as JSON."""
IDENTITY = 200
"""Characters kept of an id or name. Ids are kept as they are: they link records."""
_LAST_MOMENT = 1e11
"""Epoch seconds beyond which nothing is a moment."""
_CLOCK_GRAIN = 0.001

CALL_COLUMNS = (
    "id", "call_id", "run_id", "parent_id", "tool", "started", "duration_ms", "latency_bucket",
    "success", "stop_reason", "sent", "hour", "upstream", "model", "failed_attempts", "repairs",
    "degraded_to", "verified", "retry_at", "action", "waited_ms", "told_waits", "waits_obeyed",
    "category", "code", "http_status", "effect", "retry_after", "provider", "fingerprint", "rule",
    "message", "failure", "body_length", "fed_length", "arguments", "parameters", "body_tokens",
    "fed_tokens", "changes",
)  # fmt: skip
"""The columns of ``calls``, in the order of `call_row`."""
OF_CALL = ("hour", "tool", "upstream", "model", "success")
"""What an attempt repeats of its call, so that attempts can be counted by themselves."""
ATTEMPT_COLUMNS = (
    "call", "position", "number", "started", "duration_ms", "category", "code", "http_status",
    "effect", "message", "failure_rule", "action", "delay", "reason", "rule", "at", "provider",
    "fingerprint", "retry_after", *OF_CALL,
)  # fmt: skip
"""The columns of ``attempts``, in the order of `attempt_rows`. `at`: when the call began."""
RAW_COLUMNS = ("call", "position", "call_id", "at", "content_type", "length", "body")
"""The columns of ``raw_answers``."""
_NO_FAILURE = (None,) * 12
_NO_TOKENS = (None, None)
_PLAIN_REST = (0, 0, None, None, None, None, 0.0, 0, 0, *_NO_FAILURE, None)


Plain: TypeAlias = tuple[str, str, str, str | None, float, float, str, str | None, int | None]
"""A call that simply worked: tool, call id, run id, parent id, start (epoch s), duration (ms),
upstream, model, number of parameters."""


def plain(result: ToolResult[Any]) -> "ToolResult[Any] | Plain":
    """What has to wait in the queue for a finished call: of a plain success only what its row says.

    The result and its value, which may be large, are then not kept alive by the journal.
    """
    if (
        result.failure is None
        and not result.attempts
        and not result.repairs
        and result.arguments is None
        and result.degraded_to is None
        and result.verified is None
        and result.success
    ):
        return (
            result.tool_name,
            result.call_id,
            result.run_id,
            result.parent_id,
            result.timestamp,
            result.duration_ms,
            result.upstream,
            result.model,
            result.parameters,
        )
    return result


class Redactor(Protocol):
    """The border that everything crosses before it is stored."""

    def text(self, text: str) -> str: ...
    def data(self, data: Any) -> Any: ...


class Built(NamedTuple):
    """Rows of finished calls; results that could not be built have none."""

    calls: list[tuple[Any, ...]]
    attempts: list[tuple[Any, ...]]
    raw: list[tuple[Any, ...]]


def built(
    results: "Sequence[ToolResult[Any] | Plain]",
    first: int,
    redactor: Redactor,
    raw: str = "",
    raw_bytes: int = 0,
) -> Built:
    """The rows of finished calls, numbered from `first`. `raw`: keep raw answers, ``redacted`` or
    ``as is``. One record that cannot be built costs the others nothing."""
    made = Built([], [], [])
    for number, result in enumerate(results, first):
        with suppress(Exception):  # whatever is wrong with it, it is counted by whoever asked
            call = call_row(number, result, redactor)
            if not isinstance(result, tuple) and result.attempts:
                attempts = attempt_rows(number, result, redactor)
                answers = _raw_rows(number, result, redactor, raw, raw_bytes) if raw else []
                made.attempts.extend(attempts)
                made.raw.extend(answers)
            made.calls.append(call)
    return made


def renumbered(made: Built, by: int) -> Built:
    """The same rows with other numbers: each `by` more."""
    return Built(*[[(row[0] + by, *row[1:]) for row in rows] for rows in made])


def _raw_rows(
    number: int, result: ToolResult[Any], redactor: Redactor, raw: str, raw_bytes: int
) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for position, attempt in enumerate(result.attempts):
        failure = attempt.failure
        if failure is None or failure.raw is None:
            continue
        text = failure.raw if raw == "as is" else redactor.text(failure.raw)
        body = text.encode("utf-8", "backslashreplace")[:raw_bytes].decode("utf-8", "ignore")
        evidence = failure.evidence
        kind = evidence.content_type[:IDENTITY] if evidence and evidence.content_type else None
        length = evidence.length if evidence else None
        found.append(
            (
                number,
                position,
                result.call_id[:IDENTITY],
                result.timestamp,
                kind,
                len(failure.raw) if length is None else length,
                body,
            )
        )
    return found


def call_row(number: int, result: "ToolResult[Any] | Plain", redactor: Redactor) -> tuple[Any, ...]:
    """The values of `CALL_COLUMNS` for one finished call; `number` is the row's id."""
    if isinstance(result, tuple):
        tool, call_id, run_id, parent_id, timestamp, duration_ms, upstream, model, parameters = (
            result
        )
        return (
            number,
            call_id[:IDENTITY],
            run_id[:IDENTITY],
            parent_id,
            tool[:IDENTITY],
            timestamp,
            duration_ms,
            bucket_of(duration_ms),
            1,
            StopReason.SUCCEEDED.value,
            1,
            hour_of(timestamp),
            (upstream or tool)[:IDENTITY],
            model[:IDENTITY] if model else "",
            *_PLAIN_REST,
            parameters,
            *_NO_TOKENS,
            None,
        )
    attempts = result.attempts
    failure = result.failure
    fed = None if failure is None else _fed(result)
    return (
        number,
        result.call_id[:IDENTITY],
        result.run_id[:IDENTITY],
        result.parent_id,
        result.tool_name[:IDENTITY],
        result.timestamp,
        result.duration_ms,
        bucket_of(result.duration_ms),
        1 if result.success else 0,
        result.stop_reason.value,
        result.sent,
        hour_of(result.timestamp),
        (result.upstream or result.tool_name)[:IDENTITY],
        result.model[:IDENTITY] if result.model else "",
        sum(1 for attempt in attempts if attempt.failure is not None) if attempts else 0,
        len(result.repairs),
        result.degraded_to,
        None if result.verified is None else int(result.verified),
        result.retry_at,
        result.suggested_action.value if result.suggested_action else None,
        *_waits(attempts),
        *(_NO_FAILURE if failure is None else _failure_columns(result, failure, fed, redactor)),
        arguments_json(result.arguments, redactor) if result.arguments is not None else None,
        result.parameters,
        *(
            _NO_TOKENS
            if fed is None or failure is None
            else (_body_tokens(failure), estimated(fed))
        ),
        changes_json(result.repairs, redactor) if result.repairs else None,
    )


def hour_of(moment: float) -> int:
    """The beginning of the hour of a moment, both in epoch seconds; 0 for what is no moment."""
    return int(moment // HOUR) * HOUR if abs(moment) < _LAST_MOMENT else 0


def _waits(attempts: tuple[Attempt, ...]) -> tuple[float, int, int]:
    """Milliseconds waited between attempts; waits that an upstream told; those of them that no
    request cut short. A told wait after which nothing more was sent was obeyed too."""
    waited, told, obeyed = 0.0, 0, 0
    for place, attempt in enumerate(attempts):
        following = attempts[place + 1] if place + 1 < len(attempts) else None
        pause = 0.0
        if following is not None:
            ended = attempt.started + attempt.duration_ms / 1000
            pause = max(0.0, following.started - ended)
            if attempt.decision is not None and attempt.decision.delay > 0:
                waited += pause * 1000
        wait = attempt.failure.retry_after if attempt.failure is not None else None
        if wait is not None:
            told += 1
            obeyed += following is None or following.number == 0 or pause >= wait - _CLOCK_GRAIN
    return waited, told, obeyed


def attempt_rows(number: int, result: ToolResult[Any], redactor: Redactor) -> list[tuple[Any, ...]]:
    """The values of `ATTEMPT_COLUMNS`: none when there is nothing to say but "first try, fine"."""
    attempts = result.attempts
    if not attempts or (len(attempts) == 1 and attempts[0].failure is None):
        return []
    of_call = (
        hour_of(result.timestamp),
        result.tool_name[:IDENTITY],
        (result.upstream or result.tool_name)[:IDENTITY],
        result.model[:IDENTITY] if result.model else "",
        1 if result.success else 0,
    )
    return [
        (*_attempt_row(number, position, attempt, result.timestamp, redactor), *of_call)
        for position, attempt in enumerate(attempts)
    ]


def _attempt_row(
    number: int, position: int, attempt: Attempt, at: float, redactor: Redactor
) -> tuple[Any, ...]:
    failure, decision = attempt.failure, attempt.decision
    return (
        number,
        position,
        attempt.number,
        attempt.started,
        attempt.duration_ms,
        failure.category.value if failure else None,
        failure.code[:IDENTITY] if failure else None,
        failure.http_status if failure else None,
        failure.effect.value if failure else None,
        message(failure.message, redactor) if failure else None,
        failure.rule[:IDENTITY] if failure else None,
        decision.action.value if decision else None,
        decision.delay if decision else None,
        message(decision.reason, redactor) if decision else None,
        decision.rule[:IDENTITY] if decision else None,
        at,
        failure.provider if failure else None,
        failure.fingerprint[:IDENTITY] if failure else None,
        failure.retry_after if failure else None,
    )


def _failure_columns(
    result: ToolResult[Any], failure: Failure, fed: str | None, redactor: Redactor
) -> tuple[Any, ...]:
    effect = result.effect
    return (
        failure.category.value,
        failure.code[:IDENTITY],
        failure.http_status,
        effect.value if effect else None,
        failure.retry_after,
        failure.provider,
        failure.fingerprint[:IDENTITY],
        failure.rule[:IDENTITY],
        message(failure.message, redactor),
        failure_json(failure, redactor),
        _body_length(failure),
        len(fed) if fed is not None else None,
    )


def _fed(result: ToolResult[Any]) -> str | None:
    """What the model is given instead."""
    try:
        return result.for_model()
    except Exception:  # an odd value inside must not cost the record
        return None


def _body_length(failure: Failure) -> int:
    """The length of what the upstream really said: what a model would have had to read."""
    evidence = failure.evidence
    return max(len(failure.message), (evidence.length or 0) if evidence else 0)


def _body_tokens(failure: Failure) -> int:
    """Tokens of what the upstream really said, estimated; of a body that is gone, by its length in
    bytes and what is kept of its beginning."""
    if failure.raw is not None:
        return estimated(failure.raw)
    evidence, least = failure.evidence, estimated(failure.message)
    if evidence is None or not evidence.length:
        return least
    kept = evidence.snippet or evidence.message or failure.message or "."
    share = estimated(kept) / len(kept.encode("utf-8", "replace"))
    return max(least, round(evidence.length * share))


def message(text: str, redactor: Redactor) -> str:
    """A message, redacted, then cut to `MESSAGE` characters."""
    return redactor.text(text if len(text) <= LONGEST else text[:LONGEST])[:MESSAGE]


def _named(text: str | None, redactor: Redactor) -> str | None:
    return redactor.text(str(text)[:LONGEST])[:IDENTITY] if text is not None else None


def arguments_json(arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """Arguments as redacted, bounded JSON; what is too long is kept as the start of its text."""
    text = json_of(redactor.data(bounded(arguments)))
    if len(text) <= ARGUMENTS:
        return text
    return json_of({"truncated": True, "length": len(text), "text": text[: ARGUMENTS - 100]})


def failure_data(failure: Failure, redactor: Redactor) -> dict[str, Any]:
    """A failure as redacted data that `Failure.from_dict` reads: facts only, no rendered words."""
    evidence = failure.evidence
    open_part = redactor.data(
        {
            "message": failure.message[:LONGEST],
            "details": bounded(failure.details) if failure.details else None,
            "likely_causes": list(failure.likely_causes),
            "remedies": dict(failure.remedies) if failure.remedies else None,
            "meaning": dict(failure.meaning) if failure.meaning else None,
            "evidence": None
            if evidence is None
            else {
                "message": evidence.message,
                "content_type": evidence.content_type,
                "length": evidence.length,
                "snippet": evidence.snippet,
                "title": evidence.title,
            },
        }
    )
    open_part["message"] = str(open_part["message"])[:MESSAGE]
    fixed = {
        "category": failure.category.value,
        "code": failure.code,
        "effect": failure.effect.value,
        "transient": failure.transient,
        "fix_by": failure.fix_by.value,
        "layer": failure.layer.value,
        "advice": failure.advice.value if failure.advice else None,
        "http_status": failure.http_status,
        "retry_after": failure.retry_after,
        "provider": failure.provider,
        "provider_code": _named(failure.provider_code, redactor),
        "request_id": _named(failure.request_id, redactor),
        "confidence": failure.confidence,
        "samples": failure.samples,
        "rule": failure.rule,
        "why": failure.why,
        "spoke": [one.to_dict() for one in failure.spoke],
        "fingerprint": failure.fingerprint,
    }
    whole = open_part | fixed
    return {name: value for name, value in whole.items() if value not in (None, [], {}, "")}


def failure_json(failure: Failure, redactor: Redactor) -> str:
    """A failure as redacted, bounded JSON; details give way first."""
    data = failure_data(failure, redactor)
    text = json_of(data)
    for name in ("details", "spoke", "likely_causes", "meaning", "remedies", "evidence"):
        if len(text) <= FAILURE:
            break
        data.pop(name, None)
        text = json_of(data)
    return text


def result_json(result: ToolResult[Any], redactor: Redactor) -> str:
    """What is kept of a settled effect, for whoever asks for it again: redacted, bounded."""
    failure = result.failure
    value = redactor.data(bounded(result.value))
    if len(json_of(value)) > RESULT:
        value = {"truncated": True, "text": json_of(value)[:MESSAGE]}
    return json_of(
        {
            "tool_name": result.tool_name,
            "success": result.success,
            "value": value,
            "failure": failure_data(failure, redactor) if failure else None,
            "suggested_action": result.suggested_action.value if result.suggested_action else None,
            "degraded_to": result.degraded_to,
            "stop_reason": result.stop_reason.value,
            "duration_ms": result.duration_ms,
            "timestamp": result.timestamp,
            "call_id": result.call_id,
            "run_id": result.run_id,
            "verified": result.verified,
        }
    )


def known_done(tool: str) -> str:
    """The kept result of an effect that is known to have happened, and no more than that."""
    return json.dumps({"tool_name": tool, "success": True})


def result_from_json(text: str | None, tool: str) -> ToolResult[Any] | None:
    """The kept result again; a text that cannot be read still says that it was done."""
    if text is None:
        return None
    try:
        return ToolResult.from_json(text)
    except (ValueError, KeyError, TypeError):
        return ToolResult(tool, True, None, stop_reason=StopReason.SUCCEEDED)
