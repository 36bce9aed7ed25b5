"""Log lines, stack traces and console output of language runtimes, drivers, gateways and shells: two rounds.

72 texts as threads show them (`source`), with hosts, ids and names changed; labelled before the rules of
that moment met them. `first_try`: the category was right at once; `first_all`: category, code, effect, retry
and told wait were: 38 of 51, then 17 of 21. The rules have seen all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout5_runtimes.jsonl")
_FIRST = {1: 38, 2: 17}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (59, 72)


def test_all_of_it() -> None:
    """At least the kept share in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.98, wrong


def test_successes_that_look_bad() -> None:
    """Connections that stood, checks that ended, runs that completed."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 7
    assert wrong == [], wrong


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    said = recorded.called_safe(_ROWS)
    assert said == []
