"""What tools hand back to agents: MCP servers, frameworks' wrappers, agents' shells and editors, half of it Chinese.

219 results and texts as threads and public code show them (`source`), with hosts, ids and names changed,
labelled before the rules of that moment met them. `first_try`: the category was right at once;
`first_all`: category, code, effect, retry and told wait were. By round, all of it right at first try: 61 of
92, 51 of 74 and 32 of 53; one label was a slip and was corrected, its first figure was not. What was mended
after a round helped the next little: each house says its refusals in words of its own. The rules have seen
all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout6_results.jsonl")


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == {1: 61, 2: 51, 3: 32}
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (150, 219)


def test_what_is_right_now() -> None:
    """At least 91 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.91, wrong


def test_successes_that_look_bad() -> None:
    """Guides, hits of searches, code, empty results: one exit code that its runner explains away is not seen."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 25
    assert len(wrong) <= 1, wrong


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    assert recorded.called_safe(_ROWS) == []
