"""Locators and waits: every form, and nothing that a document holds makes them raise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.profiles import Document, Profiles, locators, waits
from failwise.vocabulary.records import UNSET

NOW = 1_760_000_000.0

BODY = {
    "error": {"code": 7, "type": None, "details": [{"reason": "A"}, {"reason": "B"}, 3]},
    "a_response": {"code": "40004"},
    "errors": {"name": ["too short"], "mail": [{"deep": {"er": ["x"]}}]},
    "flag": False,
}


@pytest.mark.parametrize(
    ("locator", "values"),
    [
        ("error.code", [7]),
        ("error.type", []),
        ("error.details[0].reason", ["A"]),
        ("error.details[*].reason", ["A", "B"]),
        ("error.details[9].reason", []),
        ("*_response.code", ["40004"]),
        ("errors.~keys", ["name", "mail"]),
        ("errors.~leaf", ["mail[0].deep.er"]),
        ("errors.*", [["too short"], [{"deep": {"er": ["x"]}}]]),
        ("flag", [False]),
        ("flag.more", []),
        ("header:x-id", ["1"]),
        ("header:x-*", ["1", "2"]),
        ("http:status", [404]),
        ("status", []),
        ("class", ["a.Outer", "b.Inner"]),
        ("str", ["it says"]),
        ("text", ["it says"]),
        ("text:it (\\w+)", ["says"]),
    ],
)
def test_forms(locator: str, values: list[Any]) -> None:
    """Each form gives the values at its place, in order; null is none."""
    seen = Document(
        status=404,
        headers={"x-id": "1", "x-more": "2"},
        body=BODY,
        exceptions=("a.Outer", "b.Inner"),
        exception_text="it says",
    )
    assert locators.compile(locator).find(seen) == values


def test_a_body_that_is_a_list() -> None:
    """A path may start with an element."""
    seen = Document(body=[{"errorCode": "X"}, {"errorCode": "Y"}])
    assert locators.compile("[0].errorCode").find(seen) == ["X"]
    assert locators.compile("[*].errorCode").find(seen) == ["X", "Y"]


def test_xml() -> None:
    """Elements by path from the root, namespaces and prefixes aside."""
    seen = Document(
        text='<a:E xmlns:a="u"><Error><Code> X </Code></Error><Error><Code>Y</Code></Error></a:E>'
    )
    assert locators.compile("xml:E/Error/Code").find(seen) == ["X", "Y"]
    assert locators.compile("xml:Error/Code").find(seen) == []


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><r>&b;</r>',
        '<?xml version="1.0"?><!DOCTYPE r SYSTEM "file:///etc/hostname"><r/>',
        "<r>" * 100 + "</r>" * 100,
        "<r>" + "<a/>" * 6000 + "</r>",
        "<html><body>Not XML</body></html>",
        "<r>broken",
        "plain",
    ],
    ids=["entities", "external", "deep", "many", "page", "broken", "plain"],
)
def test_dangerous_or_broken_xml_is_none(text: str) -> None:
    """Document types, entities, and what passes the bounds are not read at all."""
    assert Document(text=text).xml is None


@pytest.mark.parametrize("text", ["", "a..b", "a[", "a]b", "[x]"])
def test_what_is_no_locator(text: str) -> None:
    """A text of no form is refused when it is compiled."""
    with pytest.raises(ValueError, match="not a locator"):
        locators.compile(text)


def test_attributes_of_an_exception() -> None:
    """Plain attributes are read; private ones, methods and raising properties are not."""

    class Strange(Exception):
        _secret = "s"
        code = "E1"

        @property
        def broken(self) -> str:
            raise RuntimeError("no")

        def method(self) -> str:
            raise AssertionError("called")

    seen = Document(exception=Strange("first", 2))
    assert locators.compile("code").find(seen) == ["E1"]
    assert locators.compile("args[1]").find(seen) == [2]
    for locator in ("_secret", "broken", "method", "__class__.__name__", "args[0].upper"):
        assert locators.compile(locator).find(seen) == []


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "code", "message", "status", "detail", "retry_after", "ok", "type"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(
    body=plain,
    status=st.none() | st.integers(100, 599),
    text=st.none() | st.text(max_size=200),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-reset", "x-ratelimit-remaining", "cf-ray", "grpc-status"]),
        st.text(max_size=20),
    ),
    name=st.sampled_from(Profiles.default().names()),
)  # fmt: skip
def test_nothing_makes_a_profile_raise(
    body: Any, status: int | None, text: str | None, headers: dict[str, str], name: str
) -> None:
    """Any JSON, text and headers: finding, testing and reading give an answer, and no negative wait."""
    library = Profiles.default()
    for part in (body, UNSET):
        seen = Document(
            status=status, headers=headers, body=part, text=text, exception_text=text or ""
        )
        for profile in library.find(seen, name):
            profile.success(seen)
            reading = profile.read(seen, now=NOW)
            if reading is not None:
                assert all(0 <= wait < waits.LONGEST + 1 for wait, _ in reading.waits)
                assert reading.entry is None or reading.entry in profile.entries


@pytest.mark.parametrize(
    ("value", "unit", "wait"),
    [
        ("30", "seconds", 30.0),
        (0.65, "seconds", 0.65),
        ("1500", "milliseconds", 1.5),
        (NOW + 60, "epoch_seconds", 60.0),
        (str(int(NOW) + 60), "mixed", 60.0),
        ((NOW + 60) * 1000, "epoch_milliseconds", 60.0),
        ((NOW + 60) * 1000, "text", 60.0),
        (NOW - 60, "epoch_seconds", 0.0),
        ("6m0s", "duration", 360.0),
        ("46s", "duration", 46.0),
        ("120ms", "duration", 0.12),
        ("1m30s", "duration", 90.0),
        ("10h17m5.7s", "duration", 37025.7),
        ("2025-10-09T08:54:20Z", "datetime", 60.0),
        ("2025-10-09T08:54:20", "datetime", 60.0),
        ("-3", "seconds", None),
        (True, "seconds", None),
        ("true", "text", None),
        ("soon", "seconds", None),
        ("", "duration", None),
        (None, "seconds", None),
        (float("nan"), "seconds", None),
        (10**400, "seconds", None),
        ("32/40", "mixed", None),
    ],
)
def test_units_of_waits(value: Any, unit: str, wait: float | None) -> None:
    """Each unit as seconds from now; what says nothing, or something negative, is none."""
    told = waits.seconds(value, unit, NOW)
    assert told == (pytest.approx(wait) if wait is not None else None)
