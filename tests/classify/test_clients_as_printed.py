"""What drivers, command-line tools and gateways print, one kind a row, each with what looks like it."""

import json
from typing import Any

import pytest

from failwise.classify.contract import answer
from failwise.evidence.waits import told_waits
from failwise.vocabulary.records import UNSET

KINDS = [
    # numbers and names of drivers, as their exceptions print them
    ("pymysql.err.OperationalError: (1213, 'Deadlock found')", "business.locked", "rejected"),
    ("pymysql.err.ProgrammingError: (1064, 'near \"FORM\"')", "invalid_request.malformed", "rejected"),
    ('KafkaError{code=LEADER_NOT_AVAILABLE,val=5,str="no"}', "server.unavailable", "rejected"),
    ('KafkaError{code=GROUP_AUTHORIZATION_FAILED,val=30,str="no"}', "auth.forbidden", "rejected"),
    ("smtplib.SMTPDataError: (451, b'4.3.0 later')", "server.unavailable", "rejected"),
    ("redis.exceptions.ResponseError: WRONGTYPE not a list", "invalid_request.parameter", "rejected"),
    ("ORA-00060: waiting", "business.locked", "rejected"),
    (
        "botocore.exceptions.ClientError: An error occurred (ConditionalCheckFailedException) "
        "when calling the PutItem operation: no",
        "business.precondition",
        "rejected",
    ),
    ("operation error EC2: Run, api error InsufficientInstanceCapacity: no", "server.overloaded", "rejected"),
    # commands
    ("! [rejected] dev -> dev (non-fast-forward)", "business.conflict", "rejected"),
    ("fatal: not a git repository", "tool.file_not_found", "not_sent"),
    ("Error: Error acquiring the state lock", "business.locked", "rejected"),
    ("Bind for 0.0.0.0:81 failed: port is already allocated", "tool.configuration", "not_sent"),
    ("npm error code E404", "business.not_found", "rejected"),
    ("ssh: connect to host 192.0.2.9 port 22: Connection timed out", "network.connect_timeout", "not_sent"),
    ("The connection to the server 192.0.2.9:6443 was refused", "network.connect_refused", "not_sent"),
    ("ERROR: Please run 'az login' to setup account.", "auth.invalid_credential", "not_sent"),
    ("make: *** [Makefile:3: all] Error 1", "tool.process_failed", "unknown"),
    # clients that refuse before they send
    ("httpx.UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol.", "invalid_request.parameter", "not_sent"),
    ("RuntimeError: Event loop is closed", "tool.exception", "not_sent"),
    # gateways
    ("no healthy upstream", "server.unavailable", "not_sent"),
    ("reset reason: remote connection failure", "network.connect_refused", "not_sent"),
    # browsers
    ("strict mode violation: locator('b') resolved to 4 elements", "invalid_request.parameter", "rejected"),
    ("Message: element not interactable", "business.precondition", "rejected"),
]  # fmt: skip

FINE = [
    "2025-03-01 10:00:00 INFO retries: timeout=20s, on error try 3 times",
    'GET /errors/404 HTTP/1.1" 200 812',
    "Compiling error-chain v0.12.4",
    "she is not the leader of the band",
    "Add a foreign key constraint to orders",
    "the limit was never reached",
]


def _judged(text: str) -> dict[str, Any]:
    return answer({"id": "1", "kind": "text", "input": {"text": text}})


@pytest.mark.parametrize(("text", "code", "effect"), KINDS, ids=[row[0][:40] for row in KINDS])
def test_a_printed_failure_is_what_its_driver_means(text: str, code: str, effect: str) -> None:
    """The number or the phrase decides, not the class around it; and so does the effect."""
    judged = _judged(text)
    assert (judged["code"], judged["effect"]) == (code, effect), judged["rule"]


@pytest.mark.parametrize("text", FINE)
def test_a_calm_line_is_no_failure(text: str) -> None:
    """A level, a good status, a name with "error" in it, or a phrase in another sense says nothing."""
    assert _judged(text)["category"] == "success"


def test_a_gateway_that_reached_nobody_sent_nothing() -> None:
    """The bare 503 is an unknown effect; with the proxy's own words it is known that nothing went out."""
    case = {"status": 503, "headers": {"server": "envoy"}, "body": "no healthy upstream"}
    bare = {"status": 503, "headers": {"server": "envoy"}, "body": "try later"}
    assert answer({"id": "1", "kind": "http", "input": case})["effect"] == "not_sent"
    assert answer({"id": "1", "kind": "http", "input": bare})["effect"] == "unknown"


def test_a_reason_beside_a_general_status_wins() -> None:
    """Google's own reason tells a throttle from a permission; without one the status stands."""
    error = {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}
    throttled = {**error, "errors": [{"reason": "rateLimitExceeded"}]}
    url = "https://gmail.googleapis.com/gmail/v1/users/me/messages"
    asked = [
        {"status": 403, "headers": {}, "body": json.dumps({"error": body}), "url": url}
        for body in (error, throttled)
    ]
    found = [answer({"id": "1", "kind": "http", "input": one})["category"] for one in asked]
    assert found == ["auth", "rate_limit"]


def test_a_stream_that_ends_in_failure_has_failed() -> None:
    """An event whose type ends in ``.failed`` holds the error of the whole answer; a done one none."""
    failed = (
        'data: {"type":"response.failed","response":{"error":'
        '{"code":"server_error","message":"The server had an error"}}}\n\n'
    )
    done = 'data: {"type":"response.completed","response":{"error":null}}\n\n'
    headers = {"content-type": "text/event-stream"}
    found = [
        answer({"id": "1", "kind": "http", "input": {"status": 200, "headers": headers, "body": body}})
        for body in (failed, done)
    ]  # fmt: skip
    assert [one["category"] for one in found] == ["server", "success"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("toomanyrequests: retry-after: 400ms", 0.4),
        ("toomanyrequests: retry-after: 250µs", 0.00025),
        ("retry_delay {\n  seconds: 40\n}", 40.0),
    ],
)
def test_a_wait_keeps_its_unit(text: str, seconds: float) -> None:
    """Microseconds are not seconds, and a duration printed by protobuf is one."""
    (wait,) = told_waits({}, UNSET, text, now=0.0)
    assert wait.seconds == pytest.approx(seconds, abs=1e-5)
