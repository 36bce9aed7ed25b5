"""How long the caller will wait, told to the upstream in a header it knows."""

import math
from typing import Final, Literal, TypeAlias, get_args

from failwise.tools.headers import is_token
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record

Unit: TypeAlias = Literal["seconds", "milliseconds", "grpc"]

_LONGEST: Final = 99_999_999
"""gRPC over HTTP/2 allows a timeout eight digits."""


@record
class DeadlineHeader:
    """A request header, and the unit in which its value counts.

    ``grpc`` is the form of ``grpc-timeout``: milliseconds with the letter ``m``, seconds with ``S``.
    """

    name: str
    unit: Unit

    def value(self, seconds: float) -> str:
        """The time left, in this header's words; never nothing, so that "now" is not "for ever"."""
        if self.unit == "seconds":
            return str(max(1, math.ceil(seconds)))
        milliseconds = max(1, math.ceil(seconds * 1000))
        if self.unit == "milliseconds":
            return str(milliseconds)
        if milliseconds <= _LONGEST:
            return f"{milliseconds}m"
        return f"{min(_LONGEST, math.ceil(seconds))}S"


def deadline_header(tool: str, text: str) -> DeadlineHeader:
    """From ``NAME`` (seconds) or ``NAME UNIT``. Raises `UsageError`."""
    name, _, unit = text.strip().partition(" ")
    unit = unit.strip() or "seconds"
    if not is_token(name) or unit not in get_args(Unit):
        raise UsageError(
            f"{tool}: deadline_header={text!r}: name a header and, where it does not count seconds, "
            "its unit: 'X-Request-Timeout', 'X-Timeout-Ms milliseconds', 'grpc-timeout grpc'"
        )
    return DeadlineHeader(name, unit)  # type: ignore[arg-type] # one of the three
