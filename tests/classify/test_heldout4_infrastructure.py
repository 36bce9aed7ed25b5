"""Databases, queues, clouds, clusters, packages, shells, mail and gRPC: three rounds, one after another.

322 texts, answers and tool results, each round labelled before the rules of that moment met it and worked out
before the next was drawn. `first_try`: the category was right at once (252); `first_all`: category, code, effect,
retry and told wait were (240). By round, all of it right at first try: 84 of 131, 82 of 100, 74 of 91. The rules
have seen all of them since. Names, addresses and paths are invented; the words are the programs' own.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout4_infrastructure.jsonl")
_FIRST = {1: 84, 2: 82, 3: 74}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (252, 322)


def test_all_of_it() -> None:
    """At least 98 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.98, wrong


def test_successes_that_look_bad() -> None:
    """Progress, listings and logs of work that went well."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of > 0
    assert wrong == []


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    said = recorded.called_safe(_ROWS)
    assert said == []
