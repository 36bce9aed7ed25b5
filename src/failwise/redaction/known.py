"""Known values: replaced literally, in every form they travel in."""

import base64
import html
import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from failwise.redaction.checks import is_placeholder, is_secret
from failwise.redaction.names import NameClass, classify_name

SHORTEST_KNOWN = 6
_SCHEMES = frozenset(
    [
        "basic",
        "bearer",
        "digest",
        "token",
        "key",
        "apikey",
        "api-key",
        "negotiate",
        "ntlm",
        "hoba",
        "mutual",
        "signature",
    ]
)
"""Words that stand before credentials (RFC 9110 §11.1 and the schemes in use beside it)."""
_SIGNS = _SCHEMES | frozenset(
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "api_key",
        "access_token",
        "refresh_token",
        "client_secret",
        "authorization",
        "credential",
        "credentials",
        "cookie",
    ]
)
"""Words by which secrets are recognised. Taken out of a text, they would no longer give any away."""
_SHORTEST_ENVIRONMENT = 8
_SHORTEST_ENCODED = 8


def forms_of(value: str) -> Iterator[str]:
    """The value as written, URL-encoded, JSON- and HTML-escaped, and inside base64 at any offset."""
    yield value
    yield quote(value, safe="")
    yield quote(value, safe="/~")
    yield quote_plus(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield html.escape(value)
    raw = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        # What stands before and after shares characters with the edges: only the middle is certain.
        encoded = base64.b64encode(b"\0" * offset + raw).decode("ascii")
        first = -(-offset * 8 // 6)
        inner = encoded[first : (offset + len(raw)) * 8 // 6]
        if len(inner) >= _SHORTEST_ENCODED:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


def environment_secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """Values of the environment whose names tell a secret: 8 characters or more, no path, no flag."""
    for name, value in environment.items():
        if classify_name(name) not in (NameClass.PASSWORD, NameClass.SECRET, NameClass.WEAK):
            continue
        path = value.startswith(("/", "~", "./")) or value[1:3] == ":\\"
        if len(value) < _SHORTEST_ENVIRONMENT or path or is_placeholder(value):
            continue
        if is_secret(value) or classify_name(name) is NameClass.PASSWORD:
            yield value


class KnownValues:
    """A set of values that must never be seen; `replace` takes them out of a text.

    Thread-safe: a changed list takes the place of the old one in one assignment.
    """

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()

    def add(self, value: str) -> None:
        """Add a value in all its forms, without the scheme before it (``Bearer ...``).

        Shorter than 6 characters is passed over, and so is a word by which secrets are recognised.
        """
        scheme, _, rest = value.strip().partition(" ")
        if rest and scheme.lower() in _SCHEMES:
            value = rest.strip()
        if len(value) < SHORTEST_KNOWN or value.lower() in _SIGNS:
            return
        forms = set(self._forms).union(forms_of(value))
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    @property
    def edition(self) -> int:
        """How many forms there are; none is ever taken away."""
        return len(self._forms)

    def stand_in(self, text: str) -> bool:
        """Does any known value, in any form, stand in the text?"""
        return any(form in text for form in self._forms)

    def replace(self, text: str, mask: str) -> str:
        """The text with every known form replaced by `mask`, the longest first."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, mask)
        return text
