"""Waits that an upstream speaks of, in words and in fields; a client's own plans are none."""

import json

import pytest

from failwise.classify.contract import answer

SPOKEN = [
    ("请求过于频繁，还需等待12秒", 12),
    ("触发限流，冷却时间 30 秒", 30),
    ("访问过快，5分钟后自动解除限制", 300),
    ("限流中，请10s后再试", 10),
    ("请求被限流，剩余等待时间: 45秒", 45),
    ("您的操作过于频繁，请30秒后再试", 30),
    ("Too many requests. Wait 30 seconds before retrying", 30),
    ("Rate limit hit; next request allowed in 10s", 10),
    ("Rate limit: cooldown 15s", 15),
    ("Rate limit exceeded, available in 20 seconds", 20),
    ("App Call Limited: this ban will last for 1 more seconds", 1),
    ("Demasiadas solicitudes, espere 30 segundos", 30),
    ("Muitas requisições, aguarde 1 minuto", 60),
    ("Zu viele Anfragen, warten Sie 30 Sekunden", 30),
    ("Слишком много запросов, попробуйте через 15 секунд", 15),
    ("リクエストが多すぎます。30秒お待ちください", 30),
    ("요청이 너무 많습니다. 30초 동안 기다려 주세요", 30),
]
UNTOLD = [
    "ERROR attempt 2 failed: 503 Service Unavailable, waiting 4s before retry",
    "WARN 503 Service Unavailable, retrying in 8s",
    "第2次重试，等待 5 秒后自动重试: 503 Service Unavailable",
    "连接失败，5 秒后重试",
    "Request timed out after 30 seconds",
]


@pytest.mark.parametrize(("text", "seconds"), SPOKEN)
def test_a_wait_in_words(text: str, seconds: float) -> None:
    """As a text, and as a message in a body under any name of its own."""
    said = answer({"id": 1, "kind": "text", "input": {"text": text}})
    body = json.dumps({"hinweis": text}, ensure_ascii=False)
    given = {"status": 429, "headers": {"content-type": "application/json"}, "body": body}
    for verdict in (said, answer({"id": 1, "kind": "http", "input": given})):
        assert verdict["category"] == "rate_limit", verdict
        assert verdict["retry_after_s"] == seconds


@pytest.mark.parametrize("text", UNTOLD)
def test_a_plan_of_ones_own(text: str) -> None:
    """What a client means to do, and a limit that passed, promise nothing."""
    assert answer({"id": 1, "kind": "text", "input": {"text": text}})["retry_after_s"] is None


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"RetryAfterSeconds": "2"}, 2),
        ({"error": {"retry_in_seconds": 11}}, 11),
        ({"wait_seconds": 14}, 14),
        ({"retryAfterMs": 1500}, 1.5),
        ({"error": {"message": "slow down", "reset_after": 7}}, 7),
        ({"remaining": 0, "limit": 5}, None),
        ({"items": [{"retryAfter": 9}]}, None),
        ({"wait": True, "delay": "long"}, None),
    ],
)
def test_a_wait_in_a_field(body: dict[str, object], seconds: float | None) -> None:
    """However the name is written; data and other numbers are no waits."""
    given = {"status": 429, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}  # fmt: skip
    assert answer({"id": 1, "kind": "http", "input": given})["retry_after_s"] == seconds
