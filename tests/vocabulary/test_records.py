"""The records survive JSON; the registry of codes is whole."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.vocabulary.codes import registry
from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, Grade, Layer, StopReason
from failwise.vocabulary.result import Attempt, Decision, Repair, ToolResult

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_NUMBER = st.floats(0, 4e9)
_WORDS = st.none() | st.dictionaries(st.sampled_from(["en", "zh"]), _TEXT, min_size=1)
_FAILURES = st.builds(
    Failure,
    st.sampled_from(Category),
    st.sampled_from(sorted(registry())),
    message=_TEXT,
    effect=st.sampled_from(Effect),
    transient=st.none() | st.booleans(),
    fix_by=st.sampled_from(FixBy),
    layer=st.sampled_from(Layer),
    remedies=_WORDS,
    meaning=_WORDS,
    likely_causes=st.lists(_TEXT, max_size=2).map(tuple),
    advice=st.none() | st.sampled_from(Action),
    http_status=st.none() | st.integers(100, 599),
    retry_after=st.none() | _NUMBER,
    provider=st.none() | _TEXT,
    details=st.none() | st.dictionaries(_TEXT, _JSON, min_size=1, max_size=3),
    evidence=st.none()
    | st.builds(
        Excerpt, _TEXT, st.none() | _TEXT, st.none() | st.integers(0, 10**9), st.none() | _TEXT
    ),
)
_DECISIONS = st.builds(
    Decision,
    st.sampled_from(Action),
    _NUMBER,
    st.booleans(),
    _TEXT,
    _TEXT,
    st.none() | st.sampled_from(StopReason),
    st.none() | _NUMBER,
)
_ATTEMPTS = st.builds(
    Attempt, st.integers(0, 9), _NUMBER, _NUMBER, st.none() | _FAILURES, st.none() | _DECISIONS
)
_RESULTS = st.builds(
    lambda value, failure, attempts, repairs, stop, retry_at, extra: ToolResult(
        "tool",
        failure is None,
        value,
        failure,
        attempts=tuple(attempts),
        repairs=tuple(repairs),
        stop_reason=stop,
        retry_at=retry_at,
        extra=extra,
    ),
    _JSON,
    st.none() | _FAILURES,
    st.lists(_ATTEMPTS, max_size=2),
    st.lists(st.builds(Repair, _TEXT, _TEXT, _JSON, _JSON, st.sampled_from(Grade)), max_size=2),
    st.sampled_from(StopReason),
    st.none() | _NUMBER,
    st.dictionaries(_TEXT, _JSON, max_size=2),
)


@given(_RESULTS)
def test_a_result_survives_json(result: ToolResult[Any]) -> None:
    """`from_json(to_json())` is the same record, nested failures and decisions included."""
    assert ToolResult.from_json(result.to_json()).to_dict() == result.to_dict()


@given(_FAILURES)
def test_a_failure_survives_its_dict(failure: Failure) -> None:
    """`from_dict(to_dict())` is equal in every field."""
    assert Failure.from_dict(failure.to_dict()) == failure


@pytest.mark.parametrize("code", registry().values(), ids=lambda code: code.name)
def test_each_code_speaks_both_languages(code: Any) -> None:
    """Meaning and remedy in both; a template names only known facts, and has both languages or none."""
    for table in (code.meaning, code.remedy):
        assert table["en"].isascii()
        assert any("\u4e00" <= character <= "\u9fff" for character in table["zh"])
    assert set(code.remedy_with) in (set(), {"en", "zh"})
    for template in code.remedy_with.values():
        names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
        assert names <= {
            "host",
            "not_after",
            "not_before",
            "names",
            "issuer",
            "limit",
            "unit",
            "field",
            "parameter",
            "phase",
        }
    assert code.deprecated is None or code.deprecated in registry()


def test_no_two_codes_mean_the_same() -> None:
    """Meanings are unique within a category, in both languages."""
    for lang in ("en", "zh"):
        meanings = [(code.category, code.meaning[lang]) for code in registry().values()]
        assert len(set(meanings)) == len(meanings)
