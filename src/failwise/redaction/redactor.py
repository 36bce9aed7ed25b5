"""`Redactor`: text or data → the same without secrets."""

import functools
import json
import os
import re
import threading
from collections.abc import Mapping
from typing import Any

from failwise.redaction.assignments import is_telling, mask_kind, redact_assignments
from failwise.redaction.checks import entropy
from failwise.redaction.headers import MASK, mask_authorization, mask_cookies
from failwise.redaction.known import KnownValues, environment_secrets
from failwise.redaction.names import NameClass, classify_name
from failwise.redaction.rules import RUNS, Rule, built_in_rules

_KNOWN_MASK = "[secret]"
_MAX_DEPTH = 32
_MAX_PASSES = 5
_MAX_NODES = 100_000
_MAX_EMBEDDED = 256 * 1024
# Words of one case, none of them long: no rule of ours finds a secret in that, and no name a value.
_HARMLESS = re.compile(
    r"(?:[a-z]{1,15}(?:[ _.-][a-z]{1,15}){0,7}|[A-Z]{1,15}(?:[_.-][A-Z]{1,15}){0,7})"
)
_WORD_START = re.compile(r"(?<![0-9A-Za-z_+])[0-9A-Za-z_].", re.DOTALL)
_WORD_AFTER_ESCAPE = re.compile(r"(?:\\[nrtbf]|%[0-9A-Fa-f]{2})(?=([0-9A-Za-z_].))", re.DOTALL)
_URL_HEADERS = frozenset(("location", "referer", "content-location", "refresh", "link"))


class Redactor:
    """One border: what passes through it carries no secret, and keeps everything else.

    Three layers: names (``api_key``, ``Authorization``), known values (`add_secret`), and shapes.
    In place of a secret stands ``[kind]``, or ``****`` after a scheme word and in URLs. Redacting
    twice is the same as once. Time is linear in the text. Passwords in free prose and tokens of
    unknown form are found only where they are known values. `personal` takes e-mail addresses out
    as well. Safe to share between threads.
    """

    __slots__ = ("_beginnings", "_gates", "_known", "_lower_gates", "_own", "_rules", "_ungated")

    def __init__(
        self,
        *,
        personal: bool = False,
        environment: Mapping[str, str] | None = None,
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self._rules = tuple(
            rule for rule in (*rules, *built_in_rules()) if personal or not rule.personal
        )
        self._own = bool(rules)
        numbered = list(enumerate(self._rules))
        self._gates: list[tuple[str, int]] = []
        self._beginnings: dict[str, list[tuple[str, int]]] = {}
        for place, rule in numbered:
            for gate in () if rule.ignore_case else rule.gates:
                table = self._gates
                if rule.begins_with(gate):
                    table = self._beginnings.setdefault(gate[:2], [])
                table.append((gate, place))
        self._lower_gates = [
            (gate, place) for place, rule in numbered if rule.ignore_case for gate in rule.gates
        ]
        self._ungated = [place for place, rule in numbered if not rule.gates]
        self._known = KnownValues()
        for value in environment_secrets(environment or {}):
            self._known.add(value)

    def add_secret(self, value: str) -> None:
        """Never let this value pass, in any encoding. Under 6 characters it is passed over."""
        self._known.add(value)

    @property
    def edition(self) -> int:
        """Another number as soon as it knows a further secret: what passed before may not pass again."""
        return self._known.edition

    def text(self, text: str) -> str:
        """The text without secrets."""
        if _HARMLESS.fullmatch(text) and not self._own and not self._known.stand_in(text):
            return text
        # What stood beside a secret can have become one's neighbour: until nothing changes any more.
        for _ in range(_MAX_PASSES):
            clean = self._once(text)
            if clean == text:
                break
            text = clean
        return text

    def _once(self, text: str) -> str:
        if not text:
            return text
        text = self._known.replace(text, _KNOWN_MASK)
        for place in self._open_rules(text):
            text = _apply(self._rules[place], text)
        return redact_assignments(text)

    def _open_rules(self, text: str) -> list[int]:
        """Which rules can apply at all: those of which a literal stands in the text. One that begins
        with its literal is looked for only where a word begins in the same two characters."""
        lowered = text.lower()
        places = [place for gate, place in self._gates if gate in text]
        places += [place for gate, place in self._lower_gates if gate in lowered]
        beginnings = set(_WORD_START.findall(text))
        if "\\" in text or "%" in text:
            beginnings.update(_WORD_AFTER_ESCAPE.findall(text))
        for beginning in beginnings & self._beginnings.keys():
            places += [place for gate, place in self._beginnings[beginning] if gate in text]
        found: set[int] = set()
        runs: dict[str, bool] = {"": True}
        for place in (*places, *self._ungated):
            needs = self._rules[place].needs
            there = runs.get(needs)
            if there is None:
                there = runs[needs] = RUNS[needs].search(text) is not None
            if there:
                found.add(place)
        return sorted(found)

    def url(self, url: str) -> str:
        """The URL without password, session ids, tokens and signatures; host and path stay."""
        return self.text(url)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers by name: ``Bearer ****``, cookie names without values, URLs without tokens."""
        return {name: self._header(name, value) for name, value in headers.items()}

    def _header(self, name: str, value: str) -> str:
        kind = classify_name(name)
        if kind is NameClass.AUTHORIZATION:
            return mask_authorization(value) or value
        if kind is NameClass.COOKIE:
            return mask_cookies(value) or value
        if kind in (NameClass.PASSWORD, NameClass.SECRET, NameClass.WEAK):
            return MASK if value else value
        return self.url(value) if name.lower() in _URL_HEADERS else self.text(value)

    def data(self, data: Any) -> Any:
        """JSON-like data without secrets: keys are weighed, texts too, JSON inside texts is opened.

        Nothing is changed in place. Deeper than 32 levels or beyond 100,000 values it is cut off.
        Values that are not JSON-like are kept as they are.
        """
        return self._walk(data, "", NameClass.NONE, 0, [_MAX_NODES])

    def named(self, name: str, value: Any) -> Any:
        """One value, as `data` has it under this name."""
        return next(iter(self.data({name: value}).values()))

    def _walk(self, node: Any, name: str, kind: NameClass, depth: int, left: list[int]) -> Any:
        left[0] -= 1
        if depth > _MAX_DEPTH or left[0] < 0:
            return "[too deep]" if depth > _MAX_DEPTH else "[too large]"
        match node:
            case str():
                return self._string(node, name, kind, depth, left)
            case None | bool() | float():
                return node
            case int():
                return self._number(node, name, kind)
            case bytes():
                return self._string(
                    node.decode("utf-8", "replace"), name, kind, depth, left
                ).encode("utf-8", "replace")
            case Mapping():
                return self._mapping(node, kind, depth, left)
            case list() | tuple() | set() | frozenset():
                items = [self._walk(item, name, kind, depth + 1, left) for item in node]
                if isinstance(node, list | tuple) and len(node) == 2 and isinstance(node[0], str):
                    items[1] = self._pair(node[0], node[1], items[1])
                return items if isinstance(node, list) else _like(node, items)
            case _:
                return node

    def _mapping(
        self, node: Mapping[Any, Any], above: NameClass, depth: int, left: list[int]
    ) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value in node.items():
            text = key if isinstance(key, str) else ""
            kind = classify_name(text) if text else NameClass.NONE
            inherited = (
                above
                if kind is NameClass.NONE and above in (NameClass.COOKIE, NameClass.AUTHORIZATION)
                else kind
            )
            written = self.text(text) if len(text) > 15 else key
            result[written] = self._walk(value, text, inherited, depth + 1, left)
        named, value = node.get("name", node.get("key")), node.get("value")
        if isinstance(named, str) and isinstance(value, str):
            result["value"] = self._string(value, named, classify_name(named), depth, left)
        return result

    def _string(self, text: str, name: str, kind: NameClass, depth: int, left: list[int]) -> str:
        if kind is NameClass.AUTHORIZATION:
            return mask_authorization(text) or text
        if kind is NameClass.COOKIE:
            return mask_cookies(text) or (
                MASK if name.lower() not in ("cookie", "set-cookie") else text
            )
        if is_telling(text, name, kind):
            return f"[{mask_kind(kind)}]"
        start = text.lstrip()[:1]
        if start in ("{", "[") and len(text) <= _MAX_EMBEDDED:
            opened = self._embedded(text, depth, left)
            if opened is not None:
                return opened
        return self.text(text)

    def _embedded(self, text: str, depth: int, left: list[int]) -> str | None:
        """JSON inside a text, opened; the text itself where nothing in it had to go."""
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(inner, dict | list):
            return None
        clean = self._walk(inner, "", NameClass.NONE, depth + 1, left)
        return self.text(text) if clean == inner else json.dumps(clean, ensure_ascii=False)

    def _number(self, number: int, name: str, kind: NameClass) -> Any:
        if number.bit_length() > 256:
            return number
        text = str(number)
        if is_telling(text, name, kind, False):
            return f"[{mask_kind(kind)}]"
        if len(text) < 11:
            return number
        clean = self.text(text)
        return number if clean == text else clean

    def _pair(self, name: str, value: Any, walked: Any) -> Any:
        """``["Authorization", "Bearer ..."]``: a header as a list of two."""
        kind = classify_name(name)
        header = kind in (NameClass.AUTHORIZATION, NameClass.COOKIE) or (
            kind is NameClass.SECRET and "-" in name
        )
        return self._header(name, value) if header and isinstance(value, str) else walked


def _apply(rule: Rule, text: str) -> str:
    group, mask = rule.group, rule.mask
    pieces: list[str] = []
    done = 0
    for match in rule.pattern.finditer(text):
        found = match[group]
        if not found or (rule.check is not None and not rule.check(found)):
            continue
        if rule.entropy and entropy(found[:400]) < rule.entropy:
            continue
        start, end = match.span(group)
        pieces += (text[done:start], mask)
        done = end
    if not pieces:
        return text
    pieces.append(text[done:])
    return "".join(pieces)


def _like(node: Any, items: list[Any]) -> Any:
    try:
        return type(node)(items) if type(node) in (tuple, set, frozenset) else tuple(items)
    except TypeError:
        return items


_lock = threading.Lock()


@functools.cache
def _build_default() -> Redactor:
    return Redactor(environment=os.environ)


def default() -> Redactor:
    """The redactor of this process, built at its first use; it knows the environment's secrets."""
    with _lock:
        return _build_default()
