"""The page about engines is true: its Python runs and prints what is shown."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.examples.pages import ROOT, blocks, compiled, run


def test_the_page_about_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks run in order, in one namespace; a ``text`` block after one is its output."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "engines.md"
    namespace = {"__name__": "page"}
    for block, after in pairwise([*blocks(page), None]):
        assert block is not None
        if block.language == "python":
            printed = run(compiled(block, page), namespace)
            if after is not None and after.language == "text":
                assert printed.rstrip() == after.text.rstrip()
