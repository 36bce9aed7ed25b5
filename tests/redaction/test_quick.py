"""What is looked for first hides nothing: a rule is tried wherever it could find something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failwise.redaction import Redactor
from failwise.redaction.rules import Rule, built_in_rules, parse_rules
from tests.redaction.samples import make

REDACTOR = Redactor()
_BEFORE = ("", " ", '"', "'", "=", ":", "(", "-", "/", ".", "\n", "\\n", "%3D", "é", "，", "x=1&t=")
_WORDS = [
    "password",
    "token",
    "is",
    "bearer",
    "key",
    "mysql",
    "curl",
    "secret",
    "too",
    "many",
    "Hunter",
    "AKIA",
    "the",
]


@pytest.mark.parametrize(
    "rule",
    [rule for rule in built_in_rules() if rule.example and not rule.personal],
    ids=lambda rule: rule.id,
)
def test_each_token_is_found_wherever_a_word_begins(rule: Rule) -> None:
    """At the beginning, behind any sign, behind an escape: where the pattern finds it, it goes."""
    token, _ = make(rule.example, 3)
    for before in _BEFORE:
        text = f"{before}{token} stays"
        found = rule.pattern.search(text)
        if found is None or (rule.check is not None and not rule.check(found[rule.group])):
            continue
        assert found[rule.group] not in REDACTOR.text(text), text


@given(
    st.lists(st.sampled_from(_WORDS), max_size=9),
    st.sampled_from([" ", "_", ".", "-"]),
    st.sampled_from([str, str.lower, str.upper]),
)
def test_plain_words_are_passed_at_a_glance_and_rightly(
    words: list[str], glue: str, spelled: type[str]
) -> None:
    """A redactor with a rule of one's own looks at every text in full, and finds no more in them."""
    own = parse_rules(
        '[[rule]]\nid = "own"\nkind = "own"\ngate = ["\\u0001"]\npattern = "\\u0001"\n', "own.toml"
    )
    text = spelled(glue.join(words))
    assert REDACTOR.text(text) == Redactor(rules=own).text(text)


def test_a_known_value_goes_even_where_it_is_a_plain_word() -> None:
    """Known values are looked for first."""
    redactor = Redactor()
    redactor.add_secret("letmein")
    assert redactor.text("letmein") == "[secret]"
    assert redactor.text("say letmein now") == "say [secret] now"
