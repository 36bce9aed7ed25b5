"""Headers of a request: which may be declared, and those a credential gives."""

import re
from collections.abc import Mapping
from typing import Any

from failwise.tools.places import placeholders
from failwise.vocabulary.errors import ToolError, UsageError
from failwise.vocabulary.kinds import Effect

SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that hold secrets by their name, in lower case."""

_CONNECTION_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
)
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")


def is_token(text: str) -> bool:
    """Whether a text can be a header's name (RFC 9110 §5.6.2)."""
    return _TOKEN.fullmatch(text) is not None


def is_printable(text: str) -> bool:
    """Whether a text is one line that a header can carry (RFC 9110 §5.5)."""
    return not any(
        letter < " " or letter == "\x7f" or "\ud800" <= letter <= "\udfff" for letter in text
    )


def checked_headers(tool: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Declared headers, names and templates. Raises `UsageError` for one that cannot be sent."""
    for name, value in headers.items():
        where = f"{tool}: header {name!r}"
        if not is_token(str(name)):
            raise UsageError(f"{where}: a header's name is letters, digits and '-'")
        if name.lower() in _CONNECTION_HEADERS:
            raise UsageError(f"{where} is set by the connection itself: drop it")
        if not is_printable(str(value)):
            raise UsageError(f"{where}: give its value as one line of text")
        if name.lower() in SECRET_HEADERS and next(placeholders(value), None):
            raise UsageError(f"{where}: a model's arguments are no credentials: use credential=")
    return {name: str(value) for name, value in headers.items()}


def credential_headers(credential: str, value: Any, header: str, form: str) -> dict[str, str]:
    """The headers a credential's value gives: a text, a mapping of headers, or a function of none.

    Raises `ToolError` (``tool.configuration``, not sent) where there is no value, or none that a
    header can carry; the value itself is never in the message.
    """
    if callable(value):
        value = value()
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if not isinstance(value, Mapping):
        text = "" if value is None else str(value).strip()
        value = {header: form.replace("{}", text)} if text else {}
    headers = {str(name): str(one).strip() for name, one in value.items() if one is not None}
    for name, text in headers.items():
        if not is_token(name) or name.lower() in _CONNECTION_HEADERS:
            raise _unusable(credential, f"names the header {name!r}, which cannot be set")
        if not is_printable(text):
            raise _unusable(credential, "holds a line break or a control character")
    if not headers:
        raise _unusable(credential, "has no value")
    return headers


def _unusable(credential: str, what: str) -> ToolError:
    return ToolError(
        f"the credential {credential!r} {what}",
        code="tool.configuration",
        effect=Effect.NOT_SENT,
        transient=False,
        details={"credential": credential},
    )
