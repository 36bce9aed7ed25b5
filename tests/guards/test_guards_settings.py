"""The guards' figures: read from data, refused with file, line and what is allowed."""

import pytest

from failwise.guards import default_settings, parse_settings, read_settings
from failwise.vocabulary.errors import ConfigurationError


def test_the_defaults_are_the_published_figures() -> None:
    """500, 14 and 5 from AWS; 20 %, 30 s and 300 s from Envoy."""
    settings = default_settings()
    retries, breaker = settings.retries, settings.breaker
    assert (retries.capacity, retries.transient_cost, retries.throttle_cost) == (500, 14, 5)
    assert (retries.parallel_share, retries.parallel_floor) == (0.2, 3)
    assert (breaker.open_seconds, breaker.open_limit, breaker.consecutive) == (30.0, 300.0, 5)
    assert settings.concurrency == 64


def test_a_file_says_only_what_it_changes() -> None:
    """Everything else comes from the defaults, for one upstream as for all."""
    settings = parse_settings(
        '[retries]\nfloor = 5\n[concurrency]\nlimit = "unlimited"\n'
        '[upstreams."api.example".breaker]\nopen_seconds = 5.0\n',
        base=default_settings(),
    )
    assert settings.retries.floor == 5
    assert settings.retries.capacity == 500
    assert settings.concurrency is None
    own = settings.of("api.example")
    assert own.breaker.open_seconds == 5.0
    assert (own.retries.floor, own.concurrency) == (5, None)
    assert settings.of("other") is settings


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[retries]\nfloor = 3\ncapacity = -1\n", 3, "retries.capacity: -1: must be a whole"),
        ("[retries]\ncapacity = 1.5\n", 2, "must be a whole number"),
        ("[retries]\ncapacity = true\n", 2, "must be a whole number"),
        ("[breaker]\n\nratio = 2\n", 3, "must be a number from 0.01 to 1"),
        ("[breaker]\nration = 0.5\n", 2, "unknown field; those there are: consecutive"),
        ("[breakers]\nratio = 0.5\n", 1, "unknown section; those there are: retries, breaker"),
        ("[breaker]\nminimum = 30\n", 2, "30 is more than the 20"),
        ('[retries]\nfloor = "unlimited"\n', 2, "must be a whole number"),
        ('[concurrency]\nlimit = "many"\n', 2, "'many'"),
        ("upstreams = 3\n", None, "must be a table of upstream names"),
        ("breaker = 3\n", None, "must be a table"),
        ("[retries]\nfloor = 3\n[retries\n", 3, "not valid TOML"),
        (
            '[breaker]\nratio = 0.5\n[upstreams."a.b".breaker]\nratio = 5\n',
            4,
            "upstreams.a.b.breaker.ratio",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(text: str, line: int | None, says: str) -> None:
    """File, line, field and range: enough to mend it without reading code."""
    with pytest.raises(ConfigurationError) as refused:
        parse_settings(text, file="failwise.toml", base=default_settings())
    assert says in str(refused.value)
    assert refused.value.file == "failwise.toml"
    assert refused.value.line == line


def test_a_section_of_a_larger_file_is_named_by_its_own_line() -> None:
    """The lines are those of the whole file, whatever stands before [guards...]."""
    text = "[policy]\nfloor = 1\n[guards.retries]\n# so\nfloor = -1\n"
    with pytest.raises(ConfigurationError) as refused:
        read_settings(
            {"retries": {"floor": -1}}, file="failwise.toml", text=text, base=default_settings()
        )
    assert refused.value.line == 5
