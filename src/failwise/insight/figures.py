"""The figures of a report, each with its formula. Together they stand in ``docs/metrics.md``."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from failwise.insight.clusters import Cluster
from failwise.insight.verdict import Verdict
from failwise.vocabulary.records import record


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
        data = _fields(self)
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
class ArgumentErrors:
    """How often arguments were wrong, of the calls that somebody asked for: of one tool, or of all
    tools with so many parameters.

    - ``wrong``: could not be used (`model_output` but for an unknown tool)
    - ``refused``: by the upstream (`invalid_request.parameter`, `invalid_request.missing_parameter`)
    - ``repaired``: put right on the way, nobody was bothered
    - ``error_rate = (wrong + refused) / calls``

    `name` is the tool, or the number of parameters that its schema names, "" where none is known.
    """

    name: str
    calls: int
    wrong: int = 0
    refused: int = 0
    repaired: int = 0

    @property
    def error_rate(self) -> float:
        """(wrong + refused) / calls"""
        return rate(self.wrong + self.refused, self.calls)

    def to_dict(self) -> dict[str, Any]:
        """All counts, and the rate."""
        return _fields(self) | {"error_rate": self.error_rate}


@record
class Worth:
    """What the runtime was good for.

    - ``recovered``: calls that failed first and succeeded in the end, nobody was bothered
    - ``degraded``: calls that a fallback answered
    - ``cured_retries = retries − wasted``: repeated requests of calls that succeeded
    - ``wasted``: repeated requests of calls that failed all the same
    - ``prevented``: sends that claims prevented, by state: ``done`` (answered with the stored
      result), ``conflict`` (key used for other arguments), ``open`` (the same call under a new id),
      ``unknown`` (may have happened)
    - ``verified``: calls of which a callback found out that they had happened
    - ``told_waits``: waits that upstreams told; ``waits_obeyed``: those that no request cut short;
      ``early_requests = told_waits − waits_obeyed``
    - ``waited_s``: seconds waited between attempts
    - ``repaired``: calls whose arguments were put right
    - ``body_tokens``: tokens of the raw answers of failed calls, estimated; ``fed_tokens``: of what
      models were told instead; ``saved_tokens = body_tokens − fed_tokens``
    - ``open_effects``: effects of which nobody knows now whether they happened
    """

    recovered: int = 0
    degraded: int = 0
    retries: int = 0
    wasted: int = 0
    repaired: int = 0
    verified: int = 0
    told_waits: int = 0
    waits_obeyed: int = 0
    waited_s: float = 0.0
    body_tokens: int = 0
    fed_tokens: int = 0
    prevented: Mapping[str, int] = field(default_factory=dict)
    open_effects: int = 0

    @property
    def cured_retries(self) -> int:
        """retries − wasted"""
        return self.retries - self.wasted

    @property
    def duplicates_prevented(self) -> int:
        """Σ prevented"""
        return sum(self.prevented.values())

    @property
    def early_requests(self) -> int:
        """told_waits − waits_obeyed"""
        return self.told_waits - self.waits_obeyed

    @property
    def saved_tokens(self) -> int:
        """body_tokens − fed_tokens; below zero where feedback was longer than the answers."""
        return self.body_tokens - self.fed_tokens

    def to_dict(self) -> dict[str, Any]:
        """All counts, and what is made of them."""
        made = ("cured_retries", "duplicates_prevented", "early_requests", "saved_tokens")
        return (
            _fields(self)
            | {"prevented": dict(self.prevented)}
            | {name: getattr(self, name) for name in made}
        )


@record
class Report:
    """What the records say about calls that began at `since` or later and before `until`
    (epoch seconds; None: no bound). A breakdown that was not asked for is empty.

    `where` is the filter as data: empty for all calls. `verdict` and `clusters` (the largest ones) are
    of the whole journal; they are left out under a filter, and so is what claims know under one on
    anything but tool and run.
    """

    since: float | None
    until: float | None
    total: Figures
    worth: Worth
    corrections: Corrections
    top_errors: tuple[Share, ...]
    """The three codes that most failed calls ended with; ties by attempts, then by name."""
    drag: Drag | None
    tools: tuple[Figures, ...] = ()
    upstreams: tuple[Figures, ...] = ()
    models: tuple[Figures, ...] = ()
    hours: tuple[Figures, ...] = ()
    days: tuple[Figures, ...] = ()
    runs: tuple[Figures, ...] = ()
    """The runs with the most failures."""
    categories: tuple[Share, ...] = ()
    codes: tuple[Share, ...] = ()
    providers: tuple[Share, ...] = ()
    argument_tools: tuple[ArgumentErrors, ...] = ()
    argument_parameters: tuple[ArgumentErrors, ...] = ()
    """By the number of parameters, fewest first."""
    where: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    clusters: tuple[Cluster, ...] = ()

    @property
    def prevented(self) -> Mapping[str, int]:
        """Sends that the claims prevented, by state."""
        return self.worth.prevented

    @property
    def duplicates_prevented(self) -> int:
        return self.worth.duplicates_prevented

    @property
    def open_effects(self) -> int:
        return self.worth.open_effects

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data with ``schema: 1``."""
        return {
            "schema": 1,
            "since": self.since,
            "until": self.until,
            "where": dict(self.where),
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "clusters": [cluster.to_dict() for cluster in self.clusters],
            "total": self.total.to_dict(),
            "worth": self.worth.to_dict(),
            "corrections": _fields(self.corrections),
            "duplicates_prevented": self.duplicates_prevented,
            "prevented": dict(self.prevented),
            "open_effects": self.open_effects,
            "top_errors": [_fields(share) for share in self.top_errors],
            "drag": _fields(self.drag) if self.drag else None,
            **{name: [one.to_dict() for one in getattr(self, name)] for name in GROUPS},
            **{name: [_fields(one) for one in getattr(self, name)] for name in SHARES},
            **{
                name: [one.to_dict() for one in getattr(self, name)]
                for name in ("argument_tools", "argument_parameters")
            },
        }


GROUPS = ("tools", "upstreams", "models", "hours", "days", "runs")
"""The breakdowns of a report that are `Figures`."""
SHARES = ("categories", "codes", "providers")
"""Those that are `Share`s of the failures."""


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}
