"""A log line → its words with the values masked: numbers, ids, paths, addresses, times, quoted text.

This is for text of any origin and for speed: words are looked up, and only those that were not seen
before are taken apart. What a call's failure is known by for ever is `classify.fingerprint`; this may
get better from version to version.
"""

import re
from typing import Final, TypeAlias

Template: TypeAlias = tuple[str, ...]
"""Words, with `MARK` where a value stood."""

MARK: Final = "<*>"
TEXT_LIMIT: Final = 4_000
"""Characters of a line that are looked at."""
WORD_LIMIT: Final = 120
"""Words of a line that count; what is beyond is one `MARK`."""

_CJK: Final = r"\u3000-\u303f\u3400-\u9fff\uff00-\uffef"
_QUOTED: Final = re.compile(
    r"\"(?!\d{3}[ \"])[^\"\n]{1,500}\"(?P<key>\s{0,2}:)?|`(?!\d{3}[ `])[^`\n]{1,500}`"
    r"|(?<![0-9A-Za-z])'(?!\d{3}[ '])[^'\n]{1,500}'(?![0-9A-Za-z])"
    r"|“[^”\n]{1,500}”|「[^」\n]{1,500}」|《[^》\n]{1,500}》"
)
_QUOTES: Final = "\"'`“「《"
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_PAGE: Final = re.compile(r"<(?:!doctype\s{1,8}html|html|\?xml)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{0,300})", re.IGNORECASE)
_EDGES: Final = re.compile(r"([(\[{<\"'`]{0,20})(.*?)([)\]}>\"'`,.;:!?]{0,20})", re.DOTALL)
_JOINTS: Final = re.compile(rf"([=:,;|()\[\]{{}}<>]+|[{_CJK}]+)")
_PATH: Final = re.compile(
    r"(?:~|\.{1,2})?(?:/[^/\s]{1,200}){2,40}/?|/[^/\s]{1,200}/?|[A-Za-z]:\\.{1,500}"
    r"|[\w.-]{1,100}(?:/[\w.-]{1,100}){2,40}/?"
)
_HEXADECIMAL: Final = re.compile(r"(?:0[xX])?(?=[A-Fa-f]{0,64}\d)[0-9a-fA-F]{4,128}")
_IDENTIFIER: Final = re.compile(
    r"(?=[\d_-]{0,128}[A-Za-z])(?=(?:[A-Za-z_-]{0,128}\d){2})[\w-]{8,256}", re.ASCII
)
_FIGURE: Final = re.compile(r"[-+]?\d[\d.,_+-]{0,60}(?:%|[A-Za-z]{1,2})?", re.ASCII)
_NUMBERS: Final = re.compile(
    r"(?<![A-Za-z_])[-+]?\d{1,60}(?:[.,:]\d{1,60}){0,8}(?:%|[A-Za-z]{1,2}\b)?"
    r"|(?<=[A-Za-z_])\d{2,60}"
)
_RUN: Final = re.compile(r"<\*>(?:[,:;|/. -]?<\*>)+")

_TELLING: Final = frozenset(["status", "code", "errno", "error", "type", "reason", "signal"])
"""Names whose value says what happened: a 404 is not a 503."""
_TOLD: Final = re.compile(r"-?\d{1,5}|[A-Za-z_.]{1,40}")
_BEFORE_STATUS: Final = frozenset(
    ["status", "code", "http", "error", "response", "statuscode", "status_code"]
)
_AFTER_STATUS: Final = frozenset(
    [
        "bad",
        "unauthorized",
        "payment",
        "forbidden",
        "not",
        "method",
        "proxy",
        "request",
        "conflict",
        "gone",
        "length",
        "precondition",
        "unprocessable",
        "too",
        "internal",
        "service",
        "gateway",
        "unavailable",
        "client",
        "server",
        "locked",
        "unsupported",
    ]
)
_STATUS: Final = re.compile(r"[45]\d\d")
_UNITS: Final = frozenset(
    [
        "b",
        "kb",
        "mb",
        "gb",
        "tb",
        "kib",
        "mib",
        "gib",
        "byte",
        "bytes",
        "ns",
        "us",
        "µs",
        "ms",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minutes",
        "h",
        "hours",
        "hz",
        "khz",
        "mhz",
        "ghz",
        "%",
    ]
)
_CALENDAR: Final = frozenset(
    [
        "Mon",
        "Tue",
        "Wed",
        "Thu",
        "Fri",
        "Sat",
        "Sun",
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "May",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Oct",
        "Nov",
        "Dec",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
)
_PUNCTUATION: Final = "()[]{}<>\"'`,.;:!?"

_KNOWN_LIMIT: Final = 50_000


class Masker:
    """Masks lines; remembers words, at most 50,000 of them. Not shared between threads."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def mask(self, text: str) -> Template:
        """The words of a text with values masked. Linear in the text; empty for a blank one."""
        if len(text) > TEXT_LIMIT:
            text = text[:TEXT_LIMIT]
        if "\x1b" in text:
            text = _ESCAPES.sub("", text)
        if "<" in text:
            page = _PAGE.search(text)
            if page is not None:
                title = _TITLE.search(text, page.start())
                text = f"{text[: page.start()]}‹html› {title[1] if title else ''}"
        if any(quote in text for quote in _QUOTES):
            text = _QUOTED.sub(_unquoted, text)
        words = text.split(None, WORD_LIMIT)
        if len(words) > WORD_LIMIT:
            words[WORD_LIMIT] = MARK
        known = self._known
        masked: list[str] = []
        last, dated = "", False
        for place, word in enumerate(words):
            shown = known.get(word)
            if shown is None:
                shown = _masked(word)
                if len(known) >= _KNOWN_LIMIT:
                    known.clear()
                known[word] = shown
            if shown is not word and shown != word:
                if _is_status(words, place):
                    shown = word
                elif shown == MARK and last == MARK:
                    continue
            elif last.endswith(MARK) and word.strip(_PUNCTUATION).lower() in _UNITS:
                masked[-1] = last = last + word[len(word.rstrip(_PUNCTUATION)) :]
                continue
            if word in _CALENDAR:
                dated = True
            masked.append(shown)
            last = shown
        return tuple(_without_dates(masked) if dated else masked)


def _unquoted(found: "re.Match[str]") -> str:
    """A mark between the quotes; the name of a field stays."""
    text = found[0]
    return text if found["key"] else f"{text[0]}{MARK}{text[-1]}"


def _is_status(words: list[str], place: int) -> bool:
    """Whether a number is an HTTP status: by the word before it, or by the phrase after it."""
    number = words[place].strip(_PUNCTUATION)
    if len(number) != 3 or not _STATUS.fullmatch(number):
        return False
    before = words[place - 1].strip("()[]{}<>\"'`,.;:!?=").lower() if place else ""
    if before in _BEFORE_STATUS or before.startswith("http/"):
        return True
    after = words[place + 1].strip(_PUNCTUATION).lower() if place + 1 < len(words) else ""
    return after in _AFTER_STATUS


def _without_dates(words: list[str]) -> list[str]:
    """Names of days and months that stand before a number are part of a date."""
    kept: list[str] = []
    for word in reversed(words):
        after = kept[-1] if kept else ""
        if word in _CALENDAR and after.startswith(MARK):
            continue
        kept.append(word)
    kept.reverse()
    return kept


def _masked(word: str) -> str:
    """One word: itself, `MARK`, or itself with marks inside."""
    if word.isalpha():
        return word
    if "://" in word:
        return MARK
    edges = _EDGES.fullmatch(word)
    if edges is None:
        return MARK
    before, core, after = edges.groups()
    if not core or core.isalpha():
        return word
    if _PATH.fullmatch(core):
        return f"{before}{MARK}{after}"
    parts = _JOINTS.split(core)
    for place in range(0, len(parts), 2):
        part = parts[place]
        if part and place and parts[place - 1] == "=":
            told = _last_name(parts[place - 2]) in _TELLING and _TOLD.fullmatch(part)
            parts[place] = part if told else MARK
        elif part:
            parts[place] = _part(part)
    return f"{before}{_RUN.sub(MARK, ''.join(parts))}{after}"


def _last_name(name: str) -> str:
    return re.split(r"[._-]", name.lower())[-1]


def _part(part: str) -> str:
    if part.isalpha():
        return part
    if not any(character.isdigit() for character in part):
        return MARK if _PATH.fullmatch(part) or ("@" in part and "." in part) else part
    if (
        part.count(".") > 1
        or _FIGURE.fullmatch(part)
        or _HEXADECIMAL.fullmatch(part)
        or _IDENTIFIER.fullmatch(part)
        or _PATH.fullmatch(part)
    ):
        return MARK
    return _NUMBERS.sub(MARK, part)
