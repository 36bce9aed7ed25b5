"""Cutting a text after it was redacted: a key that was cut in two is not recognised."""

import re
import unicodedata

from failwise.redaction.redactor import Redactor, default

_MARGIN = 8 * 1024
_LAST_WORD = re.compile(r"\S{1,4096}\Z")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def cut(text: str, limit: int, redactor: Redactor | None = None) -> str:
    """At most `limit` characters of the redacted text, the last an ellipsis where it was cut.

    Only a window of `limit` + 8 kB is redacted. No character is split from its combining marks, and
    no surrogate from its other half.
    """
    clean = (redactor or default()).text(text[: limit + _MARGIN])
    whole = len(text) <= limit + _MARGIN
    if not whole:
        # What stands at the end of the window may be half a secret.
        clean = clean[: limit + 1] if len(clean) > limit + 4096 else _LAST_WORD.sub("", clean)
        return shorten(clean, limit, cut_before=True)
    return shorten(clean, limit)


def shorten(text: str, limit: int, *, cut_before: bool = False) -> str:
    """At most `limit` characters, between characters as a reader sees them.

    `cut_before` says that the text is already only a part, so that it ends in an ellipsis.
    """
    if len(text) <= limit and not cut_before:
        return text
    if limit < 1:
        return ""
    end = min(len(text), limit - 1)
    while 0 < end < len(text) and _continues(text, end):
        end -= 1
    return text[:end] + "…"


def _continues(text: str, place: int) -> bool:
    """True when the character at `place` belongs to the one before it."""
    following, before = text[place], text[place - 1]
    return (
        unicodedata.combining(following) != 0
        or following in _JOINERS
        or before == "\u200d"
        or "\udc00" <= following <= "\udfff"
        or "\U0001f3fb" <= following <= "\U0001f3ff"
    )
