"""What an upstream says of the arguments becomes a list of violations."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.classify.violations import violations


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("city_code must be 3 digits, got '12'", {"parameter": "city_code", "rule": "digits", "length": 3, "got": "12"}),
        ("city_code 应为 3 位数字，当前为 '12'", {"parameter": "city_code", "rule": "digits", "length": 3, "got": "12"}),
        ("sort must be one of [asc, desc], got 'ASC'", {"parameter": "sort", "rule": "enum", "allowed": ["asc", "desc"], "got": "ASC"}),
        ("status must be one of: open, closed", {"parameter": "status", "rule": "enum", "allowed": ["open", "closed"]}),
        ("Missing required parameter: city", {"parameter": "city", "rule": "required"}),
        ("缺少必填参数 city", {"parameter": "city", "rule": "required"}),
        ("city 不能为空", {"parameter": "city", "rule": "required"}),
        ("name is required", {"parameter": "name", "rule": "required"}),
        ("limit must be between 1 and 100", {"parameter": "limit", "rule": "range", "minimum": 1, "maximum": 100}),
        ("page_size 不能超过 100", {"parameter": "page_size", "rule": "range", "maximum": 100}),
        ("age must be an integer", {"parameter": "age", "rule": "type", "type": "integer"}),
        ("code must be exactly 6 characters", {"parameter": "code", "rule": "length", "length": 6}),
        ("Unknown parameter: regoin", {"parameter": "regoin", "rule": "unknown"}),
        ("Invalid value for parameter 'date': 2024-13-01", {"parameter": "date", "rule": "invalid"}),
    ],
)  # fmt: skip
def test_told_in_words(message: str, expected: dict[str, Any]) -> None:
    """English and Chinese sentences give parameter, rule, what was due and what was got."""
    assert violations(None, message) == [expected]


@pytest.mark.parametrize(
    ("body", "parameter", "rule"),
    [
        ({"detail": [{"type": "missing", "loc": ["body", "item", "id"], "msg": "Field required"}]}, "item.id", "required"),
        ({"detail": [{"type": "enum", "loc": ["body", "f"], "msg": "Input should be 'raw' or 'fit'", "ctx": {"expected": "'raw' or 'fit'"}}]}, "f", "enum"),
        ({"detail": '{"detail":[{"type":"missing","loc":["query","q"],"msg":"Field required"}]}'}, "q", "required"),
        ({"errors": {"email": ["is not a valid email"]}}, "email", "invalid"),
        ({"errors": [{"field": "title", "code": "missing_field"}]}, "title", "required"),
        ({"errors": [{"source": {"pointer": "/data/attributes/name"}, "detail": "can't be blank"}]}, "name", "required"),
        ({"error": {"message": "Invalid 'temperature'", "param": "temperature", "type": "x"}}, "temperature", "invalid"),
        ({"error": {"details": [{"fieldViolations": [{"field": "parent", "description": "missing"}]}]}}, "parent", "required"),
        ([{"code": "invalid_type", "expected": "number", "received": "string", "path": ["top"], "message": "Expected number"}], "top", "type"),
    ],
)  # fmt: skip
def test_told_in_bodies(body: Any, parameter: str, rule: str) -> None:
    """Validation bodies of the common frameworks give parameter and rule."""
    found = violations(body, None)
    assert found[0]["parameter"] == parameter
    assert found[0]["rule"] in (rule, "format") if rule == "invalid" else found[0]["rule"] == rule


def test_allowed_values_are_told() -> None:
    """The allowed values of an enum come with it."""
    body = {
        "detail": [
            {
                "type": "enum",
                "loc": ["body", "f"],
                "msg": "x",
                "input": "FIT",
                "ctx": {"expected": "'raw', 'fit' or 'llm'"},
            }
        ]
    }
    assert violations(body, None)[0] | {"message": ""} == {
        "parameter": "f", "rule": "enum", "allowed": ["raw", "fit", "llm"], "got": "FIT", "message": "",
    }  # fmt: skip


def test_the_choices_beside_a_named_parameter() -> None:
    """Where the parameter stands in a field of its own, the sentence need not repeat it."""
    error = {
        "message": "Invalid value: 'FAST'. Supported values are: 'fast' and 'slow'.",
        "param": "speed",
    }
    (found,) = violations({"error": error}, None)
    assert (found["parameter"], found["rule"]) == ("speed", "enum")
    assert found["allowed"] == ["fast", "slow"]


def test_a_body_of_fields_and_nothing_else() -> None:
    """Each key is a parameter, where each value is a list of sentences; not so ``errors``."""
    (found,) = violations({"limit": ["must be at most 100"]}, None)
    assert (found["parameter"], found["maximum"]) == ("limit", 100)
    assert violations({"errors": ["something broke"]}, None) == []


@pytest.mark.parametrize(
    "text", ["It must be fixed", "Everything is fine", "you must be logged in", "订单已创建", ""]
)
def test_other_sentences_give_none(text: str) -> None:
    """A sentence about something else names no parameter."""
    assert violations(None, text) == []


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["detail", "errors", "loc", "msg", "type", "field", "error", "param", "message", "ctx"]), inner, max_size=4), max_leaves=20), st.text(max_size=200))  # fmt: skip
def test_any_body_and_text_is_survived(body: Any, text: str) -> None:
    """Whatever stands there, the answer is a list of records with a parameter and a rule."""
    for one in violations(body, text):
        assert isinstance(one["parameter"], str)
        assert one["rule"]
