"""What an address asks for: the stretch of time, and which calls."""

from collections.abc import Mapping
from typing import Any, Final

from failwise.journal.reader import Cursor, Filter
from failwise.journal.rollups import DAY, HOUR
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

PERIODS: Final[Mapping[str, float]] = {
    "1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "all": 0.0,
}  # fmt: skip
"""The periods that can be chosen, in seconds; 0 is no bound."""
USUAL: Final = "24h"
FILTERS: Final = (
    "tool", "upstream", "category", "code", "provider", "model", "run", "call_id", "fingerprint",
    "effect", "text",
)  # fmt: skip
"""Filters of an address that are texts."""
_LONGEST: Final = 500


@record
class Asked:
    """`since` (included) and `until` (not included) are epoch seconds, None for no bound; `period` is
    the word of the address. `given` are the filters as they stand in the address."""

    period: str
    since: float | None
    until: float | None
    where: Filter
    given: Mapping[str, str]
    before: Cursor | None = None


def asked(parameters: Mapping[str, str], now: float) -> Asked:
    """Read an address's parameters: `period`, or `since` and `until` as epoch seconds, and filters.

    A period begins with a whole hour, one of several days with a whole day (UTC): the first column of
    a chart is then as complete as the others, and the sums of hours and days can answer it. Raises
    `UsageError` for what cannot be read.
    """
    period = parameters.get("period") or USUAL
    if period not in PERIODS:
        raise UsageError(f"period={period}: say one of {', '.join(PERIODS)}")
    length = PERIODS[period]
    whole = HOUR if length <= DAY else DAY
    since: float | None = (now - length) // whole * whole if length else None
    until: float | None = None
    if parameters.get("since") or parameters.get("until"):
        since, until = _number(parameters, "since"), _number(parameters, "until")
        period = ""
    given = {name: parameters[name][:_LONGEST] for name in FILTERS if parameters.get(name)}
    values: dict[str, Any] = dict(given)
    for name in ("success", "verified"):
        word = parameters.get(name, "")
        if word in ("yes", "no"):
            values[name] = word == "yes"
            given[name] = word
        elif word:
            raise UsageError(f"{name}={word}: say yes or no")
    status = parameters.get("http_status")
    if status:
        if not (status.isascii() and status.isdigit() and len(status) == 3):
            raise UsageError(f"http_status={status}: three digits")
        values["http_status"], given["http_status"] = int(status), status
    return Asked(period, since, until, Filter(**values), given, _cursor(parameters))


def _number(parameters: Mapping[str, str], name: str) -> float | None:
    text = parameters.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e11:
        raise UsageError(f"{name}={text}: write epoch seconds")
    return value


def _cursor(parameters: Mapping[str, str]) -> Cursor | None:
    """Where the page before ended: ``STARTED-ID``."""
    text = parameters.get("before")
    if not text:
        return None
    started, _, number = text.rpartition("-")
    try:
        return float(started), int(number)
    except ValueError:
        raise UsageError(f"before={text}: follow the link of the page before") from None
