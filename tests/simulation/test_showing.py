"""What a simulation shows: the command, its table and JSON, and the chart."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from failwise.cli.main import main
from failwise.simulation import built_in, compare, load, parse
from failwise.simulation.chart import chart
from failwise.simulation.wording import duration, words

SVG = "{http://www.w3.org/2000/svg}"
QUICK = ["loop", "--compare", "blanket,failwise"]


def test_the_table_names_each_policy_and_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """One row a policy; the setting above, what the columns mean below."""
    assert main(["simulate", *QUICK, "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert "1 agents in 1 processes" in out
    assert "per call" in out
    first = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [word for word in first if word in ("blanket", "failwise")] == ["blanket", "failwise"]


def test_it_speaks_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    """Title, headings and notes."""
    assert main(["simulate", *QUICK, "--lang", "zh"]) == 0
    out = capsys.readouterr().out
    assert "循环" in out
    assert "请求/调用" in out
    assert set(words("en")) == set(words("zh"))


def test_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures and timelines, for a program."""
    assert main(["simulate", *QUICK, "--json", "--seed", "3", "--seconds", "280"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["seed"], told["seconds"]) == (1, 3, 280)
    assert [each["name"] for each in told["outcomes"]] == ["blanket", "failwise"]
    outcome = told["outcomes"][0]
    assert len(outcome["timeline"]["requests"]) == 280 / outcome["timeline"]["step"]
    assert outcome["per_call"] == pytest.approx(outcome["requests"] / outcome["calls"])


def test_the_list_has_every_scenario_and_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """By name, with a sentence on each."""
    assert main(["simulate", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["scenarios"]) == set(built_in())
    assert "aws_standard" in told["contenders"]
    assert main(["simulate", "--list"]) == 0
    assert "second_fault" in capsys.readouterr().out


def test_a_scenario_shown_is_the_beginning_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``--show`` prints can be played."""
    assert main(["simulate", "loop", "--show"]) == 0
    mine = tmp_path / "mine.toml"
    mine.write_text(capsys.readouterr().out, "utf-8")
    assert main(["simulate", str(mine), "--compare", "no_retry", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenario"] == "mine"


def test_a_policy_of_ones_own_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--policy`` takes a preset or a file; a wrong one is refused with its line."""
    policy = tmp_path / "policy.toml"
    policy.write_text("[server]\nretries = 0\n", "utf-8")
    command = ["simulate", "loop", "--compare", "failwise", "--json"]
    assert main([*command, "--policy", str(policy)]) == 0
    outcome = json.loads(capsys.readouterr().out)["outcomes"][0]
    assert outcome["requests"] <= outcome["calls"]
    policy.write_text("[server]\nretries = -1\n", "utf-8")
    assert main([*command, "--policy", str(policy)]) == 2
    assert "policy.toml:2" in capsys.readouterr().err
    assert main([*command, "--policy", "interactive"]) == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([], "say which scenario"),
        (["outtage"], "outage"),
        (["loop", "--compare", "nobody"], "known: blanket"),
        (["loop", "--agents", "0"], "from 1 to"),
        (["loop", "--seconds", "0"], "from 1 to"),
        (["loop", "--svg", "/nowhere/at/all.svg"], "--svg"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2."""
    assert main(["simulate", *command]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_chart_is_sound_svg_with_a_line_for_each_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It parses, has a title and a description for those who cannot see it, reads in light and dark,
    tells lines apart without colour, and asks nothing of anybody."""
    file = tmp_path / "chart.svg"
    assert main(["simulate", *QUICK, "--svg", str(file)]) == 0
    capsys.readouterr()
    text = file.read_text("utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, what = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == load("loop").title("en")
    assert what is not None
    assert "blanket" in (what.text or "")
    assert "prefers-color-scheme: dark" in text
    lines = [path for path in root.iter(f"{SVG}path") if "line" in (path.get("class") or "")]
    assert len(lines) == 2 * 3  # for each policy: requests, shares, and the sample in the legend
    assert len({(path.get("class"), path.get("stroke-dasharray")) for path in lines}) == 2
    assert "<script" not in text
    assert text.count("http") == 1  # the name space


def test_names_from_a_file_stay_text_in_the_chart() -> None:
    """A title with markup in it is shown, not obeyed."""
    scenario = parse('title = "<script>alert(1)</script> & co"\nseconds = 10\n[upstreams.shop]\n')
    text = chart(scenario, compare(scenario, ["no_retry"]))
    assert "<script>" not in text
    ElementTree.fromstring(text)


def test_durations_are_written_for_people() -> None:
    """Seconds, minutes, hours, as it fits."""
    assert [duration(each) for each in (0.123, 95, 780, 15_000)] == [
        "0.12 s",
        "95 s",
        "13 min",
        "4.2 h",
    ]


def test_the_room_is_loaded_only_by_its_command() -> None:
    """Importing the command line's main module loads no simulation."""
    script = "import sys, failwise.cli.main; print('failwise.simulation' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.strip() == "False"
