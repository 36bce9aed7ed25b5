"""What the tests of the guards share."""

from collections.abc import Iterator

import pytest

from tests.guards.valkey import started


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Valkey."""
    server = started(tmp_path_factory.mktemp("valkey"))
    yield f"valkey://127.0.0.1:{server.port}"
    server.stop()
