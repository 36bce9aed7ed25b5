"""How things are written for people: words of both languages, numbers, moments, texts of strangers."""

import datetime
import functools
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from failwise.vocabulary import documents
from failwise.vocabulary.result import Language

LONGEST: Final = 4_000
"""Characters of a stranger's text that a page shows."""
_ALLOWED: Final = "\n\t"


@functools.cache
def words_of(lang: Language) -> Mapping[str, Any]:
    """The sentences of the pages."""
    found: Mapping[str, Any] = documents.read("failwise.dashboard", "words.toml")[1][lang]
    return found


def say(lang: Language, sentence: str, /, **facts: object) -> str:
    """A sentence of ``words.toml``, filled in."""
    text: str = words_of(lang)["say"][sentence]
    return text.format(**facts) if facts else text


def named(lang: Language, kind: str, value: Any) -> str:
    """What a word of a closed vocabulary is called; itself where it has no other name."""
    name: str = words_of(lang).get(kind, {}).get(str(value), str(value))
    return name


def plain(text: object, longest: int = LONGEST) -> str:
    """A stranger's text as a page may show it: what cannot be seen, or turns the direction of others,
    is spelt out; too much is cut and said so."""
    shown = str(text)
    cut = len(shown) - longest
    shown = shown[:longest]
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(_visible(character) for character in shown)
    return f"{shown}… (+{cut:,})" if cut > 0 else shown


def _visible(character: str) -> str:
    if character in _ALLOWED or character.isprintable():
        return character
    kind = unicodedata.category(character)
    if kind in ("Zs", "Zl", "Zp"):
        return " "
    if character == "\r":
        return ""
    return f"⟨U+{ord(character):04X}⟩"


def count(number: float) -> str:
    """A whole number with its thousands apart."""
    return f"{round(number):,}"


def percent(share: float) -> str:
    """A share, 0 to 1: never 100 % or 0 % where it is not quite."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{share * 100:.1f} %" if share not in (0, 1) else f"{share * 100:.0f} %"


def duration(ms: float) -> str:
    """Milliseconds as a person says them."""
    if ms < 1:
        return "< 1 ms" if ms > 0 else "0 ms"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 120_000:
        return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"
    minutes = ms / 60_000
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def moment(epoch: float | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Epoch seconds, UTC."""
    if epoch is None:
        return ""
    try:
        return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return ""


def iso(epoch: float | None) -> str:
    """Epoch seconds for a ``datetime`` attribute."""
    return moment(epoch, "%Y-%m-%dT%H:%M:%SZ")


def ago(lang: Language, seconds: float) -> str:
    """How long ago something was, roughly."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size or (unit == "minutes" and seconds >= size):
            return say(lang, f"ago_{unit}", count=int(seconds // size))
    return say(lang, "ago_now")
