"""The rules: what is wrong with a set of tools, each finding with its place and what to write."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from failwise.cli.linting import repeating
from failwise.cli.linting.tool import Found, innermost
from failwise.vocabulary import documents
from failwise.vocabulary.records import record

if TYPE_CHECKING:
    from failwise.vocabulary.result import Language

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SPEAKS: Final = ("read_only", "idempotent", "destructive", "idempotency_key", "verify")


@record
class Finding:
    """One thing to mend: `rule` names it, `facts` fill its sentences."""

    rule: str
    tool: Found
    facts: Mapping[str, str]

    @property
    def level(self) -> str:
        level: str = book()[self.rule]["level"]
        return level

    def told(self, lang: "Language") -> str:
        """What was found, in a sentence."""
        return self._filled(lang)

    def fix(self, lang: "Language") -> str:
        """What to write."""
        return self._filled(f"fix_{lang}")

    def _filled(self, key: str) -> str:
        text: str = book()[self.rule][key]
        return text.format(tool=self.tool.name, **self.facts)

    def to_dict(self, lang: "Language") -> dict[str, Any]:
        return {
            "rule": self.rule,
            "level": self.level,
            "tool": self.tool.name,
            "framework": self.tool.framework,
            "file": self.tool.file,
            "line": self.tool.line,
            "message": self.told(lang),
            "write": self.fix(lang),
        }


@functools.cache
def book() -> Mapping[str, Any]:
    """The rules as they stand in ``rules.toml``."""
    return documents.read("failwise.cli.linting", "rules.toml")[1]


def rule_names() -> tuple[str, ...]:
    """The names of all rules."""
    return tuple(
        name for name, rule in book().items() if isinstance(rule, dict) and "level" in rule
    )


def lint(tools: Sequence[Found]) -> list[Finding]:
    """All findings, tool by tool."""
    found: list[Finding] = []
    by_name: dict[str, Found] = {}
    for tool in tools:
        by_name.setdefault(tool.name, tool)
    twins = _twins(tools)
    for tool in tools:
        found += (
            Finding(rule, tool, facts)
            for rule, facts in (
                *_declarations(tool),
                *_repeats(tool),
                *_doubles(tool, by_name, twins),
                *_fallbacks(tool, by_name),
            )
        )
    return found


_Rule = tuple[str, dict[str, str]]


def _declarations(tool: Found) -> Iterator[_Rule]:
    said = tool.declared
    risky = is_risky(tool.name)
    silent = all(said.get(name) is None for name in _SPEAKS)
    if risky and silent:
        yield "risky_name", {}
    elif risky and said.get("read_only") is True:
        yield "contradiction", {}
    elif silent:
        yield "undeclared", {}
    if said.get("timeout") is None:
        yield "no_timeout", {}


def is_risky(name: str) -> bool:
    """A name that says that something is changed: by its first word, or by a strong word anywhere in a name
    that does not begin with a looking one."""
    own = re.split(r"__|[.:/]", name)[-1]
    words = [word.lower() for word in _WORDS.findall(own)]
    rules = book()
    if not words or words[0] in rules["looking"]:
        return False
    return words[0] in rules["first_verbs"] or any(word in rules["strong_verbs"] for word in words)


def _repeats(tool: Found) -> Iterator[_Rule]:
    if tool.function is None:
        return
    for what in repeating.decorators(tool.function, book()["repeating"]):
        yield "blind_retry", {"what": what}
    for what in repeating.loops(tool.function):
        yield "blind_retry", {"what": what}
    for name, how in repeating.clients(tool.function):
        yield "client_retry", {"what": name, "how": how}


def _doubles(
    tool: Found, by_name: Mapping[str, Found], twins: Mapping[int, Sequence[Found]]
) -> Iterator[_Rule]:
    first = by_name[tool.name]
    if first is not tool and not _same(first, tool):
        yield "duplicate_name", {"what": first.place or first.framework}
    if tool.function is not None:
        others = [one.name for one in twins[id(innermost(tool.function))] if one.name != tool.name]
        if others and tool.name > min(others):
            yield "duplicate_function", {"what": min(others)}


def _same(one: Found, other: Found) -> bool:
    """The same function under the same name, seen in two places: an agent and its list of tools."""
    if one.function is None or other.function is None:
        return False
    return innermost(one.function) is innermost(other.function)


def _twins(tools: Sequence[Found]) -> Mapping[int, Sequence[Found]]:
    twins: dict[int, list[Found]] = {}
    for tool in tools:
        if tool.function is not None:
            twins.setdefault(id(innermost(tool.function)), []).append(tool)
    return twins


def _fallbacks(tool: Found, by_name: Mapping[str, Found]) -> Iterator[_Rule]:
    for name in tool.declared.get("fallback") or ():
        other = by_name.get(name)
        if other is None:
            yield "unknown_fallback", {"what": name}
        elif not _reads(tool) and not _reads(other):
            yield "fallback_of_write", {"what": name}


def _reads(tool: Found) -> bool:
    flag = tool.declared.get("read_only")
    return flag is True or callable(flag)
