"""Is this text a failure at all? What a tool returned needs an anchor; what a log says need not."""

import re
from typing import Final

from failwise.classify import outputs
from failwise.classify.folding import fold
from failwise.classify.forms import Place
from failwise.classify.opened import is_wrapped
from failwise.classify.prose import explains

_FILE: Final = "announcements.toml"
_WRAPPERS: Final = Place(_FILE, "wrappers")
_BEGINS: Final = Place(_FILE, "begins")
_BEGINS_CHINESE: Final = Place(_FILE, "chinese")
_SENTENCES: Final = Place(_FILE, "sentences")
_LATER: Final = Place(_FILE, "later")
_FORMS: Final = Place(_FILE, "forms")
_TROUBLE: Final = Place(_FILE, "trouble")
_LATER_WORDS: Final = (
    "again", "请", "請", "可", "試", "시도", "intente", "novamente", "versuchen", "попробуйте", "riprova", "reessay",
)  # fmt: skip
"""One of these stands in all that `_LATER` finds."""
_LAST: Final = 64
"""Characters at the end of a text in which it may stand."""
_ASKED: Final = 160
"""A longer text that ends with the advice to try again may be about something else."""
_CLASS: Final = re.compile(
    r"\s{0,8}(?:(?:[a-z_][\w]{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Timeout)\b\s{0,2}[:(\n]"
    r"|(?:[a-z_]\w{0,40}\.){1,5}(?:errors|exceptions|exc)\.[A-Z]\w{1,60}:\s)",
    re.ASCII,
)
_TAGGED: Final = re.compile(r"\s{0,8}<[a-z_]{0,24}error(?:>| [45]\d\d |\(| \[)", re.IGNORECASE)
_SHORT_WAY: Final = 400
"""A long text that holds a traceback further on is a page about one, unless it ends there."""
_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\):\s*\n\s+File ", re.MULTILINE)
_LOG_LINE: Final = re.compile(
    r"\s{0,8}[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARN(?:ING)?|TRACE|NOTICE)\b)"
)
"""How lines of logs begin: a log that holds a traceback is content, unless it ends with one."""
_SHELL: Final = re.compile(
    r"[\w./-]{1,30}: (?:[^\n:]{1,200}: )?(?:[A-Z][a-z]+ [a-z ]{3,40}|command not found|permission denied)",
    re.ASCII,
)
_RECOVERED: Final = re.compile(
    r"(?:successfully|succeeded|success|completed|finished|done|passed|installed|成功|完成|已创建|已恢复)",
    re.IGNORECASE,
)
_ON_THE_WAY: Final = re.compile(
    r"objects: {1,3}100% \(\d|last packet (?:sent |received )?successfully", re.IGNORECASE
)
"""Progress that git prints before and after what stopped it, and what a driver says of the last packet: no end."""
_NEGATED: Final = re.compile(
    r"(?:not|un|without|0|no|never)[ -]?$|(?:未|不|没有|没能|无法|[未不没]能|未被)$", re.IGNORECASE
)
_COUNTS: Final = re.compile(
    r"\b(?:0|no|none|zero) (?:errors?|failed|failures|timeouts?)\b|\d+ passed", re.IGNORECASE
)
_NO_DETAILS: Final = re.compile(
    r"(?:failed|failure|error)\b[^\n]{0,40} (?:with|but|and) no error (?:details?|messages?|text|output|code)",
    re.IGNORECASE,
)
"""A failure of which nothing more is told."""
_UNDONE: Final = re.compile(r"\b(?:did|does|was|were|is|are) not ", re.IGNORECASE)
_GOOD_WORDS: Final = (
    "success", "succeeded", "completed", "finished", "done", "passed", "installed", "成功", "完成", "已创建",
    "已恢复", "0 error", "no error", "0 fail", "no fail", "0 timeout", "no timeout",
)  # fmt: skip
"""One of these stands in every line that ends well."""
_LOGGED: Final = re.compile(
    r"\[GIN\] |\W{0,3}\d{2,4}[-/.]\d\d[-/.]\d\d[ T]\d\d:\d\d[\d:.,+Z-]{0,16} {0,4}\|[^\n|]{0,40}\b(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?)\b"
)
_LISTING: Final = re.compile(
    r"^\s{0,40}(?:\|(?! \S[^|\n]*$)|[+`├└│]|-{2,}(?![->])|\d{1,3}[.)] |[-*•] )", re.MULTILINE
)
"""How rows of tables, trees and lists begin. One bar before words, and no other, only quotes them."""
_ERRORS_LISTED: Final = re.compile(r"(?:^|[(:\s])\d{1,4} errors? occurred:\s{0,8}\n\s{0,8}\* ")
"""How programs in Go print several errors of one call: a list, and no data."""
SHORT: Final = 400
"""A longer text without an anchor is content, whatever words it holds."""


def announces_failure(text: str) -> bool:
    """Does it begin as failures begin: a wrapper word, a class name, a traceback, a shell's form?"""
    text = fold(text)
    return bool(
        _WRAPPERS.match(text)
        or _TAGGED.match(text)
        or _CLASS.match(text)
        or (
            _TRACEBACK.search(text[: 2_000 if len(text) <= 2_000 else _SHORT_WAY])
            and not _LOG_LINE.match(text)
        )
        or (
            len(text) <= SHORT
            and (
                _BEGINS.match(text)
                or _SENTENCES.match(text)
                or (not text.isascii() and _BEGINS_CHINESE.match(text))
            )
        )
        or (len(text) <= _ASKED and _asks_to_wait(text[-_LAST:].lower()))
    )


def _asks_to_wait(end: str) -> bool:
    return any(map(end.__contains__, _LATER_WORDS)) and _LATER.search(end) is not None


def has_failed(text: str) -> bool:
    """The same of what a tool gave back, which has more forms than a log: it also ends as failures do."""
    return (announces_failure(text) or outputs.fails(text)) and not explains(text)


def has_failing_form(text: str) -> bool:
    """A short text of which the first words say that something failed, without a wrapper."""
    text = fold(text)
    return (
        len(text) <= SHORT
        and text.count("\n") <= 12
        and bool(_FORMS.match(text) or _SHELL.match(text))
        and not explains(text)
    )


def is_content(text: str) -> bool:
    """Plain words without the form of a failure, which no profile is asked about: neither a page, a
    stream nor JSON. False proves nothing."""
    return (
        text[:1].isalpha()
        and "<" not in text
        and " | " not in text[:120]  # containers' names, perhaps
        and "data:" not in text
        and "event:" not in text
        and "=>" not in text  # an array as PHP prints it
        and not is_wrapped(text)
        and not has_failed(text)
        and not has_failing_form(text)
    )


def is_listing(text: str) -> bool:
    """A table, a tree or a list: rows that name errors are data. Loggers put bars too between the
    time, the level and the place of a line."""
    if text.isprintable() and text.count(" | ") < 3:
        return False  # one line, as most texts are
    lines = [line for line in text.splitlines()[:40] if line.strip()]
    if (
        text.count(" | ") >= 3
        and not _ends_in_error(text)
        and sum(line.lstrip(" |").count(" | ") for line in lines) >= 3
        and not _LOGGED.match(text)
        and not text.lstrip().lower().startswith("error")
    ):
        return True
    if len(lines) < 2 or _CLASS.match(lines[0]) or _ends_in_error(text):
        return False
    if " occurred:" in text and _ERRORS_LISTED.search(text):
        return False
    marked = sum(
        1 for line in lines if _LISTING.match(line) or line.count("|") >= 2 or line.count("\t") >= 2
    )
    return marked * 2 > len(lines)


def _ends_in_error(text: str) -> bool:
    """Is the last line no row, and begins as failures do? A builder quotes its file before it says why."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    return "|" not in last and _LISTING.match(last) is None and _WRAPPERS.match(last) is not None


# The words of a frame are names of the program: ``SaveChangesAsync(Boolean acceptAllChangesOnSuccess)``.
_FRAME: Final = re.compile(
    r"(?:Stack ?Trace:)?\s{1,16}(?:at|in|bei|à|en|в|在|場所|위치:?) [\w$][\w$.<>`,|/\[\]]{2,400}\(|#\d{1,4} +[\w/{]"
)


def ends_well(text: str) -> bool:
    """The last line says that it worked after all, or the counts of failures are zero."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    lowered = last.lower()
    if not any(map(lowered.__contains__, _GOOD_WORDS)) or _ON_THE_WAY.search(last):
        return False
    if _FRAME.match(last):
        return False
    if _COUNTS.search(last):
        return _NO_DETAILS.search(last) is None
    found = None
    for match in _RECOVERED.finditer(last):
        found = match
    return (
        found is not None
        and not _NEGATED.search(last[: found.start()])
        and not _TROUBLE.search(last)
        and not _UNDONE.search(last)
    )


def speaks_of_trouble(text: str) -> bool:
    """Any word of failing at all; without one a log line is simply not a failure."""
    return _TROUBLE.search(text) is not None
