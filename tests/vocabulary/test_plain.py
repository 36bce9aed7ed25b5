"""Any value as text: never raises, whatever a tool gives back."""

import dataclasses
import datetime
import enum
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise import ToolResult
from failwise.vocabulary.plain import as_json, as_text


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Item:
    name: str
    when: datetime.date


class Unkind:
    def __str__(self) -> str:
        raise RuntimeError("no")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Item("a", datetime.date(2026, 1, 2)), '{"name": "a", "when": "2026-01-02"}'),
        ({"b", "a"}, '["a", "b"]'),
        (httpx.Response(200, json={"x": 1}), '{"x": 1}'),
        (httpx.Response(200, text="plain"), "plain"),
        ("text", "text"),
    ],
)
def test_values_become_what_they_hold(value: object, text: str) -> None:
    """Data classes, sets and responses are shown as their data."""
    assert as_text(value) == text


@pytest.mark.parametrize("value", [CIRCLE, {(1, 2): 3}, Unkind(), Colour.RED, b"\xff", object()])
def test_nothing_makes_it_raise(value: object) -> None:
    """A value that holds itself, or cannot say what it is, still becomes JSON."""
    assert json.loads(as_json(value)) is not None
    assert ToolResult("t", True, value).for_model()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=20
    )
)
def test_json_data_round_trips(value: object) -> None:
    """What is JSON already comes back the same."""
    assert json.loads(as_json(value)) == value
