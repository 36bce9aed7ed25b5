"""`failwise report`: what it prints, writes, compares and refuses."""

import json
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from failwise.journal.journal import Journal
from tests.cli.conftest import Failwise
from tests.insight import day
from tests.insight.day import DATE, DAY, OpenBorder, ThatDay

SINCE = ("--since", f"{DATE}T00:00Z", "--until", "2027-01-16")


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """The file of a journal that holds the day."""
    made = Journal(tmp_path / "journal.db", redactor=OpenBorder(), clock=ThatDay())
    day.write(made)
    made.close()
    return str(tmp_path / "journal.db")


def test_a_person_gets_tables(failwise: Failwise, journal: str) -> None:
    """The verdict first, then what was counted, in the language asked for."""
    ended = failwise("report", journal, *SINCE)
    assert ended.code == 0
    assert ended.out.index("of the last 6 failures") < ended.out.index("Requests per call")
    for words in ("57.1 %", "Waits obeyed", "of 3 that upstreams told; 1 requests came too early",
                  "Drags most: order", "Refused by the upstream", f"{DATE}T10:00Z"):  # fmt: skip
        assert words in ended.out, words
    chinese = failwise("report", journal, *SINCE, "--lang", "zh")
    assert "运行时的作用" in chinese.out


def test_a_program_gets_json(failwise: Failwise, journal: str) -> None:
    """Every count, and the rates made of them; the filter too."""
    told = json.loads(failwise("report", journal, *SINCE, "--json").out)
    assert told["schema"] == 1
    assert (told["total"]["calls"], told["total"]["failures"]) == (14, 6)
    assert told["worth"]["prevented"] == {"open": 2, "unknown": 1}
    assert told["worth"]["early_requests"] == 1
    assert [one["name"] for one in told["argument_parameters"]] == ["1", "3", "6"]
    where = ("--where", "tool=order", "--where", "tool=pay", "--where", "http_status=502")
    told = json.loads(failwise("report", journal, "--json", *where).out)
    assert told["where"] == {"tool": ["order", "pay"], "http_status": 502}
    assert told["total"]["calls"] == 0
    told = json.loads(failwise("report", journal, "--where", "success=false", "--json").out)
    assert told["total"]["calls"] == 6


@pytest.mark.parametrize(
    "by",
    [
        "tool",
        "upstream",
        "category",
        "code",
        "hour",
        "day",
        "model",
        "run",
        "provider",
        "arguments",
    ],
)
def test_each_breakdown_alone(failwise: Failwise, journal: str, by: str) -> None:
    """Only the one that was asked for is there."""
    told = json.loads(failwise("report", journal, "--by", by, "--json").out)
    plural = {"category": "categories", "arguments": "argument_tools"}.get(by, by + "s")
    names = ["tools", "upstreams", "models", "hours", "days", "runs", "categories", "codes",
             "providers", "argument_tools"]  # fmt: skip
    assert [name for name in names if told[name]] == ([plural] if by != "provider" else [])
    assert failwise("report", journal, "--by", by).code == 0


def test_markdown_and_charts(failwise: Failwise, journal: str, tmp_path: Path) -> None:
    """Markdown on standard output, charts into a folder, said on standard error."""
    folder = tmp_path / "deep" / "charts"
    ended = failwise("report", journal, *SINCE, "--markdown", "--svg", str(folder))
    assert ended.out.startswith("# Failwise report\n")
    assert str(folder) in ended.err
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["failures.svg", "hours.svg", "latency.svg", "requests.svg"]
    for file in folder.iterdir():
        ElementTree.parse(file)


def test_two_periods(failwise: Failwise, journal: str) -> None:
    """Explicitly, as long before as after, and by length; all ways give the same stretches."""
    after = ("--since", f"{DATE}T10:30Z", "--until", f"{DATE}T12:30Z")
    explicit = failwise("report", journal, *after, "--against", f"{DATE}T08:30Z..{DATE}T10:30Z")
    assert "Before: 2027-01-15 08:30Z – 2027-01-15 10:30Z (7 calls)" in explicit.out
    assert "too few" not in explicit.out.split("Failures by")[0]
    assert failwise("report", journal, *after, "--compare").out == explicit.out
    assert failwise("report", journal, *after[2:], "--compare", "2h").out == explicit.out
    told = json.loads(failwise("report", journal, *after, "--compare", "--json").out)
    assert (told["calls_before"], told["calls"]) == (7, 6)
    assert told["before"]["until"] == told["after"]["since"] == DAY + 10.5 * 3600
    assert "success_rate" in {one["name"] for one in told["total"]}
    by = failwise("report", journal, *after, "--compare", "--by", "upstream", "--markdown")
    assert "Failures by: Upstream" in by.out


def test_the_stretch_before_now(failwise: Failwise, journal: str) -> None:
    """Without other words the last hours against those before."""
    told = json.loads(failwise("report", journal, "--compare", "24h", "--json").out)
    assert abs(told["after"]["until"] - time.time()) < 60
    assert told["after"]["until"] - told["before"]["since"] == pytest.approx(2 * 86_400)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--where", "colour=red"), "write NAME=VALUE, with one of tool, upstream"),
        (("--where", "tool"), "write NAME=VALUE"),
        (("--where", "asked=true"), "write NAME=VALUE"),
        (("--where", "http_status=often"), "write a number such as 502"),
        (("--where", "success=maybe"), "write true or false"),
        (("--where", "text=a", "--where", "text=b"), "say it once"),
        (("--compare",), "say how long"),
        (("--compare", "soon"), "write a length of time"),
        (("--compare", "1h", "--against", "1..2"), "say one of them"),
        (("--against", "yesterday"), "write SINCE..UNTIL"),
        (("--compare", "1h", "--by", "hour"), "two periods are compared by tool"),
        (("--json", "--markdown"), "say one of them"),
        (("--since", "1h", "--until", "2h", "--compare"), "nothing to compare"),
    ],
)
def test_mistakes_are_told(
    failwise: Failwise, journal: str, words: tuple[str, ...], said: str
) -> None:
    """Exit code 2, and what to write instead."""
    ended = failwise("report", journal, *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_folder_that_cannot_be_made(failwise: Failwise, journal: str) -> None:
    """Said with its name, before anything is printed."""
    ended = failwise("report", journal, "--svg", f"{journal}/charts")
    assert ended.code == 2
    assert "charts" in ended.err
    assert ended.out == ""
