"""What differs from line to line of one failure and tells nothing of it: times, identifiers, addresses.

In an outage one failure fills a log, each time with another time stamp and another request. No rule reads
these, so lines that are alike without them get one verdict.
"""

import re
from typing import Final

_PASSING: Final = re.compile(
    # the time at the beginning of a line
    r"\A\W?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?=\W)"
    # an object's place in memory, as Python prints it; shorter ones are numbers of errors
    r"|(?<= at 0x)[0-9a-f]{10,16}(?=>)"
    # identifiers of requests, users, machines
    r"|(?<![\w.-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])"
    r"|(?<![\w.+/-])(?=[a-f]{0,63}[0-9])(?=[0-9]{0,63}[a-f])[0-9a-f]{12,64}(?![\w.+/-])",
    re.ASCII,
)
_PLACE: Final = "\0"
"""Stands in no line: for what was there."""


def without_passing(text: str) -> str:
    """The text with one sign for each time stamp, identifier and place in memory."""
    return _PASSING.sub(_PLACE, text)
