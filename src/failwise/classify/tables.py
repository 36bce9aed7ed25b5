"""The rules as data: read once, checked entry by entry, with errors that name file and line."""

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from failwise.vocabulary import documents
from failwise.vocabulary.codes import category_of, lookup
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.kinds import Category, Effect, FixBy
from failwise.vocabulary.records import record

TEXT_FILES: Final = (
    "network",
    "security",
    "auth",
    "limits",
    "request",
    "server",
    "business",
    "tool",
    "chinese",
    "chinese_services",
    "languages",
    "services",
    "french_italian",
    "localised",
    "answers",
    "commands",
    "drivers",
    "databases",
    "brokers",
    "operations",
    "agents",
    "replies",
    "callers",
)

_WORD_START: Final = r"(?<![a-z0-9_])"
_WORD_END: Final = r"(?![a-z0-9_])"


@record
class TextRule:
    """One phrase that means a failure.

    One of `need` (lower-case literals) must occur before `pattern` is tried, of which `source` is the
    text; without a pattern the literal is enough. `example` must match, `counter` must not. `origin`: where its words come
    from.
    """

    id: str
    strength: int
    need: tuple[str, ...]
    source: str | None
    code: str
    effect: Effect
    transient: bool | None
    fix_by: FixBy | None
    example: str
    counter: str
    origin: str

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """What is looked for in the text, in lower case."""
        return None if self.source is None else re.compile(self.source, FLAGS)


FLAGS: Final = re.MULTILINE


@record
class StatusRow:
    """What an HTTP status says by itself, and what other evidence may turn it into (`splits`:
    categories and codes)."""

    code: str
    effect: Effect
    splits: frozenset[str]

    def may_be(self, code: str) -> bool:
        """May other evidence turn the status into this code?"""
        return code in self.splits or code.partition(".")[0] in self.splits


@record
class KindRow:
    """What a kind of exception says (see `ExceptionFact.kind`): a code, or one for each phase."""

    code: str
    effect: Effect
    strength: int
    phases: Mapping[str, str]
    transient: bool | None


def read_toml(name: str) -> tuple[str, dict[str, Any]]:
    """One data file of this room: its text and its data. Raises `ConfigurationError`."""
    return documents.read("failwise.classify", f"rules/{name}")


def parse_rules(
    text: str,
    rows: list[dict[str, Any]],
    file: str,
    origin: str = "a user's own",
    *,
    tried: bool = False,
) -> list[TextRule]:
    """Check text rules; `origin` is that of those that name none. `tried`: their patterns are known to
    be sound, and not compiled to see whether they are.

    Raises `ConfigurationError` naming the line of a wrong one.
    """
    rules = []
    seen: set[str] = set()
    for row in rows:
        try:
            rule = _text_rule({"origin": origin, **row})
            if not tried and rule.source is not None:
                re.compile(rule.source, FLAGS)
            if rule.id in seen:
                raise ValueError("this id stands twice; ids are unique")
        except (KeyError, TypeError, ValueError, re.error) as error:
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            identity = str(row.get("id", "?"))
            line = _line_of(text, identity)
            raise ConfigurationError(
                f"rule {identity!r}: {reason}", file=file, line=line
            ) from error
        seen.add(rule.id)
        rules.append(rule)
    return rules


def _text_rule(row: Mapping[str, Any]) -> TextRule:
    need = tuple(row["need"])
    if not need or any(literal != literal.lower() or not literal for literal in need):
        raise ValueError("need: at least one literal, all in lower case")
    strength = row["strength"]
    if not 1 <= strength <= 100:
        raise ValueError(f"strength {strength} is not between 1 and 100")
    transient, fix_by = row.get("transient"), row.get("fix_by")
    pattern = row.get("pattern")
    return TextRule(
        row["id"],
        strength,
        need,
        None if pattern is None else spelled(pattern),
        _known_code(row["code"]),
        Effect(row["effect"]),
        transient,
        FixBy(fix_by) if fix_by else None,
        row["example"],
        row["counter"],
        row["origin"],
    )


def spelled(pattern: str) -> str:
    """A pattern with ⟨ and ⟩ spelled out: edges of a word that also hold beside Chinese."""
    return pattern.replace("⟨", _WORD_START).replace("⟩", _WORD_END)


def _known_code(code: str) -> str:
    if lookup(code) is None:
        raise ValueError(f"{code!r} is not in the registry of codes")
    return code


def _line_of(text: str, identity: str) -> int | None:
    place = text.find(f'id = "{identity}"')
    return text.count("\n", 0, place) + 1 if place >= 0 else None


@functools.cache
def text_rules() -> tuple[TextRule, ...]:
    """All text rules of the package."""
    rules: list[TextRule] = []
    for name in TEXT_FILES:
        text, data = read_toml(f"{name}.toml")
        rules.extend(parse_rules(text, data["rules"], f"{name}.toml", data["origin"], tried=True))
    return tuple(rules)


def likely_causes(code: str, language: str = "en") -> tuple[str, ...]:
    """What usually stands behind a code, where that is more than one thing; `language`: en or zh."""
    return _causes().get(code, {}).get(language, ())


@functools.cache
def _causes() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    _, data = read_toml("causes.toml")
    rows = {}
    for code, row in data.items():
        try:
            causes = {language: tuple(row[language]) for language in ("en", "zh")}
            if len(causes["en"]) != len(causes["zh"]):
                raise ValueError("as many causes in one language as in the other")
            rows[_known_code(code)] = causes
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"[{code}]: {error}", file="causes.toml") from error
    return rows


@functools.cache
def stem_rules() -> tuple[TextRule, ...]:
    """The rules of the last resort: asked only where it is certain that something failed."""
    text, data = read_toml("stems.toml")
    return tuple(parse_rules(text, data["rules"], "stems.toml", data["origin"], tried=True))


@functools.cache
def text_origins() -> Mapping[str, str]:
    """Where the words of each text rule come from, by its id."""
    return {rule.id: rule.origin for rule in (*text_rules(), *stem_rules())}


@functools.cache
def status_rows() -> Mapping[int, StatusRow]:
    """What each HTTP status says."""
    _, data = read_toml("status.toml")
    rows = {}
    for status, row in data.items():
        try:
            splits = frozenset(
                _known_code(name) if "." in name else Category(name).value for name in row["splits"]
            )
            rows[int(status)] = StatusRow(_known_code(row["code"]), Effect(row["effect"]), splits)
        except (KeyError, ValueError) as error:
            raise ConfigurationError(f"[{status}]: {error}", file="status.toml") from error
    return rows


@functools.cache
def kind_rows() -> Mapping[str, KindRow]:
    """What each kind of exception says."""
    _, data = read_toml("kinds.toml")
    rows = {}
    for kind, row in data["kind"].items():
        try:
            codes = {phase: _known_code(code) for phase, code in row.get("phases", {}).items()}
            rows[kind] = KindRow(
                _known_code(row["code"]),
                Effect(row["effect"]),
                row["strength"],
                codes,
                row.get("transient"),
            )
        except (KeyError, ValueError) as error:
            raise ConfigurationError(f"[kind.{kind}]: {error}", file="kinds.toml") from error
    return rows


@functools.cache
def number_rows(table: str) -> Mapping[str, StatusRow]:
    """A table of machine codes in kinds.toml (`verify`, `sqlstate`, `grpc`, `jsonrpc`)."""
    _, data = read_toml("kinds.toml")
    rows = {}
    for key, (code, effect) in data[table].items():
        if category_of(code) is Category.UNKNOWN and code != "unknown.unclassified":
            raise ConfigurationError(f"[{table}] {key}: no category {code!r}", file="kinds.toml")
        rows[key] = StatusRow(_known_code(code), Effect(effect), frozenset())
    return rows
