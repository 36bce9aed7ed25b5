"""What came of a simulated fleet: counted while it runs, summed up at its end."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from failwise.simulation.scenario import Scenario
from failwise.vocabulary.kinds import Effect
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult

_BACK = 0.95
"""Well again is a fleet whose share of good calls is this much of what it was before ..."""
_STEADY = 3
"""... for so many steps of the timeline."""


@record
class Timeline:
    """Counts by steps of virtual time, each `step` seconds long: requests that arrived, calls that
    ended, and those of them that got a sound answer (a "no" is one)."""

    step: float
    requests: Sequence[int]
    ended: Sequence[int]
    good: Sequence[int]

    @property
    def rates(self) -> list[float]:
        """Requests a second, by steps."""
        return [count / self.step for count in self.requests]

    def share(self, place: int) -> float | None:
        """Share of the calls that ended in a step which succeeded; None where none ended."""
        return self.good[place] / self.ended[place] if self.ended[place] else None


@record
class Outcome:
    """How one contender fared. Times in virtual seconds. A good call has a sound answer, a "no" included.

    `per_call`: requests for each call, `per_call_in_trouble` likewise for calls begun between the
    first event's start and the last one's end (None: no events). `usual` and `peak`: requests a
    second before the first event, and in the busiest step. `goodput`: good calls a second. `p50`,
    `p99`: duration of good calls with their waits. `recovery`: seconds from the last event's end
    until the share of good calls is back at 95 % of what it was (None: it never was, or nothing
    went wrong; see `recovers`). `declined`: calls of which nothing was sent. `waiting`: seconds spent
    in all calls together. `duplicates`: effects done more than once; `unreported`: effects done though
    the caller was told of a failure without a word of that. `early`: requests that came before a
    told wait was over. `money`: requests times their price.
    """

    name: str
    titles: Mapping[str, str]
    calls: int
    successes: int
    requests: int
    per_call: float
    per_call_in_trouble: float | None
    usual: float
    peak: float
    goodput: float
    p50: float
    p99: float
    recovers: bool
    recovery: float | None
    declined: int
    waiting: float
    writes: int
    duplicates: int
    unreported: int
    early: int
    money: float
    timeline: Timeline

    @property
    def success_rate(self) -> float:
        return self.successes / self.calls if self.calls else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {name: getattr(self, name) for name in _PLAIN}
        data["success_rate"] = self.success_rate
        data["timeline"] = {
            "step": self.timeline.step,
            "requests": list(self.timeline.requests),
            "ended": list(self.timeline.ended),
            "good": list(self.timeline.good),
        }
        return data


_PLAIN = (
    "name", "calls", "successes", "requests", "per_call", "per_call_in_trouble", "usual", "peak",
    "goodput", "p50", "p99", "recovers", "recovery", "declined", "waiting", "writes", "duplicates",
    "unreported", "early", "money",
)  # fmt: skip


class Tally:
    """Counts calls and requests as they happen."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._step = scenario.step
        steps = int(scenario.seconds / scenario.step) + 1
        self._requests, self._ended, self._good = [0] * steps, [0] * steps, [0] * steps
        self._last = steps - 1
        self._durations = array("d")
        self._trouble = scenario.trouble or (float("inf"), float("inf"))
        self._troubled = [0, 0]
        self._failed_writes: set[int] = set()
        self.calls = self.successes = self.requests = self.declined = self.writes = 0
        self.waiting = 0.0

    def sent(self, now: float) -> None:
        """A request arrives."""
        self.requests += 1
        self._requests[min(int(now / self._step), self._last)] += 1

    def ended(
        self,
        result: ToolResult[Any],
        answered: bool,
        began: float,
        now: float,
        requests: int,
        write: int | None,
    ) -> None:
        """A call ended that sent `requests`. `answered`: with a value, or a sound "no"; `write` is
        its task, where it has an effect."""
        self.calls += 1
        self.waiting += now - began
        place = min(int(now / self._step), self._last)
        self._ended[place] += 1
        if self._trouble[0] <= began < self._trouble[1]:
            self._troubled[0] += 1
            self._troubled[1] += requests
        if write is not None:
            self.writes += 1
        if answered:
            self.successes += 1
            self._good[place] += 1
            self._durations.append(now - began)
            self._failed_writes.discard(write or -1)
        else:
            if not requests:
                self.declined += 1
            if write is not None and result.effect not in (Effect.UNKNOWN, Effect.APPLIED):
                self._failed_writes.add(write)

    def outcome(
        self,
        name: str,
        titles: Mapping[str, str],
        effects: Mapping[int, int],
        early: int,
        money: float,
    ) -> Outcome:
        """The sum of it all. `effects`: by task, how often it was really done."""
        scenario = self._scenario
        # The last, partial step would look like a drop.
        steps = slice(0, max(1, int(scenario.seconds / self._step)))
        timeline = Timeline(
            self._step, self._requests[steps], self._ended[steps], self._good[steps]
        )
        before = int(min(self._trouble[0], scenario.seconds) / self._step)
        rates = timeline.rates
        usual = rates[1:before] or rates
        durations = sorted(self._durations)
        recovery = _recovery(timeline, before, scenario)
        calls, requests = self._troubled
        return Outcome(
            name,
            titles,
            self.calls,
            self.successes,
            self.requests,
            self.requests / self.calls if self.calls else 0.0,
            requests / calls if calls else None,
            sum(usual) / len(usual),
            max(rates),
            sum(timeline.good) / (len(timeline.good) * self._step),
            _quantile(durations, 0.5),
            _quantile(durations, 0.99),
            recovery is not None,
            recovery,
            self.declined,
            self.waiting,
            self.writes,
            sum(count - 1 for count in effects.values() if count > 1),
            sum(1 for task in self._failed_writes if effects.get(task)),
            early,
            money,
            timeline,
        )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _recovery(timeline: Timeline, before: int, scenario: Scenario) -> float | None:
    """Seconds from the end of the trouble until the fleet is as well as before it."""
    if scenario.trouble is None:
        return None
    good, ended = sum(timeline.good[:before]), sum(timeline.ended[:before])
    healthy = _BACK * (good / ended if ended else 1.0)
    end = scenario.trouble[1]
    steady: float | None = None
    run = 0
    for place in range(int(end / timeline.step), len(timeline.ended)):
        share = timeline.share(place)
        if share is None:
            continue
        if share < healthy:
            steady, run = None, 0
            continue
        if steady is None:
            steady = place * timeline.step
        run += 1
        if run >= _STEADY:
            return max(0.0, steady - end)
    return None
