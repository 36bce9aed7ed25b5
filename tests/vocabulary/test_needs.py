"""What a pattern cannot match without: looking for that first never hides a match."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.classify.tables import text_rules
from failwise.vocabulary.needs import Ways, alternatives, required, whole

_PATTERNS = [rule.pattern for rule in text_rules() if rule.pattern is not None]
_WORDS = st.sampled_from(
    sorted({word for rule in text_rules() for word in rule.example.lower().split()})
)


def _ways(pattern: re.Pattern[str]) -> Ways:
    return Ways(pattern.pattern, pattern.flags & ~re.UNICODE)


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((found.start() for found in pattern.finditer(text)), default=-1)


@pytest.mark.parametrize("rule", text_rules(), ids=lambda rule: rule.id)
def test_an_example_is_found_where_the_pattern_finds_it(rule: object) -> None:
    """Taken apart, a pattern matches its example and no counter-example, as in one piece."""
    pattern = rule.pattern  # type: ignore[attr-defined]
    if pattern is None:
        return
    for text in (rule.example, rule.counter):  # type: ignore[attr-defined]
        lowered = text.lower()
        assert (_ways(pattern).last(lowered) >= 0) == (pattern.search(lowered) is not None)


@given(st.lists(_WORDS, max_size=12).map(" ".join), st.sampled_from(_PATTERNS))
def test_any_text_is_found_alike(text: str, pattern: re.Pattern[str]) -> None:
    """So it is for texts put together from the words of failures."""
    found = _ways(pattern).last(text)
    assert (found >= 0) == (pattern.search(text) is not None)
    # An alternative may begin inside of what another one took: later, never earlier.
    assert found >= _last(pattern, text)
    assert _ways(pattern).matches(text) == (found >= 0)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("timed out", [{"timed out"}]),
        ("time(d )?out", [{"time"}, {"out"}]),
        ("(invalid|bad) (token|key)", [{"token", "key"}, {"invalid", "bad"}]),
        ("(abc)?", []),
        ("(abc)+x", [{"abc"}]),
        (r"(?<!x)re(?=s)set", [{"reset"}]),
        ("频率(限制|超限)", [{"频率"}, {"限制", "超限"}]),
        (r"\d{3} [a-z]+", []),
        ("(?i:abc)def", [{"def"}]),
    ],
)
def test_what_each_match_has(pattern: str, expected: list[set[str]]) -> None:
    """Letters in a row, one of each choice; nothing that may be left out, or be in either case."""
    found = [set(literals) for literals in required(pattern)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def test_without_regard_to_case_literals_are_in_lower_case() -> None:
    """They are looked for in the text in lower case; and such a pattern stays in one piece."""
    assert required("Timed (Out|In)", re.IGNORECASE) == [{"timed "}, {"out", "in"}]
    pattern = re.compile("Timed|Out", re.IGNORECASE)
    assert _ways(pattern).last("it TIMED OUT") == 9
    assert whole(pattern).may_match("it timed out")
    assert not whole(re.compile("Timed Out", re.IGNORECASE)).may_match("it is fine")


@pytest.mark.parametrize(
    ("pattern", "pieces"),
    [
        ("a|b(c|d)|[|]|\\|", ["a", "b(c|d)", "[|]", "\\|"]),
        ("[]|]|[^]|]|x", ["[]|]", "[^]|]", "x"]),
        ("(?i)a|b", ["(?i)a|b"]),
        (r"(a)|\1", [r"(a)|\1"]),
        ("", [""]),
    ],
)
def test_alternatives_of_the_outermost_level(pattern: str, pieces: list[str]) -> None:
    """Only those; and none of a pattern that holds together."""
    assert alternatives(pattern) == pieces


def test_parts_that_lean_on_each_other_stay_together() -> None:
    """A reference by name to a group of another alternative."""
    pattern = re.compile("(?P<x>a)b|c(?P=x)?")
    assert _ways(pattern).last("..c") == 2
