"""What tools hand back: MCP servers, benchmarks' tools, agents' editors, shops, payments; in nine languages.

186 results and texts as threads and public code show them (`source`), with ids and names changed, labelled
before the rules of that moment met them. `first_try`: the category was right at once; `first_all`: category,
code, effect, retry and told wait were. By round, all of it right at first try: 66 of 106 and 58 of 80. What was
mended after the first round did not help the second: single sentences are said in too many ways. The rules
have seen all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout5_tools.jsonl")


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == {1: 66, 2: 58}
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (128, 186)


def test_what_is_right_now() -> None:
    """At least 88 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.88, wrong


def test_successes_that_look_bad() -> None:
    """Policies, guides, empty results, codes of success, confirmations: none is called a failure."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 29
    assert wrong == []


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    assert recorded.called_safe(_ROWS) == []
