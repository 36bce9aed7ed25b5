"""The command, run inside this process: arguments in, exit code and texts out."""

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from failwise.cli.main import main


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Failwise = Callable[..., Ended]


class _Input(io.TextIOWrapper):
    """Standard input with a given text."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()), encoding="utf-8")


@pytest.fixture
def failwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Failwise:
    """Run ``failwise ...``; `stdin` is what it may read. English, unless a test says otherwise."""
    for name in ("FAILWISE_JOURNAL", "FAILWISE", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FAILWISE_LANG", "en")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", _Input(stdin))
        capsys.readouterr()
        code = main(list(words))
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run
