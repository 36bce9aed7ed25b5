"""Measure how often each band of classification rules is right, and write the figures down.

    measure_confidence.py CASES.jsonl

CASES holds labelled cases, one a line: ``{"id", "kind", "input", "expect": {"category": [...]}}`` with
kind ``text``, ``http`` or ``tool_result``. A verdict counts as right when its category is among the
defensible ones. Typed evidence (structure, profiles) is counted wherever it spoke, texts where they
decided. Successes are no rule's merit and are left out. Writes
``src/failwise/classify/rules/confidence.toml``; `Failure.confidence` is read from there, never typed in.
"""

import collections
import json
import sys
from pathlib import Path

from failwise.classify.confidence import band
from failwise.classify.contract import evidence_of
from failwise.classify.judge import Judge
from failwise.profiles.library import Profiles

TARGET = Path(__file__).parents[1] / "src/failwise/classify/rules/confidence.toml"


def measure(path: Path) -> dict[str, tuple[int, int]]:
    """Right and all verdicts of each band."""
    judge = Judge(Profiles.default())
    right: collections.Counter[str] = collections.Counter()
    seen: collections.Counter[str] = collections.Counter()
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] == "arguments":
            continue
        judgement = judge.judge(evidence_of(case["kind"], case["input"]), profile=None, now=0.0)
        if judgement.finding is None:
            continue
        typed = [one for one in judgement.spoke if one.family in ("structure", "profile")]
        for finding in {
            band(one): one for one in (*sorted(typed, key=lambda one: one.order), judgement.finding)
        }.values():
            name = band(finding)
            seen[name] += 1
            right[name] += finding.category in case["expect"]["category"]
    return {name: (right[name], seen[name]) for name in sorted(seen)}


def render(figures: dict[str, tuple[int, int]], source: str) -> str:
    """The data file. Precision by Laplace's rule of succession, so that few cases prove little."""
    lines = [
        "# Measured by scripts/measure_confidence.py, never edited by hand: of `samples` labelled cases in",
        "# which a rule of this band spoke, `right` had a defensible category; precision = (right + 1) / (samples + 2).",
        f"# Cases: {source}, arguments left out.",
        "",
    ]
    for name, (right, seen) in figures.items():
        precision = round((right + 1) / (seen + 2), 3)
        lines += [
            f'[band."{name}"]',
            f"precision = {precision}",
            f"right = {right}",
            f"samples = {seen}",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write."""
    path = Path(sys.argv[1])
    TARGET.write_text(render(measure(path), path.name), "utf-8")


if __name__ == "__main__":
    main()
