"""Computes the tables of docs/simulation.md again: `python scripts/simulation_page.py [SCENARIO ...]`, some minutes.

A table stands between two comments. The first says what is played, which policies, which columns:
``<!-- simulate SCENARIO | POLICY, ... | COLUMN, ... -->``, and the last ``<!-- end -->``.
"""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from failwise.simulation import Outcome, Scenario, compare, load
from failwise.simulation.contenders import contender, title
from failwise.simulation.wording import figures, words

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "simulation.md"
_TABLE = re.compile(r"<!-- simulate (.*?) \| (.*?) \| (.*?) -->\n(.*?)<!-- end -->", re.DOTALL)


@dataclass
class Shown:
    """One table of the page: what it plays and what it shows."""

    source: str
    policies: list[str]
    columns: list[str]
    text: str

    @property
    def mark(self) -> str:
        """The comment above it."""
        return f"<!-- simulate {self.source} | {', '.join(self.policies)} | {', '.join(self.columns)} -->\n"

    @property
    def scenario(self) -> Scenario:
        path = ROOT / self.source
        return load(path if path.is_file() else self.source)

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """The cells as the page has them, by policy and column."""
        lines = [line.strip("| ").split(" | ") for line in self.text.splitlines()[2:]]
        return {
            policy: dict(zip(self.columns, cells[1:], strict=True))
            for policy, cells in zip(self.policies, lines, strict=True)
        }


def shown(text: str) -> list[Shown]:
    """The tables of a page."""
    return [
        Shown(found[1], found[2].split(", "), found[3].split(", "), found[4])
        for found in _TABLE.finditer(text)
    ]


def table(asked: Shown, outcomes: list[Outcome]) -> str:
    """A table as the page has it."""
    said, scenario = words("en"), asked.scenario
    lines = [
        f"| {' | '.join(['policy', *(said[name] for name in asked.columns)])} |",
        f"| --- |{' ---: |' * len(asked.columns)}",
    ]
    for outcome in outcomes:
        cells = figures(outcome, "en")
        name = title(contender(outcome.name, scenario), "en")
        lines.append(f"| {' | '.join([name, *(cells[each] for each in asked.columns)])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = PAGE.read_text("utf-8")
    for asked in shown(text):
        if sys.argv[1:] and asked.source not in sys.argv[1:]:
            continue
        began = time.process_time()
        made = table(asked, compare(asked.scenario, asked.policies))
        text = text.replace(f"{asked.mark}{asked.text}", f"{asked.mark}{made}")
        print(f"{asked.source}: {time.process_time() - began:.0f} s", file=sys.stderr)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
