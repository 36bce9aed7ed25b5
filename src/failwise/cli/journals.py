"""The journal that a command reads: an existing one, never made or changed by looking at it."""

from pathlib import Path

from failwise.journal import place
from failwise.vocabulary.errors import ConfigurationError


def existing(chosen: str | None) -> str:
    """The path or URL of a journal that is there: as given, else the usual place.

    It is opened and looked at first: an empty file, or another program's database, must not become
    a journal because somebody mistyped a name. Raises `ConfigurationError`.
    """
    from failwise.journal.store import open_existing

    found = place.locate(chosen)
    if found.engine == "sqlite" and not (
        found.address == place.MEMORY or Path(found.address).is_file()
    ):
        raise ConfigurationError(
            f"there is no journal here; name its file or URL, or set {place.VARIABLE}",
            file=found.shown,
        )
    open_existing(found).close()
    return found.address
