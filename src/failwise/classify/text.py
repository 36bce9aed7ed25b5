"""Text → the rules that speak. Two stages: a required literal, then the pattern."""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from failwise.classify.finding import Finding
from failwise.classify.tables import TextRule, text_rules
from failwise.vocabulary.needs import Ways

TEXT_LIMIT: Final = 8_192
"""Characters of a text that are looked at; no pattern is worse than linear in them."""

LONG: Final = 4
PAIR: Final = 2
_WORD: Final = re.compile(r"[a-zа-яё]{4,}")
_WORD_LIMIT: Final = 40
_WORDS_LIMIT: Final = 20_000
"""Words that are remembered, of at most so many letters."""
_DIGITS_OF_IDS: Final = "abcdef"

Waiting: TypeAlias = tuple[str, tuple[int, ...]]
"""A literal, and the rules that wait for it, by their numbers."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[_\-./:#\s]{1,64}")


class TextMatcher:
    """Rules made ready. A literal is looked for only where one of its words occurs in a word of the
    text (or two of its characters, in scripts without spaces), so that most texts meet hardly any.
    Words are found by four letters of theirs. Logs repeat their words: which literals a word may belong to is remembered."""

    def __init__(self, rules: tuple[TextRule, ...]) -> None:
        # By id, so that rules that tie are told apart alike in every process and order of files.
        self._rules = sorted(rules, key=lambda rule: rule.id)
        self._ways: list[Ways | None] = [None] * len(rules)
        waiting: dict[str, list[int]] = {}
        for place, rule in enumerate(self._rules):
            for literal in rule.need:
                waiting.setdefault(literal, []).append(place)
        self._words: dict[str, list[tuple[str, Waiting]]] = {}
        self._pairs: dict[str, list[Waiting]] = {}
        self._always: list[Waiting] = []
        self._remembered: dict[str, tuple[Waiting, ...]] = {}
        self._recent: tuple[str, tuple[tuple[int, int], ...]] = ("", ())
        for literal, places in waiting.items():
            entry = (literal, tuple(places))
            words = _WORD.findall(literal)
            pairs = _pieces(literal, PAIR) - _ascii_pairs(literal)
            if words:
                pieces = {piece for word in words for piece in _pieces(word, LONG)}
                rarest = _rarest(self._words, pieces)
                word = next(word for word in words if rarest in word)
                self._words.setdefault(rarest, []).append((word, entry))
            elif pairs:
                self._pairs.setdefault(_rarest(self._pairs, pairs), []).append(entry)
            else:
                self._always.append(entry)
        signs = {sign for pair in self._pairs for sign in pair if not sign.isascii()}
        self._signs = re.compile(
            f"[{re.escape(''.join(sorted(signs)))}]{{1,256}}" if signs else "(?!)"
        )
        self._spelled = any(not piece.strip(_DIGITS_OF_IDS) for piece in self._words)

    def match(self, text: str) -> list[Finding]:
        """Every rule that speaks of the text, each with the last place where it does."""
        recent = self._recent
        if recent[0] == text:
            spoke = recent[1]
        else:
            spoke = self._spoke(text[:TEXT_LIMIT].lower())
            self._recent = (text, spoke)
        return [_finding(self._rules[rule], place) for rule, place in spoke]

    def _spoke(self, lowered: str) -> tuple[tuple[int, int], ...]:
        """The rules that speak, and where they do last."""
        last: dict[int, int] = {}
        for literal, rules in self._candidates(lowered):
            if literal not in lowered:
                continue
            for rule in rules:
                if self._rules[rule].pattern is None:
                    place = lowered.rfind(literal)
                    if last.get(rule, -1) < place:
                        last[rule] = place
                elif rule not in last:
                    last[rule] = self._ways_of(rule).last(lowered)
        if not last:
            return ()
        return tuple((rule, place) for rule, place in sorted(last.items()) if place >= 0)

    def _ways_of(self, rule: int) -> Ways:
        found = self._ways[rule]
        if found is None:
            pattern = self._rules[rule].pattern
            assert pattern is not None
            found = self._ways[rule] = Ways(pattern)
        return found

    def _candidates(self, lowered: str) -> list[Waiting]:
        found = list(self._always)
        remembered = self._remembered
        for word in set(_WORD.findall(lowered)):
            entries = remembered.get(word)
            if entries is None:
                entries = self._of_word(word)
            if entries:
                found += entries
        if not lowered.isascii():
            for piece in self._pairs_of(lowered) & self._pairs.keys():
                found += self._pairs[piece]
        return found

    def _pairs_of(self, lowered: str) -> set[str]:
        """The pairs of characters that hold a sign of any pair looked for."""
        pairs = set()
        for run in self._signs.finditer(lowered):
            for at in range(max(0, run.start() - 1), min(run.end(), len(lowered) - 1)):
                pairs.add(lowered[at : at + PAIR])
        return pairs

    def _of_word(self, word: str) -> tuple[Waiting, ...]:
        if not self._spelled and not word.strip(_DIGITS_OF_IDS):
            return ()  # a piece of some identifier: there are ever new ones
        entries = tuple(
            entry
            for piece in _pieces(word, LONG)
            if piece in self._words
            for whole, entry in self._words[piece]
            if whole in word
        )
        if len(word) <= _WORD_LIMIT:
            if len(self._remembered) >= _WORDS_LIMIT:
                self._remembered.clear()
            self._remembered[word] = entries
        return entries


def _rarest(table: Mapping[str, list[Any]], pieces: set[str]) -> str:
    return min(sorted(pieces), key=lambda piece: len(table.get(piece, ())))


def _pieces(text: str, size: int) -> set[str]:
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def _ascii_pairs(text: str) -> set[str]:
    return {piece for piece in _pieces(text, PAIR) if piece.isascii()}


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
