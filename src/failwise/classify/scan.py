"""`Scan`: which of many literals stand in a text, for little more than taking the text's words apart."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_WORD: Final = re.compile(r"[a-z]{2,64}")
_PIECE: Final = 4
"""Letters by which a word is found inside of a longer one."""
_LETTERS: Final = bytes(byte if chr(byte) in "abcdefghijklmnopqrstuvwxyz" else 32 for byte in range(256))  # fmt: skip
"""Turns whatever is no ASCII letter, byte by byte, into a blank."""
_WORD_LIMIT: Final = 40
_WORDS_LIMIT: Final = 20_000
"""Words that are remembered, of at most so many letters."""
_DIGITS_OF_IDS: Final = "abcdef"


class Scan:
    """Finds literals (in lower case) in texts.

    A literal is looked for only where a word of its own occurs in a word of the text, or one of its
    signs outside of ASCII in the text. Texts of one kind repeat their words: those that belong to no
    literal are remembered, and a text of nothing else is done with in one comparison of sets.
    """

    __slots__ = (
        "_always", "_by_piece", "_by_sign", "_harmless", "_known", "_short", "_signs", "_spelled",
    )  # fmt: skip

    def __init__(self, literals: Iterable[str]) -> None:
        self._by_piece: dict[str, list[tuple[str, str]]] = {}
        self._by_sign: dict[str, list[str]] = {}
        short: list[tuple[str, str]] = []
        always = []
        for literal in sorted(set(literals)):
            words = _WORD.findall(literal)
            long = [word for word in words if len(word) >= _PIECE]
            signs = {sign for sign in literal if not sign.isascii()}
            if long:
                piece = _rarest(self._by_piece, {one for word in long for one in _pieces(word)})
                word = next(word for word in long if piece in word)
                self._by_piece.setdefault(piece, []).append((word, literal))
            elif signs:
                self._by_sign.setdefault(_rarest(self._by_sign, signs), []).append(literal)
            elif words:
                short.append((max(words, key=len), literal))
            else:
                always.append(literal)
        self._always = tuple(always)
        self._short = tuple(short)
        self._signs = frozenset(self._by_sign)
        looked_for = (*self._by_piece, *(word for word, _ in short))
        self._spelled = any(map(_spelled, looked_for))
        self._harmless: set[bytes] = set()
        self._known: dict[bytes, tuple[str, ...]] = {}

    def found(self, lowered: str) -> list[str]:
        """The literals that stand in a text, given in lower case; one may come more than once."""
        found = [literal for literal in self._always if literal in lowered]
        words = lowered.encode("utf-8", "replace").translate(_LETTERS).split()
        for word in set(words).difference(self._harmless):
            literals = self._known.get(word)
            if literals is None:
                literals = self._of_word(word)
            for literal in literals:
                if literal in lowered:
                    found.append(literal)  # noqa: PERF401 (the fewest words have any)
        if not lowered.isascii():
            for sign in self._signs.intersection(lowered):
                found += [literal for literal in self._by_sign[sign] if literal in lowered]
        return found

    def _of_word(self, word: bytes) -> tuple[str, ...]:
        """The literals that a text with this word may hold."""
        text = word.decode("ascii")
        if not self._spelled and _spelled(text):
            return ()  # a piece of some identifier: there are ever new ones, not worth remembering
        literals = tuple(
            literal
            for piece in _pieces(text)
            if piece in self._by_piece
            for whole, literal in self._by_piece[piece]
            if whole in text
        ) + tuple(literal for short, literal in self._short if short in text)
        if len(word) <= _WORD_LIMIT:
            if len(self._known) + len(self._harmless) >= _WORDS_LIMIT:
                self._known.clear()
                self._harmless.clear()
            if literals:
                self._known[word] = literals
            else:
                self._harmless.add(word)
        return literals


def _rarest(table: Mapping[str, list[Any]], pieces: set[str]) -> str:
    """The piece that the fewest literals wait for; one that identifiers spell too only for want of others."""
    return min(sorted(pieces), key=lambda piece: (_spelled(piece), len(table.get(piece, ()))))


def _spelled(piece: str) -> bool:
    return not piece.strip(_DIGITS_OF_IDS)


def _pieces(word: str) -> set[str]:
    return {word[at : at + _PIECE] for at in range(len(word) - _PIECE + 1)}
