"""``failwise call`` at a terminal: a guess is shown and asked about."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from failwise.faults import Fault, FaultServer, Reply, Request
from tests.cli.conftest import Failwise

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

CONFIGURATION = """
[journal]
path = "journal.db"

[tools.weather]
url = "{server}/weather"
schema = {{ type = "object", properties = {{ city_code = {{ type = "string" }} }} }}
"""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    def weather(request: Request, number: int) -> Reply:
        if len(request.query["city_code"]) == 3:
            return Fault.json({"degrees": 21})
        return Fault.json({"error": "city_code must be 3 digits, got '12'"}, 400)

    with FaultServer() as server:
        server.route("GET", "/weather", weather)
        yield server


@pytest.fixture
def house(tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = CONFIGURATION.format(server=server.url())
    (tmp_path / "failwise.toml").write_text(text, encoding="utf-8")
    call = {"tool": "weather", "arguments": {"city_code": "12"}}
    (tmp_path / "calls.jsonl").write_text(json.dumps(call) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def at_a_terminal(house: Path, answer: str, *, before: str = "") -> str:
    """What stands on the screen after the question was answered with `answer`."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "failwise.cli.main", "call", "calls.jsonl", "--lang", "en"]
    environment = {**os.environ, "COLUMNS": "120", "TERM": "dumb"}
    environment.pop("FAILWISE_ENV", None)
    os.write(ours, before.encode())
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=house, env=environment
    )
    os.close(theirs)
    screen, answered, until = "", False, time.monotonic() + 60
    while time.monotonic() < until:
        if not select.select([ours], [], [], 0.2)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break  # the other end is closed
        screen += piece.decode("utf-8", "replace")
        if "[y/N]" in screen and "25 s)" in screen and not answered:
            answered = True
            os.write(ours, answer.encode())
    process.wait(30)
    os.close(ours)
    return screen


@pytest.mark.parametrize(
    ("answer", "requests"), [("y\n", 2), ("yes\n", 2), ("n\n", 1), ("\n", 1), ("yy\n", 1)]
)
def test_only_a_yes_sends_it(house: Path, server: FaultServer, answer: str, requests: int) -> None:
    """The difference is shown; a yes sends the guess, anything else does not."""
    screen = at_a_terminal(house, answer)
    assert '- "12"' in screen
    assert '+ "012"' in screen
    assert "guess" in screen
    assert server.count("/weather") == requests


def test_what_was_typed_before_is_no_answer(house: Path, server: FaultServer) -> None:
    """A yes that was typed ahead of the question does not count."""
    at_a_terminal(house, "n\n", before="y\n")
    assert server.count("/weather") == 1


def test_without_a_terminal_nobody_is_asked(
    failwise: Failwise, house: Path, server: FaultServer
) -> None:
    """Piped, the guess is not sent, even with a yes in the pipe."""
    ended = failwise("call", "calls.jsonl", stdin="y\ny\n")
    assert ended.code == 1
    assert "[y/N]" not in ended.out
    assert server.count("/weather") == 1
