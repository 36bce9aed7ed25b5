"""Policy files: what they say is in force, and what they say wrongly is named with file and line."""

import contextlib
import logging
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import failwise
from failwise.policy import PRESETS, load
from failwise.vocabulary.codes import registry
from failwise.vocabulary.kinds import Action


def written(directory: Path, text: str) -> Path:
    """A policy file with this text."""
    path = directory / "policy.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("preset", PRESETS)
def test_every_code_has_a_row_in_every_preset(preset: str) -> None:
    """There is no failure that a preset does not know what to do about."""
    table = load(preset)
    for code in registry():
        row = table.row(code)
        assert row.strategy in ("none", "fixed", "linear", "exponential")
        assert row.retries <= table.settings.retries_ceiling
        assert all(isinstance(action, Action) for action in row.then)


def test_the_default_table_is_the_promised_one() -> None:
    """The delays and retries that the documentation states."""
    table = load("default")
    assert [table.row("network.dns").delay(n) for n in (1, 2, 3)] == [1, 2, 4]
    assert [table.row("network.connection_reset").delay(n) for n in (1, 2, 3)] == [5, 10, 20]
    assert [table.row("server.internal").delay(n) for n in (1, 2)] == [2, 4]
    assert table.row("parsing.truncated").retries == 0
    assert table.row("parsing.truncated").retries_read == 1
    assert table.row("auth.credential_expired").refresh
    assert not table.row("auth.forbidden").refresh
    assert table.row("auth.forbidden").interrupt == "run"
    assert [load("interactive").row("server.internal").delay(n) for n in (1, 2)] == [1, 2]


def test_layers_win_column_by_column(tmp_path: Path) -> None:
    """Preset < file < provider < tool < the tool's own declaration < the call's own."""
    path = written(
        tmp_path,
        """
        [network]
        base = 2.0
        [network.dns]
        retries = 0
        retries_read = 0
        [providers.stripe.network]
        base = 3.0
        [tools.search.network]
        base = 4.0
        """,
    )
    table = load(path)
    assert table.row("network.dns").retries == 0
    assert table.row("network.read_timeout").base == 2.0
    assert table.row("network.read_timeout").multiplier == 2.0
    assert table.row("network.read_timeout", provider="stripe").base == 3.0
    assert table.row("network.read_timeout", provider="stripe", tool="search").base == 4.0
    own: dict[str, Any] = {"network": {"base": 5.0}}
    call: dict[str, Any] = {"network": {"read_timeout": {"base": 6.0}}}
    assert table.row("network.read_timeout", tool="search", overrides=(own,)).base == 5.0
    assert table.row("network.read_timeout", tool="search", overrides=(own, call)).base == 6.0
    assert table.row("network.dns", tool="search", overrides=(own, call)).base == 5.0


def test_a_category_row_of_a_later_layer_beats_a_code_row_of_an_earlier_one(tmp_path: Path) -> None:
    """Who says "this tool's network failures: no retries" means resets too."""
    table = load(written(tmp_path, "[tools.pay.network]\nretries = 0\nbase = 1.0\n"))
    assert table.row("network.connection_reset", tool="pay").base == 1.0
    assert table.row("network.connection_reset").base == 5.0


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[network]\nretries = -1\n", 2, "whole number"),
        ("\n[netwrk]\nretries = 1\n", 2, "did you mean 'network'"),
        ("[network]\n\n[network.dns]\nretrys = 1\n", 4, "did you mean 'retries'"),
        ("[server]\nstrategy = 'sometimes'\n", 2, "none, fixed, linear, exponential"),
        ("[server]\nthen = 'pray'\n", 2, "ask_model"),
        ("[server]\njitter = 1.5\n", 2, "0 to 1"),
        ("[auth]\ninterrupt = 'all'\n", 2, "credential"),
        ("wait_ceiling = 'long'\n", 1, "a number"),
        ("preset = 'fast'\n", 1, "default, interactive, batch"),
        ("[tools.a.network]\nretries = true\n", 2, "whole number"),
        ("[network\n", 1, "not valid TOML"),
        ("[upstreams.gateway]\nretries = 'none'\n", 2, "whole number"),
        ("[upstreams.gateway]\nbase = 1\n", 1, "one key, retries"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    """The error says file, line, and what to write instead."""
    path = written(tmp_path, text)
    with pytest.raises(failwise.ConfigurationError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert words in str(caught.value)


def test_a_missing_file_names_the_presets() -> None:
    """A policy that cannot be read says what may be given."""
    with pytest.raises(failwise.ConfigurationError, match="default, interactive, batch"):
        load("nowhere.toml")


def test_a_bad_policy_is_refused_when_the_runtime_is_made() -> None:
    """Misuse raises at once, not at the first failure."""
    with pytest.raises(failwise.UsageError, match="netwrk"):
        failwise.Runtime(":memory:", policy={"netwrk": {"retries": 1}})


def test_the_ceiling_clamps_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of the file above the ceiling counts as the ceiling; rows nobody wrote say nothing."""
    path = written(tmp_path, "retries_ceiling = 1\n[server]\nretries = 5\nretries_read = 1\n")
    with caplog.at_level(logging.WARNING, "failwise"):
        table = load(path)
    assert table.row("server.internal").retries == 1
    assert table.row("network.dns").retries == 1
    assert len(caplog.records) == 1


@given(
    st.dictionaries(
        st.sampled_from(["network", "server", "auth", "x", "preset", "tools", "jitter"]),
        st.recursive(
            st.integers() | st.text(max_size=5) | st.booleans() | st.none(),
            lambda inner: st.dictionaries(st.sampled_from(["retries", "dns", "a", "then"]), inner),
            max_leaves=6,
        ),
        max_size=3,
    )
)
def test_whatever_is_given_it_loads_or_says_why(data: dict[str, Any]) -> None:
    """No mapping makes it fail in another way than with a clear error."""
    with contextlib.suppress(failwise.ConfigurationError):
        load(data)


def test_presets_are_valid_toml_with_every_column() -> None:
    """The default preset states every column of every category in full."""
    import importlib.resources

    text = importlib.resources.files("failwise.policy").joinpath("presets/default.toml").read_text()
    data = tomllib.loads(text)
    columns = {name for name, value in data["network"].items() if not isinstance(value, dict)}
    for category in ("server", "rate_limit", "business", "tool", "unknown"):
        assert {n for n, v in data[category].items() if not isinstance(v, dict)} == columns


def test_an_upstream_that_repeats_itself_is_not_repeated() -> None:
    """One line switches off our retries towards a gateway, for all its tools and all kinds."""
    rt = failwise.Runtime(":memory:", policy={"upstreams": {"gateway": {"retries": 0}}})
    sent = []

    @rt.tool(read_only=True, upstream="gateway")
    def ask(question: str) -> str:
        sent.append(question)
        raise ConnectionRefusedError(111, "Connection refused")

    result = rt.call_sync(ask, question="?")
    assert len(sent) == 1
    assert result.stop_reason is failwise.StopReason.NOT_RETRIABLE
    assert result.attempts[0].decision is not None
    assert "policy allows no retry" in result.attempts[0].decision.reason
