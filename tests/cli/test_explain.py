"""``failwise explain``: the trail of a verdict."""

import json
from contextlib import closing
from pathlib import Path

import pytest

import failwise as package
from failwise.testing import SteppingClock
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


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with a read that recovered, a write that failed, and the same call id in two runs."""
    path = tmp_path / "journal.db"
    with closing(package.Runtime(path, jitter=0, clock=SteppingClock())) as runtime:
        answers = iter([TimeoutError("timed out"), None])

        @runtime.tool(read_only=True)
        def look() -> str:
            if (error := next(answers)) is not None:
                raise error
            return "fine"

        @runtime.tool()
        def order(token: str) -> str:
            raise ConnectionResetError(104, f"Connection reset by peer, token={token}")

        with runtime.run(id="one") as run:
            run.call_sync("look", "{}", call_id="call_1")
            run.call_sync("order", {"token": "sk-abcdefghijklmnopqrstuvwx1234"}, call_id="call_2")
        with runtime.run(id="two") as run:
            run.call_sync("order", {"token": "another"}, call_id="call_2")
    return path


def test_a_recorded_call(failwise: Failwise, journal: Path) -> None:
    """Evidence kept, rules that spoke, winner and why, the decision of each attempt; no secret."""
    ended = failwise("explain", "call_2", "--journal", str(journal), "--run", "one")
    assert ended.code == 0
    assert row(ended.out, "code") == "network.connection_reset"
    assert "ConnectionResetError" in ended.out
    assert row(ended.out, "winner").startswith("exception.ConnectionResetError")
    assert row(ended.out, "because") == "the exception's own kind"
    assert "it may have taken effect" in ended.out
    assert "sk-abcdef" not in ended.out


def test_a_call_that_recovered(failwise: Failwise, journal: Path) -> None:
    """A success shows the attempts before it, each with verdict and decision; numbers name records."""
    data = json.loads(failwise("explain", "call_1", "--journal", str(journal), "--json").out)
    assert data["call"]["success"] is True
    first, second = data["attempts"]
    assert (first["action"], first["delay"]) == ("retry_backoff", 1.0)
    assert first["reason"]
    assert second["code"] is None
    number = str(data["call"]["id"])
    ended = failwise("explain", number, "--journal", str(journal), "--lang", "zh")
    assert "各次尝试" in ended.out
    assert "call_1" in ended.out


def test_the_newest_of_several_runs(failwise: Failwise, journal: Path) -> None:
    """One id in two runs: the newest is shown, the other named."""
    data = json.loads(failwise("explain", "call_2", "--journal", str(journal), "--json").out)
    assert data["call"]["run_id"] == "two"
    assert [other["run_id"] for other in data["others"]] == ["one"]
    assert data["spoke"][0]["origin"]


def test_a_word_is_a_text_unless_a_journal_is_named(
    failwise: Failwise, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown id is read as a text; with --journal it is an error; the usual journal is looked at."""
    monkeypatch.setenv("FAILWISE_JOURNAL", str(journal))
    assert "call_1" in failwise("explain", "call_1").out
    assert row(failwise("explain", "ECONNREFUSED").out, "code") == "network.connect_refused"
    ended = failwise("explain", "call_9", "--journal", str(journal))
    assert (ended.code, "no call 'call_9'" in ended.err) == (2, True)
    ended = failwise("explain", "a text with words", "--journal", str(journal))
    assert ended.code == 2


def test_an_id_that_no_journal_has(
    failwise: Failwise, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is plainly the id of a call is no text: where no journal has it, that is said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILWISE_JOURNAL", raising=False)
    for name in ("call_99", "toolu_01AbCdEf", "#12", "1b4e28ba-2fa1-41d2-883f-0016d3cca427"):
        ended = failwise("explain", name)
        assert ended.code == 2, name
        assert "no journal here" in ended.err
        assert "--journal" in ended.err
    monkeypatch.setenv("FAILWISE_JOURNAL", str(journal))
    ended = failwise("explain", "call_99")
    assert ended.code == 2
    assert "has no call 'call_99'" in ended.err
    assert failwise("explain", "timeout").code == 0
    (tmp_path / "call_99").write_text("connection refused", "utf-8")
    assert failwise("explain", "call_99").code == 0
