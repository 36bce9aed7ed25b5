"""`failwise demo`: real faults over real sockets, goals kept, both languages, no secret shown."""

import argparse
import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from failwise.cli import demo
from failwise.cli.demo.paragraphs import folded
from failwise.cli.demo.programme import SCENES
from failwise.cli.demo.scene import Scene, Wanted
from failwise.journal.reader import open_reader


def run(*options: str, scenes: Sequence[Scene] | None = None) -> int:
    parser = argparse.ArgumentParser()
    demo.add_arguments(parser)
    return demo.main(parser.parse_args(["--fast", *options]), scenes)


def chosen(*names: str) -> list[Scene]:
    return [scene for scene in SCENES if scene.name in names]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("FAILWISE_JOURNAL", raising=False)
    monkeypatch.delenv("FAILWISE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


def test_every_goal_of_every_scene_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    """All scenes in one run: exit code 0, ledger equal to what was due, secrets kept, bounded time."""
    code = run("--json")
    told = json.loads(capsys.readouterr().out)
    missed = [
        (scene["name"], goal)
        for scene in told["scenes"]
        for goal in scene["goals"]
        if not goal["met"]
    ]
    assert missed == []
    assert (code, told["success"]) == (0, True)
    assert [scene["name"] for scene in told["scenes"]] == [scene.name for scene in SCENES]
    assert told["secrets"]["planted"] >= 8
    assert told["secrets"]["leaked"] == 0
    assert told["seconds"] < 60
    done = sum(scene["effects"]["done"] for scene in told["scenes"])
    assert done == told["effects"] == 4
    assert told["blind"]["requests"] > 2 * told["requests"]
    assert told["blind"]["effects"] > told["effects"]
    outage = told["scenes"][-1]
    assert outage["requests"] <= 1.1 * outage["calls"] == pytest.approx(55)


_LIVE = ("bad_gateway", "forbidden", "near_values", "order_lost", "unknown_tool", "balance")


@pytest.mark.parametrize(
    ("lang", "sentences"),
    [
        (
            "en",
            [
                "network.bad_gateway",
                "it may pass, and it is a read",
                "an earlier failure stopped this run",
                'nights: "2" → 2',
                "ask whether it happened",
                "What the model saw",
                "FAILED: tool read_customer",
                "Failwise report",
                "Side effects: asked for, due, really done",
                "goals of 6 scenes are met",
            ],
        ),
        (
            "zh",
            [
                "network.bad_gateway",
                "故障是暂时的，且这是只读操作",
                "前面的失败已终止本次任务",
                'nights: "2" → 2',
                "先核实是否已经发生",
                "模型看到的内容",
                "调用失败：工具 read_customer",
                "Failwise 报告",
                "副作用：要求、应有与实际",
                "个目标全部达成",
            ],
        ),
    ],
)
def test_a_person_reads_each_attempt_with_its_reason(
    lang: str, sentences: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each attempt is a line with the reason of its decision; then the tables and the sum."""
    assert run("--lang", lang, scenes=chosen(*_LIVE)) == 0
    printed = capsys.readouterr().out
    for sentence in sentences:
        assert sentence in printed
    lines = [line for line in printed.splitlines() if "failwise dashboard " not in line]
    assert max(map(len, lines)) <= 100


def test_the_model_reads_no_words_of_a_library(capsys: pytest.CaptureFixture[str]) -> None:
    """How the event loop enforced a time limit is not what the upstream said."""
    run("--lang", "en", scenes=chosen("order_repeated"))
    printed = capsys.readouterr().out
    assert "No answer came in time." in printed
    assert "it may have taken effect" in printed
    assert "cancel scope" not in printed
    assert "Upstream said" not in printed


def test_all_that_is_of_the_demonstration_is_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    """In Chinese no English sentence is left: names, codes and what an upstream said apart."""
    run("--lang", "zh", scenes=chosen("told_waits", "refresh", "refused", "near_values"))
    printed = capsys.readouterr().out
    english = tomllib.loads(
        resources.files("failwise.cli.demo").joinpath("texts.toml").read_text("utf-8")
    )["en"]
    for text in _sentences(english):
        fixed = max(re.split(r"\{\w+\}", text), key=len).strip()
        if " " in fixed and len(fixed) > 6:
            assert fixed not in printed


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_missed_goal_is_named_and_fails(lang: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong expectation gives exit code 1 and a line that says what was found and what was due."""
    (scene,) = chosen("quota")
    wrong = replace(scene, requests=4)
    assert run("--lang", lang, scenes=[wrong]) == 1
    printed = capsys.readouterr().out
    wanted = {
        "en": "requests on the server is 1, should be 4",
        "zh": "服务器收到的请求数为 1，应为 4",
    }
    assert wanted[lang] in printed


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        ({"requests": 3}, "requests"),
        ({"effects": 2}, "effects"),
        ({"seconds": 0.000_001}, "seconds"),
        ({"unreached": 2}, "unreached"),
        ({"wanted": Wanted(False, "network.dns")}, "success"),
        ({"wanted": Wanted(met=("network.dns",), requests=2)}, "met"),
        ({"wanted": Wanted(met=("auth.credential_expired",), requests=1)}, "sent"),
        ({"wanted": Wanted(requests=2, repaired=True)}, "repaired"),
        ({"wanted": Wanted(requests=2, degraded_to="cache")}, "degraded_to"),
    ],
)
def test_each_kind_of_goal_can_be_missed(
    change: dict[str, Any], goal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No goal is decoration: a wrong expectation of each kind is found in the JSON, exit code 1."""
    (scene,) = chosen("refresh")
    if "wanted" in change:
        change = {"steps": (replace(scene.steps[0], wanted=change["wanted"]),)}
    assert run("--json", scenes=[replace(scene, **change)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["success"] is False
    assert goal in {row["goal"] for row in told["scenes"][0]["goals"] if not row["met"]}


def test_a_secret_that_comes_out_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a planted secret printed, that would be a missed goal."""
    from failwise.cli.demo.world import World

    def planted(world: World, prefix: str) -> str:
        world.planted.append("search_products")  # the name of a tool: stands on every screen
        return prefix

    monkeypatch.setattr(World, "secret", planted)
    assert run("--lang", "en", scenes=chosen("bad_gateway")) == 1
    assert "1 of 1 planted secrets came out" in capsys.readouterr().out


def test_it_ends_with_the_dashboard(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever looked on is told how to open the dashboard on just this journal, which is still there."""
    assert run("--lang", "en", scenes=chosen("balance")) == 0
    _, _, rest = capsys.readouterr().out.partition("failwise dashboard ")
    journal = rest.partition("\n")[0].strip()
    assert Path(journal).is_file()
    assert [row["tool"] for row in open_reader(journal).calls()] == ["pay"]


def test_the_journal_of_the_environment_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """FAILWISE_JOURNAL says where the records go; a second run reports its own calls only."""
    journal = tmp_path / "kept.db"
    monkeypatch.setenv("FAILWISE_JOURNAL", str(journal))
    for _ in range(2):
        assert run("--json", scenes=chosen("refresh", "unknown_tool")) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["journal"] == str(journal)
        assert told["report"]["total"]["calls"] == 3
    assert journal.exists()


def test_a_proxy_of_the_environment_is_not_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loopback is reached directly, the runtime acts, and the environment is as before afterwards."""
    import os

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "corp.example")
    monkeypatch.setenv("FAILWISE", "off")
    assert run("--json", scenes=chosen("refresh")) == 0
    assert (os.environ["NO_PROXY"], os.environ["FAILWISE"]) == ("corp.example", "off")
    capsys.readouterr()


def test_both_languages_say_the_same_things() -> None:
    """Every sentence stands in both languages with the same facts, and every scene has its texts."""
    texts = tomllib.loads(
        resources.files("failwise.cli.demo").joinpath("texts.toml").read_text("utf-8")
    )
    english, chinese = (dict(_named(texts[lang])) for lang in ("en", "zh"))
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        assert _facts(text) == _facts(chinese[name]), name
    for scene in SCENES:
        assert scene.name in texts["en"]["titles"]
        assert scene.name in texts["zh"]["stories"]


def test_chinese_breaks_between_characters() -> None:
    """Lines keep to their width, and none begins with closing punctuation."""
    text = (
        "本机上真实的 HTTP 与 HTTPS，证书当场签发。共 19 个场景，每次尝试一行：遇到了什么、怎么办。"
    )
    for width in range(8, 60):
        lines = folded(text, width).split("\n")
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        assert not [line for line in lines if line[0] in "，。：；、！？）》”"]
        assert all(sum(2 if ord(c) > 0x2E80 else 1 for c in line) <= width for line in lines)


def _named(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _named(value, f"{path}{name}.")
        else:
            yield path + name, value


def _sentences(table: dict[str, Any]) -> Iterator[str]:
    return (text for _, text in _named(table))


def _facts(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))
