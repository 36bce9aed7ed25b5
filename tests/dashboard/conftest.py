"""Browsers without a screen: a client of the application on a journal that was really played."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from failwise.dashboard import app
from tests.dashboard.seed import seed
from tests.insight.conftest import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal, played once; nobody writes to it."""
    path = tmp_path_factory.mktemp("dashboard") / "journal.db"
    seed(path)
    return path


@pytest.fixture
def journal(played: Path, tmp_path: Path) -> Path:
    """A copy to write to."""
    path = tmp_path / "journal.db"
    shutil.copy(played, path)
    return path


Opened = Callable[..., TestClient]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """A client of a dashboard on a place, with the options of `app`."""
    clients: list[TestClient] = []

    def open_(place: Any, *, host: str = "localhost", **options: Any) -> TestClient:
        client = TestClient(app(place, **options), base_url=f"http://{host}")
        clients.append(client)
        return client

    yield open_
    for client in clients:
        client.close()


def mark_of(page: str) -> str:
    """What a form of this page carries along."""
    found = re.search(r'name="mark" value="([0-9a-f]+)"', page)
    assert found is not None, page
    return found[1]
