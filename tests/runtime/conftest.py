"""Runtimes in a directory of the test's own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from failwise import Runtime
from failwise.testing import SteppingClock


@pytest.fixture
def clock() -> SteppingClock:
    return SteppingClock()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    """Makes runtimes on one journal file, with exact delays, and closes them."""
    made: list[Runtime] = []

    def build(**options: Any) -> Runtime:
        options.setdefault("journal", tmp_path / "journal.db")
        options.setdefault("jitter", 0.0)
        runtime = Runtime(**options)
        made.append(runtime)
        return runtime

    yield build
    for runtime in made:
        held = {row["upstream"]: row["in_flight"] for row in runtime._guards.statistics()}  # type: ignore[attr-defined]
        runtime.close()
        assert not any(held.values()), f"slots lost: {held}"


@pytest.fixture
def rt(make: Callable[..., Runtime], clock: SteppingClock) -> Runtime:
    """A runtime on a stepping clock."""
    return make(clock=clock)
