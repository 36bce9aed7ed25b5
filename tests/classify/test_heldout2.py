"""The hard kinds, in wording looked up at the services themselves or composed to a known kind.

A second held-out set: 150 answers, texts and tool results, labelled before the rules met them; each
row says where its wording comes from (`origin`) and whether that day's rules were right in all
it asks (`first_try`): 82 of the first 100 (category alone 87), and after the rules were mended 38 of
50 more (numbers 501 to 550, category alone 44). The rules have seen them since.
"""

from tests.classify import recorded

_ROWS = recorded.rows("heldout2.jsonl")
KINDS = {
    "money", "rate", "throttle", "token", "clock", "404", "409", "200", "200-fine", "beside", "batch",
    "tls-words", "wait", "symptom", "unknown-code", "login", "login-fine",
}  # fmt: skip


def test_the_set_covers_the_hard_kinds_and_keeps_its_first_figure() -> None:
    """Every kind is there, and what the rules got right before they knew the rows stays known."""
    assert {row["group"] for row in _ROWS} == KINDS
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (120, 150)
    assert all(row["origin"] for row in _ROWS)


def test_the_hard_kinds() -> None:
    """At least 99 % in category, code and effect, and every wait, told or not."""
    shares, wrong = recorded.shares(_ROWS)
    assert min(shares.values()) >= 0.99, wrong
    assert shares["retry_after"] == 1.0, wrong


def test_an_unknown_effect_is_never_said_to_be_none() -> None:
    """Where something may have happened, no row says that nothing was sent."""
    assert recorded.called_safe(_ROWS) == []


def test_no_success_of_this_set_is_called_a_failure() -> None:
    """Odd codes, reads about failures, warnings beside a complete answer."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 12
    assert wrong == []
