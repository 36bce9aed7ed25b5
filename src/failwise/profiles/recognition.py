"""Which profiles an answer may belong to, by host, header, exception, body and text.

What a host, a header name, a class or a key of a body leads to is worked out once and remembered,
within bounds: answers come from few places, and look alike.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from typing import Any, Final, Literal, TypeAlias

from failwise.profiles import locators
from failwise.profiles.document import Document
from failwise.profiles.values import as_text
from failwise.vocabulary.needs import Way, ways
from failwise.vocabulary.records import MAPPING, Unset

By: TypeAlias = Literal["name", "host", "header", "exception", "body", "text"]
Signs: TypeAlias = tuple[tuple[str, By], ...]
"""Ids of profiles with the sign that speaks for each, the surest first."""
Wanted: TypeAlias = tuple[str, Callable[[str], object] | None]
"""A profile, and the test that a header's value must pass, if any."""

_KEYS = 60
"""Keys of a body that are looked at."""
_REMEMBERED: Final = 1_024
_LONGEST: Final = 256
"""Names that are remembered, of at most so many characters."""


class Hints:
    """What may follow from one key of a body: `members` are the names to look at right below it, each
    with its place and the values that matter there, `asked` other places, `rows` what must be found,
    the profile that it speaks for, and its weight."""

    __slots__ = ("_speaking", "asked", "members", "rows")

    def __init__(
        self,
        members: tuple[tuple[str, str, frozenset[str]], ...],
        asked: tuple[tuple[locators.Locator, frozenset[str]], ...],
        rows: tuple[tuple[frozenset[str], str, float], ...],
    ) -> None:
        self.members, self.asked, self.rows = members, asked, rows
        self._speaking: dict[frozenset[str], tuple[tuple[str, float], ...]] = {}

    def speaking(self, there: frozenset[str]) -> tuple[tuple[str, float], ...]:
        """The profiles, with their weights, of the rows all of whose parts were found."""
        found = self._speaking.get(there)
        if found is None:
            found = tuple((name, weight) for needed, name, weight in self.rows if needed <= there)
            if len(self._speaking) >= _REMEMBERED:
                self._speaking.clear()
            self._speaking[there] = found
        return found


class Recognition:
    """The index of a set of profiles; see `failwise.profiles.build.index` for its form."""

    __slots__ = (
        "_body_memo", "_exception_memo", "_header_memo", "_host_memo", "_index", "_text_rows", "last",
    )  # fmt: skip

    def __init__(self, index: Mapping[str, Any]) -> None:
        self._index = index
        self.last: frozenset[str] = frozenset(index["last"])
        self._host_memo: dict[str, Signs] = {}
        self._header_memo: dict[str, tuple[Wanted, ...]] = {}
        self._body_memo: dict[str, Hints | None] = {}
        self._exception_memo: dict[str, Signs] = {}
        self._text_rows: tuple[tuple[tuple[str, ...], Way, str], ...] | None = None

    def hits(self, document: Document) -> Signs:
        """Ids of profiles that fit, the surest sign first, texts last; an id may come more than once."""
        signs: list[tuple[str, By]] = []
        if document.host:
            signs += _remembered(self._host_memo, document.host, self._hosts)
        if document.headers or document.content_type:
            signs += self._headers(document)
        for exception in document.exceptions:
            signs += _remembered(self._exception_memo, exception, self._exceptions)
        body = document.body
        if isinstance(body, Unset):
            if document.text and document.xml is not None:
                signs += [(name, "body") for name in self._bodies(document)]
            signs += [(name, "text") for name in self._texts(document)]
        else:
            signs += [(name, "body") for name in self._bodies(document)]
        return tuple(signs)

    def asks_for(self, field: str) -> bool:
        """Does any profile tell its bodies by this field of the root?"""
        return _remembered(self._body_memo, field, self._hints) is not None

    def _hosts(self, host: str) -> Signs:
        host = host.lower().rstrip(".")
        host = host.partition(":")[0] if host.count(":") == 1 else host
        found: list[str] = [*self._index["hosts"].get(host, ())]
        at = host.find(".")
        while at >= 0:
            found += self._index["suffixes"].get(host[at:], ())
            at = host.find(".", at + 1)
        found += [name for pattern, name in self._index["host_globs"] if _fits(pattern)(host)]
        return tuple((name, "host") for name in found)

    def _headers(self, document: Document) -> list[tuple[str, By]]:
        memo = self._header_memo
        found: list[tuple[str, By]] = []
        for header in document.headers:
            known = memo.get(header)
            if known is None:
                known = _remembered(memo, header, self._header)
            for name, fits in known:
                if fits is None or fits(document.headers[header].strip().lower()):
                    found.append((name, "header"))
        if document.content_type:
            media = document.content_type.partition(";")[0].strip().lower()
            found += [(name, "header") for name in self._index["content_types"].get(media, ())]
        return found

    def _header(self, header: str) -> tuple[Wanted, ...]:
        rows = [*self._index["headers"].get(header, ())]
        rows += [
            (wanted, name)
            for pattern, wanted, name in self._index["header_globs"]
            if _fits(pattern)(header)
        ]
        return tuple((name, _fits(wanted) if wanted else None) for wanted, name in rows)

    def _bodies(self, document: Document) -> list[str]:
        """The bodies that fit, the one with the rarest parts first."""
        found: dict[str, float] = {}
        for key in _keys(document):
            hints = _remembered(self._body_memo, key, self._hints)
            if hints is None:
                continue
            there: list[str] = []
            body = document.body
            holder = body.get(key) if hints.members and isinstance(body, MAPPING) else None
            if isinstance(holder, MAPPING):
                for member, place, wanted in hints.members:
                    value = holder.get(member)
                    if value is not None:
                        there.append(place)
                        if wanted and (told := f"{place}={as_text(value)}") in wanted:
                            there.append(told)
            for locator, wanted in hints.asked:
                values = locator.find(document)
                if values:
                    there.append(locator.text)
                    if wanted:
                        for value in values:
                            told = f"{locator.text}={as_text(value)}"
                            if told in wanted:
                                there.append(told)
            for name, weight in hints.speaking(frozenset(there)) if there else ():
                if found.get(name, -1.0) < weight:
                    found[name] = weight
        if len(found) < 2:
            return list(found)
        return sorted(found, key=lambda name: (-found[name], name))

    def _hints(self, key: str) -> Hints | None:
        rows = [*self._index["body"].get(key, ())]
        rows += [
            (hint, name, weight)
            for pattern, hint, name, weight in self._index["body_globs"]
            if _fits(pattern)(key)
        ]
        if not rows:
            return None
        asked: dict[str, set[str]] = {}
        for hint, _, _ in rows:
            for part in hint.split(" & "):
                at, sign, _ = part.partition("=")
                values = asked.setdefault(at, set())
                if sign:
                    values.add(part)
        below = re.compile(rf"{re.escape(key)}\.([A-Za-z_]\w*)", re.ASCII)
        members = {at: found[1] for at in asked if key != "[0]" and (found := below.fullmatch(at))}
        return Hints(
            tuple((member, at, frozenset(asked[at])) for at, member in members.items()),
            tuple(
                (locators.compile(at), frozenset(values))
                for at, values in asked.items()
                if at not in members
            ),
            tuple((frozenset(hint.split(" & ")), name, weight) for hint, name, weight in rows),
        )

    def _exceptions(self, exception: str) -> Signs:
        globs = self._index["exception_globs"].get(exception.partition(".")[0], ())
        found: list[str] = [*self._index["exceptions"].get(exception, ())]
        found += [name for pattern, name in globs if _fits(pattern)(exception)]
        return tuple((name, "exception") for name in found)

    def _texts(self, document: Document) -> Iterator[str]:
        words = document.words
        if not words:
            return
        if self._text_rows is None:
            self._text_rows = tuple(
                (way.needed[0] if way.needed else (), way, name)
                for expression, name in self._index["text"]
                for way in ways(expression)
            )
        for literals, way, name in self._text_rows:
            for literal in literals:
                if literal in words:
                    break
            else:
                if literals:
                    continue
            if way.matches(words):
                yield name


def _keys(document: Document) -> list[str]:
    """By what the hints of a body are found: its keys, or what kind of document it is."""
    body = document.body
    if isinstance(body, MAPPING):
        keys = list(body) if len(body) <= _KEYS else list(body)[:_KEYS]
        return [key for key in keys if isinstance(key, str)]
    if isinstance(body, list) and body:
        return ["[0]"]
    return [f"xml:{document.xml.name}"] if document.xml is not None else []


_MISSING: Final[Any] = object()


def _remembered(memo: dict[str, Any], key: str, make: Callable[[str], Any]) -> Any:
    found = memo.get(key, _MISSING)
    if found is _MISSING:
        found = make(key)
        if len(key) <= _LONGEST:
            if len(memo) >= _REMEMBERED:
                memo.clear()
            memo[key] = found
    return found


@functools.lru_cache(512)
def _fits(pattern: str) -> Callable[[str], object]:
    if "*" not in pattern:
        return pattern.__eq__
    return re.compile(translate(pattern)).match
