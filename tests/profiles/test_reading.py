"""Real providers' failures, as they come over the wire, read by their profiles."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from failwise.profiles import Document, Profiles, Reading
from failwise.vocabulary.kinds import Action, Effect
from failwise.vocabulary.records import UNSET

NOW = 1_760_000_000.0
LIBRARY = Profiles.default()


class Case(NamedTuple):
    """An answer, and what its provider's profile must make of it."""

    provider: str
    host: str | None
    status: int | None
    body: Any
    code: str | None
    as_code: str
    effect: str = "rejected"
    headers: Mapping[str, str] = MappingProxyType({})
    message: str | None = None
    wait: float | None = None


CASES = [
    Case("stripe", "api.stripe.com", 402, {"error": {"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds", "message": "Your card has insufficient funds.", "doc_url": "https://stripe.com/docs/error-codes/card-declined"}}, "insufficient_funds", "business.insufficient_balance"),
    Case("stripe", "api.stripe.com", 409, {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": "There is currently another in-progress request using this Idempotency Key."}}, "idempotency_key_in_use", "business.pending"),
    Case("stripe", "api.stripe.com", 404, {"error": {"type": "invalid_request_error", "code": "resource_missing", "param": "id", "message": "No such customer: 'cus_1'"}}, "resource_missing", "business.not_found"),
    Case("openai", "api.openai.com", 429, {"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}, "insufficient_quota", "business.quota_exhausted"),
    Case("openai", "api.openai.com", 429, {"error": {"message": "Rate limit reached", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}, "rate_limit_exceeded", "rate_limit.requests", headers={"retry-after-ms": "1500", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, wait=1.5),
    Case("openai", "api.openai.com", 401, {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}}, "invalid_api_key", "auth.invalid_credential"),
    Case("openai", "api.openai.com", 404, {"error": {"message": "No file with id 'file-1'", "type": "invalid_request_error", "param": "id", "code": None}}, "invalid_request_error", "business.not_found"),
    Case("openai", "api.openai.com", 400, {"error": {"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}, "context_length_exceeded", "invalid_request.too_large"),
    Case("openai", "api.openai.com", 503, {}, None, "server.unavailable", effect="unknown"),
    Case("anthropic", "api.anthropic.com", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}, "overloaded_error", "server.overloaded"),
    Case("anthropic", "api.anthropic.com", 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}}, "invalid_request_error", "business.insufficient_balance"),
    Case("github", "api.github.com", 403, {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "documentation_url": "https://docs.github.com/rest"}, None, "rate_limit.requests", headers={"x-ratelimit-remaining": "4990", "x-ratelimit-reset": str(int(NOW) + 900)}),
    Case("github", "api.github.com", 403, {"message": "API rate limit exceeded for user ID 1.", "documentation_url": "https://docs.github.com/rest"}, None, "rate_limit.requests", headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 900)}, wait=900.0),
    Case("github", "api.github.com", 403, {"message": "Resource not accessible by integration", "documentation_url": "https://docs.github.com/rest"}, None, "auth.forbidden"),
    Case("github", "api.github.com", 422, {"message": "Validation Failed", "errors": [{"resource": "Label", "code": "already_exists", "field": "name"}]}, "already_exists", "business.already_exists", effect="applied"),
    Case("slack", "slack.com", 200, {"ok": False, "error": "channel_not_found"}, "channel_not_found", "business.not_found"),
    Case("slack", "slack.com", 200, {"ok": False, "error": "missing_scope", "needed": "chat:write", "provided": "identify"}, "missing_scope", "auth.insufficient_scope"),
    Case("slack", "slack.com", 200, {"ok": False, "error": "token_expired"}, "token_expired", "auth.credential_expired"),
    Case("wechat", "api.weixin.qq.com", 200, {"errcode": 40001, "errmsg": "invalid credential, access_token is invalid or not latest, rid: 65f2a1b3-1c0d2e3f-4a5b6c7d"}, "40001", "auth.invalid_credential"),
    Case("wechat", "api.weixin.qq.com", 200, {"errcode": 45009, "errmsg": "reach max api daily quota limit"}, "45009", "business.quota_exhausted"),
    Case("wecom", "qyapi.weixin.qq.com", 200, {"errcode": 45009, "errmsg": "api freq out of limit"}, "45009", "rate_limit.requests"),
    Case("wecom", "qyapi.weixin.qq.com", 200, {"errcode": 60020, "errmsg": "not allow to access from your ip"}, "60020", "auth.forbidden"),
    Case("alipay", "openapi.alipay.com", 200, {"alipay_trade_pay_response": {"code": "40004", "msg": "Business Failed", "sub_code": "ACQ.BUYER_BALANCE_NOT_ENOUGH", "sub_msg": "买家余额不足"}, "sign": "s"}, "ACQ.BUYER_BALANCE_NOT_ENOUGH", "business.insufficient_balance", message="买家余额不足"),
    Case("alipay", "openapi.alipay.com", 200, {"alipay_trade_pay_response": {"code": "20000", "msg": "Service Currently Unavailable", "sub_code": "isp.unknow-error", "sub_msg": "系统繁忙"}, "sign": "s"}, "isp.unknow-error", "server.unavailable", effect="unknown"),
    Case("aws", "dynamodb.us-east-1.amazonaws.com", 400, {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "The level of configured provisioned throughput for the table was exceeded."}, "ProvisionedThroughputExceededException", "rate_limit.requests"),
    Case("aws", "sts.amazonaws.com", 400, "<ErrorResponse xmlns='https://sts.amazonaws.com/doc/'><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>The security token included in the request is expired</Message></Error><RequestId>r-1</RequestId></ErrorResponse>", "ExpiredToken", "auth.credential_expired"),
    Case("aws", "b.s3.amazonaws.com", 404, '<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><RequestId>r</RequestId></Error>', "NoSuchKey", "business.not_found"),
    Case("aws", "lambda.eu-west-1.amazonaws.com", 429, {"Message": "Rate exceeded"}, "TooManyRequestsException", "rate_limit.requests", headers={"x-amzn-errortype": "TooManyRequestsException:http://internal.amazon.com/coral/"}),
    Case("google", "generativelanguage.googleapis.com", 429, {"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "46s"}]}}, "RESOURCE_EXHAUSTED", "rate_limit.requests", wait=46.0),
    Case("google", "www.googleapis.com", 400, {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}, "API_KEY_INVALID", "auth.invalid_credential"),
    Case("salesforce", "acme.my.salesforce.com", 400, [{"message": "Required fields are missing: [LastName]", "errorCode": "REQUIRED_FIELD_MISSING", "fields": ["LastName"]}], "REQUIRED_FIELD_MISSING", "invalid_request.missing_parameter"),
    Case("twilio", "api.twilio.com", 400, {"code": 21211, "message": "The 'To' number is not a valid phone number.", "more_info": "https://www.twilio.com/docs/errors/21211", "status": 400}, "21211", "invalid_request.parameter"),
    Case("discord", "discord.com", 429, {"message": "You are being rate limited.", "retry_after": 0.65, "global": False}, None, "rate_limit.requests", wait=0.65),
    Case("telegram", "api.telegram.org", 429, {"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 14", "parameters": {"retry_after": 14}}, "429", "rate_limit.requests", wait=14.0),
    Case("telegram", "api.telegram.org", 400, {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}, "400", "business.not_found"),
    Case("feishu", "open.feishu.cn", 400, {"code": 99991400, "msg": "request trigger frequency limit"}, "99991400", "rate_limit.requests", headers={"x-ogw-ratelimit-reset": "7"}, wait=7.0),
    Case("dingtalk", "oapi.dingtalk.com", 200, {"errcode": 310000, "errmsg": "keywords not in content"}, "310000", "invalid_request.parameter"),
    Case("amap", "restapi.amap.com", 200, {"status": "0", "info": "USER_DAILY_QUERY_OVER_LIMIT", "infocode": "10044"}, "10044", "business.quota_exhausted"),
    Case("amap", "restapi.amap.com", 200, {"status": "0", "info": "CUQPS_HAS_EXCEEDED_THE_LIMIT", "infocode": "10021"}, "10021", "rate_limit.requests"),
    Case("baidu_ai", "aip.baidubce.com", 200, {"error_code": 18, "error_msg": "Open api qps request limit reached"}, "18", "rate_limit.requests"),
    Case("baidu_map", "api.map.baidu.com", 200, {"status": 302, "message": "天配额超限，限制访问"}, "302", "business.quota_exhausted"),
    Case("deepseek", "api.deepseek.com", 402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "param": None, "code": "invalid_request_error"}}, "invalid_request_error", "business.insufficient_balance"),
    Case("zhipu", "open.bigmodel.cn", 429, {"error": {"code": "1113", "message": "您的账户已欠费，请充值后重试"}}, "1113", "business.billing"),
    Case("tencent_cloud", "cvm.tencentcloudapi.com", 200, {"Response": {"Error": {"Code": "AuthFailure.SignatureFailure", "Message": "The provided credentials could not be validated."}, "RequestId": "q"}}, "AuthFailure.SignatureFailure", "auth.signature"),
    Case("alibaba_cloud", "ecs.aliyuncs.com", 400, {"Code": "Throttling.User", "Message": "Request was denied due to user flow control.", "RequestId": "1-2"}, "Throttling.User", "rate_limit.requests"),
    Case("wechat_pay", "api.mch.weixin.qq.com", 500, {"code": "SYSTEM_ERROR", "message": "系统异常，请稍后重试"}, "SYSTEM_ERROR", "server.internal", effect="unknown"),
    Case("wechat_pay_v2", "api.mch.weixin.qq.com", 200, "<xml><return_code><![CDATA[SUCCESS]]></return_code><result_code><![CDATA[FAIL]]></result_code><err_code><![CDATA[ORDERPAID]]></err_code><err_code_des><![CDATA[订单已支付]]></err_code_des></xml>", "ORDERPAID", "business.already_exists", effect="applied", message="订单已支付"),
    Case("kubernetes", "kubernetes.default.svc", 409, {"kind": "Status", "status": "Failure", "reason": "AlreadyExists", "message": 'pods "a" already exists', "code": 409}, "AlreadyExists", "business.already_exists", effect="applied"),
    Case("hubspot", "api.hubapi.com", 429, {"status": "error", "message": "You have reached your daily limit.", "errorType": "RATE_LIMIT", "policyName": "DAILY"}, "RATE_LIMIT", "business.quota_exhausted"),
    Case("cloudflare", None, 522, UNSET, None, "network.gateway_timeout", effect="unknown", headers={"cf-ray": "8a-AMS", "server": "cloudflare"}),
    Case("jsonrpc", None, 200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid params"}}, "-32602", "invalid_request.parameter"),
    Case("grpc", None, 200, UNSET, "14", "network.connection_reset", effect="unknown", headers={"grpc-status": "14", "grpc-message": "connection reset"}),
    Case("elasticsearch", None, 404, {"error": {"root_cause": [{"type": "index_not_found_exception", "reason": "no such index [a]"}], "type": "index_not_found_exception", "reason": "no such index [a]"}, "status": 404}, "index_not_found_exception", "business.not_found"),
    Case("fastapi", None, 422, {"detail": [{"type": "missing", "loc": ["body", "items", 0, "price"], "msg": "Field required", "input": {}}]}, "missing", "invalid_request.missing_parameter"),
    Case("postgres", None, None, "ERROR: deadlock detected (SQLSTATE 40P01)", "40P01", "business.locked"),
    Case("redis", None, None, "WRONGPASS invalid username-password pair or user is disabled.", "WRONGPASS", "auth.invalid_credential"),
    Case("smtp", None, None, "535 5.7.8 Error: authentication failed", "5.7.8", "auth.invalid_credential"),
    Case("curl", None, None, "curl: (28) Failed to connect to shop.example port 443 after 30001 ms: Connection timed out", "28", "network.connect_timeout", effect="not_sent"),
]  # fmt: skip


def document(case: Case) -> Document:
    """The answer of a case, its text parsed as the runtime parses it."""
    text = case.body if isinstance(case.body, str) else None
    return Document(
        status=case.status,
        headers=case.headers,
        body=UNSET if text is not None else case.body,
        text=text,
        host=case.host,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.provider}-{case.code}")
def test_reads(case: Case) -> None:
    """The profile is found by what the answer looks like, and finds code, meaning and wait."""
    seen = document(case)
    profiles = {profile.id: profile for profile in LIBRARY.find(seen)}
    assert case.provider in profiles
    reading = profiles[case.provider].read(seen, now=NOW)
    assert reading is not None
    assert reading.entry is not None
    assert (reading.code, reading.entry.as_code) == (case.code, case.as_code)
    assert reading.entry.effect is Effect(case.effect)
    if case.message:
        assert reading.message == case.message
    assert (reading.waits[0][0] if reading.waits else None) == (
        pytest.approx(case.wait) if case.wait is not None else None
    )


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.status == 200], ids=lambda case: case.provider
)
def test_a_failure_inside_a_200_is_no_success(case: Case) -> None:
    """What a 2xx of that provider carries as a failure does not pass its success test."""
    profile = LIBRARY.get(case.provider)
    assert profile is not None
    assert profile.success(document(case)) is False


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", {"id": "c", "choices": [{"finish_reason": "stop", "message": {"content": "error"}}]}),
        ("openai", {"id": "r", "status": "completed", "error": None}),
        ("slack", {"ok": True, "warning": "missing_charset"}),
        ("wechat", {"errcode": 0, "errmsg": "ok"}),
        ("wechat", {"access_token": "t", "expires_in": 7200}),
        ("alipay", {"alipay_trade_query_response": {"code": "10000", "msg": "Success"}, "sign": "s"}),
        ("amap", {"status": "1", "info": "OK", "infocode": "10000"}),
        ("feishu", {"code": 0, "msg": "success", "data": {}}),
        ("telegram", {"ok": True, "result": {"message_id": 1}}),
        ("google_maps", {"status": "ZERO_RESULTS", "results": []}),
        ("mongodb", {"ok": 1.0, "n": 3}),
        ("tencent_cloud", {"Response": {"RequestId": "q", "InstanceSet": []}}),
        ("twilio", {"sid": "SM1", "error_code": None, "error_message": None}),
        ("cloudflare", {"success": True, "errors": [], "messages": [], "result": {}}),
        ("graphql_http", {"data": {"a": 1}, "errors": []}),
    ],
)  # fmt: skip
def test_success_is_success(provider: str, body: Any) -> None:
    """Fields that only look like errors (null, empty, zero) leave a success a success."""
    profile = LIBRARY.get(provider)
    assert profile is not None
    assert profile.success(Document(status=200, body=body)) is True


def test_success_tests_say_nothing_outside_their_reach() -> None:
    """Outside 2xx, without a body, or for XML where JSON came, there is no verdict."""
    slack, v2 = LIBRARY.get("slack"), LIBRARY.get("wechat_pay_v2")
    assert slack is not None
    assert v2 is not None
    assert slack.success(Document(status=500, body={"ok": True})) is None
    assert slack.success(Document(status=200, text="ok")) is None
    assert v2.success(Document(status=200, body={"prepay_id": "wx1"})) is None


def test_parameters_and_details() -> None:
    """The argument at fault is named by path, and the other facts by their locator."""
    fastapi, github = LIBRARY.get("fastapi"), LIBRARY.get("github")
    assert fastapi is not None
    assert github is not None
    body = {
        "detail": [
            {"type": "missing", "loc": ["body", "items", 0, "price"], "msg": "Field required"}
        ]
    }
    reading = fastapi.read(Document(status=422, body=body))
    assert isinstance(reading, Reading)
    assert reading.params == ("body.items.0.price",)
    answer = Document(status=404, body={"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, headers={"x-github-request-id": "A:B"})  # fmt: skip
    reading = github.read(answer)
    assert reading is not None
    assert (reading.message, reading.request_id, reading.link) == ("Not Found", "A:B", "https://docs.github.com/rest")  # fmt: skip
    assert reading.entry is not None
    assert reading.entry.action is Action.ASK_MODEL


def test_a_live_exception_is_read_by_its_attributes() -> None:
    """A database's error is read from the exception, also where another one wraps it."""

    class Deadlock(Exception):
        sqlstate = "40P01"

    wrapped = RuntimeError("could not save")
    wrapped.__cause__ = Deadlock("deadlock detected")
    postgres = LIBRARY.get("postgres")
    assert postgres is not None
    reading = postgres.read(Document(exception=wrapped, exception_text="could not save"))
    assert reading is not None
    assert reading.entry is not None
    assert reading.entry.as_code == "business.locked"
    errno = LIBRARY.get("errno")
    assert errno is not None
    reading = errno.read(Document(exception=ConnectionRefusedError(111, "Connection refused")))
    assert reading is not None
    assert reading.entry is not None
    assert reading.entry.as_code == "network.connect_refused"


def test_a_phase_decides_between_entries_of_one_code() -> None:
    """The same timeout is not sent while connecting, and unknown when the phase is not known."""
    errno = LIBRARY.get("errno")
    assert errno is not None
    error = TimeoutError(110, "Connection timed out")
    connecting = errno.read(Document(exception=error, phase="connect"))
    somewhere = errno.read(Document(exception=error))
    assert connecting is not None
    assert connecting.entry is not None
    assert somewhere is not None
    assert somewhere.entry is not None
    assert connecting.entry.effect is Effect.NOT_SENT
    assert somewhere.entry.effect is Effect.UNKNOWN


def test_idempotency() -> None:
    """A profile says how the provider recognises a repeated request."""
    stripe = LIBRARY.get("stripe")
    assert stripe is not None
    assert stripe.idempotency.support == "header"
    assert stripe.idempotency.name == "Idempotency-Key"


def test_entries_are_plain_data() -> None:
    """Every table is complete in both languages and goes out as JSON."""
    for name in LIBRARY.names():
        profile = LIBRARY.get(name)
        assert profile is not None
        for entry in profile.entries:
            assert entry.en
            assert entry.zh
            json.dumps([entry.code, entry.as_code, entry.category, entry.action])
