"""The command as a whole: help, version, languages, exit codes, pipes."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import failwise as package
from failwise.cli import main as door
from failwise.cli.main import COMMANDS
from failwise.cli.terminal import language
from tests.cli.conftest import Failwise

COMMAND = [sys.executable, "-m", "failwise.cli.main"]
WORDS = Path(door.__file__).with_name("words.toml")


def test_it_says_its_version_and_every_command(failwise: Failwise) -> None:
    """``--version`` gives the package's version; the help names every command and the exit codes."""
    assert failwise("--version").out.strip() == f"failwise {package.__version__}"
    shown = failwise("--help")
    assert shown.code == 0
    assert all(re.search(rf"^ +{name}\b", shown.out, re.MULTILINE) for name in COMMANDS)
    assert "exit codes" in shown.out
    assert failwise().out == shown.out


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_every_command_has_help_and_json(failwise: Failwise, command: str) -> None:
    """Each command explains itself, and can print JSON."""
    shown = failwise(command, "--help")
    assert shown.code == 0
    assert "--json" in shown.out


def test_every_command_is_described() -> None:
    """The page on the command line has a section for each command."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    headings = re.findall(r"^## (\w+)$", page.read_text("utf-8"), re.MULTILINE)
    assert set(headings) == set(COMMANDS)


def test_wrong_usage_is_one_line_and_two(failwise: Failwise) -> None:
    """A mistyped command or option: one line on standard error with what to do, exit code 2."""
    ended = failwise("clasify", "x")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "failwise: there is no command 'clasify': did you mean classify?\n"
    ended = failwise("classify", "--what")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "--help" in ended.err


def test_a_missing_file_is_said_plainly(failwise: Failwise) -> None:
    """A name that looks like a file but is none is not judged as a text."""
    ended = failwise("classify", "no-such.log")
    assert (ended.code, ended.err) == (2, "failwise: no-such.log: there is no such file\n")


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ("zh", {"FAILWISE_LANG": "en"}, "zh"),
        (None, {"FAILWISE_LANG": "zh", "LANG": "en_US.UTF-8"}, "zh"),
        (None, {"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        (None, {"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        (None, {}, "en"),
    ],
)
def test_the_language_follows_option_variable_locale(
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    environment: dict[str, str],
    expected: str,
) -> None:
    """``--lang`` wins over FAILWISE_LANG, that over the locale; English where nothing speaks."""
    for name in ("FAILWISE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language(given) == expected


def test_both_languages_say_the_same_sentences() -> None:
    """Every sentence stands in both languages, with the same places to fill in."""
    words = tomllib.loads(WORDS.read_text("utf-8"))
    assert words["en"].keys() == words["zh"].keys()
    places = re.compile(r"\{(\w+)\}")
    for name, sentence in words["en"].items():
        assert sorted(places.findall(sentence)) == sorted(places.findall(words["zh"][name])), name


def test_a_reader_that_goes_away_is_no_error() -> None:
    """A closed pipe ends the command quietly, with the code that other tools give (141)."""
    process = subprocess.Popen(
        [*COMMAND, "profiles", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 141
    assert err == b""


def test_tables_too_end_quietly_on_a_closed_pipe() -> None:
    """The same for what people read."""
    process = subprocess.Popen([*COMMAND, "codes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 141
    assert err == b""


def test_an_interrupt_ends_with_130() -> None:
    """Ctrl-C while it waits for input: exit code 130, no traceback."""
    process = subprocess.Popen(
        [*COMMAND, "redact", "--jsonl", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"text": "x"}\n')
    process.stdin.flush()
    assert process.stdout.readline() == b'{"text": "x"}\n'  # an answer comes before the input ends
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_chinese_comes_out_whatever_the_locale() -> None:
    """Under the C locale Chinese still leaves as UTF-8."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    ended = subprocess.run(
        [*COMMAND, "codes", "network.dns", "--lang", "zh"],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert "域名解析失败" in ended.stdout.decode("utf-8")


def test_help_is_light() -> None:
    """Asking for help imports none of the heavy modules."""
    program = (
        "import sys; from failwise.cli.main import main; main(['--help']);"
        "print([m for m in ('rich', 'httpx', 'sqlite3', 'asyncio', 'yaml', 'ssl') if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"
