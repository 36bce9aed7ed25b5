"""Scenario files: what they may say, and how a mistake is reported."""

import pytest

from failwise.simulation import built_in, load, parse
from failwise.simulation.contenders import contender, names
from failwise.vocabulary.errors import ConfigurationError, UsageError

SMALL = """\
title = "small"
seconds = 60

[agents]
count = 10
think = 5.0

[[tools]]
name = "search"

[upstreams.shop]
median = 0.1

[[events]]
kind = "outage"
from = 10
to = 20
"""


@pytest.mark.parametrize("name", built_in())
def test_every_built_in_scenario_is_sound_in_both_languages(name: str) -> None:
    """It can be read, has a title in English and Chinese, and names policies that exist."""
    scenario = load(name)
    assert scenario.title("en") != scenario.title("zh")
    assert scenario.trouble is None or scenario.trouble[1] <= scenario.seconds
    for each in scenario.compare:
        contender(each, scenario)


def test_there_is_a_scenario_for_each_kind_of_event() -> None:
    """Outage, brown-out, rate limit, slow recovery, deploy, second fault: each can be played at once."""
    kinds = {event.kind for name in built_in() for event in load(name).events}
    assert kinds == {
        "outage", "brown_out", "slow_recovery", "rate_limit", "errors", "second_fault",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("count = 10", "count = 0", 5, "a whole number from 1"),
        ("count = 10", "counts = 10", 5, "did you mean 'count'"),
        ("think = 5.0", 'think = "long"', 6, "a number from 0"),
        ("think = 5.0", "think = 5.0\narrivals = 3", 6, "`think` or `arrivals`"),
        ("think = 5.0", "processes = 11", 6, "11 processes for 10 agents"),
        ('name = "search"', 'title = "search"', 8, "name: is missing"),
        ('name = "search"', 'name = "search"\nupstream = "shopp"', 10, "did you mean 'shop'"),
        ("median = 0.1", "p99 = 0.01", 12, "less than the median"),
        ("median = 0.1", "medium = 0.1", 12, "did you mean 'median'"),
        ('kind = "outage"', 'kind = "outrage"', 15, "did you mean 'outage'"),
        ("to = 20", "to = 5", 17, "not after `from`"),
        ("seconds = 60", "seconds = true", 2, "a number from 1"),
        ("seconds = 60", "secconds = 60", 2, "did you mean 'seconds'"),
        ("seconds = 60", "seconds = = 60", 2, "not valid TOML"),
        ("[upstreams.shop]\nmedian = 0.1", "", None, "say at least one"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int | None, said: str) -> None:
    """File, line, field, and what is allowed there."""
    assert SMALL.count(old) == 1
    with pytest.raises(ConfigurationError) as caught:
        parse(SMALL.replace(old, new), file="mine.toml")
    assert said in str(caught.value)
    assert caught.value.file == "mine.toml"
    assert caught.value.line == line


def test_the_second_of_several_tables_is_found() -> None:
    """The line of an array's table is that of the right one."""
    text = SMALL + '\n[[events]]\nkind = "errors"\nshare = 2\n'
    with pytest.raises(ConfigurationError) as caught:
        parse(text, file="mine.toml")
    assert caught.value.line == text.splitlines().index("share = 2") + 1


def test_an_unknown_scenario_names_those_there_are() -> None:
    """A word that is neither a file nor a built-in name."""
    with pytest.raises(UsageError, match="outage"):
        load("outtage")


def test_another_number_of_agents_keeps_the_load_of_each_machine() -> None:
    """Processes, capacities, queues and rates change in proportion."""
    small, large = load("outage"), load("outage").scaled(10_000)
    assert large.agents.processes == 10 * small.agents.processes
    assert large.upstreams[0].capacity == 10 * small.upstreams[0].capacity
    assert large.upstreams[0].queue == 10 * small.upstreams[0].queue
    assert load("rate_limit").scaled(600).events[0].rate == 2 * load("rate_limit").events[0].rate
    third = load("brown_out").scaled(load("brown_out").agents.count // 3)
    assert third.agents.arrivals == load("brown_out").agents.arrivals / 3  # type: ignore[operator]
    with pytest.raises(UsageError):
        small.scaled(0)


def test_a_scenario_brings_its_own_policies_to_compare() -> None:
    """``[contenders.NAME]`` has the fields of the package's own; mistakes name the line."""
    own = '\n[contenders.mine]\nkind = "retry"\ntries = 5\nrepeats = ["error"]\n'
    made = contender("mine", parse(SMALL + own))
    assert made.name == "mine"
    with pytest.raises(ConfigurationError) as caught:
        contender("mine", parse(SMALL + own.replace("error", "eror"), file="mine.toml"))
    assert "eror" in str(caught.value)
    assert caught.value.line == (SMALL + own).splitlines().index('repeats = ["error"]') + 1
    with pytest.raises(UsageError, match="blanket"):
        contender("nobody", parse(SMALL))


def test_every_policy_of_the_package_can_be_read() -> None:
    """Also those that no built-in scenario names."""
    scenario = parse(SMALL)
    assert {"blanket", "exponential", "aws_standard", "failwise"} <= set(names())
    for name in names():
        contender(name, scenario)
