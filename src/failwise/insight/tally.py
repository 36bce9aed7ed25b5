"""What is counted of one kind of failure while records or lines go by: bounded, one pass."""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final

from failwise.insight.masking import Template
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.records import record

EXAMPLES: Final = 3
NAMES: Final = 200
"""Different tools, upstreams or runs counted by name; the rest is counted as ``…``."""
REST: Final = "…"
HOURS: Final = 24 * 62
"""Hours whose counts are kept."""
_HOUR: Final = 3_600


@record
class Example:
    """One failure of a cluster: `at` in epoch seconds, `text` redacted, `source` a call id or
    ``file:line``."""

    text: str
    at: float | None = None
    source: str = ""


class Tally:
    """The counts of one fingerprint (or of one template of a log)."""

    __slots__ = (
        "category",
        "code",
        "count",
        "examples",
        "failure",
        "fingerprint",
        "first",
        "hours",
        "http_status",
        "last",
        "subject",
        "template",
        "tools",
        "upstreams",
        "variants",
    )

    def __init__(
        self,
        fingerprint: str,
        template: Template,
        *,
        category: str = "unknown",
        code: str = "unknown.unclassified",
        subject: str = "",
    ) -> None:
        self.fingerprint, self.template = fingerprint, template
        self.category, self.code, self.subject = category, code, subject
        self.http_status: int | None = None
        self.count = 0
        self.first: float | None = None
        self.last: float | None = None
        self.hours: dict[int, int] = {}
        self.tools: Counter[str] = Counter()
        self.upstreams: Counter[str] = Counter()
        self.variants: Counter[str] = Counter()
        self.examples: deque[Example] = deque(maxlen=EXAMPLES)
        self.failure: Failure | None = None

    def seen(self, at: float | None, times: int = 1) -> None:
        """Count occurrences at one moment (epoch seconds; None: nobody knows when)."""
        self.count += times
        if at is None:
            return
        self.first = at if self.first is None else min(self.first, at)
        self.last = at if self.last is None else max(self.last, at)
        hour = int(at // _HOUR)
        self.hours[hour] = self.hours.get(hour, 0) + times
        if len(self.hours) > HOURS:
            del self.hours[min(self.hours)]

    def absorb(self, other: "Tally") -> None:
        """Take over what another tally of the same kind has counted."""
        self.count += other.count
        for name in ("first", "last"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                choose = min if name == "first" else max
                setattr(self, name, theirs if mine is None else choose(mine, theirs))
        for hour, count in other.hours.items():
            self.hours[hour] = self.hours.get(hour, 0) + count
        while len(self.hours) > HOURS:
            del self.hours[min(self.hours)]
        _add(self.tools, other.tools)
        _add(self.upstreams, other.upstreams)
        _add(self.variants, other.variants)
        newest = sorted((*self.examples, *other.examples), key=lambda one: one.at or 0.0)
        self.examples = deque(newest[-EXAMPLES:], maxlen=EXAMPLES)
        self.failure = self.failure or other.failure
        self.http_status = self.http_status or other.http_status


def count_name(counter: "Counter[str]", name: str, times: int = 1) -> None:
    """Count a name, of a bounded number of them."""
    if name:
        counter[name if name in counter or len(counter) < NAMES else REST] += times


def _add(counter: "Counter[str]", other: Mapping[str, int]) -> None:
    for name, count in other.items():
        count_name(counter, name, count)
