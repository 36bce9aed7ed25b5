"""The stages of all three drivers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.machine.stages import STAGES, Open, Stage


@pytest.fixture(params=list(STAGES))
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a stage of one driver with a policy."""
    stages: list[Stage] = []

    def open_stage(policy: Any = None, **options: Any) -> Stage:
        made = STAGES[request.param](tmp_path).open(policy, **options)
        stages.append(made)
        return made

    yield open_stage
    for made in stages:
        assert made.guards.held == 0, "a slot was lost"
        made.close()
