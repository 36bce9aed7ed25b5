"""The ``[journal]`` section of ``failwise.toml``: where calls and claims are kept, how much, how long."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from failwise.vocabulary.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from failwise.cli.configuration import Configuration
    from failwise.journal.journal import Journal

_PLACES: Final = ("path", "url", "env")
_CLAIMS: Final = ("claims", "claims_env")
_NUMBERS: Final = (
    "retention_days", "retention_rows", "figures_days", "raw_days", "raw_bytes",
)  # fmt: skip
_KEYS: Final = (*_PLACES, *_CLAIMS, *_NUMBERS, "raw")


def journal_of(file: "Configuration") -> "Journal | Path | None":
    """What `Runtime(journal)` takes: None where the file says nothing. Raises `ConfigurationError`."""
    section = file.data.get("journal")
    if section is None:
        return None
    for key in section:
        file.known(key, _KEYS, "journal", key)
    place = _place(file, section, _PLACES)
    claims = _place(file, section, _CLAIMS)
    kept = {key: section[key] for key in _NUMBERS if key in section}
    raw = section.get("raw", False)
    if raw not in (True, False, "redacted", "as is"):
        raise file.error(
            f'raw = {raw!r}: write true, false or "as is" (not redacted)', "journal", "raw"
        )
    if not kept and not raw and claims is None and isinstance(place, Path):
        return place
    from failwise.journal.journal import Journal

    for key, value in kept.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise file.error(f"{key} = {value!r}: write a number above 0", "journal", key)
    try:
        return Journal(place, claims=claims, raw=raw, **kept)
    except ConfigurationError:
        raise
    except UsageError as error:
        raise file.error(str(error), "journal") from error


def places_of(file: "Configuration") -> tuple[str | None, str | None]:
    """Where ``[journal]`` says that the journal is, and its claims; None where it says nothing."""
    section = file.data.get("journal") or {}
    places = [_place(file, section, keys) for keys in (_PLACES, _CLAIMS)]
    place, claims = [None if one is None else str(one) for one in places]
    return place, claims


def _place(file: "Configuration", section: Any, keys: tuple[str, ...]) -> "Path | str | None":
    """A path, counted from the file's folder, or a URL: as it stands, or in a variable."""
    given = [key for key in keys if key in section]
    if len(given) > 1:
        raise file.error(
            f"[journal]: {' and '.join(given)} exclude each other", "journal", given[1]
        )
    if not given:
        return None
    (key,) = given
    value = section[key]
    if not isinstance(value, str) or not value:
        raise file.error(
            f"{key} = {value!r}: write a {'path' if key == 'path' else 'text'}", "journal", key
        )
    if key.endswith("env"):
        found = os.environ.get(value)
        if not found:
            raise file.error(f"{key}: the variable {value} is not set", "journal", key)
        return found
    if value == ":memory:" or "://" in value:
        return value
    return file.path("journal", key)
