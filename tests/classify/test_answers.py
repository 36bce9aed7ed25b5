"""HTTP answers and tool results: what is a success, what is a failure, and of which kind."""

import json
from typing import Any

import pytest

from failwise.classify import Classifier
from failwise.classify.contract import RecordedAnswer, answer
from failwise.evidence import from_response, from_value

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}
XML = {"content-type": "application/xml"}
CLASSIFIER = Classifier(now=lambda: 1_800_000_000.0)


def judged(status: int, body: Any, headers: dict[str, str] = JSON) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return answer(
        {
            "id": 1,
            "kind": "http",
            "input": {"method": "POST", "status": status, "headers": headers, "body": text},
        }
    )


SUCCESSES: list[Any] = [
    {"code": 0, "msg": "ok", "data": {}},
    {"code": "0000", "msg": "处理成功"},
    {"code": 1, "msg": "操作成功"},
    {"errcode": 0, "errmsg": "ok"},
    {"error": None, "data": {"x": 1}},
    {"errors": [], "data": {"x": 1}},
    {"ok": True, "deleted": 0, "errors": {}, "message": "nothing to delete"},
    {"id": 5, "code": "DE", "message": "Hello", "name": "Germany"},
    {"price": 500, "status_text": "timeout"},
    {"status": "failed", "id": "job1", "result": {"log": "Error: x"}},
    {"title": "run log", "error": "This column holds the last error of the job", "rows": 3},
    {
        "id": "pi_1",
        "last_payment_error": {"code": "card_declined", "message": "declined"},
        "status": "open",
    },
    {"items": [{"title": "Error 500 on login", "state": "open"}], "total": 1},
    {"kind": "Status", "status": "Success"},
    {"found": False, "_id": "1"},
    {"data": {"productCreate": {"product": {"id": 1}, "userErrors": []}}},
    {"took": 504, "timed_out": False, "hits": {"total": 0}},
    {"message": "Order created"},
    {"FailedRecordCount": 0, "Records": []},
    {"result": "fail", "student": "Bob", "course": "Math"},
    {"message": "Your session will expire in 5 minutes", "user": {"id": 1}},
    {"choices": [{"message": {"content": "Error: timeout"}, "finish_reason": "stop"}]},
    {"status": 404, "url": "https://x.example/broken-link", "checked": True},
    {"code": "SAVE20", "discount": 20, "message": "Coupon"},
    {"title": "Bad Gateway", "author": "X", "type": "book"},
    {"base_resp": {"status_code": 0, "status_msg": "success"}, "data": {"x": 1}},
    {"events": [{"type": "error", "message": "x"}]},
    {"content": "Traceback (most recent call last): ..."},
]


@pytest.mark.parametrize("body", SUCCESSES)
def test_success_is_not_called_a_failure(body: Any) -> None:
    """Empty error fields, success codes and data about errors are successes, as answer and as value."""
    assert judged(200, body)["category"] == "success"
    assert CLASSIFIER.classify(from_value(body)) is None


FAILURES: list[tuple[Any, str, str]] = [
    ({"code": 10001, "msg": "账户余额不足"}, "business.insufficient_balance", "rejected"),
    ({"code": 10001, "msg": "frobnication is off"}, "business.refused", "rejected"),
    ({"code": 403, "msg": "没权限"}, "auth.forbidden", "rejected"),
    ({"code": -1, "msg": "请求过于频繁"}, "rate_limit.requests", "rejected"),
    ({"code": 500, "msg": "系统异常"}, "server.internal", "unknown"),
    ({"ok": False, "error": "invalid_auth"}, "auth", "rejected"),
    ({"success": False, "message": "商品库存不足"}, "business.out_of_stock", "rejected"),
    ({"status": "error", "message": "Invalid API key"}, "auth.invalid_credential", "rejected"),
    ({"status": "401", "msg": "Authentication required"}, "auth.invalid_credential", "rejected"),
    ({"error": {"message": "No such user", "code": "not_found"}}, "business.not_found", "rejected"),
    ({"error": "rate limited"}, "rate_limit.requests", "rejected"),
    ({"error": 404}, "business.not_found", "rejected"),
    ({"booking_status": False, "error": "Booking not found"}, "business.not_found", "rejected"),
    ({"data": None, "errors": [{"message": "Not authorized", "extensions": {"code": "FORBIDDEN"}}]}, "auth.forbidden", "rejected"),
    ({"data": {"a": 1, "b": None}, "errors": [{"message": "b failed", "path": ["b"]}]}, "business.partial", "applied"),
    ({"errors": True, "items": [{"index": {"status": 201}}, {"index": {"status": 409, "error": {"type": "x"}}}]}, "business.partial", "applied"),
    ({"UnprocessedItems": {"t": [{"PutRequest": {}}]}}, "business.partial", "applied"),
    ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool: foo"}}, "model_output.unknown_tool", "not_sent"),
    ({"exit_code": 1, "stderr": "bash: foo: command not found", "stdout": ""}, "tool.missing_dependency", "not_sent"),
    ({"message": "User not found"}, "business.not_found", "rejected"),
    ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "auth.invalid_credential", "rejected"),
    ({"errno": 110, "error": "user not login"}, "auth.invalid_credential", "rejected"),
    ({"cod": "404", "message": "city not found"}, "business.not_found", "rejected"),
    ({"error": True, "message": "Invalid symbol: X"}, "invalid_request.parameter", "rejected"),
    ({"error": "", "response": "{'message': \"Endpoint '/x' does not exist\"}"}, "invalid_request.endpoint_not_found", "rejected"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "effect"), FAILURES)
def test_failure_inside_a_good_status(body: Any, code: str, effect: str) -> None:
    """A failure in a 200 or in a returned value does not pass as a success."""
    for given in (
        judged(200, body),
        answer({"id": 1, "kind": "tool_result", "input": {"json": body}}),
    ):
        assert given["code"].startswith(code), given
        assert given["effect"] == effect


def test_unknown_business_code_is_kept() -> None:
    """A code that no table knows is business, with the provider's code and its own words."""
    failure = CLASSIFIER.classify(from_value({"code": 10001, "msg": "frobnication is off"}))
    assert failure is not None
    assert failure.provider_code == "10001"
    assert failure.message == "frobnication is off"
    assert failure.transient is False
    assert failure.detail("meaning_unknown")


STATUSES: list[tuple[int, Any, dict[str, str], str, str]] = [
    (400, {"error": "city_code must be 3 digits, got '12'"}, JSON, "invalid_request.parameter", "rejected"),
    (400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, JSON, "auth", "rejected"),
    (400, {"error": {"message": "Your credit balance is too low", "type": "invalid_request_error"}}, JSON, "business.insufficient_balance", "rejected"),
    (400, {"__type": "x#ThrottlingException", "message": "Rate exceeded"}, JSON, "rate_limit", "rejected"),
    (401, "", JSON | {"www-authenticate": 'Bearer error="invalid_token", error_description="expired"'}, "auth.credential_expired", "rejected"),
    (401, {"message": "Bad credentials"}, JSON, "auth.invalid_credential", "rejected"),
    (402, {}, JSON, "business", "rejected"),
    (403, {"message": "x"}, JSON | {"x-ratelimit-remaining": "0"}, "rate_limit.requests", "rejected"),
    (403, "<html><head><title>Just a moment...</title></head></html>", HTML | {"cf-mitigated": "challenge"}, "auth.human_check", "rejected"),
    (403, {"message": "Resource not accessible"}, JSON, "auth.forbidden", "rejected"),
    (404, "<html><title>404 Not Found</title></html>", HTML, "invalid_request.endpoint_not_found", "rejected"),
    (404, {"message": "User 7 not found"}, JSON, "business.not_found", "rejected"),
    (404, {"message": "Route not found"}, JSON, "invalid_request.endpoint_not_found", "rejected"),
    (409, {"message": "Already exists"}, JSON, "business.already_exists", "rejected"),
    (418, {}, JSON, "invalid_request", "rejected"),
    (422, {"message": "Validation Failed"}, JSON, "invalid_request.parameter", "rejected"),
    (429, {"error": "no such order: /orders/404"}, JSON, "rate_limit.requests", "rejected"),
    (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, JSON, "business.quota_exhausted", "rejected"),
    (429, {"message": "余额不足，请充值"}, JSON, "business.insufficient_balance", "rejected"),
    (500, {"success": True}, JSON, "server.internal", "unknown"),
    (502, "<html><title>502 Bad Gateway</title></html>", HTML, "network.bad_gateway", "unknown"),
    (503, "", JSON, "server.unavailable", "unknown"),
    (504, "upstream request timeout", HTML, "network.gateway_timeout", "unknown"),
    (521, "", HTML, "network.connect_refused", "not_sent"),
    (560, "", HTML, "server.internal", "unknown"),
    (200, '{"a": 1, "b": [1,2', JSON, "parsing.truncated", "applied"),
    (200, "", JSON, "parsing.empty", "applied"),
    (200, "<html><title>Sign in</title></html>", JSON, "parsing.html_instead_of_json", "applied"),
    (200, "<html><head><title>Just a moment...</title></head></html>", HTML, "auth.human_check", "unknown"),
    (403, "<Error><Code>SignatureDoesNotMatch</Code><Message>not match</Message></Error>", XML, "auth.signature", "rejected"),
    (200, "<xml><return_code>SUCCESS</return_code><result_code>FAIL</result_code><err_code_des>余额不足</err_code_des></xml>", XML, "business", "rejected"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "headers", "code", "effect"), STATUSES)
def test_status_with_what_splits_it(
    status: int, body: Any, headers: dict[str, str], code: str, effect: str
) -> None:
    """The status sets the frame; code, text and headers split it; the effect follows."""
    given = judged(status, body, headers)
    assert given["code"].startswith(code), given
    assert given["effect"] == effect, given


def test_told_wait_makes_a_quota_a_rate() -> None:
    """A quota that comes back within the hour is a rate; without a wait it is money."""
    body = {
        "error": {
            "message": "You exceeded your current quota. Please retry in 46s.",
            "status": "RESOURCE_EXHAUSTED",
        }
    }
    given = judged(429, body)
    assert given["category"] == "rate_limit"
    assert given["retry_after_s"] == pytest.approx(46, abs=1)


def test_named_profile_decides() -> None:
    """The profile that a tool names is its provider's own table: code, meaning and advice."""
    recorded = RecordedAnswer(200, JSON, json.dumps({"ok": False, "error": "ratelimited"}))
    failure = CLASSIFIER.classify(from_response(recorded), profile="slack")
    assert failure is not None
    assert (failure.category, failure.provider, failure.provider_code) == (
        "rate_limit",
        "slack",
        "ratelimited",
    )
    assert failure.meaning
    assert failure.meaning["zh"]


TEXTS_THAT_FAILED = [
    "Error: connection refused",
    "Error executing tool calc: name 'x' is not defined",
    "ValueError: bad input",
    "MCP error -32001: Request timed out",
    "失败：没有权限",
    "cat: x.txt: No such file or directory",
    "404 page not found",
    "API request failed: 401 Unauthorized",
    "<tool_use_error>File has not been read yet.</tool_use_error>",
    "Tool execution failed: ECONNREFUSED 127.0.0.1:3000",
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1',
]
TEXTS_THAT_WORKED = [
    "",
    "OK",
    "The quick brown fox. Errors happen. Timeout is a word.",
    "# Troubleshooting timeouts\n\nIf you see `connection refused`, check the port.\n",
    "|-- timeout.py\n|-- unauthorized_page.html",
    "Weather for Errorville: sunny",
    "WARNING: Retrying after ReadTimeoutError\nSuccessfully installed requests-2.32.3",
    "Error handling in Go: use errors.Is and errors.As",
    "Errors: 0\nWarnings: 2",
    "Error rate: 0.5%",
    "超时空要爱 (1998) 电影",
    "import requests\ntry:\n    requests.get(url)\nexcept requests.Timeout:\n    print('timed out')",
    "commit abc123\n    Fix timeout error in client",
    "Search results:\n1. How to fix 'connection refused' errors\n2. Timeout guide",
]


@pytest.mark.parametrize("text", TEXTS_THAT_FAILED)
def test_returned_text_with_an_anchor_is_a_failure(text: str) -> None:
    """A returned text that begins as failures begin is one."""
    assert CLASSIFIER.classify(from_value(text)) is not None


@pytest.mark.parametrize("text", TEXTS_THAT_WORKED)
def test_returned_text_that_speaks_of_errors_is_content(text: str) -> None:
    """Documents, listings and recovered logs are content."""
    assert CLASSIFIER.classify(from_value(text)) is None


def test_flagged_result_is_a_failure_even_if_nobody_knows_which() -> None:
    """``isError`` is firm: with words that no rule knows it is unknown, never a success."""
    failure = CLASSIFIER.classify(
        from_value({"isError": True, "content": [{"type": "text", "text": "odd"}]})
    )
    assert failure is not None
    assert failure.code == "unknown.unclassified"
    assert (
        CLASSIFIER.classify(
            from_value(
                {"isError": False, "content": [{"type": "text", "text": "Error 500 is a song"}]}
            )
        )
        is None
    )


def test_redirects_that_nobody_followed() -> None:
    """A redirect to a login is a credential that does not hold; elsewhere a wrong address, where an answer was due."""
    login = RecordedAnswer(302, {"location": "https://a.example/login?next=/x"}, "")
    moved = RecordedAnswer(301, {"location": "https://a.example/v2/x"}, "", expects_json=True)
    seen = RecordedAnswer(304, {"location": "/login"}, "")
    codes = [
        failure and failure.code
        for failure in (CLASSIFIER.classify(from_response(one)) for one in (login, moved, seen))
    ]
    assert codes == ["auth.invalid_credential", "invalid_request.endpoint_not_found", None]
