"""Bare texts in English, Chinese and other languages: the category they mean, and their counter-examples."""

import pytest

from failwise.classify import classify_text
from failwise.vocabulary.kinds import Effect, FixBy

PHRASES = {
    "network": (
        "timeout;timed out;connection refused;connection reset;no route to host;"
        "temporary failure in name resolution;eof;broken pipe;bad gateway;超时;请求超时;连接被拒绝;连接被重置;"
        "没有到主机的路由;域名解析失败;管道已断开;错误的网关;网络异常，请检查网络;数据库连接失败;"
        "curl: (6) Could not resolve host: api.example.com;ssh: connect to host a.example port 22: Connection timed out;"
        "net::ERR_CONNECTION_REFUSED;接続がタイムアウトしました;Tiempo de espera agotado;A conexão foi redefinida;"
        "Zeitüberschreitung der Anforderung;연결이 거부되었습니다;Превышено время ожидания"
    ),
    "auth": (
        "unauthorized;forbidden;access denied;permission denied;invalid api key;token expired;insufficient scope;"
        "未授权;禁止访问;拒绝访问;权限不足;API密钥无效;令牌已过期;权限范围不足;签名错误;您的访问令牌无效或已过期;"
        "WRONGPASS invalid username-password pair or user is disabled.;Acceso denegado;Zugriff verweigert;アクセスが拒否されました"
    ),
    "invalid_request": (
        "invalid parameter;missing required;validation error;bad request;unprocessable entity;invalid format;"
        "参数无效;缺少必填参数;校验失败;错误的请求;格式错误;无法处理的实体;手机号格式不正确;文件过大;"
        "city_code must be 3 digits, got '12'"
    ),
    "server": "internal server error;service unavailable;服务器内部错误;服务不可用;系统维护中;サーバーエラー;Error interno del servidor",
    "rate_limit": "too many requests;rate limit exceeded;请求过于频繁，请稍后再试;触发限流;リクエストが多すぎます;Demasiadas solicitudes",
    "business": (
        "余额不足;账户已欠费;配额已用尽;库存为 0;库存不足;insufficient_quota;Insufficient Balance;订单不存在;重复提交;"
        "You exceeded your current quota, please check your plan and billing details.;sold out;saldo insuficiente"
    ),
    "security": (
        "certificate has expired;self signed certificate;证书已过期;主机名不匹配: 证书与域名不匹配;certificado expirado;"
        "x509: certificate is valid for *.example.com, not api.test;您的连接不是私密连接"
    ),
    "tool": "No module named 'foo';bash: /etc/shadow: Permission denied;No space left on device;MemoryError;zsh: command not found: jq",
    "parsing": "Expecting value: line 1 column 1 (char 0);Unexpected end of JSON input;JSON解析失败",
    "model_output": "Unknown function: web_lookup;未知工具: 天气",
    "runtime": "Request was aborted.;Agent stopped due to iteration limit.;服务已熔断",
}
CASES = [(text, category) for category, texts in PHRASES.items() for text in texts.split(";")]


@pytest.mark.parametrize(("text", "category"), CASES)
def test_phrase_means_its_category(text: str, category: str) -> None:
    """Each phrase alone is understood."""
    failure = classify_text(text)
    assert failure is not None
    assert failure.category == category, failure.rule


@pytest.mark.parametrize(
    "text",
    [
        "订单 502 已创建",
        "Order 4291 created",
        "geofence typeof updated",
        "price 500, 404 pieces left",
        "0 errors, 0 warnings, 0 timeouts",
        "297 passed, 0 failed in 31.20s",
        "-1 系统繁忙 | 0 请求成功 | 40001 token无效 | 45009 超过限制",
        "Code | Message | Status\nAccessDenied | not authorized | 403\nInternalError | failed | 500",
    ],
)
def test_numbers_tables_and_counts_are_no_failures(text: str) -> None:
    """A bare number is never evidence, and a table of errors is a table."""
    assert classify_text(text) is None


@pytest.mark.parametrize(
    "text", ["Something went wrong", "操作失败", "An unexpected error occurred. Please try again."]
)
def test_vague_text_stays_unknown(text: str) -> None:
    """What says only that it failed is not guessed at, and its confidence is low."""
    failure = classify_text(text)
    assert failure is not None
    assert failure.code == "unknown.unclassified"
    assert failure.transient is None
    assert failure.confidence <= 0.2


def test_busy_system_is_never_sure() -> None:
    """系统繁忙 without a status is weak evidence: whatever it is called, a typed failure beats it."""
    failure = classify_text("系统繁忙")
    assert failure is not None
    assert failure.category in ("server", "unknown")
    assert failure.effect is Effect.UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "获取首页数据失败: exception: 伺服器错误 502: !doctype htmlhtml lang",
        '获取首页数据失败: exception: 伺服器错误 502: <!doctype html><html lang="zh">',
        "获取首页数据失败: exception: 伺服器錯誤 502: !doctype htmlhtml lang",
    ],
)
def test_pasted_gateway_page(text: str) -> None:
    """A pasted 502, with its brackets lost or not, is a bad gateway with its parts kept apart."""
    failure = classify_text(text, tool="home")
    assert failure is not None
    assert (failure.code, failure.http_status, failure.effect) == (
        "network.bad_gateway",
        502,
        Effect.UNKNOWN,
    )
    assert failure.transient is True
    assert failure.fix_by is FixBy.RUNTIME
    parts = failure.detail("parts")
    assert parts["context"] == "获取首页数据失败"
    assert parts["wrapper"] == "exception"
    assert "502" in parts["message"]
    assert "html" in parts["remnant"]
    assert "doctype" not in failure.message.lower()
    assert "<" not in failure.message


def test_browser_text_of_a_failed_secure_connection() -> None:
    """The browser's sentence is an unverified certificate: not sent, not to be retried, for the operator."""
    failure = classify_text(
        "建立安全连接失败 由于不能验证所收到的数据是否可信,无法显示您想要查看的页面"
    )
    assert failure is not None
    assert failure.code == "security.certificate_unverified"
    assert failure.effect is Effect.NOT_SENT
    assert failure.transient is False
    assert failure.fix_by is FixBy.OPERATOR
    assert {"time", "proxy", "root"} <= set(
        " ".join(failure.likely_causes).replace("TLS", "").split()
    )


def test_the_deepest_cause_beats_its_wrapper() -> None:
    """ "Max retries exceeded" wraps a certificate fault; the fault is the verdict."""
    failure = classify_text(
        "requests.exceptions.SSLError: HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: / "
        "(Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
        "certificate has expired (_ssl.c:1000)')))"
    )
    assert failure is not None
    assert failure.code == "security.certificate_expired"
