"""A log file or stream → its entries: what it says, how bad, when. Any common form, no configuration.

Understood are lines that begin with a time (ISO 8601, syslog, Apache, nginx, glog), lines of JSON
objects (their message, level, time, error and status), and entries of several lines: a traceback, a
chain of causes and indented lines belong to the line before.
"""

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from failwise.vocabulary.records import record

Level: TypeAlias = Literal["", "info", "warning", "error"]

ENTRY_LINES: Final = 200
ENTRY_LENGTH: Final = 16_000
"""Lines and characters kept of one entry."""

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_ISO: Final = re.compile(
    r"\[?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"\s?(Z|[+-]\d\d:?\d\d)?\]?[ |:]{0,3}"
)
_SYSLOG: Final = re.compile(
    r"(?:<\d{1,3}>)?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.\d{1,6})? "
)
_APACHE: Final = re.compile(
    r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d{1,6})? (\d{4})\] "
)
_GLOG: Final = re.compile(r"([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.\d{1,6} {1,8}\d{1,10} ")
_ACCESS: Final = re.compile(
    r"\S{1,200} \S{1,100} \S{1,100} \[(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) [+-]\d{4}\] "
)
_LEVEL: Final = re.compile(
    r"(?<![A-Za-z])(?:(TRACE|DEBUG|INFO|NOTICE)|(WARN(?:ING)?)"
    r"|(ERROR|ERR|CRIT(?:ICAL)?|FATAL|SEVERE|PANIC|ALERT|EMERG(?:ENCY)?|EXCEPTION))(?![A-Za-z])"
)
_SMALL_LEVEL: Final = re.compile(
    r"[\[<(=\"](?:(trace|debug|info|notice)|(warn(?:ing)?)"
    r"|(error|err|crit(?:ical)?|fatal|severe|panic|alert|emerg(?:ency)?))[\])>\"\s:,]"
    r"|\blevel=\"?(?:(debug|info|trace|notice)|(warn(?:ing)?)|(error|fatal|panic|critical))"
)
_LEVEL_IN: Final = 80
"""Characters after the time in which a level stands."""
_LEVELS: Final[tuple[Level, ...]] = ("info", "warning", "error")
_GOES_ON: Final = re.compile(
    r"\s|Traceback \(most recent call last\)|Caused by: |\.\.\. \d{1,5} more|During handling of the"
    r"|The above exception was|--- End of|}\s{0,3}$"
)
_TRACEBACK: Final = "Traceback (most recent call last)"
_CAUSE: Final = re.compile(
    r"(?:[\w$]{1,80}[.])*[A-Z]\w{1,80}(?:Error|Exception|Failure|Fault|Exit|Interrupt|Warning)\b"
)
_MESSAGE: Final = ("message", "msg", "event", "log", "text", "body", "@message")
_JSON_LEVEL: Final = ("level", "severity", "levelname", "lvl", "log.level", "severity_text")
_JSON_TIME: Final = ("time", "timestamp", "ts", "@timestamp", "asctime", "datetime", "t")
_JSON_MORE: Final = (
    "error",
    "err",
    "exception",
    "exc_info",
    "stack",
    "stack_trace",
    "reason",
    "detail",
)
_JSON_FACTS: Final = ("status", "status_code", "http_status", "code", "error_code", "errno")


@record
class Entry:
    """One entry of a log: `text` (whole), `head` (what its kind is known by), `at` in epoch seconds
    (no offset: UTC), `line` the number of its first line."""

    text: str
    head: str
    level: Level
    at: float | None
    line: int


def entries(lines: Iterable[tuple[int, str | None]], *, year: int = 1970) -> Iterator[Entry]:
    """The entries of numbered lines (None: a line that was too long), as they come.

    An entry is given when the next one begins. `year` is for times that do not tell theirs.
    """
    held: list[str] = []
    first = length = 0
    inside = False
    for number, line in lines:
        if line is None or not line.strip():
            inside = False
            continue
        goes_on = bool(held) and (inside or _GOES_ON.match(line) is not None)
        if goes_on:
            if _TRACEBACK in line:
                inside = True
            elif inside and not line[0].isspace():
                inside = False  # the exception itself ends a traceback
        elif held:
            yield _entry(held, first, year)
            held, length = [], 0
        if not held:
            first = number
            inside = _TRACEBACK in line
        if len(held) < ENTRY_LINES and length < ENTRY_LENGTH:
            held.append(line[:ENTRY_LENGTH])
            length += len(line)
        elif goes_on and not line[0].isspace():
            held[-1] = line[:ENTRY_LENGTH]  # the last line names the exception: never lost
    if held:
        yield _entry(held, first, year)


def _entry(lines: list[str], number: int, year: int) -> Entry:
    first = lines[0]
    if first.startswith("{") and len(lines) == 1:
        data = _object(first)
        if data is not None:
            return _of_json(data, first, number)
    at, rest, level = _time(first, year)
    if not level:
        level = _level_of(rest)
    head = rest
    if len(lines) > 1:
        named = [
            line.strip()
            for line in lines[1:]
            if _CAUSE.match(line.strip().removeprefix("Caused by: "))
        ]
        if named:
            cause = named[-1].removeprefix("Caused by: ")
            head = cause if _TRACEBACK in rest else f"{rest} {cause}"
            level = level or "error"
    text = rest if len(lines) == 1 else "\n".join((rest, *lines[1:]))
    return Entry(text, head, level, at, number)


def _time(line: str, year: int) -> tuple[float | None, str, Level]:
    """When, what is left of the line, and the level where the time tells it (glog)."""
    start = line[:1]
    if start.isdigit() or start == "[":
        found = _ISO.match(line)
        if found:
            date = [int(part) for part in found.groups()[:6]]
            return _moment(date, found[7], found[8]), line[found.end() :], ""
        found = _APACHE.match(line)
        if found:
            date = [int(found[6]), _MONTHS.get(found[1].lower(), 1), *map(int, found.groups()[1:5])]
            return _moment(date), line[found.end() :], ""
    elif start.isupper() or start == "<":
        found = _SYSLOG.match(line)
        if found:
            date = [year, _MONTHS.get(found[1].lower(), 1), *map(int, found.groups()[1:5])]
            return _moment(date), line[found.end() :], ""
        found = _GLOG.match(line)
        if found:
            level: Level = {"I": "info", "W": "warning"}.get(found[1], "error")  # type: ignore[assignment]
            return (
                _moment([year, *map(int, found.groups()[1:6])]),
                line[found.end() :],
                level,
            )
    if "[" in line[:400]:
        found = _ACCESS.match(line)
        if found:
            date = [int(found[3]), _MONTHS.get(found[2].lower(), 1), int(found[1])]
            return _moment([*date, *map(int, found.groups()[3:6])]), line[found.end() :], ""
    return None, line, ""


def _moment(
    date: list[int], fraction: str | None = None, offset: str | None = None
) -> float | None:
    try:
        moment = datetime.datetime(*date[:6], tzinfo=datetime.UTC).timestamp()  # type: ignore[arg-type,misc]
    except (ValueError, OverflowError):
        return None
    if fraction:
        moment += float(f"0.{fraction}")
    if offset and offset != "Z":
        sign = -1 if offset[0] == "-" else 1
        moment -= sign * (int(offset[1:3]) * 3_600 + int(offset[-2:]) * 60)
    return moment


def _level_of(rest: str) -> Level:
    start = rest[:_LEVEL_IN]
    found = _LEVEL.search(start) or _SMALL_LEVEL.search(start)
    if found is None:
        return ""
    return _LEVELS[
        (found.lastindex or 1) - 1 if (found.lastindex or 1) <= 3 else (found.lastindex or 4) - 4
    ]


def _object(line: str) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _of_json(data: Mapping[str, Any], line: str, number: int) -> Entry:
    """An entry that is a JSON object: what it says stands under one of a few usual names."""
    parts = [_said(data.get(name)) for name in _MESSAGE]
    message = next(filter(None, parts), "")
    told: list[str] = [message] if message else []
    for name in _JSON_MORE:
        more = _said(data.get(name))
        if more and more not in told:
            told.append(more)
    for name in _JSON_FACTS:
        value = data.get(name)
        if (
            isinstance(value, int | str)
            and not isinstance(value, bool)
            and str(value) not in message
        ):
            told.append(f"{name}={value}")
    head = ": ".join(told) or line
    level = _level_of(f"[{next((str(data[n]) for n in _JSON_LEVEL if data.get(n)), '').lower()}]")
    return Entry(line if not told else head, head, level, _json_time(data), number)


def _said(value: Any) -> str:
    """The text of a field: itself, or the message of an error object."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        kind = value.get("type") or value.get("name") or value.get("kind") or ""
        said = value.get("message") or value.get("msg") or value.get("reason") or ""
        if isinstance(said, str) and said:
            return f"{kind}: {said}" if isinstance(kind, str) and kind else said
    return ""


def _json_time(data: Mapping[str, Any]) -> float | None:
    for name in _JSON_TIME:
        value = data.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            for scale in (1, 1e3, 1e6, 1e9):  # seconds, milli-, micro-, nanoseconds
                if 1e8 < value / scale < 1e10:
                    return float(value / scale)
        elif isinstance(value, str):
            found = _ISO.match(value)
            if found:
                return _moment([int(part) for part in found.groups()[:6]], found[7], found[8])
    return None
