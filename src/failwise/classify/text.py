"""Text → the rules that speak. Two stages: a required literal, then the pattern."""

import functools
import re
from collections.abc import Iterable
from typing import Final

from failwise.classify.finding import Finding, Fits, Said
from failwise.classify.folding import fold
from failwise.classify.scan import Scan
from failwise.classify.signs import literals
from failwise.classify.tables import FLAGS, TextRule, stem_rules, text_rules
from failwise.vocabulary.needs import Ways

TEXT_LIMIT: Final = 8_192
"""Characters of a text that are looked at; no pattern is worse than linear in them."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[_\-./:#\s]{1,64}")


_UNTRIED: Final = -2
"""In place of where a rule speaks: that is still to be seen."""


class TextMatcher:
    """Rules made ready: one scan for the literals of all of them (and of `also`, for whoever asks for
    `found`), then the patterns of those of which one stands in the text."""

    def __init__(self, rules: tuple[TextRule, ...], also: Iterable[str] = ()) -> None:
        # By id, so that rules that tie are told apart alike in every process and order of files; and
        # the strongest first, for whoever asks no further.
        self._rules = sorted(rules, key=lambda rule: (-rule.strength, rule.id))
        self._ways: list[Ways | None] = [None] * len(rules)
        self._waiting: dict[str, list[int]] = {}
        self._untried: dict[str, dict[int, int]] = {}
        for place, rule in enumerate(self._rules):
            for literal in map(fold, rule.need):
                if rule.source is None:
                    self._waiting.setdefault(literal, []).append(place)
                else:
                    self._untried.setdefault(literal, {})[place] = _UNTRIED
        self._scan = Scan((*self._waiting, *self._untried, *also))
        self._finer_than: dict[tuple[str, int], frozenset[int]] = {}
        self._recent: tuple[str, str, list[str]] = ("", "", [])

    def found(self, text: str) -> tuple[str, list[str]]:
        """The text in lower case and in one spelling (`fold`), and the literals in it. One text is
        asked for by stage after stage: the last one is remembered."""
        recent = self._recent
        if recent[0] != text:
            lowered = fold(text[:TEXT_LIMIT].lower())
            if lowered in recent[1]:
                # A line without what stands before it: the literals of the whole are all there can be.
                found = [literal for literal in recent[2] if literal in lowered]
            else:
                found = self._scan.found(lowered)
            recent = self._recent = (text, lowered, found)
        return recent[1:]

    def match(self, text: str, category: str = "", above: int = 0) -> list[Finding]:
        """Every rule that speaks of the text, each with the last place where it does; with
        `category`, those of its codes that are stronger than `above`."""
        said = self.said(text, category, above)
        return [] if said is None else said.all()

    def said(self, text: str, category: str = "", above: int = 0) -> "TextSaid | None":
        """The same, looked for when it is asked for; None where no literal of a rule stands in it."""
        lowered, found = self.found(text)
        waiting, untried = self._waiting, self._untried
        asked: dict[int, int] = {}
        for literal in found:
            if literal in untried:
                asked.update(untried[literal])
            if literal in waiting:
                place = lowered.rfind(literal)
                for rule in waiting[literal]:
                    if asked.get(rule, -1) < place:
                        asked[rule] = place
        if category:
            wanted = self._finer(category, above)
            asked = {rule: place for rule, place in asked.items() if rule in wanted}
        return TextSaid(self, lowered, asked) if asked else None

    def speaks(self, text: str) -> bool:
        """Does any rule speak of the text?"""
        lowered, found = self.found(text)
        untried = self._untried
        asked: dict[int, int] = {}
        for literal in found:
            if literal in self._waiting:
                return True
            if literal in untried:
                asked.update(untried[literal])
        return any(self._ways_of(rule).matches(lowered) for rule in asked)

    def _finer(self, category: str, above: int) -> frozenset[int]:
        """The rules for codes of this category that are stronger than that."""
        finer = self._finer_than.get((category, above))
        if finer is None:
            finer = self._finer_than[category, above] = frozenset(
                place
                for place, rule in enumerate(self._rules)
                if rule.strength > above and rule.code.partition(".")[0] == category
            )
        return finer

    def _ways_of(self, rule: int) -> Ways:
        ways = self._ways[rule]
        if ways is None:
            source = self._rules[rule].source
            assert source is not None
            ways = self._ways[rule] = Ways(fold(source), FLAGS)
        return ways

    def finding(self, rule: int, lowered: str, place: int) -> Finding | None:
        """What one rule says; None where its pattern stands nowhere."""
        if place == _UNTRIED:
            place = self._ways_of(rule).last(lowered)
            if place < 0:
                return None
        told = self._rules[rule]
        return Finding(
            f"text.{told.id}",
            told.code,
            told.effect,
            told.strength,
            "text",
            told.transient,
            told.fix_by,
            position=place,
        )

    def strength(self, rule: int) -> int:
        return self._rules[rule].strength


class TextSaid(Said):
    """What the rules say of one text: of those with one of their literals in it each is tried when it
    matters, the strongest first."""

    __slots__ = ("_asked", "_lowered", "_made", "_matcher")

    def __init__(self, matcher: TextMatcher, lowered: str, asked: dict[int, int]) -> None:
        self._matcher, self._lowered = matcher, lowered
        self._asked = {rule: asked[rule] for rule in sorted(asked)} if len(asked) > 1 else asked
        self._made: dict[int, Finding | None] = {}

    def top(self, least: int, fits: Fits | None = None) -> list[Finding]:
        found: list[Finding] = []
        strength = self._matcher.strength
        for rule in self._asked:
            if strength(rule) < least:
                break
            finding = self._finding(rule)
            if finding is not None and (fits is None or fits(finding)):
                found.append(finding)
                least = finding.strength
        return found

    def all(self) -> list[Finding]:
        """In the order of their ids."""
        found = [finding for rule in self._asked if (finding := self._finding(rule)) is not None]
        found.sort(key=lambda finding: finding.rule)
        return found

    def holds(self, finding: Finding) -> bool:
        return any(one is finding for one in self._made.values())

    def _finding(self, rule: int) -> Finding | None:
        if rule in self._made:
            return self._made[rule]
        made = self._matcher.finding(rule, self._lowered, self._asked[rule])
        # Two threads may ask at once: the first one's stays.
        return self._made.setdefault(rule, made)


@functools.cache
def matcher() -> TextMatcher:
    """The package's own rules, ready; what the gate looks for beside them is found by the same scan."""
    return TextMatcher(text_rules(), literals())


@functools.cache
def _stems() -> TextMatcher:
    return TextMatcher(stem_rules())


def stems(text: str) -> list[Finding]:
    """What the rules of the last resort say; for what failed for certain."""
    return _stems().match(text)


def match(text: str) -> list[Finding]:
    """Every rule of the package that speaks of the text."""
    return matcher().match(text)


def finer(text: str, category: str, above: int) -> list[Finding]:
    """The rules among them for codes of one category that are stronger than that."""
    return matcher().match(text, category, above) if text else []


def speaks(text: str) -> bool:
    """Does any rule of the package speak of the text?"""
    return matcher().speaks(text)


def said(text: str) -> list[Said]:
    """The same, made as far as they are asked for."""
    found = matcher().said(text)
    return [] if found is None else [found]


def words_of(code: str) -> str:
    """A code as a person would write it, beside itself: ``AuthFailure.SignatureFailure`` → words."""
    if len(code) > 200:
        return code[:200]
    spaced = _SEPARATORS.sub(" ", _CAMEL.sub(" ", code))
    return code if spaced == code else f"{code} | {spaced}"
