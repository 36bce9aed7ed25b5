"""The sentences of ``words.toml``, by language and name."""

import functools
from collections.abc import Mapping
from importlib import resources

from failwise.vocabulary.errors import ConfigurationError


@functools.cache
def table(lang: str) -> Mapping[str, str]:
    """All sentences of one language. Raises `ConfigurationError` for one that another language lacks."""
    import tomllib

    text = resources.files("failwise.vocabulary").joinpath("words.toml").read_text("utf-8")
    data: Mapping[str, Mapping[str, str]] = tomllib.loads(text)
    missing = set(data["en"]) ^ set(data["zh"])
    if missing:
        raise ConfigurationError(f"{min(missing)!r} stands in one language only", file="words.toml")
    return data[lang]


def say(lang: str, sentence: str, /, **facts: object) -> str:
    """One sentence, filled in."""
    return table(lang)[sentence].format(**facts)
