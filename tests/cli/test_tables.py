"""Policy, profiles and codes: what is in force, and where it comes from."""

import json
from pathlib import Path

import pytest

from failwise.policy import load
from failwise.vocabulary.codes import registry
from tests.cli.conftest import Failwise

CONFIGURATION = """\
[policy]
preset = "interactive"
wait_ceiling = 5

[policy.network]
base = 0.5

[policy.tools.search.network]
retries_read = 1

[tools.search]
url = "http://127.0.0.1:1/search"
read_only = true
[tools.search.policy.server]
base = 7.0
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "failwise.toml").write_text(CONFIGURATION, encoding="utf-8")
    return tmp_path


def explained(failwise: Failwise, *words: str) -> dict[str, dict[str, dict[str, object]]]:
    ended = failwise("policy", "--json", *words)
    assert ended.code == 0, ended.err
    data: dict[str, dict[str, dict[str, object]]] = json.loads(ended.out)
    return data


def test_each_value_names_its_origin(failwise: Failwise, configured: Path) -> None:
    """A column of the user's file, one of the preset it builds on, one of the default preset."""
    row = explained(failwise, "--explain", "network.dns")["rows"]["network.dns"]
    assert row["base"] == {"value": 0.5, "origin": "failwise.toml:6"}
    assert row["retries"] == {"value": 2, "origin": "preset interactive:8"}
    assert str(row["multiplier"]["origin"]).startswith("preset default:")  # type: ignore[index]
    data = explained(failwise)
    assert data["settings"]["wait_ceiling"] == {"value": 5, "origin": "failwise.toml:3"}


def test_a_tools_own_rows_are_the_last_word(failwise: Failwise, configured: Path) -> None:
    """The policy's rows for a tool, then the tool's own declaration; other tools see neither."""
    rows = explained(failwise, "--explain", "search")["rows"]
    assert rows["network"]["retries_read"] == {"value": 1, "origin": "failwise.toml:9"}
    assert rows["server"]["base"] == {"value": 7.0, "origin": "failwise.toml:15"}
    assert explained(failwise)["rows"]["server"]["base"]["value"] == 1.0  # type: ignore[index]
    shown = failwise("policy", "--explain", "search").out
    assert "read_only" in shown
    assert "linear 7 s" in shown


@pytest.mark.parametrize("preset", ["default", "interactive", "batch"])
def test_what_is_shown_is_what_is_in_force(failwise: Failwise, preset: str) -> None:
    """Every row of a preset, column by column, is the one that decides; each has an origin."""
    table = load(preset)
    rows = explained(failwise, "--policy", preset)["rows"]
    for key, row in rows.items():
        in_force = table.row(key)
        for column, one in row.items():
            value = getattr(in_force, column)
            assert one["value"] == ([str(v) for v in value] if isinstance(value, tuple) else value)  # type: ignore[index]
            assert str(one["origin"]).startswith("preset ")  # type: ignore[index]


def test_a_policy_file_of_ones_own(failwise: Failwise, tmp_path: Path) -> None:
    """A file given by --policy is explained with its lines; a broken one is told with its line."""
    file = tmp_path / "policy.toml"
    file.write_text('preset = "batch"\n[network.dns]\nretries = 1\n', encoding="utf-8")
    row = explained(failwise, "--policy", str(file), "--explain", "network.dns")["rows"][
        "network.dns"
    ]
    assert row["retries"] == {"value": 1, "origin": f"{file}:3"}
    file.write_text("[network]\nretries = true\n", encoding="utf-8")
    ended = failwise("policy", "--policy", str(file))
    assert (ended.code, ended.err.startswith(f"failwise: {file}:2: ")) == (2, True)


def test_a_broken_section_is_told_with_its_line(failwise: Failwise, configured: Path) -> None:
    """A mistake in the [policy] section of a configuration: file and line, from `policy` too."""
    file = configured / "failwise.toml"
    file.write_text(CONFIGURATION.replace("base = 0.5", "base = 'x'"), encoding="utf-8")
    ended = failwise("policy")
    assert (ended.code, ended.err.startswith("failwise: failwise.toml:6: [policy]: base")) == (
        2,
        True,
    )


def test_an_unknown_name_gets_the_nearest(failwise: Failwise, configured: Path) -> None:
    """Neither tool nor code: what is near."""
    assert "did you mean search" in failwise("policy", "--explain", "serch").err
    assert "network.dns" in failwise("codes", "network.dnz").err
    assert "stripe" in failwise("profiles", "show", "strip").err


def test_people_see_tables_in_their_language(failwise: Failwise, configured: Path) -> None:
    """The tables speak Chinese where asked."""
    assert "来源" in failwise("policy", "--lang", "zh").out
    assert "处理办法" in failwise("codes", "--lang", "zh").out
    assert "幂等" in failwise("profiles", "--lang", "zh").out


def test_codes_are_the_registry(failwise: Failwise) -> None:
    """All codes with both languages; a category or a code alone on demand; no name is cut."""
    shown = [json.loads(line) for line in failwise("codes", "--json").out.splitlines()]
    assert [one["code"] for one in shown] == list(registry())
    assert all(one["meaning"]["zh"] and one["remedy"]["en"] for one in shown)
    few = [json.loads(line) for line in failwise("codes", "security", "--json").out.splitlines()]
    assert {one["category"] for one in few} == {"security"}
    table = failwise("codes").out
    assert all(name in table for name in registry())


def test_profiles_are_listed_shown_and_checked(failwise: Failwise, tmp_path: Path) -> None:
    """The list, one in full; a sound file is good, a wrong one has its faults with lines, code 1."""
    names = [json.loads(line)["id"] for line in failwise("profiles", "--json").out.splitlines()]
    assert "stripe" in names
    one = json.loads(failwise("profiles", "show", "stripe", "--json").out)
    assert one["codes"] == len(one["table"]) > 0
    assert "card_declined" in failwise("profiles", "show", "stripe").out
    file = tmp_path / "mine.yaml"
    file.write_text("id: mine\nname: 5\n", encoding="utf-8")
    ended = failwise("profiles", "check", str(file))
    assert ended.code == 1
    assert str(file) in ended.out
    assert failwise("profiles", "check", str(file), "--json").code == 1
