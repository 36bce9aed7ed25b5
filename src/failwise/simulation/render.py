"""Outcomes as a table for a terminal, in English or Chinese."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from failwise.simulation.scenario import Scenario
from failwise.simulation.tally import Outcome
from failwise.simulation.wording import columns, figures, words
from failwise.vocabulary.result import Language

if TYPE_CHECKING:
    from rich.console import Console


def render(
    scenario: Scenario, outcomes: Sequence[Outcome], console: "Console", *, lang: Language = "en"
) -> None:
    """Print how each contender fared. Names from files are shown as text, never read as markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    said, agents = words(lang), scenario.agents
    console.print(Text(scenario.title(lang)), style="bold")
    console.print(
        Text(
            said["setting"].format(
                agents=f"{agents.count:,}",
                processes=agents.processes,
                minutes=f"{scenario.seconds / 60:g}",
                seed=scenario.seed,
            )
        )
    )
    shown = columns(list(outcomes))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(said["contender"], no_wrap=True)
    for name in shown:
        table.add_column(said[name], justify="right", overflow="fold")
    for outcome in outcomes:
        row = figures(outcome, lang)
        table.add_row(Text(outcome.name), *(Text(row[name]) for name in shown))
    console.print(table)
    console.print(Text(said["columns_note"].format(step=f"{scenario.step:g}")), style="dim")
