"""Chinese services and clients, and those of eleven other languages: four rounds, one after another.

391 answers, texts and tool results as threads and documents show them (`source`), with hosts, ids and names
changed: 190 in Chinese, the others in Portuguese, Russian, French, Japanese, Korean, Spanish, German,
traditional characters, Italian, and English of such services. Each round was labelled before the rules of that
moment met it, and worked out before the next was gathered. `first_try`: the category was right at once;
`first_all`: category, code, effect, retry and told wait were. By round, all of it right at first try: 86 of
124, 78 of 107, 84 of 104, 38 of 56. The rules have seen all of them since.
"""

from collections import Counter

from tests.classify import recorded

_ROWS = recorded.rows("heldout4_languages.jsonl")
_FIRST = {1: 86, 2: 78, 3: 84, 4: 38}


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, round by round."""
    assert Counter(row["round"] for row in _ROWS if row["first_all"]) == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (308, 391)


def test_all_of_it() -> None:
    """At least 96 % in each of category, code, effect, retry and told wait."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.96, wrong


def test_successes_that_look_bad() -> None:
    """Answers that speak of errors, calm log lines, an attempt that went well after others had not."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of > 0
    assert len(wrong) <= 1, wrong


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    assert recorded.called_safe(_ROWS) == []
