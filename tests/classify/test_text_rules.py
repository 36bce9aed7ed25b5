"""The text rules as data: every example matches, no counter-example does, and none is slow."""

import time

import pytest

from failwise.classify.tables import (
    TEXT_FILES,
    TextRule,
    parse_rules,
    read_toml,
    status_rows,
    text_rules,
)
from failwise.classify.text import TEXT_LIMIT, TextMatcher, match, words_of
from failwise.vocabulary.errors import ConfigurationError

RULES = text_rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_example_matches_and_counter_example_does_not(rule: TextRule) -> None:
    """Each rule speaks of its example, and not of its counter-example."""
    alone = TextMatcher((rule,))
    assert alone.match(rule.example)
    assert not alone.match(rule.counter)


def test_ids_are_unique_over_all_files() -> None:
    """A rule id names one rule, whichever file it stands in."""
    identities = [rule.id for rule in RULES]
    assert len(identities) == len(set(identities))


def test_order_in_the_file_means_nothing() -> None:
    """Strength decides: the same rules in reverse order say the same."""
    text = "HTTPSConnectionPool: Max retries exceeded with url: / (Caused by SSLError(certificate has expired))"
    forward = {finding.rule for finding in TextMatcher(RULES).match(text)}
    backward = {finding.rule for finding in TextMatcher(RULES[::-1]).match(text)}
    assert forward == backward
    assert (
        max(match(text), key=lambda finding: finding.order).code == "security.certificate_expired"
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_no_pattern_is_worse_than_linear_on_hostile_text(rule: TextRule) -> None:
    """Literals repeated up to the limit, with near misses between them, take bounded time."""
    if rule.pattern is None:
        return
    hostile = [
        (rule.need[0] + " ") * (TEXT_LIMIT // (len(rule.need[0]) + 1)),
        "a" * TEXT_LIMIT,
        (rule.example.lower()[:-1] + " ") * (TEXT_LIMIT // max(1, len(rule.example))),
        "(" * TEXT_LIMIT,
        " 1" * (TEXT_LIMIT // 2),
    ]
    for text in hostile:
        begun = time.process_time()
        for _ in rule.pattern.finditer(text[:TEXT_LIMIT]):
            pass
        assert time.process_time() - begun < 0.5


def test_a_wrong_rule_is_refused_with_file_and_line() -> None:
    """An unknown code is named with the line it stands on."""
    text = 'rules = [\n  {id = "x", strength = 50, need = ["x"], code = "network.nope", effect = "unknown", example = "x", counter = "y"},\n]\n'
    import tomllib

    with pytest.raises(ConfigurationError, match=r"my\.toml:2: .*network\.nope") as raised:
        parse_rules(text, tomllib.loads(text)["rules"], "my.toml")
    assert raised.value.line == 2


@pytest.mark.parametrize(
    "change",
    [
        {"need": []},
        {"need": ["Upper"]},
        {"strength": 0},
        {"effect": "maybe"},
        {"pattern": "("},
        {"fix_by": "god"},
    ],
)
def test_each_fault_of_a_rule_is_refused(change: dict[str, object]) -> None:
    """Missing literals, wrong strength, unknown words and broken patterns are errors at load."""
    row: dict[str, object] = {
        "id": "x",
        "strength": 50,
        "need": ["x"],
        "code": "network.timeout",
        "effect": "unknown",
        "example": "x",
        "counter": "y",
    }
    with pytest.raises(ConfigurationError):
        parse_rules("", [row | change], "my.toml")


def test_every_shipped_file_is_read() -> None:
    """The list of files and the files agree."""
    assert sum(len(read_toml(f"{name}.toml")[1]["rules"]) for name in TEXT_FILES) == len(RULES)


def test_every_status_row_has_a_registered_code() -> None:
    """The status table loads, and 408, 502, 504 are network."""
    rows = status_rows()
    assert {rows[status].code.partition(".")[0] for status in (408, 502, 504)} == {"network"}


def test_codes_are_spelled_out() -> None:
    """CamelCase, dots and underscores become words for the rules to read."""
    assert words_of("AuthFailure.SignatureFailure").endswith("Auth Failure Signature Failure")
    assert words_of("insufficient_quota") == "insufficient_quota | insufficient quota"


def test_no_rule_waits_for_a_single_letter() -> None:
    """One letter or digit stands in nearly every text: each of them would be searched by the rule."""
    assert [rule.id for rule in RULES for one in rule.need if one.isascii() and len(one) < 2] == []
