"""Moments as people write them: ``24h`` ago, a day, an ISO date and time."""

import datetime
import re

from failwise.vocabulary.errors import UsageError

_AGO = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s?(s|m|min|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def epoch(text: str, *, option: str, now: float) -> float:
    """Epoch seconds of a moment: ``30m``, ``24h``, ``7d`` before `now` (epoch seconds), or ISO 8601.

    A moment without an offset is UTC, as in the reports. Raises `UsageError` naming `option`.
    """
    if _AGO.fullmatch(text.strip()):
        return now - ago(text, option=option)
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} {text}: write how long ago (30m, 24h, 7d) or a moment (2026-11-30, "
            "2026-11-30T08:00Z)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.timestamp()


def ago(text: str, *, option: str) -> float:
    """Seconds of a length of time: ``30m``, ``24h``, ``7d``. Raises `UsageError` naming `option`."""
    found = _AGO.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{option} {text}: write a length of time (30m, 24h, 7d)")
    return float(found[1]) * _SECONDS[found[2]]


def utc(moment: float) -> str:
    """Epoch seconds as people read them, UTC."""
    try:
        return datetime.datetime.fromtimestamp(moment, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""
