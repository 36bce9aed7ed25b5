"""Recorded failures before today's rules and policy, offline: nothing is sent.

What a record holds of the evidence is less than what was there: a status, the first characters of the
body, the text of the exception. `Replay.basis` says what a verdict rests on, and a verdict that was
never drawn from evidence (the tool's own word, Failwise's refusal, the model's arguments) stands.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from failwise.classify.classifier import Classifier
from failwise.classify.contract import evidence_of
from failwise.policy.decide import TablePolicy
from failwise.vocabulary.codes import category_of, lookup
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category, Effect, FixBy
from failwise.vocabulary.records import record
from failwise.vocabulary.result import Attempt, Decision
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Situation

Basis: TypeAlias = Literal["raw", "excerpt", "message", "stated", "none"]
"""What a new verdict rests on: the whole raw answer, its first characters, the text of the exception;
``stated``: the verdict was not drawn from evidence and stands; ``none``: there is nothing to judge."""

COMPARED: Final = (
    "category",
    "code",
    "effect",
    "transient",
    "fix_by",
    "http_status",
    "retry_after",
)
_STANDS: Final = frozenset({Category.MODEL_OUTPUT, Category.RUNTIME})
_RETRIES: Final = ("retry_backoff", "retry_exact")
_CLASSIFIER: Final = Classifier()


@record
class Difference:
    """One thing that is judged otherwise now."""

    what: str
    before: Any
    now: Any


@record
class Step:
    """The decision after one failed attempt: as it was recorded, and as the policy decides it now.

    `recorded` is the action that was noted, None where none was.
    """

    attempt: int
    code: str
    recorded: str | None
    now: Decision


@record
class Replay:
    """A recorded failure judged again. `case` is its evidence in the form of
    ``failwise classify --jsonl``, None where there is none."""

    call_id: str
    tool: str
    basis: Basis
    before: Failure
    now: Failure
    steps: tuple[Step, ...]
    differences: tuple[Difference, ...]
    case: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "call_id": self.call_id,
            "tool": self.tool,
            "basis": self.basis,
            "before": self.before.to_dict(),
            "now": self.now.to_dict(),
            "differences": [
                {"what": one.what, "before": one.before, "now": one.now} for one in self.differences
            ],
            "steps": [
                {
                    "attempt": one.attempt,
                    "code": one.code,
                    "recorded": one.recorded,
                    "now": one.now.to_dict(),
                }
                for one in self.steps
            ],
        }


def replay(
    call: Mapping[str, Any],
    *,
    policy: TablePolicy | None = None,
    raw: Sequence[Mapping[str, Any]] = (),
    read_only: bool | None = None,
) -> Replay:
    """Judge a failed call again. `call` is a row of `Reader.call`, with its attempts; `raw` its raw
    answers, where they were kept. `read_only`: whether the tool only reads; None: as the recorded
    retries suggest, else as a write. Raises `UsageError` for a call that did not fail.
    """
    before = recorded_failure(call)
    if before is None:
        raise UsageError(f"call {call.get('call_id')} did not fail: there is nothing to judge")
    case, basis = case_of(call, before, raw)
    now = before
    if case is not None:
        judged = judge(case, tool=str(call["tool"]), profile=before.provider)
        now = judged if judged is not None else _success(before)
    table = policy or TablePolicy(jitter=0)
    reads = read_only if read_only is not None else retried_unsafely(call.get("attempts") or ())
    steps = decisions(call, now, table, read_only=reads)
    differences = [
        Difference(name, _plain(getattr(before, name)), _plain(getattr(now, name)))
        for name in COMPARED
        if getattr(before, name) != getattr(now, name)
    ]
    differences += [
        Difference(f"action after attempt {step.attempt}", step.recorded, step.now.action.value)
        for step in steps
        if step.recorded is not None and step.recorded != step.now.action.value
    ]
    return Replay(
        str(call["call_id"]), str(call["tool"]), basis, before, now, steps, tuple(differences), case
    )


def judge(case: Mapping[str, Any], *, tool: str = "", profile: str | None = None) -> Failure | None:
    """Today's verdict on a case of ``failwise classify --jsonl``; None: a success."""
    try:
        return _CLASSIFIER.classify(
            evidence_of(case["kind"], case["input"]), tool=tool, profile=profile
        )
    except UsageError:  # the provider was a shape, or its profile is no longer there
        return _CLASSIFIER.classify(evidence_of(case["kind"], case["input"]), tool=tool)


def recorded_failure(call: Mapping[str, Any]) -> Failure | None:
    """The failure of a row as it was recorded; from its columns where the rest was cut."""
    data = call.get("failure")
    if isinstance(data, Mapping) and "category" in data and "code" in data:
        return Failure.from_dict(data)
    return failure_of(call) if call.get("code") else None


def failure_of(row: Mapping[str, Any]) -> Failure:
    """A failure from the columns of an attempt; what was not kept is as its code usually is."""
    code = str(row["code"])
    usual = lookup(code)
    return Failure(
        category_of(code),
        code,
        row.get("message") or "",
        Effect(row.get("effect") or "unknown"),
        usual.transient if usual is not None else None,
        usual.fix_by if usual is not None else FixBy.MODEL,
        http_status=row.get("http_status"),
        retry_after=row.get("retry_after"),
        provider=row.get("provider"),
        fingerprint=row.get("fingerprint") or "",
    )


def case_of(
    call: Mapping[str, Any], failure: Failure, raw: Sequence[Mapping[str, Any]] = ()
) -> tuple[dict[str, Any] | None, Basis]:
    """The evidence that was kept, as a case to judge, and what it is."""
    if failure.category in _STANDS or failure.rule.startswith(("stated", "inner:")):
        return None, "stated"
    kept = failure.evidence
    body = str(raw[-1]["body"]) if raw else None
    snippet = body if body is not None else (kept.snippet if kept is not None else None)
    basis: Basis = "raw" if body is not None else "excerpt"
    if failure.http_status and not _from_text(failure):
        headers: dict[str, str] = {}
        content_type = (raw[-1].get("content_type") if raw else None) or (
            kept.content_type if kept is not None else None
        )
        if content_type:
            headers["content-type"] = str(content_type)
        if failure.retry_after is not None:
            headers["retry-after"] = f"{failure.retry_after:g}"
        given: dict[str, Any] = {
            "status": failure.http_status,
            "headers": headers,
            "body": snippet or (kept.message if kept is not None else failure.message),
        }
        host = failure.detail("host")
        if isinstance(host, str) and host:
            given["url"] = f"https://{host}/"
        return {"kind": "http", "input": given}, basis
    value = _json(snippet)
    if value is not None and not _from_text(failure):
        return {"kind": "tool_result", "input": {"json": value}}, basis
    text = (snippet if _from_text(failure) else None) or (kept.message if kept is not None else "")
    text = text or failure.message
    if not text:
        return None, "none"
    return {"kind": "text", "input": {"text": text}}, basis if text == snippet else "message"


def decisions(
    call: Mapping[str, Any], last: Failure, policy: TablePolicy, *, read_only: bool
) -> tuple[Step, ...]:
    """What the policy decides after each failed attempt of a recorded call. `last` is the failure of
    the last one, as it is judged now."""
    rows = [row for row in call.get("attempts") or () if row.get("code")]
    if not rows:
        rows = [
            {
                "number": 1,
                "started": 0.0,
                "duration_ms": call.get("duration_ms") or 0.0,
                "code": last.code,
                "action": call.get("action"),
            }
        ]
    did = {row.get("action") for row in rows}
    tool = ToolSpec(str(call["tool"]), upstream=call.get("upstream") or None)
    attempts: list[Attempt] = []
    found: list[Step] = []
    for place, row in enumerate(rows):
        ends = place == len(rows) - 1 and not call.get("success")
        failure = last if ends else failure_of(row)
        number, started = int(row["number"]), float(row["started"])
        attempts.append(Attempt(number, started, float(row["duration_ms"]), failure))
        earlier = {before.get("action") for before in rows[:place]}
        situation = Situation(
            tool=tool,
            read_only=read_only,
            idempotent=False,
            keyed=False,
            retries=max(0, number - 1),
            attempts=tuple(attempts),
            now=started + float(row["duration_ms"]) / 1_000,
            epoch=float(call.get("started") or 0.0),
            deadline=None,
            seed=str(call["call_id"]),
            refreshed="refresh_credential" in earlier,
            repaired="repair_arguments" in earlier,
            verified_no=False,
            can_refresh="refresh_credential" in did,
            can_repair="repair_arguments" in did,
            can_verify="verify_effect" in did or call.get("verified") is not None,
            can_fall_back="fallback" in did or bool(call.get("degraded_to")),
        )
        recorded = row.get("action")
        if recorded is None and ends:
            recorded = call.get("action")
        found.append(Step(number, failure.code, recorded, policy.decide(failure, situation)))
    return tuple(found)


def retried_unsafely(attempts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call was repeated although its effect was unknown: then repeating it is allowed."""
    return any(
        row.get("effect") in ("unknown", "applied") and row.get("action") in _RETRIES
        for row in attempts
    )


def _from_text(failure: Failure) -> bool:
    """The evidence was free text or an exception, and no answer: those have a type or a length."""
    kept = failure.evidence
    return kept is None or (kept.content_type is None and kept.length is None)


def _json(text: str | None) -> Any:
    if not text or text[:1] not in "{[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _success(before: Failure) -> Failure:
    """What stands where today's rules see no failure at all."""
    return Failure(Category.UNKNOWN, "success", before.message, Effect.APPLIED, False, FixBy.NOBODY)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)
