"""Measure how often each classification rule is right, and write the figures down.

    measure_confidence.py CASES.jsonl ... [--check]

CASES hold labelled cases, one a line: ``{"id", "kind", "input", "expect": {"category": [...]}}`` with kind
``text``, ``http`` or ``tool_result``; ``first_try`` (true or false), where it is known, says whether the rules
were right before anybody had seen the case. A case counts for the rule that decides it, and as right when the
category is among the defensible ones; a success that is called a failure counts against the rule that did
it; "no rule knows it" claims nothing and is not counted. Writes
``src/failwise/classify/rules/confidence.toml``, which `Failure.confidence` is read from; ``--check`` writes
nothing, and ends with 1 where the file is not what it would write.

What is estimated is how often a rule will be right on the next failure. Rules are changed until the known
cases are right, so these alone prove little. Therefore:

- a case that was wrong at first try had rules changed for it: it counts for no rule, unless it is still wrong;
- a family's confidence is its share of right verdicts *at first try*, on the cases where that is known. A case that no
  rule knew then counts against the family that knows it now, so the figure is rather too low than too high. It
  is drawn to the share of all families by `WEIGHT` cases;
- a rule's confidence is its own share, drawn to its family's by `WEIGHT` cases: (right + WEIGHT · family) / (samples + WEIGHT).
  One case moves it little, twenty count for more than the family (empirical Bayes with a fixed prior weight);
- a profile row that nobody could confirm is multiplied by Laplace's (right + 1) / (cases + 2) over the cases that
  such rows decided: 1/2 while there are none.
"""

import argparse
import collections
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from failwise.classify.confidence import FAMILIES, family
from failwise.classify.contract import evidence_of
from failwise.classify.judge import Judge
from failwise.profiles.library import Profiles
from failwise.vocabulary.kinds import Category

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "src/failwise/classify/rules/confidence.toml"
DATA: Final = (
    ROOT.parent / "shared/cases/failures.jsonl",
    ROOT / "tests/classify/heldout.jsonl",
    ROOT / "tests/classify/heldout3.jsonl",
)
"""The labelled cases that the committed file was measured on."""
WEIGHT: Final = 5
"""How many cases the group behind a figure counts for."""


class Verdict(NamedTuple):
    """One labelled case that a rule decided."""

    rule: str
    family: str
    right: bool
    first_try: bool | None
    confirmed: bool


def verdicts(paths: Iterable[Path]) -> Iterator[Verdict]:
    """What the rules of today say of the labelled cases; cases without a failure found are left out."""
    judge = Judge(Profiles.default())
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            case: dict[str, Any] = json.loads(line)
            if case["kind"] == "arguments":
                continue
            evidence = evidence_of(case["kind"], case["input"])
            finding = judge.judge(evidence, profile=None, now=0.0).finding
            if finding is None or finding.category == Category.UNKNOWN:
                continue
            right = finding.category in case["expect"]["category"]
            yield Verdict(
                finding.rule, family(finding), right, case.get("first_try"), finding.confirmed
            )


def drawn(right: float, samples: int, towards: float) -> float:
    """A share, drawn to another by `WEIGHT` cases."""
    return (right + WEIGHT * towards) / (samples + WEIGHT)


def render(found: list[Verdict]) -> str:
    """The data file."""
    unseen = [one for one in found if one.first_try is not None]
    overall = sum(bool(one.first_try) for one in unseen) / len(unseen) if unseen else 0.5
    lines = [
        "# Measured by scripts/measure_confidence.py, which says how; never edited by hand.",
        "# Of `samples` labelled cases that a rule decided, `right` had a defensible category. Families: at first try.",
        "",
        "[family]",
    ]
    families = {}
    for name in FAMILIES:
        mine = [one for one in unseen if one.family == name]
        right = sum(bool(one.first_try) for one in mine)
        families[name] = round(drawn(right, len(mine), overall), 3)
        lines.append(_row(name, right, len(mine), families[name]))
    loose = [one.right for one in found if not one.confirmed]
    share = round((sum(loose) + 1) / (len(loose) + 2), 3)
    lines += ["", "[unconfirmed]", f"confidence = {share}", f"samples = {len(loose)}", "", "[rule]"]
    by_rule = collections.defaultdict(list)
    for one in found:
        if one.first_try is not False or not one.right:
            by_rule[one.rule].append(one)
    for name, mine in sorted(by_rule.items()):
        right = sum(one.right for one in mine)
        figure = round(drawn(right, len(mine), families[mine[0].family]), 3)
        lines.append(_row(name, right, len(mine), figure))
    return "\n".join(lines) + "\n"


def _row(name: str, right: int, samples: int, confidence: float) -> str:
    return f'"{name}" = {{right = {right}, samples = {samples}, confidence = {confidence}}}'


def main() -> int:
    """Measure, then write or compare."""
    parser = argparse.ArgumentParser(description="measure how often each rule is right")
    parser.add_argument("cases", nargs="*", type=Path, default=list(DATA), metavar="CASES.jsonl")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    given = parser.parse_args()
    missing = [str(path) for path in given.cases if not path.is_file()]
    if missing:
        parser.error(f"not there: {', '.join(missing)}")
    text = render(list(verdicts(given.cases)))
    if given.check:
        return 0 if TARGET.read_text("utf-8") == text else 1
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
