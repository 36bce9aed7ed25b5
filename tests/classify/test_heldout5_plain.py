"""What tools say in plain words when they refuse: short sentences, in ten languages, without any wrapper.

170 rows, written after what tools and services say and labelled before the rules met them (the category
alone). At first try 53 of 60, 39 of 60 and 31 of 50: in the second and third nearly all are single sentences,
which were taken for content; of those that are content none was called a failure. The rules have seen them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout5_plain.jsonl")


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_try"]) == {1: 53, 2: 39, 3: 31}


def test_categories() -> None:
    """At least 95 of 100 have their category."""
    shares, wrong = recorded.shares(_ROWS)
    assert shares["category"] >= 0.95, wrong


def test_no_success_is_called_a_failure() -> None:
    """Pages, reports and answers that speak of failures."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 25
    assert wrong == []
