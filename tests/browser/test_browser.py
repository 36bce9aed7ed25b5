"""The pages in a browser: as they look, as they live, as they are used."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from failwise import HttpTool, Runtime
from failwise.dashboard import app
from failwise.faults import Fault, FaultServer
from failwise.journal.journal import Journal
from tests.browser.conftest import Tab

PAGES = {
    "overview": "/",
    "clusters": "/clusters",
    "cluster": "a[href*='/cluster?']",
    "calls": "/calls",
    "call": "/call?id=store-1",
    "run": "/run?id=job-stopped",
    "tools": "/tools",
    "upstreams": "/upstreams",
    "effects": "/effects",
    "policy": "/policy",
}
"""Pages by name: an address, or what to click on the overview."""
LOOKS = {
    "light-en": {"width": 1280},
    "dark-zh": {"width": 1280, "dark": True, "lang": "zh"},
    "phone-dark-en": {"width": 390, "dark": True},
    "phone-light-zh": {"width": 390, "lang": "zh"},
}


def go(page: Any, base: str, place: str) -> None:
    """Open a page by its address, or by a click on the overview, and wait until it is ready."""
    page.goto(base + (place if place.startswith("/") else "/"))
    page.locator("body[data-ready='1']").wait_for()
    if not place.startswith("/"):
        page.locator(f"main {place}").first.click()
        page.locator("body[data-ready='1']").wait_for()


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_in_every_look(
    played: Path, served: Any, tab: Tab, pictures: Path, look: str
) -> None:
    """No page is wider than its window, says anything on the console, or leaves a text cut off."""
    base = served(app(played))
    page = tab(**LOOKS[look])
    for name, place in PAGES.items():
        go(page, base, place)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, name
        assert page.locator("h1").count() == 1
        page.screenshot(path=pictures / f"{name}-{look}.png", full_page=True)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 384
        assert light is not LOOKS[look].get("dark", False)


def test_without_a_script(played: Path, served: Any, tab: Tab) -> None:
    """Everything can be read and reached where scripts are switched off."""
    base = served(app(played))
    page = tab(script=False)
    page.goto(base + "/")
    page.get_by_role("link", name="Calls", exact=True).click()
    page.get_by_label("Text in the message").fill("not this one")
    page.get_by_role("button", name="Search").click()
    assert page.locator("tbody tr").count() == 1
    page.locator("tbody a.go").click()
    assert "read_customer" in page.locator("h1").inner_text()


def test_strangers_do_no_harm(played: Path, served: Any, tab: Tab) -> None:
    """Script, markup and endless words of an upstream are shown as text; nothing of it runs or loads."""
    base = served(app(played))
    page = tab(width=390)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for place in ("/", "/clusters", "/calls?tool=read_review", "/call?id=hostile-1"):
        go(page, base, place)
        assert page.title().endswith("Failwise")
        assert page.locator("main img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(url.startswith(base) for url in asked)
    text = page.locator("main").inner_text()
    assert "<script>" in text
    assert "⟨U+202E⟩" in text


def test_a_body_of_five_megabytes(tmp_path: Path, served: Any, tab: Tab) -> None:
    """However much an upstream says, and whatever: pages stay small, and it is only text."""
    path = tmp_path / "large.db"
    said = "<b>large</b><script>alert(1)</script>" + "\u202e\u0007 word" * 400_000
    with (
        FaultServer() as server,
        closing(Journal(path, raw=True, raw_bytes=6_000_000)) as journal,
        Runtime(journal) as runtime,
    ):
        server.route("POST", "/talk", Fault.status(400, text=said))
        limit = {"max_response_bytes": 10_000_000}
        runtime.add(HttpTool("talk", "POST", server.url("/talk"), **limit))
        runtime.call_sync("talk", {}, call_id="large")
    page = tab()
    base = served(app(path, token="t" * 20, raw_token="r" * 20))
    page.goto(base + "/call?id=large")
    page.get_by_label("Token").fill("t" * 20)
    page.get_by_role("button", name="Sign in").click()
    assert "talk" in page.locator("h1").inner_text()
    assert len(page.content()) < 200_000
    page.get_by_role("link", name="Raw answers").click()
    page.get_by_label("Token").fill("r" * 20)
    page.get_by_role("button", name="Sign in").click()
    shown = page.locator("pre").inner_text()
    assert shown.startswith("<b>large</b><script>alert(1)</script>")
    assert len(page.content()) < 1_000_000
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_it_is_live(journal: Path, served: Any, tab: Tab) -> None:
    """What happens is seen within moments, without loading the page again; it can be paused."""
    page = tab()
    base = served(app(journal))
    go(page, base, "/calls")
    page.get_by_role("button", name="Pause updates").wait_for()
    before = page.locator("tbody tr").count()
    page.evaluate("window.same = true")
    with closing(Journal(journal)) as other, Runtime(other) as runtime:

        @runtime.tool(read_only=True)
        def late() -> str:
            return "done"

        runtime.call_sync("late", {})
    page.locator("tbody tr", has_text="late").wait_for()
    assert page.locator("tbody tr").count() == before + 1
    assert page.evaluate("window.same")
    page.get_by_role("button", name="Pause updates").click()
    page.get_by_role("button", name="Resume updates").wait_for()


def test_the_keyboard(played: Path, served: Any, tab: Tab) -> None:
    """The first stop skips to the content; j, k and Enter walk over the rows, / goes to the search."""
    base = served(app(played))
    page = tab()
    go(page, base, "/calls")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    outline = skip.evaluate("(node) => getComputedStyle(node).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("/")
    assert page.locator(":focus").get_attribute("id") == "text"
    page.locator("h1").click()
    for key in "jjk":
        page.keyboard.press(key)
    first = page.locator("tbody tr").first
    assert "here" in (first.get_attribute("class") or "")
    page.keyboard.press("Enter")
    page.wait_for_url("**/call?*")


def test_a_person_settles_and_names(journal: Path, served: Any, tab: Tab) -> None:
    """From the overview: an effect is settled, a cluster named and muted."""
    base = served(app(journal))
    page = tab()
    go(page, base, "/")
    page.locator(".tile.alarm a").click()
    page.get_by_role("button", name="It happened").click()
    page.get_by_text("No effect is open.").wait_for()
    page.get_by_role("link", name="Overview", exact=True).click()
    page.get_by_role("link", name=re.compile("certificate has expired")).first.click()
    page.get_by_label("Name of this cluster").fill("the rates' certificate")
    page.get_by_role("button", name="Rename").click()
    assert page.locator("h1").inner_text() == "the rates' certificate"
    page.get_by_role("button", name="Mute").click()
    page.get_by_role("button", name="Unmute").wait_for()


def test_looks_can_be_chosen(played: Path, served: Any, tab: Tab) -> None:
    """Dark and Chinese, by a click, kept from page to page."""
    base = served(app(played))
    page = tab()
    go(page, base, "/")
    page.get_by_role("link", name="Dark").click()
    page.get_by_role("link", name="中文").click()
    page.get_by_role("link", name="调用", exact=True).click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("h1").inner_text() == "调用"


def test_the_walk(played: Path, served: Any, tab: Tab) -> None:
    """Somebody who has never seen it, from the overview, in at most four clicks each: the certificate
    and since when, the order and whether it exists, why the chain stopped, what retries were worth."""
    base = served(app(played))
    page = tab()

    go(page, base, "/")
    page.get_by_role("link", name=re.compile("certificate has expired")).first.click()
    facts = page.locator("dl.facts").first.inner_text()
    assert re.search(r"not_after\s+20\d\d-\d\d-\d\d", facts)

    go(page, base, "/")
    row = page.locator("tr", has_text="create_order")
    assert "It happened" in row.inner_text()
    row.locator("a.go").click()
    assert "it had happened" in page.locator("main").inner_text()

    go(page, base, "/")
    page.get_by_role("link", name="job-stopped").click()
    page.get_by_role("link", name=re.compile("because read_customer ended")).first.click()
    assert "auth.forbidden" in page.locator(".head").inner_text()
    assert "not this one" in page.locator("main").inner_text()

    go(page, base, "/")
    page.get_by_role("link", name="Upstreams", exact=True).first.click()
    cells = page.locator("tbody tr").first.inner_text().split()
    assert cells[0] == "find_store.example"
