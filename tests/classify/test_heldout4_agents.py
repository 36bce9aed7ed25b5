"""Models and their servers, agents' frameworks, MCP, vector stores, sandboxes: eight rounds, one after another.

766 texts, answers and tool results as threads and documents show them (`source`), with hosts, ids and
names changed; each round was labelled before the rules of that moment met it, and worked out before the
next was gathered. `first_try`: the category was right at once; `first_all`: category, code, effect, retry
and told wait were. By round, all of it right at first try: 105 of 123, 114 of 147, 102 of 131, 83 of 105,
82 of 104, 55 of 68, 29 of 46, 33 of 42. Eight labels were slips and were corrected; their first figures
were not. The rules have seen all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout4_agents.jsonl")
_FIRST = {1: 105, 2: 114, 3: 102, 4: 83, 5: 82, 6: 55, 7: 29, 8: 33}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (630, 766)


def test_all_of_it() -> None:
    """At least 98 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.98, wrong


def test_successes_that_look_bad() -> None:
    """Answers that speak of errors, calm log lines, finished runs, results of searches."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 72
    assert wrong == []


def test_no_failure_is_called_a_success() -> None:
    """Where a success is no right answer, all but two are failures."""
    bad = [row for row in _ROWS if "success" not in row["expect"]["category"]]
    missed = [row["id"] for row in bad if recorded.given(row)["category"] == "success"]
    assert len(missed) <= 2, missed


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row but one says anything else."""
    said = recorded.called_safe(_ROWS)
    assert len(said) <= 1, said
