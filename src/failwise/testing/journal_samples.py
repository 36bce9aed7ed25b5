"""Finished calls and claims to write into a journal, and their figures counted by hand."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from failwise.journal.latency import bucket_of
from failwise.journal.rollups import DAY, HOUR, REFUSALS
from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Effect, Grade, StopReason
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult
from failwise.vocabulary.steps import Claim

START = 1_800_000_000.0
"""The moment of the samples, in epoch seconds: the beginning of an hour."""


def claim_of(call: str, *, run: str = "run", arguments: str = "a", tool: str = "order") -> Claim:
    """A claim; calls of one run with the same `arguments` have the same fingerprint."""
    return Claim(f"key-{run}-{call}", f"print-{arguments}", run, tool, call, {"what": arguments})


def good(call: str = "c1", **changes: Any) -> ToolResult[Any]:
    """A call that simply worked."""
    values: dict[str, Any] = {
        "duration_ms": 12.5,
        "timestamp": START,
        "call_id": call,
        "run_id": "run",
        "upstream": "api.example",
    }
    return ToolResult("search", True, 1, **(values | changes))


def failure_of(code: str, **changes: Any) -> Failure:
    """A failure of this code, with a fingerprint of its own kind."""
    values: dict[str, Any] = {
        "rule": "sample",
        "fingerprint": f"print-{code}",
        "evidence": Excerpt(f"message of {code}", "text/html", 2_000, "<html>"),
    }
    return Failure(
        Category(code.partition(".")[0]),
        code,
        f"message of {code}",
        changes.pop("effect", Effect.UNKNOWN),
        **(values | changes),
    )


def bad(call: str = "c2", code: str = "network.read_timeout", **changes: Any) -> ToolResult[Any]:
    """A call that was tried twice and failed."""
    failure = failure_of(code, details={"limit": 10})
    decision = Decision(Action.RETRY_BACKOFF, 1.0, reason="a read may be repeated", rule="network")
    values: dict[str, Any] = {
        "attempts": (
            Attempt(1, 0.0, 10_000, failure, decision),
            Attempt(2, 11.0, 10_000, failure),
        ),
        "suggested_action": Action.ASK_MODEL,
        "stop_reason": StopReason.RETRIES_EXHAUSTED,
        "duration_ms": 21_000.0,
        "timestamp": START,
        "call_id": call,
        "run_id": "run",
        "arguments": {"query": "shoes"},
        "upstream": "api.example",
    }
    return ToolResult("search", False, None, failure, **(values | changes))


def recovered(call: str, code: str = "server.unavailable", **changes: Any) -> ToolResult[Any]:
    """A call that failed once, was told to wait 2 s, waited and succeeded."""
    failure = failure_of(code, retry_after=2.0, effect=Effect.REJECTED)
    decision = Decision(Action.RETRY_EXACT, 2.0, reason="as told", rule="server")
    attempts = (Attempt(1, 0.0, 500, failure, decision), Attempt(2, 2.5, 300))
    return good(call, duration_ms=2_800.0, attempts=attempts, **changes)


def many(count: int, seed: int = 1, *, start: float = START, span: float = 3 * DAY) -> list[Any]:
    """Calls of all kinds over `span` seconds, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 (samples, no secrets)
    codes = (
        "network.read_timeout",
        "server.internal",
        "business.not_found",
        "model_output.invalid_json",
    )
    found: list[ToolResult[Any]] = []
    for number in range(count):
        changes: dict[str, Any] = {
            "timestamp": start + chance.random() * span,
            "upstream": chance.choice(("api.example", "pay.example")),
            "model": chance.choice((None, "m-1", "m-2")),
            "run_id": chance.choice(("", "run-1", "run-2", "run-3")),
            "parent_id": "parent" if chance.random() < 0.1 else None,
        }
        kind = chance.random()
        if kind < 0.6:
            made = good(f"c{number}", **changes, duration_ms=chance.lognormvariate(3, 1))
        elif kind < 0.7:
            made = recovered(f"c{number}", chance.choice(codes[:2]), **changes)
        elif kind < 0.75:
            made = good(f"c{number}", **changes, degraded_to="other")
        elif kind < 0.8:
            repair = Repair("comma", "", 1, 2, Grade.LOSSLESS)
            made = good(f"c{number}", **changes, repairs=(repair,))
        else:
            made = bad(f"c{number}", chance.choice(codes), **changes)
        made.tool_name = chance.choice(("search", "order", "pay"))
        found.append(made)
    return found


def counted(
    results: Sequence[Any], by: Sequence[str], wanted: Callable[[Any], bool] = lambda _: True
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The figures of calls, counted by hand: what `Reader.figures` must give, by group."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in filter(wanted, results):
        names = facts(one)
        group = groups.setdefault(tuple(names[name] for name in by), {"latency": {}})
        succeeded, failed_before = one.success, any(a.failure for a in one.attempts)
        refused = one.failure is not None and one.failure.category in REFUSALS
        plain = succeeded and one.degraded_to is None
        for name, value in {
            "calls": 1,
            "successes": succeeded,
            "failures": not succeeded,
            "first_try": plain and not failed_before,
            "recovered": plain and failed_before,
            "degraded": succeeded and one.degraded_to is not None,
            "refusals": refused,
            "faults": not succeeded and not refused,
            "rounds": names["category"] == "model_output",
            "requests": one.sent,
            "retries": one.retries,
            "retried": one.retries > 0,
            "wasted": 0 if succeeded else one.retries,
            "failed_attempts": sum(a.failure is not None for a in one.attempts),
            "repaired": bool(one.repairs),
            "told_waits": sum(
                a.failure is not None and a.failure.retry_after is not None for a in one.attempts
            ),
        }.items():
            group[name] = group.get(name, 0) + int(value)
        bucket = bucket_of(one.duration_ms)
        group["latency"][bucket] = group["latency"].get(bucket, 0) + 1
    return groups


def facts(one: Any) -> Mapping[str, Any]:
    """What a call can be grouped by."""
    failure = one.failure
    return {
        "tool": one.tool_name,
        "upstream": one.upstream,
        "model": one.model or "",
        "run": one.run_id,
        "provider": "",
        "category": failure.category.value if failure else "",
        "code": failure.code if failure else "",
        "hour": int(one.timestamp // HOUR) * HOUR,
        "day": int(one.timestamp // DAY) * DAY,
        "asked": int(one.parent_id is None),
    }


def with_secret(secret: str) -> tuple[ToolResult[Any], Claim]:
    """A failed call and a claim with a secret wherever there is room for free text."""
    result = bad("planted")
    assert result.failure is not None
    failure = replace(
        result.failure,
        message=f"{'m' * 290} password={secret}",
        details={"deep": [{"password": secret}], "note": f"password={secret}"},
        likely_causes=(f"password={secret}",),
        evidence=Excerpt(f"password={secret}", None, 10, f'{{"password": "{secret}"}}'),
        raw=f'{{"password": "{secret}"}}',
    )
    decision = Decision(Action.ASK_MODEL, reason=f"password={secret}")
    result = bad(
        "planted",
        attempts=(Attempt(1, 0.0, 1.0, failure, decision),),
        arguments={"password": secret, "note": f"password={secret}"},
    )
    result.failure, result.value = failure, {"password": secret}
    step = claim_of("planted")
    step.arguments = {"password": secret, "url": f"https://x.example/?password={secret}"}
    return result, step
