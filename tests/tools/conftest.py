"""Sites on loopback for the tests of HTTP tools."""

from collections.abc import Iterator

import pytest
from loopback_site import Site

from failwise.tools.send import close_clients


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    running = Site()
    yield running
    close_clients()
    running.close()


@pytest.fixture
def other_site(site: Site) -> Iterator[Site]:
    running = Site()
    yield running
    close_clients()
    running.close()
