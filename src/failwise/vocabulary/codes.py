"""The registry of codes: one data file with meaning and remedy in both languages."""

import functools
from collections.abc import Mapping
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category, FixBy
from failwise.vocabulary.records import record


@record
class Code:
    """One registered code.

    `meaning` and `remedy` per language; `remedy_with` is a template filled from facts, used when
    all of its names are known. `transient` and `fix_by` are what holds when nothing else is known.
    """

    name: str
    category: Category
    transient: bool
    fix_by: FixBy
    meaning: Mapping[str, str]
    remedy: Mapping[str, str]
    remedy_with: Mapping[str, str]
    deprecated: str | None = None


@functools.cache
def registry() -> Mapping[str, Code]:
    """All registered codes by name, read once.

    Raises `ConfigurationError` naming the entry when the data file is wrong.
    """
    _, data = documents.read("failwise.vocabulary", "codes.toml")
    codes: dict[str, Code] = {}
    for category, rows in data.items():
        for name, row in rows.items():
            full = f"{category}.{name}"
            codes[full] = _code(full, category, row)
    return codes


def _code(name: str, category: str, row: Mapping[str, Any]) -> Code:
    try:
        code = Code(
            name,
            Category(category),
            bool(row["transient"]),
            FixBy(row["fix_by"]),
            {"en": row["en"], "zh": row["zh"]},
            {"en": row["remedy"]["en"], "zh": row["remedy"]["zh"]},
            row.get("remedy_with", {}),
            row.get("deprecated"),
        )
    except (KeyError, ValueError) as error:
        raise ConfigurationError(f"[{name}]: {error!r}", file="codes.toml") from error
    return code


def lookup(name: str) -> Code | None:
    """The entry of a code, or None for one nobody registered (a provider's own)."""
    return registry().get(name)


@functools.lru_cache(2_048)
def category_of(code: str) -> Category:
    """The category a code belongs to: its first part; `unknown` where that is none of ours."""
    try:
        return Category(code.partition(".")[0])
    except ValueError:
        return Category.UNKNOWN
