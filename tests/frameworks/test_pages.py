"""The pages of the frameworks are true: their Python runs and prints what is shown, their links lead somewhere."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.examples.pages import ROOT, blocks, compiled, run
from tests.frameworks.conftest import installed

PAGES = [
    page for page in sorted((ROOT / "docs" / "frameworks").glob("*.md")) if installed(page.stem)
]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks run in order, in one namespace; a ``text`` block after one is its output."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block, after in pairwise([*blocks(page), None]):
        assert block is not None
        if block.language == "python":
            printed = run(compiled(block, page), namespace)
            if after is not None and after.language == "text":
                assert plain(printed) == plain(after.text)
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        assert "://" in target or (page.parent / target).exists(), target


def plain(text: str) -> str:
    """Without white space at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
