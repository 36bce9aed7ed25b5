"""What tools say in plain words when they refuse: short sentences, in ten languages, without any wrapper.

120 rows, written after what tools and services say and labelled before the rules met them (the category
alone). At first try 53 of 60 and, nearly all of them single sentences, 39 of 60: a sentence without a
wrapper was taken for content. The rules have seen them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout5_plain.jsonl")


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_try"]) == {1: 53, 2: 39}


def test_categories() -> None:
    """At least 95 of 100 have their category."""
    shares, wrong = recorded.shares(_ROWS)
    assert shares["category"] >= 0.95, wrong


def test_no_success_is_called_a_failure() -> None:
    """Pages, reports and answers that speak of failures."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 10
    assert wrong == []
