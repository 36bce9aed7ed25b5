"""Broken text: what is recovered, and what goes back to the model."""

import json
import time
from typing import Any

import pytest

from failwise.arguments import ArgumentReader
from failwise.vocabulary.kinds import Effect, FixBy, Grade

ANY: dict[str, Any] = {"type": "object"}
TWO = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
X = {"a": "x", "b": 1}

RECOVERED = [
    ('```json\n{"a": "x", "b": 1}\n```', X, "fence"),
    ('Here you are:\n{"a": "x", "b": 1}\nDone.', X, "surroundings"),
    ('{"a": "x", "b": 1,}', X, "trailing_comma"),
    ('{"a": "x", /* why */ "b": 1} ', X, "comment"),
    ('{"a": "x", // why\n "b": 1}', X, "comment"),
    ("{'a': 'x', 'b': 1}", X, "quotes"),
    ('{a: "x", b: 1}', X, "unquoted_key"),
    ('{"a": "x\ny"}', {"a": "x\ny"}, "raw_control"),
    ("｛“a”：“x”，“b”：1｝", X, "delimiter"),
    (json.dumps('{"a": "x", "b": 1}'), X, "double_encoding"),
    ('{\\"a\\": \\"x\\", \\"b\\": 1}', X, "double_encoding"),
    ('book(a="x", b=1)', X, "call_syntax"),
    ("['book(a=\"x\", b=1)']", X, "call_syntax"),
    ("[functions.book(a='x', b=1)]", X, "call_syntax"),
    ('<tool_call>\n{"name": "book", "arguments": {"a": "x", "b": 1}}\n</tool_call>', X, "envelope"),
    ('<|python_tag|>{"name": "book", "parameters": {"a": "x", "b": 1}}', X, "envelope"),
    ('[TOOL_CALLS] [{"name": "book", "arguments": {"a": "x", "b": 1}}]', X, "envelope"),
    ('{"name": "book<|channel|>commentary", "arguments": {"a": "x", "b": 1}}', X, "envelope"),
    ('{"arguments": {"a": "x", "b": 1}}', X, "wrapper"),
    ('{"input": "{\\"a\\": \\"x\\", \\"b\\": 1}"}', X, "wrapper"),
    (
        "<function=book><parameter=a>x</parameter>\n<parameter=b>\n1\n</parameter></function>",
        X,
        "tags",
    ),
    ('{"a": "x", "b": 1}}', X, "surroundings"),
    ('{{"a": "x", "b": 1}}', X, "stray_brace"),
    ('{"a": "x", "b": 1 ', X, "missing_brace"),
    ('{"a": "x" "b": 1}', X, "missing_comma"),
    ('{"a": "\\d+"}', {"a": "\\d+"}, "escape"),
    ('{"a": "it\\\'s"}', {"a": "it's"}, "escape"),
    ('{"a": "say "hello" now"}', {"a": 'say "hello" now'}, "inner_quote"),
    ('{"a": "x", "a": "x"}', {"a": "x"}, "duplicate_key"),
    ('{"a": "x", "b": +1}', X, "number_form"),
    ('{"a": "x", "b": 1_000}', {"a": "x", "b": 1000}, "number_form"),
    ('{, "a": "x", "b": 1}', X, "extra_comma"),
    ('{"a": "x",, "b": 1}', X, "extra_comma"),
    ('{"a": "a 6\'2" tall "giant""}', {"a": 'a 6\'2" tall "giant"'}, "inner_quote"),
]

REFUSED = [
    ('{"a": "x', "cut_off"),
    ('{"a": "x", "b": 1', "cut_off"),
    ('{"a": "x", ', "cut_off"),
    ('{"a": "x"} {"a": "y"}', "several"),
    ('{"a": "x"} {"z": 2}', "several"),
    ('{"a": "x", "a": "y"}', "duplicate_key"),
    ('{"b": NaN, "a": "x"}', "not_finite"),
    ('{"b": 1e999, "a": "x"}', "not_finite"),
    ('{"a": "\\ud800"}', "surrogate"),
    ('{"a": "\ud800"}', "surrogate"),
    ('{"a": listt"}', "ambiguous"),
    ('{"a": fals}', "ambiguous"),
    ('{"a": undefined}', "ambiguous"),
    ('{"a": "C:\\Users\\new"}', "ambiguous"),
    ('{"b": 007, "a": "x"}', "ambiguous"),
    ('{"a": "x"}, "b": 1}', "syntax"),
    # A quote within a text that may as well end it, or begin the next key.
    ('{"a": "x,"b":"1"}', "ambiguous"),
    ('{"a": "x", 5: "y"}', "ambiguous"),
    ('{"a": "x", BUT "b": "1"}', "ambiguous"),
    ('{"a": "{ b": {} }"}', "ambiguous"),
    ('{"a": ""x"}', "ambiguous"),
    ('{"a": "x" + "y"}', "ambiguous"),
    ('{"a": "x +\n "y"}', "ambiguous"),
    ('{"a": "the set {x, y"} more"}', "syntax"),
    ('cancel(a="x")', "other_tool"),
    ('{"name": "cancel", "arguments": {"a": "x"}}', "other_tool"),
    ("I cannot help with that.", "no_object"),
    ("[1, 2]", "no_object"),
    ("book(a=x)", "ambiguous"),
    ('def book(a="x", b=1):', "no_object"),
    ("", "empty"),
    (b"\xff\xfe{}", "encoding"),
]


@pytest.mark.parametrize(("raw", "arguments", "kind"), RECOVERED)
def test_a_slip_with_one_reading_is_recovered_and_recorded(
    raw: str, arguments: dict[str, Any], kind: str
) -> None:
    """Each lossless recovery gives the right value, says so, and carries its grade."""
    reading = ArgumentReader(TWO, "book").read(raw)
    assert reading.arguments == arguments
    assert reading.failure is None
    assert kind in {repair.kind for repair in reading.repairs}
    assert all(r.grade in (Grade.LOSSLESS, Grade.UNIQUE) for r in reading.repairs)


@pytest.mark.parametrize(("raw", "reason"), REFUSED)
def test_two_readings_or_none_go_back_to_the_model(raw: str | bytes, reason: str) -> None:
    """Nothing is guessed: the failure says which kind of damage it is, and nothing was sent."""
    reading = ArgumentReader(TWO, "book").read(raw)
    assert reading.arguments is None
    failure = reading.failure
    assert failure is not None
    assert failure.code == "model_output.invalid_json"
    assert failure.detail("reason") == reason
    assert failure.effect is Effect.NOT_SENT
    assert failure.fix_by is FixBy.MODEL
    assert failure.detail("text")["zh"]


def test_a_text_that_was_cut_off_is_never_closed() -> None:
    """With the stop reason "length" even a text that only lacks its brace is refused."""
    reader = ArgumentReader(TWO, "book")
    assert reader.read('{"a": "x" ').arguments == {"a": "x"}
    for raw in ('{"a": "x" ', '{"a": "x', "", "{"):
        failure = reader.read(raw, truncated=True).failure
        assert failure is not None
        assert failure.code == "model_output.truncated"


def test_nested_braces_with_two_readings_are_not_closed() -> None:
    """Where the lost brace may belong inside, the last member could be the outer object's."""
    schema = {"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "integer"}}}
    assert ArgumentReader(schema).read('{"a": {"x": 1, "b": 2} ').arguments is None


def test_no_arguments_are_an_empty_object_where_nothing_is_required() -> None:
    """Empty text and null stand for ``{}``, recorded; with required parameters they are refused."""
    for raw in ("", "null", None, "  "):
        reading = ArgumentReader(ANY).read(raw)
        assert reading.arguments == {}
        assert [repair.kind for repair in reading.repairs] == ["empty"]
        assert ArgumentReader(TWO).read(raw).failure is not None


def test_big_integers_keep_every_digit() -> None:
    """An id above 2^53, even of thirty digits, comes through as it is."""
    raw = '{"n": 123456789012345678901234567890}'
    assert ArgumentReader(ANY).read(raw).arguments == {"n": 123456789012345678901234567890}


def test_the_callers_object_is_not_changed() -> None:
    """A mapping skips parsing, is validated and repaired, and stays as it was."""
    sent = {"a": "x", "b": "1", "c": None}
    reading = ArgumentReader(TWO, "book").read(sent)
    assert reading.arguments == X
    assert sent == {"a": "x", "b": "1", "c": None}


@pytest.mark.parametrize(
    "raw",
    [
        "[" * 1_000_000,
        '{"a":' * 200_000,
        '"' * 1_000_000,
        "{" * 200_000,
        "[{" * 100_000,
        '{"a": "' + '" ' * 100_000,
        '{"a": "x", ' * 20_000,
        "<function=a>" * 20_000,
        "book(" * 40_000,
        "{/*" + "/*" * 100_000,
        "{/*" * 80_000,
        "[{" * 120_000,
        '{"a": "x"y' * 25_000,
    ],
    ids=range(13),
)
def test_hostile_text_is_refused_in_bounded_time(raw: str) -> None:
    """Deep nesting, endless quotes and endless openings cost linear time and never raise."""
    reader = ArgumentReader(TWO, "book")
    reader.read("{}")
    spent = []
    for _ in range(3):
        began = time.process_time()
        assert reader.read(raw).failure is not None
        spent.append(time.process_time() - began)
    assert min(spent) < (0.05 if len(raw) >= 1_000_000 else 0.25)


def test_deep_documents_are_read_or_refused_but_never_raise() -> None:
    """Nesting that the validator follows is read; how much deeper is refused is the interpreter's."""
    schema = {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#"}, {"const": 1}]}}
    reader = ArgumentReader(schema)
    for depth in (10, 200, 900, 5000):
        for leaf in ("1", "2"):
            reading = reader.read('{"a": ' * depth + leaf + "}" * depth)
            assert (reading.arguments is None) == (leaf == "2") or depth > 900
            assert (reading.arguments is None) != (reading.failure is None)
