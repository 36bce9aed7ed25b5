"""Pages where data was due: recognised, even after their brackets were lost, and reduced to a title."""

import html
import re
from typing import Final

LOOKED_AT: Final = 65_536
"""Characters of a page that are looked at."""

_PAGE_START = re.compile(
    r"\s{0,256}(?:<!--[^>]{0,512}-->\s{0,64}|<\?xml[^>]{0,128}\?>\s{0,64})?"
    r"<(?:!doctype\s{1,8}html|html|head|body|title|h[1-6]|center|p|div|script|meta|iframe)\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title\b[^>]{0,256}>([^<]{0,1024})", re.IGNORECASE)
_HEADING = re.compile(r"<h[1-3]\b[^>]{0,256}>(.{0,512}?)</h[1-3]>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]{0,2048}>")
_SPACES = re.compile(r"\s{1,4096}")
_REMNANT = re.compile(
    r"<\s?!\s?doctype\s{1,8}html\b|<\s?html(?=[\s>])|(?<![\w<])!\s?doctype\s{1,4}html"
    r"|(?<![\w<])doctype\s{1,4}html(?=html|\s{0,4}html\s{1,4}lang|\s{1,4}public)|<(?:head|body|title)\b[^<>]{0,256}>",
    re.IGNORECASE,
)
_PAGE_END = re.compile(r"</\s?html\s?>", re.IGNORECASE)


def is_page(text: str) -> bool:
    """Does the text begin as an HTML page does?"""
    return _PAGE_START.match(text) is not None


def page_title(text: str) -> str | None:
    """The title of an HTML page, else its first heading, as plain text of at most 200 characters.

    Only the first 65,536 characters are looked at.
    """
    text = text[:LOOKED_AT]
    for pattern in (_TITLE, _HEADING):
        found = pattern.search(text)
        if found:
            title = _SPACES.sub(" ", html.unescape(_TAG.sub(" ", found.group(1)))).strip()
            if title:
                return title[:200]
    return None


def may_be_page(text: str) -> bool:
    """Does a page begin anywhere in it, as far as a glance tells?"""
    if "<" in text:
        return _BRACKET.search(text) is not None or "doctype" in text.lower()
    return "doctype" in text or "DOCTYPE" in text or "doctype" in text.lower()


_BRACKET = re.compile(r"<\s?(?:!|html|head|body|title)", re.IGNORECASE)


def split_page(text: str) -> tuple[str, str]:
    """A text apart from the page pasted into it: (text without it, page).

    The page runs to ``</html>``, or to the end where it was cut off. It is recognised with its
    brackets and without (``!doctype htmlhtml lang``). ("text", "") where there is none.
    """
    start = _REMNANT.search(text) if may_be_page(text) else None
    if start is None:
        return text, ""
    end = _PAGE_END.search(text, start.end())
    stop = end.end() if end else len(text)
    return (text[: start.start()] + text[stop:]).strip(), text[start.start() : stop].strip()
