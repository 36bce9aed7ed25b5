"""Rows corrected by the providers' own pages: what they must be read as, through the whole of it."""

import json
from importlib import resources
from typing import Any

import pytest
import yaml

from failwise.classify import Classifier
from failwise.classify.contract import RecordedAnswer
from failwise.evidence import from_response

# host, status, headers, body, code, told wait
ANSWERS: list[tuple[str, int, dict[str, str], Any, str, float | None]] = [
    ("openrouter.ai", 429, {"retry-after": "9"}, {"error": {"code": 429, "message": "Rate limited"}}, "rate_limit.requests", 9),
    ("openrouter.ai", 402, {}, {"error": {"code": 402, "message": "Insufficient credits"}}, "business.insufficient_balance", None),
    ("openrouter.ai", 402, {"retry-after": "3"}, {"error": {"code": 402, "message": "In-flight spending budget reached"}}, "rate_limit.concurrency", 3),
    ("gitlab.com", 429, {}, {"message": {"error": "This endpoint has been requested too many times. Try again later."}}, "rate_limit.requests", None),
    ("api.airtable.com", 429, {}, {"errors": [{"error": "RATE_LIMIT_REACHED", "message": "Rate limit exceeded. Please try again later"}]}, "rate_limit.requests", None),
    ("api.airtable.com", 429, {}, {"errors": [{"error": "PUBLIC_API_BILLING_LIMIT_EXCEEDED", "message": "API billing plan limit exceeded."}]}, "business.quota_exhausted", None),
    ("api.sendgrid.com", 401, {}, {"errors": [{"message": "authenticated user is not authorized to send mail", "field": None}]}, "auth.forbidden", None),
    ("maps.googleapis.com", 200, {}, {"status": "REQUEST_DENIED", "error_message": "The provided API key is invalid."}, "auth.invalid_credential", None),
    ("maps.googleapis.com", 200, {}, {"status": "REQUEST_DENIED", "error_message": "This API project is not authorized to use this API."}, "auth.forbidden", None),
    ("open.feishu.cn", 403, {}, {"code": 1061004, "msg": "forbidden."}, "auth.forbidden", None),
    ("open.feishu.cn", 200, {}, {"code": 1254045, "msg": "FieldNameNotFound"}, "invalid_request.parameter", None),
    ("ark.cn-beijing.volces.com", 404, {}, {"error": {"code": "InvalidEndpointOrModel.NotFound", "message": "The model or endpoint x does not exist"}}, "invalid_request.endpoint_not_found", None),
    ("ark.cn-beijing.volces.com", 403, {}, {"error": {"code": "AccountOverdueError", "message": "your account has an overdue balance"}}, "business.billing", None),
    ("ecs.aliyuncs.com", 403, {}, {"Code": "LastTokenProcessing", "Message": "The last token request is processing."}, "business.pending", None),
    ("api.openai.com", 429, {}, {"error": {"code": "project_spend_limit_exceeded", "type": "insufficient_quota", "message": "limit"}}, "business.quota_exhausted", None),
    ("graph.microsoft.com", 404, {}, {"error": {"code": "MailboxNotEnabledForRESTAPI", "message": "REST API is not yet supported for this mailbox."}}, "invalid_request.parameter", None),
    ("api.telegram.org", 404, {}, {"ok": False, "error_code": 404, "description": "Not Found: method not found"}, "invalid_request.endpoint_not_found", None),
    ("api.telegram.org", 403, {}, {"ok": False, "error_code": 403, "description": "Forbidden: bot is not a member of the channel chat"}, "business.refused", None),
    ("api.telegram.org", 429, {}, {"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 34", "parameters": {"retry_after": 34}}, "rate_limit.requests", 34),
    ("api.map.baidu.com", 200, {}, {"status": 4, "message": "配额校验失败"}, "business.quota_exhausted", None),
    ("qyapi.weixin.qq.com", 200, {}, {"errcode": 81013, "errmsg": "user & party & tag all invalid"}, "invalid_request.parameter", None),
    ("qyapi.weixin.qq.com", 200, {}, {"errcode": 84074, "errmsg": "no external contact permission"}, "auth.forbidden", None),
    ("api.mch.weixin.qq.com", 429, {}, {"code": "RATELIMIT_EXCEEDED", "message": "频率超限"}, "rate_limit.requests", None),
    ("verify.twilio.com", 400, {}, {"code": 60200, "message": "Invalid parameter: To", "status": 400}, "invalid_request.parameter", None),
    ("a-service.example", 503, {"content-type": "application/problem+json", "retry-after": "5"}, {"type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", "title": "Temporary Reduced Capacity", "status": 503}, "server.overloaded", 5),
    ("a-django-site.example", 429, {}, {"detail": "Request was throttled. Expected available in 37 seconds."}, "rate_limit.requests", 37),
]  # fmt: skip


@pytest.mark.parametrize(("host", "status", "headers", "body", "code", "wait"), ANSWERS)
def test_answers(
    host: str, status: int, headers: dict[str, str], body: Any, code: str, wait: float | None
) -> None:
    """Code and told wait of an answer as the provider's page has it."""
    answer = RecordedAnswer(
        status,
        {"content-type": "application/json", **headers},
        json.dumps(body),
        "POST",
        f"https://{host}/v1/x",
    )
    failure = Classifier().classify(from_response(answer))
    assert failure is not None
    assert (failure.code, failure.retry_after) == (code, wait)


# host, status, headers, body, code, effect
EFFECTS: list[tuple[str, int, dict[str, str], Any, str, str]] = [
    ("oapi.dingtalk.com", 200, {}, {"errcode": 90005, "errmsg": "您的企业调用当前接口次数过多"}, "rate_limit.requests", "rejected"),
    ("oapi.dingtalk.com", 200, {}, {"errcode": 90017, "errmsg": "此IP使用CorpId及CorpSecret调用接口的CorpId个数超过限制"}, "business.limit_exceeded", "rejected"),
    ("oapi.dingtalk.com", 200, {}, {"errcode": 22, "errmsg": "Invalid method", "sub_msg": "不合法ApiName"}, "invalid_request.endpoint_not_found", "rejected"),
    ("oapi.dingtalk.com", 200, {}, {"errcode": 40103, "errmsg": "已发出邀请，对方同意后即可加入组织"}, "business.pending", "applied"),
    ("api.dingtalk.com", 429, {}, {"code": "system.busy", "message": "system busy, request too frequest", "requestid": "A"}, "rate_limit.requests", "rejected"),
    ("api.dingtalk.com", 400, {}, {"code": "unknown.send.result", "message": "未知的发送结果", "requestid": "A"}, "network.timeout", "unknown"),
    ("open.feishu.cn", 400, {}, {"code": 230049, "msg": "The message is being sent."}, "business.pending", "unknown"),
    ("open.feishu.cn", 400, {}, {"code": 230034, "msg": "The receive_id is invalid."}, "invalid_request.parameter", "rejected"),
    ("open.feishu.cn", 404, {}, {"code": 1770002, "msg": "not found"}, "business.not_found", "rejected"),
    ("open.feishu.cn", 400, {}, {"code": 193000, "msg": "invalid event_id"}, "invalid_request.parameter", "rejected"),
    ("api.twilio.com", 409, {}, {"code": 20409, "message": "Execution is already active for this contact", "status": 409}, "business.conflict", "rejected"),
    ("api.cloudflare.com", 429, {}, {"success": False, "errors": [{"code": 971, "message": "Please wait and consider throttling your request speed"}], "messages": [], "result": None}, "rate_limit.requests", "rejected"),
    ("api.anthropic.com", 429, {}, {"type": "error", "error": {"type": "rate_limit_error", "message": "see", "details": {"error_code": "contract_spend_limit_reached"}}}, "business.quota_exhausted", "rejected"),
    ("api.stripe.com", 402, {}, {"error": {"type": "card_error", "code": "card_declined", "decline_code": "revocation_of_authorization", "message": "declined", "doc_url": "x"}}, "business.payment_declined", "rejected"),
    ("discord.com", 400, {}, {"code": 50083, "message": "Thread is archived"}, "business.precondition", "rejected"),
    ("slack.com", 200, {}, {"ok": False, "error": "upgrade_required"}, "business.billing", "rejected"),
    ("api-m.paypal.com", 422, {}, {"name": "UNPROCESSABLE_ENTITY", "details": [{"issue": "ORDER_ALREADY_CAPTURED", "description": "Order already captured."}], "message": "x", "debug_id": "d"}, "business.already_exists", "applied"),
    ("api-m.paypal.com", 422, {}, {"name": "UNPROCESSABLE_ENTITY", "details": [{"issue": "INSTRUMENT_DECLINED", "description": "declined"}], "message": "x", "debug_id": "d"}, "business.payment_declined", "rejected"),
    ("api-m.paypal.com", 422, {}, {"name": "UNPROCESSABLE_ENTITY", "details": [{"issue": "TAX_TOTAL_MISMATCH", "field": "/purchase_units/@reference_id", "description": "off"}], "message": "x", "debug_id": "d"}, "invalid_request.parameter", "rejected"),
    ("ecs.cn-north-4.myhuaweicloud.com", 504, {}, {"error_code": "APIGW.0201", "error_msg": "Backend timeout", "request_id": "r"}, "network.gateway_timeout", "unknown"),
    ("ecs.cn-north-4.myhuaweicloud.com", 429, {}, {"error_code": "APIGW.0308", "error_msg": "The throttling threshold has been reached", "request_id": "r"}, "rate_limit.requests", "rejected"),
    ("management.azure.com", 409, {}, {"error": {"code": "MissingSubscriptionRegistration", "message": "The subscription is not registered"}}, "business.precondition", "rejected"),
    ("management.azure.com", 400, {}, {"error": {"code": "InvalidTemplateDeployment", "message": "see details", "details": [{"code": "QuotaExceeded", "message": "cores"}]}}, "business.limit_exceeded", "rejected"),
    ("bedrock-runtime.us-east-1.amazonaws.com", 400, {"x-amzn-errortype": "ResourceNotReadyException"}, {"message": "not ready"}, "business.pending", "rejected"),
    ("graph.microsoft.com", 429, {}, {"error": {"code": "ApplicationThrottled", "message": "Application is over its MailboxConcurrency limit."}}, "rate_limit.concurrency", "rejected"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "status", "headers", "body", "code", "effect"), EFFECTS)
def test_effects(
    host: str, status: int, headers: dict[str, str], body: Any, code: str, effect: str
) -> None:
    """Code and effect: what may have been done is never called refused, what was done not unknown."""
    answer = RecordedAnswer(
        status,
        {"content-type": "application/json", **headers},
        body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
        "POST",
        f"https://{host}/v1/x",
    )
    failure = Classifier().classify(from_response(answer))
    assert failure is not None
    assert (failure.code, failure.effect.value) == (code, effect)
    assert not (
        failure.transient and failure.code in ("business.quota_exhausted", "business.billing")
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no_active_hooks", "auth.invalid_credential"),
        ("channel_is_archived", "business.conflict"),
        ("posting_to_general_channel_denied", "auth.forbidden"),
        ("team_disabled", "auth.account_disabled"),
    ],
)
def test_slack_webhooks(text: str, code: str) -> None:
    """Incoming webhooks answer a word, not JSON."""
    answer = RecordedAnswer(
        403, {"content-type": "text/html"}, text, "POST", "https://hooks.slack.com/services/T/B/x"
    )
    failure = Classifier().classify(from_response(answer))
    assert failure is not None
    assert failure.code == code


def test_a_wechat_refund_that_may_be_tried_again() -> None:
    """v2 answers XML at two levels; a block of a minute is a rate, a business error is not."""
    for err, code in (
        ("INVALID_REQ_TOO_MUCH", "rate_limit.requests"),
        ("ERROR", "business.refused"),
    ):
        body = (
            "<xml><return_code><![CDATA[SUCCESS]]></return_code><result_code><![CDATA[FAIL]]>"
            f"</result_code><err_code><![CDATA[{err}]]></err_code>"
            "<err_code_des><![CDATA[see]]></err_code_des></xml>"
        )
        answer = RecordedAnswer(
            200, {"content-type": "text/xml"}, body, "POST", "https://api.mch.weixin.qq.com/secapi/pay/refund"
        )  # fmt: skip
        failure = Classifier().classify(from_response(answer))
        assert failure is not None
        assert failure.code == code


def test_files_that_were_compared_with_their_source_say_when() -> None:
    """A month, beside a source with a title; a good part of the package's files have one."""
    folder = resources.files("failwise.profiles").joinpath("data")
    compared = 0
    for file in folder.iterdir():
        if not file.name.endswith(".yaml"):
            continue
        sources = yaml.safe_load(file.read_text("utf-8"))["sources"]
        assert all(source["title"] for source in sources)
        compared += any("seen" in source for source in sources)
    assert compared >= 30
