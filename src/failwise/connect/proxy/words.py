"""What the proxy itself says to models, in both languages. The sentences are in ``words.toml``."""

import difflib
import functools
from collections.abc import Collection, Mapping
from typing import Any

from failwise.vocabulary import documents
from failwise.vocabulary.result import Language, ToolResult

_SHOWN = 20


def unknown_tool(name: str, known: Collection[str], lang: Language) -> str:
    """There is no such tool: the nearest names first."""
    near = difflib.get_close_matches(name, known, _SHOWN, 0.0)
    return _words()[lang]["unknown_tool"].format(name=name[:100], known=", ".join(near) or "-")


def verify_with(tool: str, lang: Language) -> str:
    """Which read tool tells whether it happened."""
    return _words()[lang]["verify_with"].format(tool=tool)


def circuit_open(lang: Language) -> str:
    return _words()[lang]["circuit_open"]


def failing(failed: int, of: int, code: str, lang: Language) -> str:
    return _words()[lang]["failing"].format(failed=failed, of=of, code=code)


def note(result: ToolResult[Any], lang: Language) -> str:
    """What a success owes the model to know: degraded, repaired."""
    said = []
    if result.degraded_to:
        said.append(_words()[lang]["degraded"].format(tool=result.degraded_to))
    for repair in result.repairs[:5]:
        where = repair.path or "/"
        said.append(_words()[lang]["repaired"].format(path=where, after=repair.after))
    return "\n".join(said)[:900]


@functools.cache
def _words() -> Mapping[str, Mapping[str, str]]:
    return documents.read("failwise.connect.proxy", "words.toml")[1]
