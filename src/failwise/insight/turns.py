"""Whose turn it is: who has to do something so that a kind of failure ends."""

import functools
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from failwise.vocabulary import documents
from failwise.vocabulary.codes import registry
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category

Turn: TypeAlias = Literal[
    "upstream", "environment", "trust", "model", "user", "follow_up", "unknown"
]
"""``trust``: our environment or the certificate's owner. ``follow_up``: no cause of its own."""

_FILE: Final = "turns.toml"


def turn_of(category: str, code: str) -> Turn:
    """Whose turn a failure of this code is; of an unregistered code, its category's."""
    categories, codes = _tables()
    return codes.get(code) or categories.get(category, "unknown")


@functools.cache
def _tables() -> tuple[Mapping[str, Turn], Mapping[str, Turn]]:
    _, data = documents.read("failwise.insight", _FILE)
    categories: dict[str, Turn] = data.get("categories", {})
    codes: dict[str, Turn] = data.get("codes", {})
    for name, turn in {**categories, **codes}.items():
        if turn not in get_args(Turn):
            raise ConfigurationError(
                f"{name} = {turn!r}: write one of {', '.join(get_args(Turn))}", file=_FILE
            )
    lacking = {category.value for category in Category} ^ categories.keys()
    strange = lacking | (codes.keys() - registry().keys())
    if strange:
        raise ConfigurationError(
            f"{', '.join(sorted(strange))}: list each category and registered codes only",
            file=_FILE,
        )
    return categories, codes
