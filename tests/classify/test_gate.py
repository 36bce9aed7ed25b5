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
    ],
)
def test_ordinary_lines_go_no_further(line: str) -> None:
    """What logs mostly hold meets the first stage only."""
    assert plainly_fine(line)
