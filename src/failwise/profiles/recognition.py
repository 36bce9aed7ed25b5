"""Which profiles an answer may belong to, by host, header, exception, body and text."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from typing import Any, Literal, TypeAlias

from failwise.profiles import locators
from failwise.profiles.document import Document
from failwise.profiles.profile import as_text
from failwise.vocabulary.records import Unset

By: TypeAlias = Literal["name", "host", "header", "exception", "body", "text"]

_KEYS = 60
"""Keys of a body that are looked at."""


class Recognition:
    """The index of a set of profiles; see `failwise.profiles.build.index` for its form."""

    __slots__ = ("_index", "last")

    def __init__(self, index: Mapping[str, Any]) -> None:
        self._index = index
        self.last: frozenset[str] = frozenset(index["last"])

    def hits(self, document: Document) -> Iterator[tuple[str, By]]:
        """Ids of profiles that fit, the surest sign first; an id may come more than once."""
        if document.host:
            for name in self._hosts(document.host.lower().rstrip(".")):
                yield name, "host"
        for name in self._headers(document):
            yield name, "header"
        for name in self._exceptions(document):
            yield name, "exception"
        for name in self._bodies(document):
            yield name, "body"
        if isinstance(document.body, Unset):
            for name in self._texts(document):
                yield name, "text"

    def _hosts(self, host: str) -> Iterator[str]:
        host = host.partition(":")[0] if host.count(":") == 1 else host
        yield from self._index["hosts"].get(host, ())
        at = host.find(".")
        while at >= 0:
            yield from self._index["suffixes"].get(host[at:], ())
            at = host.find(".", at + 1)
        for pattern, name in self._index["host_globs"]:
            if _fits(pattern)(host):
                yield name

    def _headers(self, document: Document) -> Iterator[str]:
        known = self._index["headers"]
        for header, value in document.headers.items():
            for wanted, name in known.get(header, ()):
                if not wanted or _fits(wanted)(value.strip().lower()):
                    yield name
            for pattern, wanted, name in self._index["header_globs"]:
                if _fits(pattern)(header) and (not wanted or _fits(wanted)(value.strip().lower())):
                    yield name
        if document.content_type:
            media = document.content_type.partition(";")[0].strip().lower()
            yield from self._index["content_types"].get(media, ())

    def _bodies(self, document: Document) -> list[str]:
        """The bodies that fit, the one with the rarest parts first."""
        found: dict[str, float] = {}
        for hint, name, weight in self._body_hints(document):
            if all(_holds(locator, wanted, document) for locator, wanted in _hint(hint)):
                found[name] = max(found.get(name, 0.0), weight)
        return sorted(found, key=lambda name: (-found[name], name))

    def _body_hints(self, document: Document) -> Iterator[tuple[str, str, float]]:
        body = document.body
        if isinstance(body, Mapping):
            keys = [key for key in list(body)[:_KEYS] if isinstance(key, str)]
        elif isinstance(body, list) and body:
            keys = ["[0]"]
        elif document.xml is not None:
            keys = [f"xml:{document.xml.name}"]
        else:
            return
        known = self._index["body"]
        for key in keys:
            yield from known.get(key, ())
            for pattern, hint, name, weight in self._index["body_globs"]:
                if _fits(pattern)(key):
                    yield hint, name, weight

    def _exceptions(self, document: Document) -> Iterator[str]:
        exact, globs = self._index["exceptions"], self._index["exception_globs"]
        for exception in document.exceptions:
            yield from exact.get(exception, ())
            for pattern, name in globs.get(exception.partition(".")[0], ()):
                if _fits(pattern)(exception):
                    yield name

    def _texts(self, document: Document) -> Iterator[str]:
        words = document.words
        if words:
            for pattern, name in self._index["text"]:
                if _pattern(pattern).search(words):
                    yield name


@functools.lru_cache(512)
def _fits(pattern: str) -> Callable[[str], object]:
    if "*" not in pattern:
        return pattern.__eq__
    return re.compile(translate(pattern)).match


@functools.lru_cache(256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


@functools.lru_cache(512)
def _hint(hint: str) -> tuple[tuple[locators.Locator, str | None], ...]:
    parts = (part.partition("=") for part in hint.split(" & "))
    return tuple((locators.compile(at), wanted if sign else None) for at, sign, wanted in parts)


def _holds(locator: locators.Locator, wanted: str | None, document: Document) -> bool:
    values = locator.find(document)
    return bool(values) if wanted is None else any(as_text(value) == wanted for value in values)
