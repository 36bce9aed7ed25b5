"""axe on every page, in every look: `make browser` gets it from npm, where that is; it is no part of this
repository. Checks of our own for the same (contrast, labels, heads of tables) stand in tests/dashboard."""

import sys
from pathlib import Path
from typing import Any

import pytest

from failwise.dashboard import app
from tests.browser.conftest import Tab
from tests.browser.test_browser import PAGES, go

_AXE = Path(sys.prefix) / "node_modules" / "axe-core" / "axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_LOOKS = {
    "light-en": {},
    "dark-en": {"dark": True},
    "light-zh": {"lang": "zh"},
    "dark-zh": {"dark": True, "lang": "zh"},
    "phone-dark-zh": {"width": 390, "dark": True, "lang": "zh"},
}
_MORE = {
    "filtered": "/?tool=pay&category=network",
    "searched": "/calls?text=this&success=no",
    "empty": "/calls?text=nobody+said+this",
    "repaired": "/call?id=live-1",
}


@pytest.mark.skipif(not _AXE.is_file(), reason="axe-core is not installed: npm is missing")
@pytest.mark.parametrize("look", _LOOKS)
def test_axe_finds_nothing(played: Path, served: Any, tab: Tab, look: str) -> None:
    """Nothing that axe knows of WCAG 2.2, levels A and AA, and of good practice, on any page."""
    base = served(app(played))
    page = tab(**_LOOKS[look])
    source = _AXE.read_text("utf-8")
    found: list[str] = []
    for name, place in {**PAGES, **_MORE}.items():
        go(page, base, place)
        page.evaluate(source)
        told = page.evaluate(
            "(rules) => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", _RULES
        )
        found += [
            f"{name}: {one['id']} ({one['impact']}): {node['html'][:160]} · {node['failureSummary'][:200]}"
            for one in told["violations"]
            for node in one["nodes"][:3]
        ]
    assert not found, "\n".join(found)
