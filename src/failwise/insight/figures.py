"""The figures of a report, each with its formula. Together they stand in ``docs/metrics.md``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record

REFUSALS = (
    Category.BUSINESS,
    Category.INVALID_REQUEST,
    Category.MODEL_OUTPUT,
    Category.AUTH,
)
"""Categories that are an answer, not ill health: reported apart from faults."""


def rate(part: float, whole: float) -> float:
    """A part of a whole; of nothing it is 0."""
    return part / whole if whole else 0.0


@record
class Figures:
    """The figures of one group of calls. Latencies in milliseconds, waits included.

    - ``calls = successes + failures``; ``successes = first_try + recovered + degraded``
    - ``first_try``: succeeded, met no failure on the way, not degraded
    - ``recovered``: succeeded after at least one failed attempt, not degraded
    - ``degraded``: succeeded through a fallback
    - ``failures = refusals + faults``; refusals are failures of category business,
      invalid_request, model_output, auth
    - ``repaired``: calls whose arguments were repaired
    - ``requests``: requests sent, retries and fallbacks included
    - ``retried``: calls that sent more than one request
    - ``wasted``: repeated requests of calls that failed all the same
    - quantiles from logarithmic buckets, at most 2 % off
    """

    name: str
    calls: int = 0
    successes: int = 0
    first_try: int = 0
    recovered: int = 0
    degraded: int = 0
    refusals: int = 0
    faults: int = 0
    repaired: int = 0
    requests: int = 0
    retried: int = 0
    retries: int = 0
    wasted: int = 0
    mean_ms: float = 0.0
    p50_ms: float = 0.0
    p90_ms: float = 0.0
    p99_ms: float = 0.0

    @property
    def failures(self) -> int:
        return self.calls - self.successes

    @property
    def success_rate(self) -> float:
        """successes / calls"""
        return rate(self.successes, self.calls)

    @property
    def first_try_rate(self) -> float:
        """first_try / calls"""
        return rate(self.first_try, self.calls)

    @property
    def recovered_rate(self) -> float:
        """recovered / calls"""
        return rate(self.recovered, self.calls)

    @property
    def degraded_rate(self) -> float:
        """degraded / calls"""
        return rate(self.degraded, self.calls)

    @property
    def refusal_rate(self) -> float:
        """refusals / calls"""
        return rate(self.refusals, self.calls)

    @property
    def fault_rate(self) -> float:
        """faults / calls"""
        return rate(self.faults, self.calls)

    @property
    def retry_rate(self) -> float:
        """retried / calls"""
        return rate(self.retried, self.calls)

    @property
    def amplification(self) -> float:
        """requests / calls: how much more the upstreams see than was asked for."""
        return rate(self.requests, self.calls)

    @property
    def wasted_rate(self) -> float:
        """wasted / retries"""
        return rate(self.wasted, self.retries)

    def to_dict(self) -> dict[str, Any]:
        """All counts, and the rates made of them."""
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {"failures": self.failures} | {name: getattr(self, name) for name in _RATES}


_RATES = (
    "success_rate",
    "first_try_rate",
    "recovered_rate",
    "degraded_rate",
    "refusal_rate",
    "fault_rate",
    "retry_rate",
    "amplification",
    "wasted_rate",
)


@record
class Share:
    """One kind of failure. `failures`: calls that ended so, `share` of all failed calls.

    `attempts`: single attempts that ended so, those of fallbacks included, and `cured` of them
    belong to a call that succeeded. `refusal`: an answer of the domain, not a fault. `example`: one
    message.
    """

    name: str
    failures: int
    share: float
    attempts: int = 0
    cured: int = 0
    refusal: bool = False
    example: str = ""


@record
class Drag:
    """The tool that drags the success rate down most: without it the others' would be highest.

    ``success_rate_without = (successes − its successes) / (calls − its calls)``; `points` is how
    much higher that is than the rate with it. `share`: its part of all failed calls.
    """

    tool: str
    failures: int
    share: float
    success_rate_without: float
    points: float


@record
class Corrections:
    """How often the model got a call right after it had got it wrong.

    A round is a model_output failure. Rounds of one tool in one run, up to the next success of that
    tool, belong together: `corrected` such series ended in a success, `open` did not;
    ``mean_rounds = rounds of the corrected series / corrected``.
    """

    corrected: int = 0
    open: int = 0
    mean_rounds: float = 0.0


@record
class Report:
    """What the records say about calls that began at `since` or later and before `until`
    (epoch seconds; None: no bound). A breakdown that was not asked for is empty."""

    since: float | None
    until: float | None
    total: Figures
    corrections: Corrections
    prevented: Mapping[str, int]
    """Sends that the claims prevented: ``done`` (answered with the stored result), ``conflict`` (key used for other
    arguments), ``open`` (the same call under a new id), ``unknown`` (may have happened)."""
    open_effects: int
    """Effects of which nobody knows now whether they happened."""
    top_errors: tuple[Share, ...]
    """The three codes that most failed calls ended with; ties by attempts, then by name."""
    drag: Drag | None
    tools: tuple[Figures, ...] = ()
    hours: tuple[Figures, ...] = ()
    days: tuple[Figures, ...] = ()
    categories: tuple[Share, ...] = ()
    codes: tuple[Share, ...] = ()
    providers: tuple[Share, ...] = ()

    @property
    def duplicates_prevented(self) -> int:
        return sum(self.prevented.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data with ``schema: 1``."""

        def plain(value: Any) -> Any:
            return {field.name: getattr(value, field.name) for field in fields(value)}

        return {
            "schema": 1,
            "since": self.since,
            "until": self.until,
            "total": self.total.to_dict(),
            "corrections": plain(self.corrections),
            "duplicates_prevented": self.duplicates_prevented,
            "prevented": dict(self.prevented),
            "open_effects": self.open_effects,
            "top_errors": [plain(share) for share in self.top_errors],
            "drag": plain(self.drag) if self.drag else None,
            **{
                name: [figures.to_dict() for figures in getattr(self, name)]
                for name in ("tools", "hours", "days")
            },
            **{
                name: [plain(share) for share in getattr(self, name)]
                for name in ("categories", "codes", "providers")
            },
        }
