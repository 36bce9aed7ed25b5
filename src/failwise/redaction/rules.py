"""The rules by form: two data files, read and checked once."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from failwise.redaction.checks import checks
from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.needs import alternatives
from failwise.vocabulary.records import record

# Not inside a word or a base64 text; after an escape of JSON (\n) or of a URL (%3D) a word begins anew.
_BOUNDARY = r"(?:(?<![0-9A-Za-z_+])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
# What a text must hold before rules that no literal can gate are tried.
RUNS = {
    "digits": re.compile(r"\d{4}", re.ASCII),
    "long": re.compile(r"[0-9A-Za-z_-]{24}", re.ASCII),
}
_DEFAULT_ENTROPY = 2.8
_KEYS = frozenset(
    (
        "id",
        "kind",
        "gate",
        "pattern",
        "group",
        "boundary",
        "check",
        "entropy",
        "mask",
        "ignore_case",
        "personal",
        "example",
        "needs",
    )
)


@record
class Rule:
    """One shape of a secret: where `gates` allow, `pattern`'s `group` becomes `mask`.

    `gates` are literals of the text (lower case when `ignore_case`); `needs` is a run that must stand
    in it (``digits``, ``long``). `check` looks at what was found; `example` is a recipe for tests.
    """

    id: str
    kind: str
    gates: tuple[str, ...]
    needs: str
    pattern: re.Pattern[str]
    group: int
    check: Callable[[str], bool] | None
    entropy: float
    mask: str
    ignore_case: bool
    personal: bool
    example: str

    def begins_with(self, gate: str) -> bool:
        """Does each match begin with this gate, where a word begins?"""
        source = self.pattern.pattern
        written = source[len(_BOUNDARY) :].replace("\\", "")
        return (
            source.startswith(_BOUNDARY)
            and written.startswith(gate)
            and len(gate) >= 2
            and (gate[0].isalnum() or gate[0] == "_")
            and written[len(gate) : len(gate) + 1] not in ("?", "*", "{")
            and len(alternatives(source)) == 1
        )


@functools.cache
def built_in_rules() -> tuple[Rule, ...]:
    """The rules of the package: documents and places first, then tokens by their prefix."""
    files = ("rules.toml", "tokens.toml")
    return tuple(
        rule for file in files for rule in _rules(*documents.read("failwise.redaction", file), file)
    )


def parse_rules(text: str, file: str) -> tuple[Rule, ...]:
    """Rules from TOML: ``[[rule]]`` tables, or one array ``tokens`` of one-line tables.

    Raises `ConfigurationError` with file and line of the entry that is wrong.
    """
    return _rules(text, documents.parsed(text, file), file)


def _rules(text: str, data: Mapping[str, Any], file: str) -> tuple[Rule, ...]:
    lines = text.splitlines()
    tables = [number for number, line in enumerate(lines, 1) if line.strip() == "[[rule]]"]
    tokens = [number for number, line in enumerate(lines, 1) if line.lstrip().startswith("{")]
    rules = list(_entries(data.get("rule", ()), tables, file))
    rules += _entries([_token(row) for row in data.get("tokens", ())], tokens, file)
    unknown = set(data) - {"rule", "tokens"}
    if unknown:
        raise ConfigurationError(f"unknown section {min(unknown)!r}", file=file, line=1)
    return tuple(rules)


def _token(row: Mapping[str, Any]) -> dict[str, Any]:
    name = f"{row.get('kind')} {row.get('gate')}"
    return {"check": "random_enough", **row, "id": name, "gate": [row.get("gate")]}


def _entries(rows: Iterable[Mapping[str, Any]], lines: list[int], file: str) -> Iterable[Rule]:
    for place, row in enumerate(rows):
        line = lines[place] if place < len(lines) else None
        try:
            yield _rule(row)
        except (KeyError, TypeError, ValueError, re.error) as error:
            reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigurationError(
                f"rule {row.get('id', place + 1)!r}: {reason}", file=file, line=line
            ) from error


def _rule(row: Mapping[str, Any]) -> Rule:
    unknown = set(row) - _KEYS
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r}; known are {', '.join(sorted(_KEYS))}")
    ignore_case = bool(row.get("ignore_case", False))
    source = row["pattern"] if row.get("boundary", True) is False else _BOUNDARY + row["pattern"]
    pattern = re.compile(source, re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG))
    group = row.get("group", 0)
    if not 0 <= group <= pattern.groups:
        raise ValueError(f"the pattern has no group {group}")
    check = row.get("check")
    if check is not None and check not in checks():
        raise ValueError(f"unknown check {check!r}; known are {', '.join(checks())}")
    kind = row["kind"]
    if not re.fullmatch(r"[a-z_]{2,30}", kind):
        raise ValueError(f"kind {kind!r} must be lower-case letters")
    gates = tuple(row["gate"])
    if not all(isinstance(gate, str) and gate for gate in gates):
        raise ValueError("gate must be texts")
    needs = row.get("needs", "")
    if needs not in RUNS and needs:
        raise ValueError(f"needs must be one of {', '.join(RUNS)}")
    if not gates and not needs:
        raise ValueError("a rule must have a gate or needs")
    return Rule(
        row["id"],
        kind,
        gates,
        needs,
        pattern,
        group,
        checks()[check] if check else None,
        float(row.get("entropy", _DEFAULT_ENTROPY)),
        row.get("mask", f"[{kind}]"),
        ignore_case,
        bool(row.get("personal", False)),
        row.get("example", ""),
    )
