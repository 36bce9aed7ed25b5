"""The words of verdicts, lists and alarms, and the table of turns."""

import re
import tomllib
from importlib import resources
from typing import get_args

import pytest

from failwise.insight.clusters import Trend
from failwise.insight.turns import Turn, turn_of
from failwise.vocabulary.codes import registry


@pytest.mark.parametrize("name", ["verdict.toml", "clusters.toml"])
def test_both_languages_say_the_same(name: str) -> None:
    """The same sentences in both languages, with the same facts in them."""
    text = resources.files("failwise.insight").joinpath(name).read_text("utf-8")
    words = tomllib.loads(text)
    assert words["en"].keys() == words["zh"].keys()
    for key, sentence in words["en"].items():
        facts = set(re.findall(r"\{(\w+)\}", sentence))
        assert set(re.findall(r"\{(\w+)\}", words["zh"][key])) == facts, key


def test_every_turn_and_trend_has_words() -> None:
    """Whatever a cluster says of itself can be said to a person."""
    text = resources.files("failwise.insight").joinpath("clusters.toml").read_text("utf-8")
    verdict = resources.files("failwise.insight").joinpath("verdict.toml").read_text("utf-8")
    words, said = tomllib.loads(text)["en"], tomllib.loads(verdict)["en"]
    for turn in get_args(Turn):
        assert f"turn_{turn}" in words
        assert turn in said
    assert all(f"trend_{trend}" in words for trend in get_args(Trend) if trend)


def test_every_code_is_somebodys_turn() -> None:
    """Each registered code has a turn; only what no rule knows has an unknown one."""
    for name, code in registry().items():
        turn = turn_of(code.category.value, name)
        assert turn in get_args(Turn)
        assert (turn == "unknown") == (code.category.value == "unknown")
    assert turn_of("business", "business.seat_taken") == "user"
    assert turn_of("nothing", "nothing.known") == "unknown"
