"""The glance at what a tool gave back: what it lets go is a success for the whole classification."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise import Runtime
from failwise.classify import Classifier
from failwise.evidence import from_value
from failwise.runtime.glance import plainly_good

_CLASSIFIER = Classifier()
_FOLDER = Path(__file__).parents[1] / "classify"


def _body(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return None
    return value


def _bodies() -> list[Any]:
    lines = [
        line
        for path in sorted(_FOLDER.glob("heldout*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    given = [_body(value) for line in lines for value in json.loads(line)["input"].values()]
    return [body for body in given if isinstance(body, dict | list)]


_BODIES = _bodies()
_COMMON = ("name", "price", "city", "items", "results", "data", "title", "description", "text", "type")  # fmt: skip
_FIELDS = st.sampled_from(
    sorted({*_COMMON, *(name for body in _BODIES if isinstance(body, dict) for name in body)})
)
_TEXTS = st.sampled_from(
    ["rate limit exceeded", "access denied", "E1001", "error", "系统错误", "socks", "ok", ""]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 600) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_FIELDS, inner, max_size=3),
    max_leaves=6,
)


def test_no_recorded_failure_passes() -> None:
    """Of the bodies that are kept, none that failed is plainly good."""
    assert len(_BODIES) > 100
    passed = [body for body in _BODIES if plainly_good(body)]
    assert [body for body in passed if _CLASSIFIER.classify(from_value(body)) is not None] == []


@given(st.dictionaries(_FIELDS, _VALUES, max_size=5))
def test_no_object_made_of_their_fields_passes(body: dict[str, Any]) -> None:
    """Nor is one put together from their fields."""
    if plainly_good(body):
        assert _CLASSIFIER.classify(from_value(body)) is None


_LINES = [
    text
    for path in sorted(_FOLDER.glob("heldout*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
    for text in json.loads(line)["input"].values()
    if isinstance(text, str)
]


@pytest.mark.parametrize("beginning", ["", "result: ", "The tool said: ", "order 7\n"])
def test_no_recorded_text_passes(beginning: str) -> None:
    """Texts too, as they stand and behind other words."""
    passed = [text for text in _LINES if plainly_good(beginning + text)]
    found = [
        text for text in passed if _CLASSIFIER.classify(from_value(beginning + text)) is not None
    ]
    assert found == []


@given(
    st.lists(
        st.sampled_from([word for line in _LINES for word in line.split()[:40]]) | _TEXTS,
        max_size=8,
    )
)
def test_no_mixture_of_their_words_passes(words: list[str]) -> None:
    """Nor one put together from their words."""
    text = " ".join(words)
    if plainly_good(text):
        assert _CLASSIFIER.classify(from_value(text)) is None


@pytest.mark.parametrize(
    "value",
    [
        "Sunny, 21 degrees in Berlin",
        "柏林晴，21 度",
        {"name": "socks", "price": 3},
        {"items": [{"id": 1, "name": "socks"}], "count": 1},
        {"data": {"order": 7}},
        {"title": "Timeouts", "author": "Ann"},
        ["Error: is the title of a song"],
        [{"name": "a"}, {"name": "b"}],
        (1, 2),
        {},
    ],
)
def test_data_is_not_looked_at_twice(value: object) -> None:
    """What tools mostly give back needs no more than the glance."""
    assert plainly_good(value)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"message": "API rate limit exceeded"}, "rate_limit.requests"),
        ({"rspCod": "9999", "rspMsg": "系统异常，请稍后再试"}, None),
        ({"exit_code": 1, "stderr": "fatal: could not read Username", "stdout": ""}, None),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, None),
        ({"data": {"orderCreate": {"userErrors": [{"message": "Email is invalid"}]}}}, None),
    ],
)
def test_an_envelope_under_any_name_is_a_failure_of_the_call(value: Any, code: str | None) -> None:
    """What only the whole classification knows reaches the runtime's verdict."""
    runtime = Runtime(":memory:")

    @runtime.tool(read_only=True)
    def look() -> Any:
        return value

    result = runtime.call_sync(look)
    assert result.failure is not None
    assert code in (None, result.failure.code)


def test_a_profile_of_ones_own_is_asked_for_any_field(tmp_path: Path) -> None:
    """Its success test holds for what a tool gives back, whatever the fields are called."""
    profile = tmp_path / "boutique.yaml"
    profile.write_text(
        """
schema: 1
id: boutique
name: Boutique
kind: api
detect: {hosts: [boutique.example]}
error_in: body
success: [{at: outcome, equals: [fine]}]
fields: {code: [outcome], message: [said]}
codes:
  - {code: sold, en: Sold out, zh: 售罄, as: business.out_of_stock, transient: false, action: ask_user, effect: rejected}
""",
        "utf-8",
    )
    runtime = Runtime(":memory:", profiles=[profile])

    @runtime.tool(read_only=True, profile="boutique")
    def look() -> Any:
        return {"outcome": "sold"}

    assert not runtime.call_sync(look).success


def test_a_failed_row_far_down_is_seen() -> None:
    """Of a long list, and of many parts, each is looked at."""
    rows: list[dict[str, Any]] = [{"id": number, "answer": "x"} for number in range(90)]
    assert plainly_good(rows)
    rows[75] = {"id": 75, "error": {"code": "boom", "message": "it failed"}}
    assert not plainly_good(rows)
    assert not plainly_good({"items": rows})
    parts: dict[str, Any] = {f"part{number}": {"id": number} for number in range(90)}
    assert plainly_good({"data": parts})
    parts["part75"] = {"id": None, "userErrors": [{"message": "Email is invalid"}]}
    assert not plainly_good({"data": parts})


def test_an_object_of_very_many_fields_is_no_work() -> None:
    """A table by id is passed without a look at each of its names."""
    table = {f"user_{number}": number for number in range(100_000)}
    plainly_good(table)
    began = time.process_time()
    for _ in range(10):
        assert plainly_good(table)
    assert time.process_time() - began < 0.5  # some 3 ms each; name by name it was 800 ms
