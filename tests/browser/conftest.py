"""A real browser before a real server: Debian's chromium, driven by playwright. `make browser` installs
both and runs this folder; elsewhere, where playwright is missing, it stays out of the way.

`FAILWISE_SCREENSHOTS` names a folder for the pictures; without it they go to a temporary one.
"""

import asyncio
import importlib.util
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.seed import seed

_INSTALLED = importlib.util.find_spec("playwright") is not None
collect_ignore_glob = [] if _INSTALLED else ["test_*.py"]


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal, played once; nobody writes to it."""
    path = tmp_path_factory.mktemp("browser") / "journal.db"
    seed(path)
    return path


@pytest.fixture
def journal(played: Path, tmp_path: Path) -> Path:
    """A copy to write to."""
    path = tmp_path / "journal.db"
    shutil.copy(played, path)
    return path


@pytest.fixture
def served() -> Iterator[Callable[[Any], str]]:
    """Serve an application on loopback until the test ends; gives its address."""
    import uvicorn

    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def serve(application: Any) -> str:
        config = uvicorn.Config(
            application, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
        thread.start()
        bound = threading.Event()
        for _ in range(2_000):
            if server.started or bound.wait(0.01):
                break
        running.append((server, thread))
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield serve
    for server, thread in running:
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


Tab = Callable[..., Any]


@pytest.fixture
def tab(chromium: Any) -> Iterator[Tab]:
    """Open a tab; what its console says is an error at the end of the test, whatever it is."""
    contexts: list[Any] = []
    said: list[str] = []

    def open_(
        *, width: int = 1280, dark: bool = False, lang: str = "en", script: bool = True
    ) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            locale="zh-CN" if lang == "zh" else "en-US",
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", lambda one: said.append(f"{one.url} {one.failure}"))
        return page

    yield open_
    for context in contexts:
        context.close()
    ended = ("/live ", "/static/icon.svg")  # with the page that wanted it
    quiet = [
        line
        for line in said
        if not (line.endswith("net::ERR_ABORTED") and any(one in line for one in ended))
    ]
    assert quiet == []


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    named = os.environ.get("FAILWISE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
