"""The policy in force, as a page shows it."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any


def in_force(told: Callable[[], Mapping[str, Any]] | None) -> dict[str, Any]:
    """``policy`` (its name), ``settings`` and ``rows`` by code: each value with its ``origin``."""
    if told is not None:
        return {"told": True, **told()}
    return {"told": False, **_usual()}


def _usual() -> dict[str, Any]:
    """The default preset."""
    from failwise.policy import Row, Settings, load
    from failwise.vocabulary.kinds import Category

    table, origin = load("default"), "preset default"
    keys: list[str] = []
    for category in Category:
        keys.append(category.value)
        keys += sorted(key for key in table.base if key.startswith(f"{category}."))
    return {
        "policy": origin,
        "settings": {
            one.name: {"value": getattr(table.settings, one.name), "origin": origin}
            for one in fields(Settings)
        },
        "rows": {
            key: {
                one.name: {"value": _plain(getattr(table.row(key), one.name)), "origin": origin}
                for one in fields(Row)
            }
            for key in keys
        },
    }


def _plain(value: Any) -> Any:
    return [str(one) for one in value] if isinstance(value, tuple) else value
