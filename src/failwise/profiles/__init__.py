"""Provider profiles: how each API, protocol, database and client library spells its failures.

`Profiles` finds the profiles that an answer may belong to, `Profile.read` reads it by one of them.
The sources are the YAML files in ``data``; the README beside them tells how to write one.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failwise.profiles.document import Document
    from failwise.profiles.library import Hit, Profiles, check
    from failwise.profiles.profile import CodeEntry, Idempotency, Profile, Reading

__all__ = [
    "CodeEntry",
    "Document",
    "Hit",
    "Idempotency",
    "Profile",
    "Profiles",
    "Reading",
    "check",
]

_HOMES = {
    "Document": "document",
    "Hit": "library",
    "Profiles": "library",
    "check": "library",
    "CodeEntry": "profile",
    "Idempotency": "profile",
    "Profile": "profile",
    "Reading": "profile",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
