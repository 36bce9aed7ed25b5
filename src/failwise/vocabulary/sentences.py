"""The sentences of ``words.toml``, by language and name."""

import functools
from collections.abc import Mapping

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError


@functools.cache
def table(lang: str) -> Mapping[str, str]:
    """All sentences of one language. Raises `ConfigurationError` for one that another language lacks."""
    _, data = documents.read("failwise.vocabulary", "words.toml")
    missing = set(data["en"]) ^ set(data["zh"])
    if missing:
        raise ConfigurationError(f"{min(missing)!r} stands in one language only", file="words.toml")
    sentences: Mapping[str, str] = data[lang]
    return sentences


def say(lang: str, sentence: str, /, **facts: object) -> str:
    """One sentence, filled in."""
    return table(lang)[sentence].format(**facts)
