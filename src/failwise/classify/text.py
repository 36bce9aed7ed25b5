"""Text → the rules that speak. Two stages: a required literal, then the pattern."""

import functools
import re
from typing import Final, TypeAlias

from failwise.classify.finding import Finding
from failwise.classify.tables import TextRule, text_rules

TEXT_LIMIT: Final = 8_192
"""Characters of a text that are looked at; no pattern is worse than linear in them."""

LONG: Final = 4
PAIR: Final = 2
_WORD: Final = re.compile(r"[a-zа-яё]{4,}")
_WORD_LIMIT: Final = 40
_WORDS_LIMIT: Final = 20_000
"""Words that are remembered, of at most so many letters."""

Waiting: TypeAlias = tuple[str, tuple[TextRule, ...]]
"""A literal, and the rules that wait for it."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[_\-./:#\s]{1,64}")


class TextMatcher:
    """Rules made ready. A literal is looked for only where four letters of one of its words occur
    in a word of the text (or two characters, in scripts without spaces), so that most texts meet
    hardly any. Logs repeat their words: which literals a word may belong to is remembered."""

    def __init__(self, rules: tuple[TextRule, ...]) -> None:
        waiting: dict[str, list[TextRule]] = {}
        for rule in rules:
            for literal in rule.need:
                waiting.setdefault(literal, []).append(rule)
        self._words: dict[str, list[Waiting]] = {}
        self._pairs: dict[str, list[Waiting]] = {}
        self._always: list[Waiting] = []
        self._remembered: dict[str, tuple[Waiting, ...]] = {}
        for literal, rows in waiting.items():
            entry = (literal, tuple(rows))
            words = _WORD.findall(literal)
            pairs = _pieces(literal, PAIR) - _ascii_pairs(literal)
            if words:
                _index(
                    self._words, {piece for word in words for piece in _pieces(word, LONG)}, entry
                )
            elif pairs:
                _index(self._pairs, pairs, entry)
            else:
                self._always.append(entry)

    def _candidates(self, lowered: str) -> list[Waiting]:
        found = list(self._always)
        remembered = self._remembered
        for word in set(_WORD.findall(lowered)):
            entries = remembered.get(word)
            found += self._of_word(word) if entries is None else entries
        if not lowered.isascii():
            for piece in _pieces(lowered, PAIR) & self._pairs.keys():
                found += self._pairs[piece]
        return found

    def _of_word(self, word: str) -> tuple[Waiting, ...]:
        pieces = _pieces(word, LONG) & self._words.keys()
        entries = tuple(entry for piece in pieces for entry in self._words[piece])
        if len(word) <= _WORD_LIMIT:
            if len(self._remembered) >= _WORDS_LIMIT:
                self._remembered.clear()
            self._remembered[word] = entries
        return entries

    def match(self, text: str) -> list[Finding]:
        """Every rule that speaks of the text, each with the last place where it does."""
        lowered = text[:TEXT_LIMIT].lower()
        places: dict[str, Finding] = {}
        tried: set[str] = set()
        for literal, rules in self._candidates(lowered):
            if literal not in lowered:
                continue
            for rule in rules:
                if rule.pattern is None:
                    place = lowered.rfind(literal)
                    known = places.get(rule.id)
                    if known is None or known.position < place:
                        places[rule.id] = _finding(rule, place)
                elif rule.id not in tried:
                    tried.add(rule.id)
                    place = _last(rule.pattern, lowered)
                    if place >= 0:
                        places[rule.id] = _finding(rule, place)
        return list(places.values())


def _index(table: dict[str, list[Waiting]], pieces: set[str], entry: Waiting) -> None:
    rarest = min(sorted(pieces), key=lambda piece: len(table.get(piece, ())))
    table.setdefault(rarest, []).append(entry)


def _pieces(text: str, size: int) -> set[str]:
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def _ascii_pairs(text: str) -> set[str]:
    return {piece for piece in _pieces(text, PAIR) if piece.isascii()}


def _last(pattern: re.Pattern[str], text: str) -> int:
    place = -1
    for found in pattern.finditer(text):
        place = found.start()
    return place


def _finding(rule: TextRule, position: int) -> Finding:
    return Finding(
        f"text.{rule.id}",
        rule.code,
        rule.effect,
        rule.strength,
        "text",
        rule.transient,
        rule.fix_by,
        position=position,
    )


@functools.cache
def matcher() -> TextMatcher:
    """The package's own rules, ready."""
    return TextMatcher(text_rules())


def match(text: str) -> list[Finding]:
    """Every rule of the package that speaks of the text."""
    return matcher().match(text)


def words_of(code: str) -> str:
    """A code as a person would write it, beside itself: ``AuthFailure.SignatureFailure`` → words."""
    if len(code) > 200:
        return code[:200]
    spaced = _SEPARATORS.sub(" ", _CAMEL.sub(" ", code))
    return code if spaced == code else f"{code} | {spaced}"
