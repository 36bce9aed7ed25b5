"""Sentences that explain: what something is, what happens if, how to keep it from happening.

Documentation, answers to questions and notes speak of failures in the words of failures. What a tool
gave back is such a text, and no failure, where its first words only explain.
"""

from typing import Final

from failwise.classify.forms import Place

LIMIT: Final = 600
"""Characters up to which a text may be one such sentence; a longer one is content by its length."""
_FILE: Final = "prose.toml"
_IN_ENGLISH: Final = tuple(Place(_FILE, name) for name in ("tells", "supposes", "lists"))
_IN_OTHERS: Final = tuple(Place(_FILE, name) for name in ("chinese", "localised"))


def explains(text: str) -> bool:
    """Is a text a sentence that explains? ("Connection Refused is a novel"; "If it fails, try again.")"""
    if len(text) > LIMIT:
        return False
    if any(place.match(text) for place in _IN_ENGLISH):
        return True
    return not text.isascii() and any(place.match(text) for place in _IN_OTHERS)
