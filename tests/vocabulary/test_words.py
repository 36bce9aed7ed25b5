"""What the model and the person read."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.vocabulary.failure import Excerpt, Failure
from failwise.vocabulary.kinds import Action, Category, Effect, FixBy, StopReason
from failwise.vocabulary.result import Attempt, Language, ToolResult
from failwise.vocabulary.words import for_model, for_user, remedy
from tests.vocabulary.results import RESULTS, failed, failure

GOLDEN = Path(__file__).parent / "golden"
BEGIN = {"en": "FAILED: tool ", "zh": "调用失败：工具 "}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_golden_texts(lang: Language) -> None:
    """Every result reads as the golden file says; FAILWISE_WRITE_GOLDEN=1 writes it anew."""
    text = "".join(
        f"=== {name}\n{for_model(result, lang)}\n--- user\n{for_user(result, lang)}\n\n"
        for name, result in RESULTS.items()
    )
    path = GOLDEN / f"words.{lang}.txt"
    if os.environ.get("FAILWISE_WRITE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_unknown_effect_on_a_write_is_never_offered_for_repetition(lang: Language) -> None:
    """Whatever the suggested action says: no repeat, no other tool, and it is said that it may have happened."""
    for action in Action:
        last = failure(
            "network.read_timeout", transient=True, details={"fallbacks_left": ["other_tool"]}
        )
        text = for_model(failed("pay", last, suggested_action=action), lang)
        assert "other_tool" not in text
        assert ("2) stop" in text) if lang == "en" else ("2) 终止" in text)
        assert ("may have taken effect" in text) if lang == "en" else ("可能已生效" in text)


def test_what_no_wait_cures_is_not_told_to_wait() -> None:
    """A short balance, an exhausted quota and a dead credential say what they are."""
    for code in (
        "business.insufficient_balance",
        "business.quota_exhausted",
        "auth.invalid_credential",
    ):
        last = failure(code, effect=Effect.REJECTED, transient=False, fix_by=FixBy.USER)
        result = failed("pay", last, suggested_action=Action.ASK_USER)
        for text in (for_user(result), for_model(result)):
            assert "again later" not in text
    assert "余额不足" in for_user(RESULTS["insufficient_balance"], "zh")
    assert "稍后" not in for_user(RESULTS["insufficient_balance"], "zh")


def test_remedies_come_from_the_failure_then_the_facts_then_the_registry() -> None:
    """Facts fill the template where all are known; a code nobody knows gets its category's sentence."""
    expired = RESULTS["expired_certificate"].failure
    assert expired is not None
    assert remedy(expired, "en").startswith(
        "Renew the certificate of api.example, expired 2026-11-02"
    )
    assert "api.example" in remedy(expired, "zh")
    assert "{" not in remedy(failure("security.certificate_expired"), "en")
    assert remedy(failure("business.no_such_code"), "en")
    assert remedy(failure("network.read_timeout", remedies={"en": "Do this."}), "en") == "Do this."
    assert "10 s" in remedy(failure("network.read_timeout", details={"limit": 10.0}), "en")


def test_a_long_value_is_cut_and_said() -> None:
    """4000 characters, and the note stands before the value."""
    text = for_model(ToolResult("read", True, "y" * 9000))
    assert text.startswith("Note: the value is cut to 4000 of 9000 characters.\n")
    assert len(text) < 4100


def test_stacks_headers_and_tags_do_not_reach_the_model() -> None:
    """Of an upstream's raw text only the sentence is left."""
    message = (
        "<b>Quota</b> exceeded\nSet-Cookie: sid=1\nX-Served-By: a\n"
        '  File "client.py", line 4, in call\n    at com.shop.Main(Main.java:3)\nTraceback (most recent call last)\n  more'
    )
    text = for_model(failed("pay", failure("server.internal", message=message)))
    assert '"Quota exceeded"' in text
    assert not [
        word
        for word in ("Cookie", "client.py", "Main.java", "Traceback", "X-Served")
        if word in text
    ]


_WILD = st.text(max_size=600)
_TEXTS = st.one_of(
    _WILD,
    st.sampled_from(
        [
            "<html><body>x</body></html>",
            "a\nb\n" * 200,
            "\ud83d",
            "e\u0301" * 400,
            "\u202e",
            "余额不足" * 200,
        ]
    ),
)
_DETAILS = st.dictionaries(
    st.sampled_from(["fallbacks_left", "alternatives", "tools", "nearest", "violations", "certificate", "limit", "read_only", "cause", "names", "host"]),
    st.one_of(
        st.none(), st.booleans(), st.floats(), st.integers(), _TEXTS, st.lists(_TEXTS, max_size=30),
        st.lists(st.fixed_dictionaries({"parameter": _TEXTS, "text": st.one_of(_TEXTS, st.fixed_dictionaries({"en": _TEXTS, "zh": _TEXTS}))}), max_size=30),
        st.dictionaries(st.sampled_from(["host", "not_after", "names", "issuer", "tool", "code"]), _TEXTS),
    ),
    max_size=6,
)  # fmt: skip
_FAILURES = st.builds(
    Failure,
    category=st.sampled_from(Category),
    code=st.one_of(
        st.sampled_from(
            [
                "network.bad_gateway",
                "runtime.chain_aborted",
                "model_output.unknown_tool",
                "security.hostname_mismatch",
            ]
        ),
        _TEXTS,
    ),
    message=_TEXTS,
    effect=st.sampled_from(Effect),
    transient=st.sampled_from([None, True, False]),
    fix_by=st.sampled_from(FixBy),
    meaning=st.none() | st.fixed_dictionaries({"en": _TEXTS, "zh": _TEXTS}),
    remedies=st.none() | st.fixed_dictionaries({"en": _TEXTS, "zh": _TEXTS}),
    http_status=st.none() | st.integers(100, 599),
    retry_after=st.none() | st.floats(),
    details=st.none() | _DETAILS,
    evidence=st.none() | st.builds(Excerpt, message=_TEXTS, title=st.none() | _TEXTS),
)
_RESULTS = st.builds(
    lambda tool, last, others, action, at, degraded, interrupts: ToolResult(
        tool, False, failure=last, attempts=tuple(Attempt(n, 0.0, 1.0, f) for n, f in enumerate(others, 1)), suggested_action=action,
        retry_at=at, degraded_to=degraded, interrupts=interrupts, stop_reason=StopReason.NOT_RETRIABLE,
    ),
    _TEXTS, _FAILURES, st.lists(_FAILURES, max_size=4), st.none() | st.sampled_from(Action), st.none() | st.floats(), st.none() | _TEXTS, st.booleans(),
)  # fmt: skip


@given(_RESULTS, st.sampled_from(["en", "zh"]))
def test_the_bounds_hold_for_any_failure(result: ToolResult[Any], lang: Language) -> None:
    """At most 900 characters, no tag, no control or half character, failure said first, a way out last."""
    text = for_model(result, lang)
    assert len(text) <= 900
    assert text.startswith(BEGIN[lang])
    assert "<" not in text
    assert text.count("\n") <= 16
    text.encode("utf-8")
    assert all(
        character == "\n"
        or character.isprintable()
        or character in " \u3000\u200d"
        or ord(character) > 127
        for character in text
    )
    assert ("stop and report" if lang == "en" else "终止并向上报告") in text.rsplit("\n", 1)[-1]
    assert for_model(result, lang) == text
    person = for_user(result, lang)
    assert "<" not in person
    assert len(person) < 900
