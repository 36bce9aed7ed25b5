"""Text rules of one's own: a TOML file, checked entry by entry; where one speaks, it wins over ours.

The form is that of the package's rules, with an origin for each and two freedoms: without `strength` it
is 80, without `effect` the rule says nothing of the effect, which is then what the other evidence tells.
"""

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from failwise.classify.finding import Finding, strongest
from failwise.classify.tables import TextRule, parse_rules
from failwise.classify.text import TextMatcher
from failwise.vocabulary import documents
from failwise.vocabulary.codes import category_of
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category, Effect
from failwise.vocabulary.linear import endless, fault
from failwise.vocabulary.records import record

PREFIX: Final = "own."
"""Ids of these rules in a failure: ``own.warehouse.limbo``."""
SIZE_LIMIT: Final = 1_000_000
RULES_LIMIT: Final = 5_000
KEYS: Final = (
    "id", "strength", "need", "pattern", "code", "effect", "transient", "fix_by", "example",
    "counter", "origin",
)  # fmt: skip
_TOP: Final = ("origin", "rules")
_STRENGTH: Final = 80
_IDENTITY: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_TEXT_LIMIT: Final = 2_000
_LITERALS: Final = 60
_OURS: Final = frozenset({Category.UNKNOWN, Category.RUNTIME, Category.MODEL_OUTPUT})
"""Categories that are Failwise's own to give."""
_TYPED: Final = frozenset({"structure", "profile", "status", "shape"})
_ORIGIN: Final = "a user's own"


@record
class Read:
    """A rules file: its rules, those of them (by id) that say nothing of the effect, and what is
    wrong with the others."""

    rules: tuple[TextRule, ...]
    silent: frozenset[str]
    problems: tuple[ConfigurationError, ...]


class OwnRules:
    """Rules of one's own, ready. `silent`: ids of those that say nothing of the effect."""

    def __init__(self, rules: Sequence[TextRule], silent: Iterable[str] = ()) -> None:
        self.rules = tuple(rules)
        self._silent = frozenset(silent)
        self._matcher = TextMatcher(self.rules)

    @classmethod
    def load(cls, paths: "Iterable[str | os.PathLike[str]]") -> "OwnRules":
        """The rules of these files. Raises `ConfigurationError` for the first that is wrong."""
        rules: list[TextRule] = []
        silent: set[str] = set()
        seen: dict[str, str] = {}
        for path in paths:
            found = read(path)
            if found.problems:
                raise found.problems[0]
            for rule in found.rules:
                if rule.id in seen:
                    raise ConfigurationError(
                        f"rule {rule.id!r} stands in {seen[rule.id]} too; ids are unique",
                        file=os.fspath(path),
                    )
                seen[rule.id] = os.fspath(path)
            rules += found.rules
            silent |= found.silent
        return cls(rules, silent)

    def verdict(self, text: str, otherwise: Finding | None) -> Finding | None:
        """What the strongest rule says of the text, or None. `otherwise` is the verdict without it:
        what it says of the effect holds where the rule is silent and the evidence was no mere text."""
        best = strongest(self._matcher.match(text))
        if best is None:
            return None
        identity = best.rule.removeprefix("text.")
        effect = best.effect
        kept: dict[str, Any] = {}
        if otherwise is not None:
            if identity in self._silent and otherwise.family in _TYPED:
                effect = otherwise.effect
            for name in ("message", "provider", "provider_code", "request_id", "parameter"):
                kept[name] = getattr(otherwise, name)
        return dataclasses.replace(best, rule=f"{PREFIX}{identity}", effect=effect, **kept)


def read(path: "str | os.PathLike[str]", *, tried: bool = False) -> Read:
    """A rules file with everything that is wrong in it; each problem names file and line.

    `tried`: each pattern is also tried on hostile texts (some 20 ms for each). Raises `ConfigurationError` where it cannot be read at all.
    """
    name = os.fspath(path)
    try:
        if os.path.getsize(name) > SIZE_LIMIT:
            raise ConfigurationError(f"larger than {SIZE_LIMIT} bytes", file=name)
        text = Path(name).read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot be read ({error.strerror})", file=name) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8: {error}", file=name) from error
    data = documents.parsed(text, name)
    return parse(data, text, name, tried=tried)


def parse(data: Mapping[str, Any], text: str, name: str, *, tried: bool = False) -> Read:
    """`read`, of a file's data; `text` is for line numbers."""
    for key in data:
        if key not in _TOP:
            raise ConfigurationError(
                f"unknown key {key!r}: a rules file has [[rules]] and origin", file=name
            )
    rows = data.get("rules", [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ConfigurationError("rules: write tables, [[rules]]", file=name)
    if len(rows) > RULES_LIMIT:
        raise ConfigurationError(f"more than {RULES_LIMIT} rules", file=name)
    rules: list[TextRule] = []
    problems: list[ConfigurationError] = []
    seen: set[str] = set()
    silent: set[str] = set()
    for number, row in enumerate(rows):
        identity = row.get("id")
        line = _line(text, number)
        try:
            rule = _rule(row, text, name, data.get("origin", _ORIGIN), tried)
            if rule.id in seen:
                raise ConfigurationError("this id stands twice; ids are unique")
        except ConfigurationError as error:
            reason = error.reason.removeprefix(f"rule {identity!r}: ")
            said = f"rule {identity!r}: {reason}" if identity else f"rule {number + 1}: {reason}"
            problems.append(ConfigurationError(said, file=name, line=line))
            continue
        seen.add(rule.id)
        rules.append(rule)
        if "effect" not in row:
            silent.add(rule.id)
    return Read(tuple(rules), frozenset(silent), tuple(problems))


def _rule(row: Mapping[str, Any], text: str, name: str, origin: Any, tried: bool) -> TextRule:
    for key, value in row.items():
        if key not in KEYS:
            raise ConfigurationError(f"unknown key {key!r}: known are {', '.join(KEYS)}")
        _check_type(key, value)
    _check_type("origin", origin)
    if not _IDENTITY.fullmatch(str(row.get("id", ""))):
        raise ConfigurationError(
            "id: write lower-case letters, digits and . _ - (at most 80), such as warehouse.limbo"
        )
    filled = {"strength": _STRENGTH, "effect": Effect.UNKNOWN.value, **row}
    (rule,) = parse_rules(text, [filled], name, origin)
    if category_of(rule.code) in _OURS:
        raise ConfigurationError(
            f"code = {rule.code!r} is Failwise's own to give: say what kind of failure it is "
            "(`failwise codes` lists them)"
        )
    if any(len(literal) < 2 for literal in rule.need):
        raise ConfigurationError("need: a literal has at least two characters")
    looked_at = fault if tried else endless
    if rule.pattern is not None and (reason := looked_at(rule.pattern)):
        raise ConfigurationError(f"pattern: {reason}")
    alone = TextMatcher((rule,))
    if not alone.match(rule.example):
        raise ConfigurationError(
            "its example does not match: need holds a lower-case literal of the example, and the "
            "pattern is matched against lower-cased text"
        )
    if alone.match(rule.counter):
        raise ConfigurationError("its counter-example matches: make the pattern narrower")
    return rule


def _check_type(key: str, value: Any) -> None:
    """Refuse what is no text where one is due, or too long."""
    match key:
        case "need":
            good = (
                isinstance(value, list)
                and len(value) <= _LITERALS
                and all(isinstance(one, str) and len(one) <= _TEXT_LIMIT for one in value)
            )
            told = f"a list of at most {_LITERALS} texts"
        case "strength":
            good, told = isinstance(value, int) and not isinstance(value, bool), "a whole number"
        case "transient":
            good, told = isinstance(value, bool), "true or false"
        case _:
            good = isinstance(value, str) and len(value) <= _TEXT_LIMIT
            told = f"a text of at most {_TEXT_LIMIT} characters"
    if not good:
        raise ConfigurationError(f"{key}: write {told}")


def _line(text: str, number: int) -> int | None:
    """The line on which the rule of this number begins: its table's header, or its own line."""
    found = [
        place
        for place, line in enumerate(text.splitlines(), 1)
        if re.match(r"\s{0,40}(?:\[\[\s{0,8}rules\s{0,8}\]\]|\{\s{0,8}id\s{0,8}=)", line)
    ]
    return found[number] if number < len(found) else None
