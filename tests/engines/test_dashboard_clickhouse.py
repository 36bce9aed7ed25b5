"""The dashboard's pages on ClickHouse: the real engine, inside the process (chDB)."""

from pathlib import Path

from tests.dashboard import alike
from tests.dashboard.seed import seed


def test_pages_on_clickhouse(folder: Path, tmp_path: Path) -> None:
    """Every page and every twin says of a journal in ClickHouse what it says of the same in SQLite;
    effects are found where claims are kept."""
    played = tmp_path / "journal.db"
    seed(played)
    alike.check(played, f"chdb:///{folder}?database=pages", str(tmp_path / "claims.db"))
