"""``failwise explain``: the trail of a verdict."""

import json
from pathlib import Path

from tests.cli.conftest import Failwise
from tests.cli.test_reading import row

ANSWER = {
    "status": 403,
    "headers": {"X-RateLimit-Remaining": "0"},
    "body": {"message": "API rate limit exceeded"},
    "url": "https://api.github.com/user",
}


def test_an_answer_is_explained(failwise: Failwise, tmp_path: Path) -> None:
    """Evidence, rules with strength and origin, winner, reason, and measured confidence."""
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(ANSWER), "utf-8")
    ended = failwise("explain", str(file))
    assert ended.code == 0
    assert row(ended.out, "code") == "rate_limit.requests"
    assert "api.github.com" in ended.out
    assert "the HTTP status" in ended.out
    assert row(ended.out, "because")


def test_as_data(failwise: Failwise) -> None:
    """The same as JSON; every rule that spoke names its origin."""
    data = json.loads(failwise("explain", "--json", json.dumps(ANSWER)).out)
    assert data["failure"]["code"] == "rate_limit.requests"
    assert data["winner"] in {one["rule"] for one in data["spoke"]}
    assert all(one["origin"] for one in data["spoke"])


def test_a_success_and_a_result(failwise: Failwise) -> None:
    """A success has a trail too; a tool's result is read as data, not as a log line."""
    ended = failwise("explain", "Order 4291 created")
    assert ended.code == 0
    assert "No failure found" in ended.out
    data = json.loads(failwise("explain", "--json", "--result", '{"code": 0, "msg": "ok"}').out)
    assert data["failure"] is None


def test_in_chinese(failwise: Failwise) -> None:
    """The names of the parts are in the reader's language."""
    ended = failwise("explain", "--lang", "zh", "请求过于频繁,请 30 秒后重试")
    assert "证据" in ended.out
    assert "命中的规则" not in ended.out or "来源" in ended.out


def test_causes_in_chinese(failwise: Failwise) -> None:
    """What usually stands behind a code is told in the reader's language."""
    ended = failwise("explain", "--lang", "zh", "SSL 证书验证失败")
    assert "本机根证书库缺少签发者；系统时间不正确；中间代理在拦截 TLS" in ended.out
    assert "proxy" not in ended.out


def test_wrong_input(failwise: Failwise) -> None:
    """A status that is none is said with the way out."""
    ended = failwise("explain", '{"status": 42, "body": ""}')
    assert ended.code == 2
    assert "100 to 599" in ended.err
