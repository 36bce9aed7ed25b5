"""The sentences that a bad call is told, read once from ``phrases.toml``."""

import functools
from collections.abc import Mapping
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError

LANGUAGES = ("en", "zh")


@functools.cache
def phrases() -> Mapping[str, Any]:
    """All phrases by section.

    Raises `ConfigurationError` when an entry lacks a language.
    """
    _, sections = documents.read("failwise.arguments", "phrases.toml")
    for section in ("violation", "type", "format", "word", "malformed"):
        for name, row in sections[section].items():
            if any(not isinstance(row.get(language), str) for language in LANGUAGES):
                raise ConfigurationError(
                    f"[{section}.{name}] needs en and zh; add the missing one", file="phrases.toml"
                )
    return sections


def phrase(section: str, name: str, /, **values: object) -> dict[str, str]:
    """One phrase in every language, filled in; an unknown name takes the section's ``other``.

    A value may itself be a text by language.
    """
    row = phrases()[section]
    texts = row[name] if name in row else row["other"]
    return {
        language: texts[language].format(
            **{
                key: value[language] if isinstance(value, Mapping) else value
                for key, value in values.items()
            }
        )
        for language in LANGUAGES
    }
