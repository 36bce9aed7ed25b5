"""How long to wait: the spellings in which providers tell it, as seconds from now."""

import math
import re
from typing import Any

_DURATION = re.compile(
    r"(?:(\d{1,18})d)?(?:(\d{1,18})h)?(?:(\d{1,18})m(?!s))?"
    r"(?:(\d{1,18}(?:\.\d{1,18})?)s)?(?:(\d{1,18}(?:\.\d{1,18})?)ms)?"
)
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,12})?")
_PARTS = (86400.0, 3600.0, 60.0, 1.0, 0.001)

LONGEST = 400 * 86400.0
"""Seconds; a longer wait than this was misread, and is none."""


def seconds(value: Any, unit: str, now: float) -> float | None:
    """The wait that `value` tells in `unit`, in seconds from `now` (wall-clock epoch seconds).

    Units: ``seconds``, ``milliseconds``, ``epoch_seconds``, ``epoch_milliseconds``, ``duration``
    (``1m30s``), ``datetime`` (RFC 3339); in any other unit a number above 1e12 is an epoch in
    milliseconds, above 1e9 one in seconds, and a text is tried as a duration and a date. A moment
    that has passed is a wait of 0. None where it says nothing, or something negative.
    """
    number = _number(value)
    if number is None:
        wait = _worded(value, unit, now) if isinstance(value, str) else None
    elif unit == "milliseconds":
        wait = number / 1000
    elif unit == "seconds" and number < 1e9:
        wait = number
    elif unit in ("duration", "datetime") and number < 1e9:
        wait = number if unit == "duration" else None
    elif unit == "epoch_milliseconds" or number > 1e12:
        wait = max(0.0, number / 1000 - now)
    elif unit == "epoch_seconds" or number > 1e9:
        wait = max(0.0, number - now)
    else:
        wait = number
    if wait is None or not math.isfinite(wait) or wait < 0 or wait > LONGEST:
        return None
    return wait


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return float(value)
    return None


def _worded(value: str, unit: str, now: float) -> float | None:
    text = value.strip()[:64]
    found = _DURATION.fullmatch(text)
    if found and any(found.groups()):
        return sum(
            float(part) * size for part, size in zip(found.groups(), _PARTS, strict=True) if part
        )
    if unit not in ("datetime", "mixed", "text", "duration"):
        return None
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, OverflowError):
        return None
