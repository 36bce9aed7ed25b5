"""What holds for any input: valid stays, a repair fits, reading twice changes nothing, no raising."""

import json
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from failwise.arguments import ArgumentReader

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
