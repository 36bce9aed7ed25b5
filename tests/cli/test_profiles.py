"""``failwise profiles test`` and ``new``: recorded answers read by a profile, and made into one."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Failwise
from tests.cli.test_reading import row

STRIPE = {
    "status": 402,
    "body": {"error": {"type": "card_error", "code": "card_declined", "message": "Declined."}},
    "url": "https://api.stripe.com/v1/charges",
}
OWN = [
    {
        "status": 200,
        "body": {"code": 70012, "msg": "库存不足", "trace_id": "t-1"},
        "url": "https://api.shop.example/orders",
    },
    {"status": 429, "body": {"code": 70029, "msg": "请求过于频繁"}},
    {"status": 200, "body": {"code": 0, "msg": "ok", "data": {"id": 1}}},
]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in OWN), "utf-8")
    return str(file)


def test_an_answer_by_a_profile(failwise: Failwise, tmp_path: Path) -> None:
    """The named profile reads the answer; an answer it has no row for is said to rest on others."""
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(STRIPE), "utf-8")
    ended = failwise("profiles", "test", "stripe", str(file))
    assert ended.code == 0
    assert row(ended.out, "code") == "business.payment_declined"
    assert "no row for it" not in ended.out
    other = json.loads(failwise("profiles", "test", "notion", str(file), "--json").out)
    assert other["read"] is False


def test_a_draft_is_a_sound_profile(failwise: Failwise, recorded: str, tmp_path: Path) -> None:
    """A draft from recorded answers passes the check, and reads these answers with less confidence."""
    ended = failwise("profiles", "new", "my_shop", recorded)
    assert ended.code == 0
    file = tmp_path / "my_shop.yaml"
    file.write_text(ended.out, "utf-8")
    assert failwise("profiles", "check", str(file)).code == 0
    data = json.loads(failwise("profiles", "new", "my_shop", recorded, "--json").out)
    assert data["detect"] == {"hosts": ["api.shop.example"]}
    assert data["fields"]["code"] == ["code"]
    assert data["fields"]["message"] == ["msg"]
    assert {one["code"]: one["as"] for one in data["codes"]} == {
        "70012": "business.out_of_stock",
        "70029": "rate_limit.requests",
    }
    assert all(one["confirmed"] is False for one in data["codes"])
    tested = failwise("profiles", "test", "my_shop", recorded, "--add", str(file), "--json").out
    first = json.loads(tested.splitlines()[0])
    assert first["read"] is True
    assert first["failure"]["provider"] == "my_shop"
    assert json.loads(tested.splitlines()[2])["failure"] is None


def test_answers_without_a_code_make_no_profile(failwise: Failwise) -> None:
    """What cannot be drafted is said, with the way out."""
    ended = failwise("profiles", "new", "x", '{"status": 200, "body": {"id": 1}}')
    assert ended.code == 2
    assert "record some that did" in ended.err
