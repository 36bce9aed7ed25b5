"""`Scan`: which of many literals stand in a text, for little more than taking the text's words apart."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from failwise.vocabulary.alternation import any_of

_WORD: Final = re.compile(r"[a-z]{2,64}")
_PIECE: Final = 4
"""Letters by which a word is found inside of a longer one."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_LETTERS: Final = bytes(byte if chr(byte) in _ALPHABET else 32 for byte in range(256))
"""Turns whatever is no ASCII letter, byte by byte, into a blank."""
_WORD_LIMIT: Final = 40
_WORDS_LIMIT: Final = 20_000
"""Words that are remembered, of at most so many letters."""
_DIGITS_OF_IDS: Final = "abcdef"


class Scan:
    """Finds literals (in lower case) in texts.

    A literal is looked for only where a word of its own occurs in a word of the text, or one of its
    signs outside of ASCII in the text; those without either in one search for all of them. Texts of one
    kind repeat their words: those that belong to no literal are remembered, and a text of nothing else
    is done with in one comparison of sets.
    """

    __slots__ = (
        "_bare", "_by_piece", "_by_sign", "_harmless", "_known", "_search", "_short", "_signs", "_spelled",
    )  # fmt: skip

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_piece: dict[str, list[_Waiting]] = {}
        self._short: dict[str, list[_Waiting]] = {}
        self._by_sign: dict[str, list[str]] = {}
        waiting: dict[str, int] = {}
        bare = []
        for literal in sorted(set(literals)):
            words = {found[0]: found for found in _WORD.finditer(literal)}
            long = [word for word in words if len(word) >= _PIECE]
            signs = {sign for sign in literal if not sign.isascii()}
            if long:
                # Of its words the one that the fewest others wait for.
                word = (
                    long[0]
                    if len(long) == 1
                    else min(long, key=lambda word: (_spelled(word), waiting.get(word, 0), word))
                )
                waiting[word] = waiting.get(word, 0) + 1
                piece = _rarest(self._by_piece, _pieces(word))
                self._by_piece.setdefault(piece, []).append(_waiting(literal, words[word]))
            elif signs:
                self._by_sign.setdefault(_rarest(self._by_sign, signs), []).append(literal)
            elif words:
                word = max(words, key=len)
                self._short.setdefault(word, []).append(_waiting(literal, words[word]))
            else:
                bare.append(literal)
        self._bare = tuple(bare)
        self._search = re.compile(any_of(bare)).search if bare else None
        self._signs = frozenset(self._by_sign)
        self._spelled = tuple(filter(_spelled, (*self._by_piece, *self._short)))
        self._harmless: set[bytes] = set()
        self._known: dict[bytes, tuple[str, ...]] = {}

    def found(self, lowered: str) -> list[str]:
        """The literals that stand in a text, given in lower case; one may come more than once."""
        found: list[str] = []
        if self._search is not None and self._search(lowered) is not None:
            found += [literal for literal in self._bare if literal in lowered]
        known = self._known
        words = lowered.encode("utf-8", "replace").translate(_LETTERS).split()
        for word in set(words).difference(self._harmless):
            for literal in known.get(word) or self._of_word(word):
                if literal in lowered:
                    found.append(literal)
        if not lowered.isascii():
            for sign in self._signs.intersection(lowered):
                for literal in self._by_sign[sign]:
                    if literal in lowered:
                        found.append(literal)
        return found

    def _of_word(self, word: bytes) -> tuple[str, ...]:
        """The literals that a text with this word may hold."""
        text = word.decode("ascii")
        remembered = len(word) <= _WORD_LIMIT
        if _spelled(text) and len(text) > _PIECE:
            # A piece of some identifier: there are ever new ones, not worth remembering.
            if not any(map(text.__contains__, self._spelled)):
                return ()
            remembered = False
        found = [
            waiting
            for piece in _pieces(text)
            if piece in self._by_piece
            for waiting in self._by_piece[piece]
        ]
        for short, waiting in self._short.items():
            if short in text:
                found += waiting
        literals = tuple(
            literal
            for whole, first, last, literal in found
            if whole in text
            and (first or text.startswith(whole))
            and (last or text.endswith(whole))
        )
        if remembered:
            if len(self._known) + len(self._harmless) >= _WORDS_LIMIT:
                self._known.clear()
                self._harmless.clear()
            if literals:
                self._known[word] = literals
            else:
                self._harmless.add(word)
        return literals


_Waiting: TypeAlias = tuple[str, bool, bool, str]
"""A word of a literal, whether the literal begins with it and ends with it, and the literal: where
something else stands before the word in the literal, a word of the text begins with it too."""


def _waiting(literal: str, word: re.Match[str]) -> _Waiting:
    first = word.start() == 0 or literal[word.start() - 1] in _ALPHABET
    last = word.end() == len(literal) or literal[word.end()] in _ALPHABET
    return word[0], first, last, literal


def _rarest(table: Mapping[str, list[Any]], pieces: set[str]) -> str:
    """The piece that the fewest literals wait for; one that identifiers spell too only for want of others."""
    ordered = sorted(pieces)
    for piece in ordered:
        if piece not in table and not _spelled(piece):
            return piece
    return min(ordered, key=lambda piece: (_spelled(piece), len(table.get(piece, ()))))


def _spelled(piece: str) -> bool:
    return not piece.strip(_DIGITS_OF_IDS)


def _pieces(word: str) -> set[str]:
    return {word[at : at + _PIECE] for at in range(len(word) - _PIECE + 1)}
