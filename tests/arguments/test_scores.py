"""The contract function on the labelled cases beside the repository, where they are present."""

import json
from pathlib import Path

import pytest

from failwise.arguments.contract import answer

CASES = Path(__file__).parents[3] / "shared" / "cases" / "failures.jsonl"


def test_the_contract_takes_a_case_and_gives_arguments_or_null() -> None:
    """A valid call comes back; one that is no call is null."""
    case = {"id": "1", "tool": "f", "schema": {"type": "object", "required": ["a"]}}
    assert answer({**case, "raw": '{"a": 1}'}) == {"arguments": {"a": 1}}
    assert answer({**case, "raw": "no"}) == {"arguments": None}


@pytest.mark.skipif(not CASES.exists(), reason="the labelled cases are not here")
def test_labelled_cases() -> None:
    """Every labelled argument text is repaired to its one right value, or given back."""
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] == "arguments":
            assert answer(case["input"])["arguments"] == case["expect"]["repaired"], case["why"]
