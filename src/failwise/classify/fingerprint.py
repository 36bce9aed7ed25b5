"""A message → its template → a fingerprint that stays the same over time and machines.

Values are replaced in a fixed order, so that two messages of one cause share a template. Redaction
comes before and uses like placeholders, so that a new redaction rule moves no fingerprint.
"""

import functools
import re
from hashlib import blake2b
from typing import Final

VERSION: Final = 1
"""Goes into every fingerprint: a change of the algorithm makes new ones, and never moves old ones."""
LOOKED_AT: Final = 2_000
TEMPLATE_LIMIT: Final = 400

_B: Final = r"(?<![0-9A-Za-z_])"
_E: Final = r"(?![0-9A-Za-z_])"
_PAGE: Final = re.compile(r"\s{0,64}<(?:!doctype\s{1,8}html|html|\?xml)", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{0,300})", re.IGNORECASE)
_SUFFIXES: Final = "com|net|org|io|cn|dev|app|ai|co|gov|edu|info|biz|cloud|internal|local|localhost|example|test|svc|de|uk|jp|fr|us|eu|in|ru|br|hk|tw|sg"


@functools.cache
def _rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The replacements in their order, compiled when the first template is made."""
    return tuple((re.compile(pattern), replacement) for pattern, replacement in _REPLACEMENTS)


_REPLACEMENTS: Final = (
    (r"\x1b\[[0-9;]{0,16}[A-Za-z]", ""),
    (r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s\"'<>)\]}，。；、”」]{1,1500}", "<url>"),
    (r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}", "<email>"),
    (_B + r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}" + _E, "<uuid>"),
    (
        _B
        + r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)?"
        + _E,
        "<ts>",
    ),
    (_B + r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?" + _E, "<ts>"),
    (_B + r"arn:[^\s\"',]{1,300}", "<arn>"),
    (_B + r"(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?" + _E, "<ip>"),
    (_B + r"(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}" + _E, "<ip>"),
    (_B + r"0x[0-9a-fA-F]{1,64}" + _E, "<hex>"),
    (
        r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@%+~-]{1,128}){2,32}/?|(?<![\w<])[A-Za-z]:\\[^\s\"']{1,500}",
        "<path>",
    ),
    (
        rf"(?<![\w.-])(?:[A-Za-z0-9_-]{{1,63}}\.){{1,8}}(?:{_SUFFIXES})(?::\d{{1,5}})?" + _E,
        "<host>",
    ),
    (
        r"\"(?!\d{3}[ \"])[^\"\n]{1,500}\"|`(?!\d{3}[ `])[^`\n]{1,500}`"
        r"|(?<![0-9A-Za-z])'(?!\d{3}[ '])[^'\n]{1,500}'(?![0-9A-Za-z])|“[^”\n]{1,500}”|「[^」\n]{1,500}」",
        "<str>",
    ),
    (
        _B
        + r"(?=[0-9A-Za-z_-]{0,128}[A-Za-z])(?=(?:[A-Za-z_-]{0,128}\d){2})[0-9A-Za-z_-]{8,256}"
        + _E,
        "<id>",
    ),
    (r"(?<![A-Za-z0-9_])[-+]?\d{1,60}(?:\.\d{1,60})?", "<n>"),
    (r"(<\w{1,6}>)(?:[\s,;]{0,3}\1){1,500}", r"\1.."),
    (r"\s{1,2000}", " "),
)


@functools.lru_cache(1_024)
def template(message: str) -> str:
    """The message with its values replaced; at most 400 characters. A page gives its title."""
    text = message[:LOOKED_AT]
    if _PAGE.match(text):
        title = _TITLE.search(text)
        text = f"<html> {title.group(1).strip() if title else ''}"
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    return text.strip()[:TEMPLATE_LIMIT]


_PAGES: Final = frozenset(
    {"network.bad_gateway", "network.gateway_timeout", "network.request_timeout"}
)


def ignores_text(code: str) -> bool:
    """Whether the code says it all: gateways put any page around one cause, TLS libraries any words."""
    return code in _PAGES or code.startswith("security.")


def fingerprint(category: str, code: str, tool: str, subject: str, message: str) -> str:
    """16 hexadecimal digits for "the same failure": category, code, tool, what it is about, template.

    `subject` is a bounded code of the upstream (a status, an errno) or the type of the error, never
    raw text.
    """
    parts = (str(VERSION), category, code, tool, subject, template(message))
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
