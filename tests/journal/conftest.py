"""Journals in a directory of the test's own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from journal_samples import OpenBorder, StandingClock

from failwise.journal.journal import Journal


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
