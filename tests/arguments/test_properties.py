"""What holds for any input: valid stays, a repair fits, reading twice changes nothing, no raising."""

import json
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.arguments import ArgumentReader, fix_from_violations, unknown_tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "mode": {"enum": ["fast", "slow"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "properties": {"zip": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "required": ["zip"],
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}
CHECK = jsonschema_rs.validator_for(SCHEMA, validate_formats=True)
READER = ArgumentReader(SCHEMA, "t")

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
VALID = st.fixed_dictionaries(
    {"name": TEXT},
    optional={
        "count": st.integers(),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "mode": st.sampled_from(["fast", "slow"]),
        "day": st.dates().map(str),
        "tags": st.lists(TEXT, max_size=4),
        "place": st.fixed_dictionaries({"zip": st.none() | st.integers()}),
    },
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
NEAR = st.dictionaries(
    st.sampled_from([*SCHEMA["properties"], "Name", "COUNT", "other"]),
    JSON
    | st.sampled_from(["5", "FAST", "2024-1-1", "null", "", '["a"]', ["a"], '{"zip": "1"}', "a,b"]),
)
MARKS = list("{}[]()\"'\\,:=“”｛｝：，/#* \n\t0123456789.-+eE")
WORDS = ["name", "true", "None", "t(", "```json\n", "<tool_call>", '"name"', "\\u", "\\ud800", "//"]
PIECES = st.lists(st.sampled_from(MARKS + WORDS) | TEXT, max_size=30).map("".join)


@given(VALID, st.booleans())
def test_a_valid_document_is_never_changed(value: dict[str, Any], escaped: bool) -> None:
    """Valid JSON that fits comes back equal, without a repair, as text and as an object."""
    for raw in (json.dumps(value, ensure_ascii=escaped), value):
        reading = READER.read(raw)
        assert reading.arguments == value
        assert reading.repairs == ()


@given(NEAR)
def test_a_repair_fits_the_schema_and_is_final(value: dict[str, Any]) -> None:
    """What a repair gives validates, and reading it again changes nothing."""
    reading = READER.read(value)
    assert (reading.arguments is None) != (reading.failure is None)
    if reading.arguments is not None:
        assert CHECK.is_valid(reading.arguments)
        again = READER.read(json.dumps(reading.arguments))
        assert again.arguments == reading.arguments
        assert again.repairs == ()


@given(PIECES | st.text() | st.binary(), st.booleans())
@settings(max_examples=300)
def test_no_text_raises(raw: str | bytes, truncated: bool) -> None:
    """Any text gives arguments that fit, or a failure that can be told and stored."""
    reading = READER.read(raw, truncated=truncated)
    if reading.arguments is not None:
        assert CHECK.is_valid(reading.arguments)
        again = READER.read(json.dumps(reading.arguments))
        assert (again.arguments, again.repairs) == (reading.arguments, ())
    else:
        assert reading.failure is not None
        assert reading.failure.message
        assert reading.failure.code.startswith("model_output.")
        json.dumps(reading.failure.to_dict())


@given(VALID, st.sampled_from(["```json\n%s\n```", "Sure: %s", "<tool_call>%s</tool_call>"]))
def test_wrapping_changes_nothing(value: dict[str, Any], wrapping: str) -> None:
    """A valid object inside fences, prose or tags is that object."""
    reading = READER.read(wrapping.replace("%s", json.dumps(value)))
    assert reading.arguments == value
    assert reading.repairs


@given(VALID, st.integers(min_value=1))
def test_a_text_cut_off_is_never_completed(value: dict[str, Any], cut: int) -> None:
    """With the stop reason "length", a shortened document gives no arguments."""
    text = json.dumps(value)
    shortened = text[: len(text) - 1 - cut % (len(text) - 1)]
    assert READER.read(shortened, truncated=True).arguments is None


@given(VALID, st.integers(min_value=0), st.sampled_from(["//a\n", "/*a*/", "", " "]))
def test_a_slip_changes_no_value(value: dict[str, Any], where: int, extra: str) -> None:
    """A comment after a comma, and a trailing comma, leave every value as it was."""
    pairs = [f"{json.dumps(key)}: {json.dumps(member)}" for key, member in value.items()]
    pairs[where % len(pairs)] = extra + pairs[where % len(pairs)]
    reading = READER.read("{" + ", ".join(pairs) + ",}")
    assert reading.arguments == value
    assert all(repair.grade == "lossless" for repair in reading.repairs)


VIOLATIONS = st.lists(
    st.fixed_dictionaries(
        {"parameter": st.sampled_from([*SCHEMA["properties"], "place.zip", "tags[0]", "x", ""])},
        optional={
            "rule": st.sampled_from(["digits", "enum", "range", "type", "format", "unknown", ""]),
            "allowed": st.lists(TEXT | st.sampled_from(["fast", "SLOW"]), max_size=3),
            "length": JSON,
            "minimum": JSON,
            "maximum": JSON,
            "type": JSON | st.sampled_from(["integer", "string"]),
            "format": JSON | st.sampled_from(["date", "时间"]),
            "got": JSON,
        },
    ),
    max_size=3,
)


@given(VALID, VIOLATIONS)
def test_a_correction_fits_and_changes_what_it_says(
    value: dict[str, Any], violations: list[dict[str, Any]]
) -> None:
    """Whatever an upstream says, a correction validates, differs, and leaves what was sent alone."""
    before = json.dumps(value)
    fixed = fix_from_violations(READER, value, violations)
    assert json.dumps(value) == before
    if fixed is not None:
        arguments, repairs = fixed
        assert CHECK.is_valid(arguments)
        assert arguments != value
        assert repairs


@given(TEXT, st.dictionaries(TEXT, st.none() | JSON, max_size=4), JSON)
def test_an_unknown_tool_never_raises(name: str, tools: dict[str, Any], sent: Any) -> None:
    """Any name, schemas and arguments give an answer that can be stored."""
    schemas = {tool: {"properties": schema} for tool, schema in tools.items()}
    arguments = sent if isinstance(sent, dict) else None
    failure = unknown_tool(name, schemas, arguments)
    assert set(failure.detail("nearest")) <= set(tools)
    json.dumps(failure.to_dict())
