"""The journal that a command reads: an existing one, never made or changed by looking at it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from failwise.journal import place
from failwise.vocabulary.errors import ConfigurationError


def existing(path: str | None) -> str:
    """The path of a journal that is there: as given, else the usual place.

    It is opened read-only and looked at first: an empty file, or another program's database, must
    not become a journal because somebody mistyped a name. Raises `ConfigurationError`.
    """
    found = place.resolve(path)
    if found == place.MEMORY:
        raise ConfigurationError("a journal in memory ends with its process; name a file")
    if not Path(found).is_file():
        raise ConfigurationError(
            f"there is no journal here; name its file, or set {place.VARIABLE}", file=found
        )
    try:
        with closing(sqlite3.connect(f"{Path(found).as_uri()}?mode=ro", uri=True)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE name IN ('calls', 'attempts', 'claims')"
            ).fetchall()
    except sqlite3.Error as error:
        raise ConfigurationError(f"this is not a journal ({error})", file=found) from error
    if len(tables) < 3:
        raise ConfigurationError("this is not a journal: it has none of its tables", file=found)
    return found
