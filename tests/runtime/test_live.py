"""The acceptance examples over real sockets: a fault server, `HttpTool`, and the server's own count.

Waits are virtual; whatever is sent is sent indeed.
"""

import json
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import pytest

from failwise import Action, Category, Effect, FixBy, HttpTool, Runtime, StopReason
from failwise.faults import Fault, FaultServer
from failwise.testing import SteppingClock

Make = Callable[..., Runtime]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(params=["sync", "asyncio"])
def ask(request: pytest.FixtureRequest, rt: Runtime, server: FaultServer) -> Callable[..., Any]:
    """Scripts a route of the server, makes a tool of it, and calls it once."""
    import asyncio

    def perform(method: str, *script: Any, call_id: str | None = None, **options: Any) -> Any:
        path = f"/route{len(rt.tools)}"
        server.route(method, path, list(script))
        name = f"tool{len(rt.tools)}"
        rt.add(HttpTool(name, method, server.url(path), **options))
        if request.param == "sync":
            result = rt.call_sync(name, {})
        else:
            result = asyncio.run(rt.call(name, {}))
        result.extra["requests"] = server.count(path, method)
        return result

    return perform


def test_a_bad_gateway_page_then_recovery(ask: Callable[..., Any], clock: SteppingClock) -> None:
    """E16: a 502 with a 10 MB page, then JSON: recovered on the second request, 1 s later."""
    result = ask("GET", Fault.huge_html(502), Fault.json({"items": [1]}), read_only=True)
    assert result.value == {"items": [1]}
    assert result.extra["requests"] == 2
    assert clock.sleeps == [1]
    failure = result.attempts[0].failure
    assert (failure.code, failure.http_status) == ("network.bad_gateway", 502)
    assert failure.evidence.content_type.startswith("text/html")
    assert failure.evidence.title
    assert len(failure.evidence.snippet) <= 500
    assert len(failure.message) <= 300


def test_a_page_that_never_recovers_stays_short(ask: Callable[..., Any]) -> None:
    """E16: what the model reads is at most 900 code points, without a tag or half a character."""
    page = "<!doctype html><html><title>错误 502</title><body>" + "<p>网关错误</p>" * 5000
    result = ask("GET", Fault.status(502, html=page), read_only=True)
    for lang in ("en", "zh"):
        text = result.for_model(lang)
        assert len(text) <= 900
        assert "<" not in text
        assert "\ufffd" not in text


@pytest.mark.parametrize("told", ["seconds", "date"])
def test_a_told_wait_is_kept(ask: Callable[..., Any], clock: SteppingClock, told: str) -> None:
    """E5: Retry-After in seconds, or as a date against the answer's own Date: never earlier."""
    now = 1_700_000_000
    headers = {"Date": formatdate(now, usegmt=True)} if told == "date" else None
    wait: Any = formatdate(now + 3, usegmt=True) if told == "date" else 3
    result = ask(
        "POST", Fault.status(429, json={"error": "slow down"}, retry_after=wait, headers=headers),
        Fault.json({"order": 1}),
    )  # fmt: skip
    assert result.success
    assert result.extra["requests"] == 2
    assert clock.sleeps == [pytest.approx(3)]


def test_a_long_told_wait_is_handed_back(ask: Callable[..., Any], clock: SteppingClock) -> None:
    """E6: Retry-After: 120: one request, and the moment to come again."""
    result = ask("GET", Fault.status(429, json={}, retry_after=120), read_only=True)
    assert result.extra["requests"] == 1
    assert result.stop_reason is StopReason.WAIT_TOO_LONG
    assert result.retry_at == pytest.approx(clock.time() + 120, abs=2)


def test_a_login_page_is_asked_for_twice_on_a_read(ask: Callable[..., Any]) -> None:
    """E17: HTML for JSON: one retry, none after the second alike, and the operator is told."""
    result = ask("GET", Fault.html(), read_only=True)
    failure = result.failure
    assert failure.code == "parsing.html_instead_of_json"
    assert "expected JSON" in failure.message
    assert "text/html" in failure.message
    assert result.extra["requests"] == 2
    assert failure.fix_by is FixBy.OPERATOR
    assert result.stop_reason is StopReason.SAME_FAILURE


def test_a_login_page_after_a_write(ask: Callable[..., Any]) -> None:
    """E17: on a write the effect counts as applied: no second request; verify finds the order."""
    result = ask("POST", Fault.html())
    assert result.extra["requests"] == 1
    assert result.failure.effect is Effect.APPLIED
    found = ask("POST", Fault.html(), verify=lambda arguments: {"order": 7})
    assert found.value == {"order": 7}
    assert found.verified is True


@pytest.mark.parametrize(
    ("reply", "code"),
    [(Fault.mislabelled({"a": "中文"}), "parsing.encoding"), (Fault.empty(), "parsing.empty"),
     (Fault.cut_off({"a": [1] * 500}), "parsing.truncated")],
)  # fmt: skip
def test_answers_that_cannot_be_read(ask: Callable[..., Any], reply: Any, code: str) -> None:
    """E18: cut off, in another encoding, empty: told apart, with the lengths told and got."""
    result = ask("GET", reply, read_only=True)
    assert result.failure.category is Category.PARSING
    assert result.failure.code == code
    assert result.failure.detail("length_got") is not None


def test_a_reset_while_reading(ask: Callable[..., Any], clock: SteppingClock) -> None:
    """E20: reset after sending: a read waits 5 s, a write is sent once and may have happened."""
    read = ask("GET", Fault.reset(), Fault.json([1]), read_only=True)
    assert read.success
    assert clock.sleeps == [5]
    write = ask("POST", Fault.reset())
    assert write.extra["requests"] == 1
    assert write.failure.effect is Effect.UNKNOWN
    assert write.stop_reason is StopReason.UNSAFE_EFFECT


def test_a_read_timeout_is_no_connect_timeout(ask: Callable[..., Any]) -> None:
    """E21: a read timeout comes in time, and says that the order may have happened."""
    began = time.monotonic()
    result = ask("POST", Fault.silent(), read_timeout=0.2)
    assert time.monotonic() - began < 5
    assert result.failure.code == "network.read_timeout"
    assert result.failure.effect is Effect.UNKNOWN


def test_nobody_listens(ask: Callable[..., Any], rt: Runtime, server: FaultServer) -> None:
    """Connection refused was not sent: an order is repeated, then handed back as not sent."""
    rt.add(HttpTool("order", "POST", server.refused_url))
    result = rt.call_sync("order", {})
    assert result.failure
    assert result.failure.code == "network.connect_refused"
    assert result.effect is Effect.NOT_SENT
    assert result.sent == 4


def test_a_refusal_in_a_good_answer(ask: Callable[..., Any]) -> None:
    """E9: ``{"code":10001,"msg":"账户余额不足"}`` in a 200 is a domain refusal; ``{"code":0}`` is not."""
    result = ask("POST", Fault.json({"code": 10001, "msg": "账户余额不足"}))
    assert result.failure.category is Category.BUSINESS
    assert result.extra["requests"] == 1
    assert "余额" in result.for_user("zh")
    assert ask("POST", Fault.json({"code": 0, "msg": "ok", "data": {"id": 1}})).success
    stock = ask("POST", Fault.json({"code": 20001, "msg": "库存为0"}))
    assert stock.failure.code == "business.out_of_stock"
    assert stock.suggested_action is Action.ASK_USER


def test_secrets_of_an_answer_go_nowhere(ask: Callable[..., Any], rt: Runtime) -> None:
    """E26: tokens, signatures, session ids and phone numbers in an answer are gone; the code stays."""
    text = (
        "denied for Authorization: Bearer abcdef0123456789, https://x.example/a?sign=9f8e7d6c5b4a, "
        "see /login;jsessionid=ABCDEF0123456789 or call 13812345678"
    )
    result = ask("GET", Fault.status(403, json={"error": {"code": "denied", "message": text}}),
                 read_only=True)  # fmt: skip
    rows = json.dumps([tuple(row) for row in rt.journal.rows("SELECT * FROM calls")], default=str)
    for place in (result.to_json(), result.for_model(), result.for_user(), rows):
        for secret in ("abcdef0123456789", "9f8e7d6c5b4a", "ABCDEF0123456789", "13812345678"):
            assert secret not in place
    assert "Bearer" in result.failure.message
    assert result.failure.http_status == 403
