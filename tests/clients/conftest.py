"""Real exceptions of real client packages. `make clients` installs the packages and runs this folder;
elsewhere, where they are missing, it stays out of the way."""

import importlib.util
from collections.abc import Iterator

import pytest

from failwise.faults import FaultServer

_INSTALLED = all(
    importlib.util.find_spec(name) for name in ("openai", "botocore", "grpc", "psycopg", "pymongo")
)
collect_ignore_glob = [] if _INSTALLED else ["test_*.py"]


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    """An HTTP server that misbehaves as told."""
    with FaultServer() as server:
        yield server
