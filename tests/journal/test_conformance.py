"""SQLite, in a file and in memory, and PostgreSQL do what every engine must do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise.journal.journal import Journal
from failwise.testing import JournalConformance


class Engine(JournalConformance):
    """Journals of one engine, closed after each test."""

    place: Any
    made: list[Journal]

    def make_journal(self, **options: Any) -> Journal:
        return self._opened(self.new_place(), **options)

    def again(self, journal: Journal, **options: Any) -> Journal:
        return self._opened(journal._target.address, **options)

    def new_place(self) -> Any:
        raise NotImplementedError

    def _opened(self, place: Any, **options: Any) -> Journal:
        made = Journal(place, **options)
        self.made.append(made)
        return made

    @pytest.fixture(autouse=True)
    def _closing(self) -> Iterator[None]:
        self.made = []
        yield
        for journal in self.made:
            journal.close()


class TestSqlite(Engine):
    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def new_place(self) -> Any:
        return self.folder / f"{len(self.made)}.db"


class TestMemory(Engine):
    def new_place(self) -> Any:
        return ":memory:"

    def again(self, journal: Journal, **options: Any) -> Journal:
        return journal

    test_what_did_not_happen_may_be_claimed_again = None  # type: ignore[assignment]
    """There is no other process."""


class TestPostgres(Engine):
    @pytest.fixture(autouse=True)
    def _on(self, postgres: str) -> None:
        self.url = postgres

    def new_place(self) -> Any:
        return f"{self.url}_{len(self.made)}"


def test_another_engine_can_be_registered(tmp_path: Path) -> None:
    """Its URLs are places to keep a journal, for writing and for reading."""
    from failwise.journal.reader import open_reader
    from failwise.journal.sqlite import SqliteStore
    from failwise.journal.store import register
    from failwise.testing.journal_samples import claim_of, good

    register("mine", lambda target, keeping: SqliteStore(str(tmp_path / "mine.db"), keeping))
    journal = Journal("mine://me:s3cr3t@somewhere/x")
    assert journal.claim(claim_of("1")).result(10).state == "granted"
    journal.put(good())
    assert journal.flush(10)
    journal.close()
    with open_reader("mine://me:s3cr3t@somewhere/x") as reader:
        assert [row["calls"] for row in reader.figures()] == [1]
        assert reader.source.place == "mine://me:****@somewhere/x"
