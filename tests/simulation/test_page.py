"""The figures of docs/simulation.md are those that its scenarios give."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from failwise.simulation import compare, parse
from failwise.simulation.wording import figures

ROOT = Path(__file__).parents[2]
EXACT = ("second_fault", "loop", "examples/scenarios/jitter.toml")
"""Played as they are; the others with fewer agents, at which the shares stay about the same."""

SMALL = {
    "brown_out": 100,
    "examples/scenarios/retries.toml": 80,
    "examples/scenarios/breaker_times.toml": 40,
    "examples/scenarios/partial.toml": 100,
    "rate_limit": 60,
    "outage": 50,
    "slow_recovery": 100,
    "deploy": 50,
    "large_fleet": 1000,
}
PLAYED = ("failwise", "blanket", "three", "open_30")
"""Of each table, those rows: ours, and the plainest other."""


def script() -> ModuleType:
    """scripts/simulation_page.py, which computes the tables."""
    place = importlib.util.spec_from_file_location(
        "simulation_page", ROOT / "scripts" / "simulation_page.py"
    )
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    sys.modules[place.name] = module
    place.loader.exec_module(module)
    return module


PAGE = (ROOT / "docs" / "simulation.md").read_text("utf-8")
TABLES: list[Any] = script().shown(PAGE)


def tables(sources: Any) -> list[Any]:
    return [each for each in TABLES if each.source in sources]


def test_the_page_has_a_table_for_each_scenario_known_here() -> None:
    """None is forgotten when the page grows."""
    assert {each.source for each in TABLES} == {*EXACT, *SMALL}


@pytest.mark.parametrize("asked", tables(EXACT), ids=EXACT)
def test_figures_are_exactly_those_of_the_scenario(asked: Any) -> None:
    """The same seed gives the same table, whoever computes it."""
    assert asked.text == script().table(asked, compare(asked.scenario, asked.policies))


@pytest.mark.parametrize("asked", tables(SMALL), ids=[each.source for each in tables(SMALL)])
def test_figures_hold_for_a_small_fleet_too(asked: Any) -> None:
    """Shares and whether the fleet recovers at all: about as the page has them."""
    policies = [name for name in asked.policies if name in PLAYED]
    for outcome in compare(asked.scenario.scaled(SMALL[asked.source]), policies):
        row = asked.rows[outcome.name]
        now = figures(outcome, "en")
        for column in ("per_call", "in_trouble"):
            if column in row:
                assert float(now[column]) == pytest.approx(float(row[column]), rel=0.35, abs=0.25)
        if "success" in row:
            told = float(row["success"].rstrip("%"))
            assert 100 * outcome.success_rate == pytest.approx(told, abs=6.0), outcome.name
        if "recovery" in row:
            assert (now["recovery"] == "never") == (row["recovery"] == "never"), outcome.name
        if row.get("duplicates") == "0":
            assert outcome.duplicates == 0, outcome.name


def test_the_example_of_a_scenario_can_be_played() -> None:
    """What the page tells to write is accepted, and each of its policies gives a row."""
    found = re.search(r"```ini\n(title.*?)```", PAGE, re.DOTALL)
    assert found is not None
    scenario = parse(found[1], file="page.toml").lasting(60)
    assert [outcome.calls > 0 for outcome in compare(scenario)] == [True, True, True]
