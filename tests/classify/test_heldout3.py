"""Chinese services, other languages, failures inside a 200, tools of agents: seven sets, one after another.

836 answers, texts and tool results, each set labelled before the rules of that moment met it and worked out
before the next was written. `first_try`: the category was right at once (724); `first_all`: category, code, effect,
retry and told wait were (687). By set, all of it right at first try: 145 of 177, 80 of 106, 108 of 133, 93 of 110,
92 of 113, 74 of 99, 95 of 98. Sets 2 to 5 avoid on purpose what had been said before; the last has the wording
that services use most. The rules have seen all of them since. The wordings are our own, after the services'.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout3.jsonl")
_FIRST = {"1": 145, "1b": 80, "2": 108, "3": 93, "4": 92, "5": 74, "6": 95}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, set by set."""
    first = Counter(row["id"].partition("-")[0] for row in _ROWS if row["first_all"])
    assert first == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (724, 836)


def test_all_of_it() -> None:
    """At least 99 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.99, wrong


def test_no_success_is_called_a_failure() -> None:
    """Odd codes, reads about failures, settings, counts of zero, in all languages."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 150
    assert len(wrong) <= 1, wrong


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    assert recorded.called_safe(_ROWS) == []
