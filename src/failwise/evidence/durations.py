"""Points in time and lengths of time as headers and bodies spell them."""

import calendar
import datetime
import math
import re
from typing import Final

LONGEST: Final = 10 * 365 * 86_400.0
"""Seconds; a longer wait than ten years is cut to this, for it means "never"."""

_DIGITS = re.compile(r"[0-9]{1,400}")
_DECIMAL = re.compile(r"[0-9]{1,15}\.[0-9]{1,15}")
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_MONTH = "(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATE_FORMS: Final = (
    re.compile(
        rf"(?:mon|tue|wed|thu|fri|sat|sun), (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} (?:gmt|utc)",
        re.IGNORECASE | re.ASCII,
    ),
    re.compile(
        rf"(?:mon|tues|wednes|thurs|fri|satur|sun)day, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} gmt",
        re.IGNORECASE | re.ASCII,
    ),
    re.compile(
        rf"(?:mon|tue|wed|thu|fri|sat|sun) {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
        re.IGNORECASE | re.ASCII,
    ),
)
_ISO_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|z|[+-][0-9]{2}:?[0-9]{2})",
    re.ASCII,
)
_PART = re.compile(
    r"\s{0,2}([0-9]{1,12}(?:\.[0-9]{1,9})?)\s{0,2}(ms|[smhd])(?![a-z])", re.ASCII | re.IGNORECASE
)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def http_date(text: str, now: float) -> float | None:
    """Epoch seconds of an HTTP-date (RFC 9110 §5.6.7: IMF-fixdate, RFC 850, asctime), else None.

    A two-digit year that would lie more than 50 years after `now` belongs to the past century.
    """
    for form in _DATE_FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        year = int(match["year"])
        if len(match["year"]) == 2:
            this_year = datetime.datetime.fromtimestamp(now, datetime.UTC).year
            year += this_year - this_year % 100
            if year > this_year + 50:
                year -= 100
        try:
            moment = datetime.datetime(
                year,
                _MONTHS[match["month"].lower()],
                int(match["day"]),
                int(match["hour"]),
                int(match["minute"]),
                min(int(match["second"]), 59),  # a leap second
            )
        except ValueError:
            return None
        return float(calendar.timegm(moment.timetuple()))
    return None


def iso_date(text: str) -> float | None:
    """Epoch seconds of an RFC 3339 date with its offset, else None."""
    if not _ISO_DATE.fullmatch(text):
        return None
    try:
        moment = datetime.datetime.fromisoformat(text.upper().replace(" ", "T"))
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def duration(text: str) -> float | None:
    """Seconds of ``6m0s``, ``46s``, ``1500ms``, ``10h17m5.7s``; None for anything else."""
    position, total = 0, 0.0
    text = text.strip()
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        total += float(part[1]) * _UNITS[part[2].lower()]
        position = part.end()
    return sane(total) if position else None


def number(text: str) -> float | None:
    """A plain decimal number of ASCII digits, without sign or exponent; None for anything else."""
    if _DIGITS.fullmatch(text):
        return float(text) if len(text) <= 300 else math.inf
    return float(text) if _DECIMAL.fullmatch(text) else None


def sane(seconds: float) -> float | None:
    """A wait as it may be used: not negative, not NaN, at most `LONGEST`."""
    if math.isnan(seconds) or seconds < 0:
        return None
    return min(round(seconds, 6), LONGEST)
