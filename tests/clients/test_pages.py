"""A real browser that playwright drives: what it raises when pages, addresses and elements fail."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise.faults import FaultServer, Reply
from tests.clients.provoking import judged, mute, peer, raised, refused_port, reset

sync_api = pytest.importorskip("playwright.sync_api")

PAGE = b"<button disabled>go</button><i>1</i><i>2</i><input type=file>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium as the machine has it."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium here (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except sync_api.Error as error:
            pytest.skip(f"chromium does not start here: {error}")
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, faults: FaultServer) -> Iterator[Any]:
    """A page with a disabled button, two of one kind, and a field for a file."""
    faults.route("GET", "/page", Reply(200, {"content-type": "text/html"}, PAGE))
    opened = browser.new_page()
    opened.set_default_timeout(2_000)
    opened.goto(faults.url("/page"))
    opened.set_default_timeout(300)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("act", "code", "effect"),
    [
        (lambda page: page.goto(f"http://127.0.0.1:{refused_port()}/"), "network.connect_refused", "not_sent"),
        (lambda page: page.goto("http://no-such-host.invalid/"), "network.dns|network.proxy", "not_sent"),
        (lambda page: page.goto("nonsense"), "invalid_request.parameter", "rejected|not_sent"),
        (lambda page: page.click("#nope"), "network.timeout|business.not_found", "unknown|rejected"),
        (lambda page: page.click("button"), "business.precondition|network.timeout", "rejected|unknown"),
        (lambda page: page.locator("i").inner_text(), "invalid_request.parameter", "rejected"),
        (lambda page: page.click("xpath=///["), "invalid_request.parameter", "rejected"),
        (lambda page: page.evaluate("nope.x"), "tool.exception|invalid_request.parameter", "unknown|rejected"),
        (lambda page: page.set_input_files("input", "/nowhere/x"), "tool.file_not_found", "not_sent"),
        (lambda page: page.wait_for_url("**/never"), "network.timeout", "unknown"),
    ],
    ids=["refused", "dns", "address", "missing", "disabled", "two", "selector", "script", "file", "url"],
)  # fmt: skip
def test_pages(page: Any, act: Callable[[Any], Any], code: str, effect: str) -> None:
    """Navigation, elements, scripts, files."""
    judged(raised(lambda: act(page)), code, effect)


def test_servers_that_misbehave(browser: Any) -> None:
    """Silent and reset: the request may have been carried out."""
    page = browser.new_page()
    with peer(mute) as port:
        error = raised(lambda: page.goto(f"http://127.0.0.1:{port}/", timeout=400))
    judged(error, "network.timeout|network.read_timeout", "unknown")
    with peer(reset) as port:
        error = raised(lambda: page.goto(f"http://127.0.0.1:{port}/", timeout=5_000))
    judged(error, "network.connection_reset", "unknown")
    page.close()
    judged(raised(page.title), "network.connection_reset|server.internal", "unknown")


def test_a_download_that_never_comes(page: Any, tmp_path: Path) -> None:
    """Waiting for an event runs out."""
    error = raised(lambda: page.wait_for_event("download", timeout=100))
    judged(error, "network.timeout", "unknown")
