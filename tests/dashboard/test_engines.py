"""The pages on another engine: PostgreSQL. ClickHouse's are in tests/engines."""

from pathlib import Path

from tests.dashboard import alike


def test_pages_on_postgresql(played: Path, postgres: str) -> None:
    """Every page and every twin says of a journal in PostgreSQL what it says of the same in SQLite."""
    alike.check(played, postgres)
