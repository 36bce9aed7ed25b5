"""Journals with failures in them, for the tests of clusters, watching and replay."""

from typing import Any

import failwise
from failwise.classify import Classifier
from failwise.classify.contract import RecordedAnswer
from failwise.evidence import from_exception, from_response
from failwise.journal.journal import Journal
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Action, Effect, FixBy, StopReason
from failwise.vocabulary.result import Attempt, Decision, ToolResult

HOUR = 3_600.0
NOW = 1_800_000_000.0 // 86_400 * 86_400 + 12 * HOUR
CLASSIFIER = Classifier()


class StandingClock:
    """A clock that stands, so that nothing is too old to be kept."""

    def monotonic(self) -> float:
        return NOW

    time = monotonic


def journal(place: Any = ":memory:") -> Journal:
    return Journal(place, clock=StandingClock(), retention_days=36_500)


def answered(status: int, body: str, *, tool: str, host: str = "api.example") -> Failure:
    """The failure of an HTTP answer."""
    kind = "text/html" if body.startswith("<") else "application/json"
    answer = RecordedAnswer(status, {"content-type": kind}, body, "GET", f"https://{host}/x")
    failure = CLASSIFIER.classify(from_response(answer), tool=tool)
    assert failure is not None
    return failure


def raised(error: BaseException, *, tool: str) -> Failure:
    """The failure of an exception."""
    failure = CLASSIFIER.classify(from_exception(error), tool=tool)
    assert failure is not None
    return failure


def page(number: int, *, tool: str = "search", host: str = "gateway.example") -> Failure:
    """A 502 page of a gateway, with a ray id of its own."""
    body = (
        "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1>"
        f"Ray ID: {number * 7_919_113:x}</body></html>"
    )
    return answered(502, body, tool=tool, host=host)


def expired(*, tool: str = "pay", host: str = "pay.example") -> Failure:
    """An expired certificate of one host."""
    from failwise.classify.fingerprint import fingerprint

    code = "security.certificate_expired"
    return Failure(
        failwise.Category.SECURITY,
        code,
        "certificate verify failed: certificate has expired",
        Effect.NOT_SENT,
        False,
        FixBy.OPERATOR,
        details={"host": host, "certificate": {"host": host, "not_after": "2026-11-02T00:00:00Z"}},
        rule="exception.ssl.SSLCertVerificationError",
        fingerprint=fingerprint("security", code, tool, "", ""),
    )


def failed(
    failure: Failure,
    *,
    tool: str,
    at: float,
    call_id: str,
    run_id: str = "",
    upstream: str = "",
    action: Action = Action.ABORT,
) -> ToolResult[Any]:
    """A call that failed at its first attempt."""
    return ToolResult(
        tool,
        False,
        failure=failure,
        suggested_action=action,
        attempts=(Attempt(1, 0.0, 20.0, failure, Decision(action, stop=StopReason.NOT_RETRIABLE)),),
        stop_reason=StopReason.NOT_RETRIABLE,
        duration_ms=20.0,
        timestamp=at,
        call_id=call_id,
        run_id=run_id,
        upstream=upstream,
    )


def recovered(failure: Failure, *, tool: str, at: float, call_id: str) -> ToolResult[Any]:
    """A call that failed once and was saved by a retry."""
    retry = Decision(Action.RETRY_BACKOFF, 1.0, reason="again", rule="retry.exponential")
    return ToolResult(
        tool,
        True,
        value=1,
        attempts=(Attempt(1, 0.0, 20.0, failure, retry), Attempt(2, 1.02, 20.0)),
        duration_ms=1_040.0,
        timestamp=at,
        call_id=call_id,
    )


def worked(*, tool: str, at: float, call_id: str, run_id: str = "") -> ToolResult[Any]:
    """A call that worked at once."""
    return ToolResult(
        tool, True, value=1, duration_ms=20.0, timestamp=at, call_id=call_id, run_id=run_id
    )
