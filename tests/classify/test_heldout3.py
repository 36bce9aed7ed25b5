"""Chinese services, other languages, failures inside a 200, tools of agents: seven sets, one after another.

836 answers, texts and tool results, each set labelled before the rules of that moment met it and worked out
before the next was written. `first_try`: the category was right at once (724); `first_all`: category, code, effect,
retry and told wait were (687). By set, all of it right at first try: 145 of 177, 80 of 106, 108 of 133, 93 of 110,
92 of 113, 74 of 99, 95 of 98. Sets 2 to 5 avoid on purpose what had been said before; the last has the wording
that services use most. The rules have seen all of them since. The wordings are our own, after the services'.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from failwise.classify.contract import answer

_ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("heldout3.jsonl").read_text("utf-8").splitlines()
]
_FIRST = {"1": 145, "1b": 80, "2": 108, "3": 93, "4": 92, "5": 74, "6": 95}


def _given(row: dict[str, Any]) -> dict[str, Any]:
    verdict = answer(row)
    return {**verdict, "retry_after": verdict["retry_after_s"]}


def _near(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return got in wanted
    return bool(got == wanted or (got and wanted and abs(got - wanted) < 0.5))


def test_the_first_figures_are_kept() -> None:
    """What was right before the rules knew a row stays known, set by set."""
    first = Counter(row["id"].partition("-")[0] for row in _ROWS if row["first_all"])
    assert first == Counter(_FIRST)
    assert (sum(row["first_try"] for row in _ROWS), len(_ROWS)) == (724, 836)


def test_all_of_it() -> None:
    """At least 99 % in each of category, code, effect, retry and told wait."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    wrong = []
    for row in _ROWS:
        got = _given(row)
        for name, wanted in row["expect"].items():
            asked[name] += 1
            right[name] += _near(got[name], wanted)
            if not _near(got[name], wanted):
                wrong.append((row["id"], name, got[name], got["rule"]))
    for name, number in asked.items():
        assert right[name] >= 0.99 * number, wrong


def test_no_success_is_called_a_failure() -> None:
    """Odd codes, reads about failures, settings, counts of zero, in all languages."""
    fine = [row for row in _ROWS if row["expect"]["category"] == ["success"]]
    assert len(fine) >= 150
    wrong = [row["id"] for row in fine if _given(row)["category"] != "success"]
    assert len(wrong) <= 1, wrong


def test_where_something_may_have_happened_nothing_else_is_said() -> None:
    """Where only ``unknown`` is right, no row says that nothing was sent or done."""
    for row in _ROWS:
        if row["expect"].get("effect") == ["unknown"]:
            assert _given(row)["effect"] == "unknown", row["id"]
