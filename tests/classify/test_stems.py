"""The rules of the last resort: rough, last, and only where it is certain that something failed."""

import time

import pytest

from failwise.classify import Classifier, classify_text
from failwise.classify.tables import TextRule, stem_rules
from failwise.classify.text import TEXT_LIMIT, TextMatcher
from failwise.evidence import from_value
from failwise.vocabulary.codes import lookup
from failwise.vocabulary.kinds import Effect


@pytest.mark.parametrize("rule", stem_rules(), ids=lambda rule: rule.id)
def test_example_and_counter_example(rule: TextRule) -> None:
    """Each speaks of its example, not of its counter-example, and takes bounded time."""
    alone = TextMatcher((rule,))
    assert alone.match(rule.example)
    assert not alone.match(rule.counter)
    for text in ((rule.need[0] + " ") * (TEXT_LIMIT // (len(rule.need[0]) + 1)), "a" * TEXT_LIMIT):
        begun = time.process_time()
        alone.match(text)
        assert time.process_time() - begun < 0.5


def test_a_rough_word_makes_nothing_safe() -> None:
    """What time cures is never said to have had no effect on a rough word, except a limit."""
    for rule in stem_rules():
        code = lookup(rule.code)
        assert code is not None
        if code.transient and not rule.code.startswith("rate_limit."):
            assert rule.effect is Effect.UNKNOWN, rule.id


def test_only_what_failed_for_certain() -> None:
    """A body that failed is named by its stem; the same words in a log or in content are not."""
    said = "El correo electrónico no tiene un formato válido"
    failed = Classifier().classify(from_value({"ok": False, "mensaje": said}))
    assert failed is not None
    assert failed.code == "invalid_request.parameter"
    assert failed.rule == "text.stem.parameter"
    assert classify_text(said) is None
    assert Classifier().classify(from_value({"nota": said})) is None


def test_what_no_stem_knows_stays_a_refusal() -> None:
    """Nothing is guessed: business, with the provider's own words."""
    failed = Classifier().classify(from_value({"code": 10001, "msg": "frobnication is off"}))
    assert failed is not None
    assert failed.code == "business.refused"
    busy = Classifier().classify(from_value("Something went wrong"))
    assert busy is None or busy.code == "unknown.unclassified"
