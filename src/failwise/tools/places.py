"""Where arguments go in a request: URL templates, and templates of query, headers and body.

``{name}`` stands for an argument. An argument never changes the host or the structure of a path.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from failwise.tools.signature import refused_argument
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.spec import Arguments

_PLACE = re.compile(r"\{([A-Za-z_][\w.\-]{0,127})\}")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s\[\]@/\\{}]+?)(?::\d{1,5})?")
_PATH_LITERAL = "%:@!$&'()*+,;=~/-._"


class _Absent:
    """An optional argument that was not given: its place is left out."""


ABSENT: Final = _Absent()


def placeholders(template: Any) -> Iterator[str]:
    """The names of the arguments a template asks for."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from placeholders(value)
    elif isinstance(template, (list, tuple)):
        for value in template:
            yield from placeholders(value)


def fill(template: Any, arguments: Arguments) -> Any:
    """A template with its arguments; `ABSENT` where one it needs was not given.

    A string that is nothing but ``{name}`` becomes the argument itself, with its type.
    """
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole:
            return arguments.get(whole.group(1), ABSENT)
        names = _PLACE.findall(template)
        if any(arguments.get(name) is None for name in names):
            return ABSENT
        return _PLACE.sub(
            lambda match: text_of(match.group(1), arguments[match.group(1)]), template
        )
    if isinstance(template, Mapping):
        filled = {name: fill(value, arguments) for name, value in template.items()}
        return {name: value for name, value in filled.items() if value is not ABSENT}
    if isinstance(template, (list, tuple)):
        items = [fill(value, arguments) for value in template]
        return [value for value in items if value is not ABSENT]
    return template


def text_of(name: str, value: Any) -> str:
    """An argument as it is written in a URL or a header: ``true``, ``5``, ``0.1``, text.

    Raises the `ToolError` of a refused argument for lists, objects and null.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    raise refused_argument(name, f"a text or a number is needed, not {json_type(value)}")


def json_type(value: Any) -> str:
    """What JSON calls a value's type, for messages."""
    if value is None:
        return "null"
    return "an object" if isinstance(value, Mapping) else "a list"


class UrlTemplate:
    """An absolute URL whose path and query may hold ``{name}`` places.

    `origin` is scheme and authority, `upstream` host and port as written, `query` the URL's own
    query as pairs of name and template. Raises `UsageError` for a URL that is relative, holds
    credentials, or has a place outside of path and query.
    """

    __slots__ = ("_segments", "origin", "path_names", "query", "upstream")

    def __init__(self, tool: str, url: str) -> None:
        def wrong(what: str) -> UsageError:
            return UsageError(f"{tool}: url {url!r}: {what}")

        if any(ord(letter) <= 32 for letter in str(url)):
            raise wrong("give a URL without spaces, such as https://shop.example/orders/{order_id}")
        try:
            parts = urlsplit(url)
            if "{" not in parts.netloc:
                _ = parts.port  # raises where it is no port
        except ValueError as error:
            raise wrong(f"{error}") from None
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise wrong("give an absolute http or https URL, such as https://shop.example/orders")
        if "{" in parts.netloc:
            raise wrong("the host is fixed: only path and query can hold {arguments}")
        if "@" in parts.netloc:
            raise wrong("a URL holds no user or password: register a credential and name it")
        if not _AUTHORITY.fullmatch(parts.netloc):
            raise wrong("the host is not one: give a name or an address, and a port if need be")
        if parts.fragment:
            raise wrong("a fragment is never sent: drop what follows '#'")
        path = parts.path or "/"
        if set("{}") & set(_PLACE.sub("", path)):
            raise wrong("a place is written {name}: letters, digits, '_', '-' and '.'")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.upstream = parts.netloc.lower()
        self.path_names = tuple(_PLACE.findall(path))
        self._segments = [_PLACE.split(segment) for segment in path.split("/")]
        self.query = parse_qsl(parts.query, keep_blank_values=True)
        if any(_PLACE.search(name) for name, _ in self.query):
            raise wrong("a query parameter's name is fixed: put {arguments} behind its '='")

    def expand(self, arguments: Arguments) -> str:
        """Origin and path with the arguments in them, each inside its own segment.

        Raises the `ToolError` of a refused argument where a value is missing or empty, or would
        climb in the path: an encoded ``..`` still climbs on many servers.
        """
        return self.origin + "/".join(
            _segment(parts, arguments) if len(parts) > 1 else quote(parts[0], safe=_PATH_LITERAL)
            for parts in self._segments
        )


def _segment(parts: list[str], arguments: Arguments) -> str:
    written = []
    name = ""
    for index, part in enumerate(parts):
        if index % 2 == 0:
            written.append(quote(part, safe=_PATH_LITERAL))
            continue
        name = part
        value = arguments.get(name)
        if value is None:
            raise refused_argument(name, "it is part of the path and must be given")
        text = text_of(name, value)
        if not text.strip():
            raise refused_argument(name, "it is part of the path and must not be empty")
        if _climbs(text):
            raise refused_argument(name, "'.' and '..' are not allowed in a path")
        try:
            written.append(quote(text, safe=""))
        except UnicodeEncodeError:
            raise refused_argument(name, "it holds half a character") from None
    segment = "".join(written)
    if _climbs(unquote(segment)):
        raise refused_argument(name, "'.' and '..' are not allowed in a path")
    return segment


def _climbs(text: str) -> bool:
    """Whether a server that decodes once more than it should would see ``.`` or ``..`` steps."""
    for _ in range(3):
        if any(step.strip() in (".", "..") for step in re.split(r"[/\\;]", text)):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True


def query_pairs(filled: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Query parameters: null left out, lists repeated, objects as JSON."""
    pairs = []
    for name, value in filled.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, (Mapping, list, tuple)):
                pairs.append((name, json.dumps(one, ensure_ascii=False, separators=(",", ":"))))
            elif one is not None:
                pairs.append((name, text_of(name, one)))
    return pairs


def form_pairs(value: Any, prefix: str = "", depth: int = 16) -> list[tuple[str, str]]:
    """A body as form fields: nested objects as ``a[b]``, lists as ``a[]``; null left out."""
    if depth <= 0:
        raise refused_argument(prefix, "nests too deep for a form")
    if isinstance(value, Mapping):
        items = [(f"{prefix}[{key}]" if prefix else str(key), one) for key, one in value.items()]
    elif isinstance(value, (list, tuple)):
        items = [(f"{prefix}[]", one) for one in value]
    else:
        return [] if value is None else [(prefix, text_of(prefix, value))]
    return [pair for name, one in items for pair in form_pairs(one, name, depth - 1)]


def encoded(pairs: list[tuple[str, str]]) -> str:
    """Pairs as ``a=1&b=%20``. Raises the `ToolError` of a refused argument for half characters."""
    written = []
    for name, value in pairs:
        try:
            written.append(f"{quote(name, safe='[]')}={quote(value, safe='')}")
        except UnicodeEncodeError:
            raise refused_argument(name, "it holds half a character") from None
    return "&".join(written)
