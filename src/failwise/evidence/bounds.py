"""Bounds: texts are cut, and URLs lose their credentials, before they become facts."""

import re
from typing import Final
from urllib.parse import urlsplit

TEXT_LIMIT: Final = 8_192
"""Characters of a text kept in evidence."""

_USER_INFORMATION = re.compile(r"(?<=://)[^/\s@'\"<>?#]{1,256}@")
_TERMINAL_CODES = re.compile(
    r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def bounded(text: str, limit: int = TEXT_LIMIT) -> str:
    """The first `limit` characters, without user names and passwords in URLs."""
    if len(text) > limit:
        text = text[: limit + 512]
    if "://" in text:
        text = _USER_INFORMATION.sub("", text)
    return text[:limit]


def both_ends(text: str, head: int = 49_152, tail: int = 16_384) -> str:
    """The beginning and the end of a long text: some write the cause first, others last."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n...\n{text[-tail:]}"


def plain(text: str) -> str:
    """The text without terminal colours and control characters."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _TERMINAL_CODES.sub("", text)
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " "))


def clean_url(url: object) -> str | None:
    """A URL as text, without its user name and password, at most 2,048 characters."""
    if url is None:
        return None
    try:
        text = url if isinstance(url, str) else str(url)
    except Exception:
        return None
    return bounded(text, 2_048) or None


def host_of(url: str | None) -> str | None:
    """The host a URL names, lower case, without its port."""
    if not url or "://" not in url:
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
