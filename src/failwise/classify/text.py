"""Text → the rules that speak. Two stages: a required literal, then the pattern."""

import functools
import re
from collections.abc import Iterable
from typing import Final

from failwise.classify.finding import Finding
from failwise.classify.scan import Scan
from failwise.classify.signs import literals
from failwise.classify.tables import TextRule, stem_rules, text_rules
from failwise.vocabulary.needs import Ways

TEXT_LIMIT: Final = 8_192
"""Characters of a text that are looked at; no pattern is worse than linear in them."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[_\-./:#\s]{1,64}")


class TextMatcher:
    """Rules made ready: one scan for the literals of all of them (and of `also`, for whoever asks for
    `found`), then the patterns of those of which one stands in the text."""

    def __init__(self, rules: tuple[TextRule, ...], also: Iterable[str] = ()) -> None:
        # By id, so that rules that tie are told apart alike in every process and order of files.
        self._rules = sorted(rules, key=lambda rule: rule.id)
        self._ways: list[Ways | None] = [None] * len(rules)
        self._waiting: dict[str, list[int]] = {}
        for place, rule in enumerate(self._rules):
            for literal in rule.need:
                self._waiting.setdefault(literal, []).append(place)
        self._scan = Scan((*self._waiting, *also))
        self._recent: tuple[str, str, list[str]] = ("", "", [])

    def found(self, text: str) -> tuple[str, list[str]]:
        """The text in lower case, and the literals in it. One text is asked for by stage after stage:
        the last one is remembered."""
        recent = self._recent
        if recent[0] != text:
            lowered = text[:TEXT_LIMIT].lower()
            recent = self._recent = (text, lowered, self._scan.found(lowered))
        return recent[1:]

    def match(self, text: str) -> list[Finding]:
        """Every rule that speaks of the text, each with the last place where it does."""
        lowered, found = self.found(text)
        last: dict[int, int] = {}
        for literal in found:
            for rule in self._waiting.get(literal, ()):
                if self._rules[rule].pattern is None:
                    place = lowered.rfind(literal)
                    if last.get(rule, -1) < place:
                        last[rule] = place
                elif rule not in last:
                    last[rule] = self._ways_of(rule).last(lowered)
        return [
            _finding(self._rules[rule], place) for rule, place in sorted(last.items()) if place >= 0
        ]

    def _ways_of(self, rule: int) -> Ways:
        ways = self._ways[rule]
        if ways is None:
            pattern = self._rules[rule].pattern
            assert pattern is not None
            ways = self._ways[rule] = Ways(pattern)
        return ways


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


def words_of(code: str) -> str:
    """A code as a person would write it, beside itself: ``AuthFailure.SignatureFailure`` → words."""
    if len(code) > 200:
        return code[:200]
    spaced = _SEPARATORS.sub(" ", _CAMEL.sub(" ", code))
    return code if spaced == code else f"{code} | {spaced}"
