"""The first stage for log lines: it may only pass over what the whole classification finds fine."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.classify import classify_text
from failwise.classify.gate import plainly_fine
from failwise.classify.tables import text_rules

_LINES = [
    row["input"]["text"]
    for row in map(
        json.loads, Path(__file__).with_name("heldout.jsonl").read_text("utf-8").splitlines()
    )
    if "text" in row["input"]
]
_WORDS = st.sampled_from(
    [word for line in _LINES for word in line.split()][:2_000]
    + [literal for rule in text_rules() for literal in rule.need]
)


def test_no_failure_is_passed_over() -> None:
    """Every line that the gate lets go is a success for the whole classification."""
    examples = [text for rule in text_rules() for text in (rule.example, rule.counter)]
    passed = [text for text in (*_LINES, *examples) if plainly_fine(text)]
    assert [text for text in passed if classify_text(text) is not None] == []


@given(st.lists(_WORDS, max_size=6))
def test_no_mixture_is_passed_over(words: list[str]) -> None:
    """Neither is a line put together from words of failures."""
    text = " ".join(words)
    if plainly_fine(text):
        assert classify_text(text) is None


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 12:00:01,123 INFO orders.api GET /v1/orders/8812 200 12ms user=41",
        '10.0.0.7 - - [30/Nov/2026:12:00:01 +0000] "GET /items HTTP/1.1" 200 512 "-" "agent/8"',
        "[worker-3] processed batch 17 in 231 ms (1000 rows)",
        "订单 8812 已创建, 用户 41",
        '{"ts":"2026-11-30T12:00:01Z","level":"info","logger":"cart","event":"stored","took_ms":41,"user":7}',
        'cart.INFO: user 41 viewed {"item":8812,"page":3} []',
        "2026-11-30 12:00:01 INFO pool: size=8 idle=2 timeout=30s errors=0 0 errors",
        "upload 5f1c0a2e-412a-4c3d-9b1a-0c6f5d2e8a71 stored",
    ],
)
def test_ordinary_lines_go_no_further(line: str) -> None:
    """What logs mostly hold meets the first stage only."""
    assert plainly_fine(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"ok": false, "note": "nope"}',
        'answer: {"success": false, "data": null}',
        '{"errcode": 40013, "errmsg": "nope"}',
        'sent {"status": 503, "headers": {"server": "x"}}',
        '{"Response": {"Error": {"Code": "Nope", "Message": "m"}}}',
    ],
)
def test_objects_that_look_like_answers_go_on(line: str) -> None:
    """Whatever has the shape of an error, or of a provider's answer, is judged in full."""
    assert not plainly_fine(line)
