"""Dates and times by their unambiguous reading.

Only year-first dates are read: ``01/02/2024`` is January or February, and stays as it is. RFC 3339
is the target; a zone or a second that was not sent is never made up.
"""

import datetime
import re
from collections.abc import Callable

_DIGITS = str.maketrans("０１２３４５６７８９：／－．　", "0123456789:/-. ")
_DATE = re.compile(
    r"(\d{4})(?:-(\d{1,2})-(\d{1,2})|/(\d{1,2})/(\d{1,2})|\.(\d{1,2})\.(\d{1,2})"
    r"|年(\d{1,2})月(\d{1,2})[日号]?|(\d{2})(\d{2}))"
)
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(\.\d{1,9})?)?\s?(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?",
    re.IGNORECASE,
)
_LONGEST = 64


def dates(text: str) -> list[str]:
    """The readings of a text as a date, ``2024-01-31``: one or none."""
    text = _plain(text)
    match = _DATE.fullmatch(text)
    if match is not None:
        day = _day(match)
        return [day] if day else []
    # A date and a midnight that adds nothing to it.
    match = _DATE.match(text)
    if match is not None and re.fullmatch(r"[T ]00:00(:00(\.0+)?)?", text[match.end() :]):
        day = _day(match)
        return [day] if day else []
    return []


def times(text: str) -> list[str]:
    """The readings of a text as a time of day, with seconds and zone only where they were sent."""
    match = _CLOCK.fullmatch(_plain(text))
    clock = _clock(match) if match else None
    return [clock] if clock else []


def moments(text: str) -> list[str]:
    """The readings of a text as date and time, ``2024-01-31T09:30:00Z``."""
    text = _plain(text)
    match = _DATE.match(text)
    if match is None:
        return []
    day, rest = _day(match), text[match.end() :]
    clock = _CLOCK.fullmatch(rest.removeprefix("T").removeprefix("t").lstrip(" "))
    read = _clock(clock) if clock and rest[:1] in ("T", "t", " ") else None
    return [f"{day}T{read}"] if day and read else []


READINGS: dict[str, Callable[[str], list[str]]] = {
    "date": dates,
    "time": times,
    "date-time": moments,
}


def patterned(text: str) -> list[str]:
    """Forms of one date, time or moment that a schema's `pattern` may ask for."""
    forms = dates(text)
    for day in dates(text):
        year, month, number = day.split("-")
        forms += [
            f"{year}/{month}/{number}",
            f"{year}{month}{number}",
            f"{year}.{month}.{number}",
            f"{year}年{int(month)}月{int(number)}日",
            f"{year}年{month}月{number}日",
        ]
    forms += moments(text)
    forms += [form.replace("T", " ") for form in moments(text)]
    forms += times(text)
    return forms


def _plain(text: str) -> str:
    return text.strip().translate(_DIGITS) if len(text) <= _LONGEST else ""


def _day(match: re.Match[str]) -> str | None:
    year, *parts = [part for part in match.groups() if part is not None]
    if match[10] is not None and year[:2] not in ("19", "20"):
        return None  # eight digits may also start with the day
    try:
        return datetime.date(int(year), int(parts[0]), int(parts[1])).isoformat()
    except ValueError:
        return None


def _clock(match: re.Match[str]) -> str | None:
    hour, minute, second, fraction, zone = match.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    text = f"{int(hour):02}:{minute}"
    if second is not None:
        text += f":{second}{fraction or ''}"
    if zone is None:
        return text
    if zone.upper() in ("Z", "UTC", "GMT"):
        return text + "Z"
    digits = zone[1:].replace(":", "").ljust(4, "0")
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        return None
    return f"{text}{zone[0]}{digits[:2]}:{digits[2:]}"
