"""One call, one run, the open effects: records as a person reads them."""

from collections.abc import Mapping
from typing import Any, Final

from failwise.dashboard.asked import Asked
from failwise.dashboard.search import found_calls, one_call
from failwise.effects.identity import effect_key
from failwise.journal.reader import Filter, Reader
from failwise.vocabulary import words
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Category, Effect, StopReason
from failwise.vocabulary.result import Attempt, Decision, ToolResult

_CALLS_OF_A_RUN: Final = 1_000
_EFFECTS: Final = 500
_RELATED: Final = 50


def call(reader: Reader, run: str, call_id: str, at: float | None) -> dict[str, Any] | None:
    """A call with everything that is known of it; None where there is no such call.

    ``told`` has what the model and the user were told, by language, rendered again from the record;
    for a success what is left without its value, which no journal keeps.
    """
    row = one_call(reader, run, call_id, at)
    if row is None:
        return None
    failure = _failure(row)
    result = _result(row, failure)
    children: list[dict[str, Any]] = []
    parent = None
    if row["run_id"]:
        calls = reader.run(row["run_id"], _CALLS_OF_A_RUN)
        children = [_brief(one) for one in calls if one["parent_id"] == row["call_id"]][:_RELATED]
        parent = next((_brief(one) for one in calls if one["call_id"] == row["parent_id"]), None)
    return {
        "call": {name: value for name, value in row.items() if name not in ("attempts", "changes")},
        "repairs": row["changes"] if isinstance(row["changes"], list) else [],
        "attempts": row["attempts"],
        "timeline": _timeline(row),
        "told": {
            "model": None
            if failure is None
            else {lang: words.for_model(result, lang) for lang in ("en", "zh")},
            "user": {lang: words.for_user(result, lang) for lang in ("en", "zh")},
        },
        "remedy": None
        if failure is None
        else {lang: words.remedy(failure, lang) for lang in ("en", "zh")},
        "meaning": None
        if failure is None
        else {lang: words.meaning(failure, lang) for lang in ("en", "zh")},
        "parent": parent,
        "children": children,
        "claim": _claim(reader, row),
        "cause": _cause(reader, row),
    }


def _brief(row: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "call_id", "run_id", "parent_id", "tool", "started", "duration_ms", "success", "code", "category",
        "effect", "action", "stop_reason", "sent", "repairs", "degraded_to", "verified", "message",
    )  # fmt: skip
    return {name: row[name] for name in names}


def _failure(row: Mapping[str, Any]) -> Failure | None:
    data = row["failure"]
    if isinstance(data, Mapping) and "code" in data:
        return Failure.from_dict(data)
    if not row["code"]:
        return None
    return Failure(
        Category(row["category"]),
        row["code"],
        row["message"] or "",
        Effect(row["effect"]) if row["effect"] else Effect.UNKNOWN,
        http_status=row["http_status"],
        retry_after=row["retry_after"],
    )


def _result(row: Mapping[str, Any], failure: Failure | None) -> ToolResult[Any]:
    """The result again, as far as a record has it: enough for the words."""
    attempts = tuple(
        Attempt(
            one["number"],
            one["started"],
            one["duration_ms"],
            Failure(
                Category(one["category"]), one["code"], one["message"] or "", Effect(one["effect"])
            )
            if one["category"] and one["effect"]
            else None,
            Decision(Action(one["action"]), one["delay"] or 0.0) if one["action"] else None,
        )
        for one in row["attempts"]
    )
    return ToolResult(
        row["tool"],
        row["success"],
        None,
        failure,
        Action(row["action"]) if row["action"] else None,
        attempts,
        degraded_to=row["degraded_to"],
        stop_reason=StopReason(row["stop_reason"]),
        retry_at=row["retry_at"],
        duration_ms=row["duration_ms"],
        timestamp=row["started"],
        call_id=row["call_id"],
        run_id=row["run_id"],
        verified=row["verified"],
    )


def _timeline(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the call's time was spent on, in seconds from its beginning: attempts, waits between them,
    and refusals of the guards (``number`` 0)."""
    parts: list[dict[str, Any]] = []
    ended = 0.0
    attempts = row["attempts"] or [
        {"number": 1 if row["sent"] else 0, "started": 0.0, "duration_ms": row["duration_ms"],
         "code": row["code"], "action": row["action"], "delay": None}
    ]  # fmt: skip
    for one in attempts:
        if one["started"] > ended + 0.001:
            parts.append({"what": "wait", "from": ended, "to": one["started"]})
        until = one["started"] + one["duration_ms"] / 1000
        what = "failed" if one["code"] else "done"
        if not one["number"] and not row["success"]:
            what = "refused"
        parts.append(
            {"what": what, "from": one["started"], "to": until, "number": one["number"],
             "code": one["code"]}
        )  # fmt: skip
        ended = max(ended, until)
    whole = row["duration_ms"] / 1000
    if whole > ended + 0.001:
        parts.append({"what": "rest", "from": ended, "to": whole})
    return parts


def _claim(reader: Reader, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The claim of a call that may have changed something."""
    if not row["run_id"]:
        return None
    found = reader.source.rows(
        "SELECT key, state, tool, owner, claimed_at, lease_until, settled_at FROM claims WHERE key = ?",
        (effect_key(row["run_id"], row["call_id"]),),
    )
    return dict(found[0]) if found else None


def _cause(reader: Reader, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call that stopped the run before this one."""
    if row["code"] != "runtime.chain_aborted":
        return None
    return stopper(reader.run(row["run_id"], _CALLS_OF_A_RUN), row)


def stopper(calls: list[dict[str, Any]], stopped: Mapping[str, Any]) -> dict[str, Any] | None:
    """The call of a run because of which another one was not sent."""
    failure = stopped["failure"] if isinstance(stopped["failure"], Mapping) else {}
    details = failure.get("details")
    cause = details.get("cause") if isinstance(details, Mapping) else None
    if not isinstance(cause, Mapping):
        return None
    earlier = [
        one
        for one in calls
        if (one["started"], one["id"]) < (stopped["started"], stopped["id"])
        and one["tool"] == cause.get("tool")
        and one["code"] == cause.get("code")
    ]
    return (
        _brief(earlier[-1]) if earlier else {"tool": cause.get("tool"), "code": cause.get("code")}
    )


def run(reader: Reader, run_id: str) -> dict[str, Any] | None:
    """A run: its calls in order, each with its depth (fallbacks stand below their call) and, where it
    was not sent because of another one, with that one as ``stopped_by``."""
    calls = reader.run(run_id, _CALLS_OF_A_RUN + 1)
    if not calls:
        return None
    shown = calls[:_CALLS_OF_A_RUN]
    below: dict[str | None, list[dict[str, Any]]] = {}
    known = {one["call_id"] for one in shown}
    for one in shown:
        parent = one["parent_id"] if one["parent_id"] in known else None
        below.setdefault(parent, []).append(one)
    rows: list[dict[str, Any]] = []
    waiting = [(one, 0) for one in reversed(below.get(None, []))]
    seen: set[int] = set()
    while waiting:
        one, depth = waiting.pop()
        if one["id"] in seen:
            continue
        seen.add(one["id"])
        stopped_by = stopper(shown, one) if one["code"] == "runtime.chain_aborted" else None
        rows.append(_brief(one) | {"depth": min(depth, 10), "stopped_by": stopped_by})
        if depth < 50:
            waiting += [(child, depth + 1) for child in reversed(below.get(one["call_id"], []))]
    begun = min(one["started"] for one in shown)
    ended = max(one["started"] + one["duration_ms"] / 1000 for one in shown)
    return {
        "run": run_id,
        "started": begun,
        "duration_ms": (ended - begun) * 1000,
        "calls": len(shown),
        "failures": sum(1 for one in shown if not one["success"] and one["parent_id"] is None),
        "requests": sum(one["sent"] for one in shown),
        "more": len(calls) > len(shown),
        "rows": rows,
    }


def effects(reader: Reader, now: float) -> dict[str, Any]:
    """The effects of which nobody knows whether they happened, oldest first, how many repeats were
    prevented, by state, and the calls of which it was found out lately that they had happened."""
    found = reader.open_effects(now, limit=_EFFECTS + 1)
    prevented = reader.prevented(None, None, ("state",))
    wanted = Asked("all", None, None, Filter(verified=True), {})
    return {
        "rows": found[:_EFFECTS],
        "more": len(found) > _EFFECTS,
        "prevented": {row["state"]: row["calls"] for row in prevented},
        "verified": [_brief(row) for row in found_calls(reader, wanted, 20).rows],
    }


def raw_answers(reader: Reader, call_id: str, at: float) -> list[dict[str, Any]]:
    """The raw answers that were kept of a call that began at `at`."""
    return [one for one in reader.raw_answers(call_id) if abs(one["at"] - at) < 0.001]


def newest(reader: Reader) -> tuple[Any, ...]:
    """What changes when something happens: the newest call, and the open effects."""
    rows = reader.calls(Filter(), None, 1)
    last = (rows[0]["started"], rows[0]["id"]) if rows else (0.0, 0)
    return (*last, len(reader.open_effects(limit=1_000)))
