"""Locators: where a part of an answer sits, as a short text. The forms are told in data/README.md.

``error.code`` a path in the JSON body (or the attributes of an exception), with ``[0]``, ``[*]``,
globs such as ``*_response``, ``~keys`` and ``~leaf``; ``header:name``; ``xml:Error/Code``;
``text:expression``; ``http:status``; ``class`` and ``str`` of an exception.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from typing import Any, Literal, TypeAlias

from failwise.profiles.document import Document
from failwise.profiles.markup import Element
from failwise.vocabulary.records import MAPPING, Unset

Medium: TypeAlias = Literal["body", "header", "xml", "text", "status", "exception"]

_MOST = 100
"""Values of one locator that are looked at."""

_STEP = re.compile(r"\[(\d+|\*)\]|([^.\[\]]+)")
_CAUSES = frozenset({"__cause__", "__context__"})


class Locator:
    """One compiled locator. `medium` is the part of a document that it looks at."""

    __slots__ = ("_find", "medium", "text")

    def __init__(self, text: str, medium: Medium, find: Callable[[Document], list[Any]]) -> None:
        self.text, self.medium, self._find = text, medium, find

    def find(self, document: Document) -> list[Any]:
        """The values there, in order; null counts as none. Never raises."""
        found = document.found.get(self.text)
        if found is None:
            found = document.found[self.text] = self._find(document)
        return found

    def applies(self, document: Document) -> bool:
        """Whether the document has the part that this locator looks at."""
        if self.medium == "body":
            return not isinstance(document.body, Unset)
        if self.medium == "xml":
            return document.xml is not None
        return True

    def __repr__(self) -> str:
        return f"Locator({self.text!r})"


@functools.lru_cache(2048)
def compile(text: str) -> Locator:
    """The locator for this text. Raises `ValueError` where it is none."""
    if text.startswith("header:"):
        return Locator(text, "header", _header(text[7:]))
    if text.startswith("xml:"):
        return Locator(text, "xml", _xml(text[4:].split("/")))
    if text == "text":
        return Locator(text, "text", lambda document: [document.words] if document.words else [])
    if text.startswith("text:"):
        return Locator(text, "text", _text(text[5:]))
    if text == "http:status":
        return Locator(text, "status", _status)
    if text == "class":
        return Locator(text, "exception", lambda document: list(document.exceptions))
    if text == "str":
        return Locator(
            text,
            "exception",
            lambda document: [document.exception_text] if document.exception_text else [],
        )
    return Locator(text, "body", _path(text))


def _status(document: Document) -> list[Any]:
    return [] if document.status is None else [document.status]


def _header(name: str) -> Callable[[Document], list[Any]]:
    if "*" in name:
        fits = re.compile(translate(name)).match
        return lambda document: [value for key, value in document.headers.items() if fits(key)]

    def find(document: Document) -> list[Any]:
        value = document.headers.get(name)
        return [] if value is None else [value]

    return find


def _text(expression: str) -> Callable[[Document], list[Any]]:
    pattern = re.compile(expression)

    def find(document: Document) -> list[Any]:
        found = pattern.search(document.words)
        if not found:
            return []
        value = found.group(1) if pattern.groups else found.group()
        return [] if value is None else [value]

    return find


def _xml(names: list[str]) -> Callable[[Document], list[Any]]:
    def find(document: Document) -> list[Any]:
        root = document.xml
        if root is None or root.name != names[0]:
            return []
        elements = [root]
        for name in names[1:]:
            elements = [
                child for element in elements for child in element.children if child.name == name
            ]
        return [_words(element) for element in elements[:_MOST]]

    return find


def _words(element: Element) -> str:
    parts: list[str] = []
    waiting = [element]
    while waiting and len(parts) < _MOST:
        current = waiting.pop()
        if current.text.strip():
            parts.append(current.text.strip())
        waiting.extend(reversed(current.children))
    return " ".join(parts)


def _path(text: str) -> Callable[[Document], list[Any]]:
    steps: list[str | int] = []
    end = 0
    for found in _STEP.finditer(text):
        if text[end : found.start()] not in ("", "."):
            raise ValueError(f"{text!r} is not a locator")
        end = found.end()
        number, word = found.groups()
        steps.append(word if number is None else "[*]" if number == "*" else int(number))
    if end != len(text) or not steps:
        raise ValueError(f"{text!r} is not a locator")

    names = [isinstance(step, str) and step.isidentifier() for step in steps]
    plain = all(names)
    first = steps[0] if names[0] else None

    def find(document: Document) -> list[Any]:
        body = document.body
        if not isinstance(body, Unset):
            if plain:
                # Nearly all there is: names, down objects of JSON.
                for step in steps:
                    if type(body) is not dict:
                        break
                    body = body.get(step)
                    if body is None:
                        return []
                else:
                    return [body]
            elif first is not None and type(body) is dict and first not in body:
                return []
            return _walk(document.body, steps)
        if document.exception is None:
            return []
        for exception in _chain(document.exception):
            values = [v for v in _walk(exception, steps) if _is_plain(v)]
            if values:
                return [str(v) if isinstance(v, BaseException) else v for v in values]
        return []

    return find


def _chain(exception: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if exception is None:
            return
        yield exception
        exception = exception.__cause__ or exception.__context__


def _walk(root: Any, steps: Sequence[str | int]) -> list[Any]:
    values: list[Any] = [root]
    for step in steps:
        below: list[Any] = []
        for value in values:
            # Lists of JSON at once, and what texts and numbers have below them.
            if step == "[*]" and type(value) is list:
                below += value
            elif type(value) is dict and type(step) is str and step.isidentifier():
                if step in value:
                    below.append(value[step])
            elif type(value) is not str:
                below += _children(value, step)
        if not below:
            return below
        values = below[:_MOST] if len(below) > _MOST else below
    return [value for value in values if value is not None]


def _children(value: Any, step: str | int) -> list[Any]:
    if isinstance(value, MAPPING):
        if isinstance(step, int) or step == "[*]":
            return []
        if step == "~keys":
            return [key for key in value if isinstance(key, str)]
        if step == "~leaf":
            return _leaf(value)
        if "*" in step:
            fits = _glob(step)
            return [child for key, child in value.items() if isinstance(key, str) and fits(key)]
        return [value[step]] if step in value else []
    if isinstance(value, list | tuple):
        if step == "[*]":
            return list(value[:_MOST])
        if isinstance(step, int):
            return [value[step]] if step < len(value) else []
        return _leaf(value) if step == "~leaf" else []
    if (
        isinstance(step, int)
        or step == "[*]"
        or isinstance(value, str | bytes | int | float | None)
    ):
        return []
    return _attribute(value, step)


@functools.lru_cache(256)
def _glob(pattern: str) -> Callable[[str], object]:
    return re.compile(translate(pattern)).match


def _leaf(tree: Any) -> list[str]:
    """The path of the first deepest entry of a tree of errors, as `a.b[0]`."""
    best, best_depth = "", 0
    waiting: list[tuple[Any, str, int]] = [(tree, "", 0)]
    for _ in range(1000):
        if not waiting:
            break
        value, path, depth = waiting.pop()
        if depth > best_depth:
            best, best_depth = path, depth
        if isinstance(value, MAPPING) and depth < 20:
            waiting.extend(
                (child, f"{path}.{key}" if path else str(key), depth + 1)
                for key, child in reversed(list(value.items())[:_MOST])
            )
        elif (
            isinstance(value, list | tuple)
            and depth < 20
            and any(isinstance(child, MAPPING) for child in value[:_MOST])
        ):
            waiting.extend(
                (child, f"{path}[{at}]", depth + 1)
                for at, child in reversed(list(enumerate(value[:_MOST])))
            )
    return [best] if best else []


def _attribute(value: Any, name: str) -> list[Any]:
    """A plain attribute. Private names stay private, and nothing is called, with one exception:
    gRPC's errors tell their status by method alone."""
    if name.startswith("_") and name not in _CAUSES:
        return []
    try:
        found = getattr(value, name)
        if callable(found):
            if not type(value).__module__.startswith("grpc") or name not in ("code", "details"):
                return []
            found = found()
            found = getattr(found, "value", found)
            found = found[0] if isinstance(found, tuple) and found else found
    except Exception:  # a property of a foreign class may raise whatever it likes
        return []
    return [found]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | list | tuple | dict | BaseException)
