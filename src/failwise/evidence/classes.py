"""The table of known exception classes (`classes.toml`): name → where on the way, and what."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from failwise.evidence.facts import ExceptionFact, Phase
from failwise.vocabulary import documents
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.records import record

FILE: Final = "classes.toml"
FILES: Final = (FILE, "clients.toml")
"""Transport and machine first; then what clients of services add, whose rows come later."""
_CHAINS_LIMIT: Final = 1_024
"""Classes, with their bases, whose rows about messages are remembered."""
_PHASES: Final = frozenset(get_args(Phase))

NOT_SENT: Final = frozenset({"config", "pool", "dns", "proxy", "connect", "tls"})
"""The phases before anything of the request was sent."""


@record
class Known:
    """What a row says. `sure`: the phase holds whatever else is known of the chain."""

    kind: str
    phase: Phase | None
    sure: bool


@record
class Symbol:
    """A name for a cause (``ECONNREFUSED``): what it says, and OpenSSL's verify code if it has one."""

    name: str
    known: Known
    verify_code: int | None


@record
class MessageRow:
    """What a message adds to a class: one of `within` stands in it, in lower case."""

    classes: frozenset[str]
    within: tuple[str, ...]
    known: Known


_UNSEEN: Final[Any] = object()


class ClassTable:
    """The rows of `classes.toml`, ready to be asked.

    `by_name` has qualified names, `by_short_name` bare ones on which all libraries agree.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.by_name: dict[str, Known] = {}
        self.by_short_name: dict[str, Known] = {}
        self.frames: dict[str, Phase] = {}
        self.symbols: dict[str, Symbol] = {}
        self.by_number: dict[int, Symbol] = {}
        self.by_curl_code: dict[int, Symbol] = {}
        self.messages: list[MessageRow] = []
        self._rows_of: dict[tuple[str, ...], tuple[MessageRow, ...]] = {}
        self._known_of: dict[tuple[str, ...], Known | None] = {}
        data = dict(data)
        for name, phase in data.pop("frames").items():
            self.frames[name] = _phase(phase, f"frames.{name}")
        self.frame_functions = frozenset(name.rpartition(".")[2] for name in self.frames)
        for name, row in data.pop("symbols").items():
            self._add_symbol(name, row)
        for row in data.pop("messages"):
            says = f"{row['phase']} {row['kind']}"
            self.messages.append(
                MessageRow(
                    frozenset(row["classes"]), tuple(row["within"]), _known(says, "messages")
                )
            )
        for family, row in data.items():
            for name, says in row["classes"].items():
                known = _known(says, f"{family}.classes.{name}")
                for module in row["modules"]:
                    self.by_name[f"{module}.{name}" if module else name] = known
                if row.get("bare", True):
                    self._add_short(name, known)

    def _add_symbol(self, name: str, row: Mapping[str, Any]) -> None:
        symbol = Symbol(name, _known(row["says"], f"symbols.{name}"), row.get("verify_code"))
        self.symbols[name] = symbol
        for number in row.get("numbers", ()):
            self.by_number.setdefault(number, symbol)
        if "curl" in row:
            self.by_curl_code[row["curl"]] = symbol

    def _add_short(self, name: str, known: Known) -> None:
        before = self.by_short_name.get(name)
        if before is not None and before.phase != known.phase:
            known = Known(before.kind, "any", False)
        self.by_short_name[name] = known

    def of_class(self, name: str, bases: Iterable[str], text: str) -> Known | None:
        """What is known of a class: by its message, its own name, then its bases, nearest first.

        A name without a module, as texts have it, is looked up among all libraries.
        """
        from_text = not bases
        names = (name, *bases)
        known = self._known_of.get(names, _UNSEEN)
        if known is _UNSEEN:
            known = next((row for row in map(self.by_name.get, names) if row is not None), None)
            if bases and len(self._known_of) < _CHAINS_LIMIT:
                self._known_of[names] = known
        if known is None and from_text:
            known = self.by_short_name.get(name.rpartition(".")[2].rpartition("::")[2])
        return of_message(self.rows_of(names), text) or known

    def rows_of(self, names: tuple[str, ...]) -> tuple[MessageRow, ...]:
        """What messages add to a class of these names."""
        rows = self._rows_of.get(names)
        if rows is None:
            shorts = {name.rpartition(".")[2] for name in names}
            rows = tuple(row for row in self.messages if not shorts.isdisjoint(row.classes))
            if len(self._rows_of) < _CHAINS_LIMIT:
                self._rows_of[names] = rows
        return rows


def of_message(rows: tuple[MessageRow, ...], text: str) -> Known | None:
    """What the first of the rows says of which a word stands in the text."""
    if not rows or not text:
        return None
    lowered = text[:2_048].lower()
    for row in rows:
        for word in row.within:
            if word in lowered:
                return row.known
    return None


def combined_phase(facts: Iterable[tuple[Phase | None, bool]]) -> Phase | None:
    """The phase of one chain, from (phase, sure) of its exceptions, outermost first.

    A sure phase beats an unsure one; a deeper one replaces another only where it makes it more
    precise: connecting may turn out to be name resolution, proxy or TLS; reading, the body.
    """
    phase: Phase | None = None
    held = False
    for found, sure in facts:
        if found is None or (found == "cancel" and phase is not None):
            continue  # a timeout works by cancelling: that is no news
        better = phase is None or phase == "any" or (sure and not held)
        if better or (sure and found in _REFINED_BY.get(phase or "any", ())):
            phase, held = found, sure or held
    return phase


_REFINED_BY: Mapping[str, tuple[str, ...]] = {
    "connect": ("dns", "proxy", "tls"),
    "read": ("body",),
}


def _known(says: str, place: str) -> Known:
    phase, _, kind = says.partition(" ")
    if not kind:
        raise ConfigurationError(f"[{place}] {says!r}: write 'phase kind'", file=FILE)
    sure = not phase.endswith("?")
    phase = phase.rstrip("?")
    return Known(kind, None if phase == "-" else _phase(phase, place), sure and phase != "-")


def _phase(name: str, place: str) -> Phase:
    if name not in _PHASES:
        raise ConfigurationError(
            f"[{place}] {name!r} is no phase; write one of {', '.join(sorted(_PHASES))}", file=FILE
        )
    return name  # type: ignore[return-value]


@functools.cache
def class_table() -> ClassTable:
    """The table, read once. Raises `ConfigurationError` naming the entry that is wrong."""
    data: dict[str, Any] = {}
    for name in FILES:
        more = documents.read("failwise.evidence", name)[1]
        more["messages"] = [*data.get("messages", ()), *more["messages"]]
        data |= more
    try:
        return ClassTable(data)
    except KeyError as error:
        raise ConfigurationError(f"{error} is missing", file=FILE) from error


def described(
    name: str, bases: tuple[str, ...], text: str, attributes: dict[str, Any]
) -> tuple[ExceptionFact, bool]:
    """The fact of one exception with what the table says of it, and whether its phase is sure."""
    return fact_of(name, bases, text, attributes, class_table().of_class(name, bases, text))


def fact_of(
    name: str, bases: tuple[str, ...], text: str, attributes: dict[str, Any], known: Known | None
) -> tuple[ExceptionFact, bool]:
    """The same, where it has been looked up what is known of the class."""
    if "symbol" in attributes:
        symbol = class_table().symbols.get(str(attributes["symbol"]))
        if symbol is not None:
            if symbol.verify_code is not None:
                attributes.setdefault("verify_code", symbol.verify_code)
            known = symbol.known if known is None else _joined(known, symbol.known)
    if known is None:
        return ExceptionFact(name, bases, text, attributes), False
    return ExceptionFact(name, bases, text, attributes, known.kind, known.phase), known.sure


def _joined(by_class: Known, by_symbol: Known) -> Known:
    """A class and an errno together: the class tells the phase, the errno more precisely what."""
    precise = by_symbol.phase in _REFINED_BY.get(by_class.phase or "any", ())
    if by_class.sure and not precise:
        kind = by_symbol.kind if by_class.kind in ("connection", "tls", "proxy") else by_class.kind
        return Known(kind, by_class.phase, True)
    if by_symbol.phase is None:
        return Known(by_symbol.kind, by_class.phase, by_class.sure)
    return by_symbol
