"""Single sentences that tools hand back, written by somebody who had never seen the rules: 200 in English, 200 in
Chinese and seven further languages; of each 130 refuse, in as many ways as there are programmers.

The category was right of 95 and 109 before the rules knew any of them. What is missed is called content, which costs less
than content called a failure: of 140 good ones 3 were. The rules have seen a part of the kinds since, not the rows.
"""

from collections import Counter

import pytest

from failwise.classify import Classifier
from failwise.evidence import from_value
from failwise.vocabulary.kinds import Effect
from tests.classify import recorded

_ROWS = recorded.rows("heldout6_sentences.jsonl")


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known."""
    assert Counter(row["round"] for row in _ROWS) == {"en": 200, "zh": 200}
    assert Counter(row["round"] for row in _ROWS if row["first_try"]) == {"en": 95, "zh": 109}


def test_categories() -> None:
    """At least 55 of 100 have their category; none that had it at first has lost it."""
    shares, wrong = recorded.shares(_ROWS)
    assert shares["category"] >= 0.55
    lost = {row["id"] for row in _ROWS if row["first_try"]} & {one[0] for one in wrong}
    assert lost == set()


def test_content_is_no_failure() -> None:
    """Of 140 answers, rules and facts that use the words of failing at most 3 are called failures."""
    wrong, of = recorded.called_failures(_ROWS)
    assert of >= 135
    assert len(wrong) <= 3, wrong


@pytest.mark.parametrize(
    "text",
    [
        "2 of 5 emails could not be delivered.",
        "Paper jam in tray 2, job 114 halted.",
        "Only the first 3 rows were written, the rest was not saved.",
        "没有可用的 runner，任务排队超过1小时后被系统终止。",
        "系统繁忙",
        "模型繁忙，请稍候",
    ],
)
def test_what_stopped_halfway_is_never_said_to_have_done_nothing(text: str) -> None:
    """A part of it may have happened: a refusal's form must not call that safe, nor say that it may be repeated."""
    failure = Classifier().classify(from_value(text))
    assert failure is None or (failure.effect is Effect.UNKNOWN and not failure.transient)
