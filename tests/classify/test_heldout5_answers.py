"""HTTP answers of services for which there is no profile: carriers, banks, exchanges, devices, schools, governments.

Answers as threads, documents and public code show them (`source`), with hosts, ids and names changed; each
round was labelled before the rules of that moment met it, and worked out before the next was gathered.
`first_try`: the category was right at once; `first_all`: category, code, effect, retry and told wait were.
By round, all of it right at first try: 107 of 131. One label was a slip (a success that had been given a
code) and was corrected. The rules have seen all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout5_answers.jsonl")
_FIRST = {1: 107}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (111, 131)


def test_all_of_it() -> None:
    """At least 98.5 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.985, wrong


def test_successes_that_look_bad() -> None:
    """Odd codes of success, empty error lists, and messages that only tell how it went."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 9
    assert wrong == []


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    assert recorded.called_safe(_ROWS) == []
