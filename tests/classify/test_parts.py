"""Answers of many parts: rows of a batch's output, searches that did not see everything, failed jobs."""

import json
from typing import Any

import pytest

from failwise.classify import Classifier
from failwise.classify.contract import answer
from failwise.evidence import from_value
from failwise.vocabulary.kinds import Effect

CLASSIFIER = Classifier(now=lambda: 1_800_000_000.0)
GOOD = {"id": "a", "custom_id": "1", "response": {"status_code": 200, "body": {}}, "error": None}
EXPIRED = {
    "id": "b",
    "custom_id": "2",
    "response": None,
    "error": {"code": "batch_expired", "message": "The window closed before it could be executed."},
}
LIMITED = {
    "id": "c",
    "custom_id": "3",
    "response": {"status_code": 429, "body": {"error": {"message": "Rate limit reached"}}},
    "error": None,
}
ERRORED = {"custom_id": "4", "result": {"type": "errored", "error": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}}}  # fmt: skip
SUCCEEDED = {"custom_id": "5", "result": {"type": "succeeded", "message": {"content": []}}}


def code_of(value: Any) -> str | None:
    failure = CLASSIFIER.classify(from_value(value))
    return failure.code if failure else None


def answered(body: Any, kind: str = "application/json", method: str = "POST") -> str | None:
    text = body if isinstance(body, str) else json.dumps(body)
    given = {"method": method, "status": 200, "headers": {"content-type": kind}, "body": text}
    code: str | None = answer({"id": 1, "kind": "http", "input": given})["code"]
    return code


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


PARTIAL: list[list[Any]] = [
    [GOOD, EXPIRED],
    [EXPIRED, GOOD],
    [GOOD, LIMITED],
    [SUCCEEDED, ERRORED],
    [{"id": 1, "result": {"x": 1}}, {"id": 2, "error": "no such order"}],
    [{"jsonrpc": "2.0", "id": 1, "result": 5}, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "down"}}],
    [{"id": 1, "error": None}, {"id": 2, "error": "no such order"}],
    [{"city": "Berlin", "degrees": 21}, {"city": "Atlantis", "error": "no such city"}],
]  # fmt: skip


@pytest.mark.parametrize("rows", PARTIAL)
def test_rows_of_which_some_failed(rows: list[Any]) -> None:
    """Errors in place of answers, as a list, in an envelope, and as JSON lines: never again as a whole."""
    assert code_of(rows) == code_of({"results": rows}) == "business.partial"
    assert answered(rows) == answered({"results": rows}) == "business.partial"
    assert code_of(lines(rows)) == "business.partial"
    assert answered(lines(rows), "application/jsonl") == "business.partial"
    failure = CLASSIFIER.classify(from_value(rows))
    assert failure is not None
    assert failure.effect is Effect.APPLIED
    assert failure.transient is False


def test_rows_that_all_failed() -> None:
    """What failed alike everywhere is that failure."""
    assert code_of([LIMITED, LIMITED]) == "rate_limit.requests"
    assert code_of(lines([LIMITED, LIMITED])) == "rate_limit.requests"
    assert code_of([ERRORED, {**ERRORED, "custom_id": "9"}]) == "server.overloaded"
    assert code_of([EXPIRED, EXPIRED]) not in (None, "business.partial")


FINE: list[list[Any]] = [
    [GOOD, GOOD],
    [SUCCEEDED, SUCCEEDED],
    [{"id": 1, "error": None, "result": 1}, {"id": 2, "error": None, "result": 2}],
    [{"name": "nightly", "status": "failed", "result": None, "error": "disk"}, {"name": "hourly", "status": "ok", "result": 1, "error": None}],
    [{"id": 1, "level": "error", "error": "boom"}, {"id": 2, "level": "info"}],
    [{"id": 1, "error": "boom", "finished_at": 5}, {"id": 2, "finished_at": 6}],
    [{"id": 1, "queue": "mail", "error": "timeout"}, {"id": 2, "queue": "mail", "error": None}],
    [{"page": "a", "visits": 3, "error": "rounding"}, {"page": "b", "visits": 4, "error": "none"}],
]  # fmt: skip


@pytest.mark.parametrize("rows", FINE)
def test_rows_that_are_data(rows: list[Any]) -> None:
    """Empty errors, jobs, lines of logs, and tables that happen to have such a column."""
    assert code_of(rows) is None
    assert code_of(lines(rows)) is None
    assert answered(lines(rows), "application/jsonl") is None


SHARDS = {"total": 5, "successful": 3, "skipped": 0, "failed": 2}
WHOLE = {"total": 5, "successful": 5, "skipped": 0, "failed": 0}
HITS = {"total": {"value": 1}, "hits": [{"_id": "1"}]}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"took": 5, "timed_out": True, "_shards": WHOLE, "hits": HITS}, "business.partial"),
        ({"took": 5, "timed_out": False, "_shards": SHARDS, "hits": HITS}, "business.partial"),
        ({"count": 4, "_shards": SHARDS}, "business.partial"),
        ({"took": 900, "timed_out": True, "total": 9, "updated": 4, "failures": []}, "business.partial"),
        ({"_shards": {**SHARDS, "successful": 0, "failed": 5}, "hits": {"hits": []}}, "server.unavailable"),
        ({"took": 5, "timed_out": False, "_shards": WHOLE, "hits": HITS}, None),
        ({"_id": "1", "result": "created", "_shards": {"total": 2, "successful": 1, "failed": 1}}, None),
        ({"command": "make", "timed_out": True, "output": "..."}, None),
    ],
)  # fmt: skip
def test_searches_that_did_not_see_everything(body: Any, code: str | None) -> None:
    """Shards that failed and time that ran out leave a search incomplete; a write that one copy took
    stands, and of other services' `timed_out` nothing is known."""
    assert code_of(body) == answered(body) == code


JOB = {
    "id": "job_1",
    "status": "failed",
    "created_at": 1_700_000_000,
    "error": {"code": "server_error", "message": "The server had an error"},
}


def test_a_failed_job_that_was_read() -> None:
    """A GET that looked at a failed job went well; what a POST brought about, a tool returned, or a
    model's response tells, is the call's own failure."""
    assert answered(JOB, method="GET") is None
    assert answered({**JOB, "status": "completed", "error": None}, method="GET") is None
    assert answered(JOB, method="POST") == code_of(JOB) == "server.internal"
    assert answered({**JOB, "object": "response"}, method="GET") == "server.internal"
    bare = {"status": "failed", "error": JOB["error"]}
    assert answered(bare, method="GET") == "server.internal", "an envelope is no job"
