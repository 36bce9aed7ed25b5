"""The circuit breaker of one upstream and credential. Not locked: its owner is.

It opens on a row of failures or on their share of the last outcomes, stays open longer each time
in sequence, and is closed by one probe that is answered. Only ill health is told to it.

What counts is the attempt, not the call, because attempts are what burdens an upstream. But one
call that repeats must not shut the door on itself: a row of failures opens it only when two calls
are in it (two of them were first attempts), or when it is very long (`lone_attempts`).

Where many requests are sent and some fail, rows and halves of small samples come by chance, and a
circuit that opens on them does more harm than the failures. So both follow the traffic: the sample
holds the outcomes of the last `busy_seconds`, at least `sample` and at most `busy_sample` of them
(older ones fade), and a row must be longer than the usual share of failures makes by chance.
"""

from math import ceil, exp, log

from failwise.guards.settings import BreakerLimits

TOLERANCE = 0.001
"""Seconds by which whoever waited as told may be early: sleeps and sums of floats are not exact."""
FADED = 0.1
"""Failures that weigh less, all together, are forgotten."""


class Breaker:
    """Closed, open until a time, or half-open with one probe under way."""

    __slots__ = (
        "_began",
        "_closed_at",
        "_count",
        "_fade_least",
        "_fade_most",
        "_first_attempts",
        "_heard",
        "_ill",
        "_limits",
        "_needed",
        "_probe",
        "_probe_began",
        "_row",
        "_weight",
        "clean",
        "open_until",
        "openings",
    )

    def __init__(self, limits: BreakerLimits) -> None:
        self._limits = limits
        self._fade_most = 1 - 1 / limits.sample
        self._fade_least = 1 - 1 / max(limits.sample, limits.busy_sample)
        self._closed_at = float("-inf")
        self._heard = float("-inf")
        self._probe: tuple[str, int] | None = None
        self._probe_began = 0.0
        self.openings = 0
        self.open_until: float | None = None
        self._forget()

    def _forget(self) -> None:
        self._weight = self._ill = 0.0
        """Of all outcomes and of the failures among them: each counts 1, and fades with the next."""
        self._count = 0
        self._began = 0.0
        self._row = 0
        self._first_attempts = 0
        self._needed = self._limits.consecutive
        """So long a row is more than chance."""
        self.clean = False
        """Nothing but successes in a full sample: one more changes nothing."""

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open`` (a probe is under way)."""
        if self.open_until is None:
            return "closed"
        return "open" if self._probe is None else "half_open"

    @property
    def failures_in_row(self) -> int:
        """Attempts that failed since the last success."""
        return self._row

    @property
    def failure_share(self) -> float:
        """Share of failures among the remembered outcomes, 0 to 1."""
        return self._ill / self._weight if self._count else 0.0

    def wait(self, now: float) -> float | None:
        """None: a request may go (as the probe, where open). Else seconds until one may."""
        if self.open_until is None:
            return None
        if self._probe is not None:
            # A probe that never reports must not lock the door for good.
            until = self._probe_began + self._limits.open_seconds
        else:
            until = self.open_until
        return until - now if until - now > TOLERANCE else None

    def sent(self, run_id: str, attempt: int, now: float) -> None:
        """A request goes out while the circuit is not closed: it is the probe."""
        if self.open_until is not None:
            self._probe, self._probe_began = (run_id, attempt), now

    def unanswered(self, run_id: str, attempt: int) -> None:
        """A request ended without telling anything of the upstream: the next may be the probe."""
        if self._probe == (run_id, attempt):
            self._probe = None

    def alive(self, run_id: str, attempt: int, now: float) -> None:
        """The upstream refused, soundly. That closes a half-open circuit, and is not counted."""
        if self._probe == (run_id, attempt):
            self._close(now)

    def succeeded(self, run_id: str, attempt: int, now: float) -> None:
        """A good answer. Of those sent before the circuit opened nothing is learned."""
        if self.open_until is not None:
            self.alive(run_id, attempt, now)
            return
        self._listen(now)
        self._row = self._first_attempts = 0
        self._note(0, now)
        if self._ill < FADED and self._count >= self._limits.busy_sample:
            self._ill, self.clean = 0.0, True

    def failed(self, run_id: str, attempt: int, now: float) -> None:
        """Ill health was seen."""
        if self.open_until is not None:
            if self._probe == (run_id, attempt):
                self._open(now)
            return
        self._listen(now)
        self.clean = False
        if not self._row:
            self._needed = self._more_than_chance()
        self._row += 1
        self._first_attempts += attempt <= 1
        self._note(1, now)
        limits = self._limits
        in_a_row = self._row >= self._needed and (
            self._first_attempts >= 2 or self._row >= limits.lone_attempts
        )
        if in_a_row or (self._full(now) and self.failure_share >= limits.ratio):
            if now - self._closed_at > limits.open_limit:
                self.openings = 0
            self._open(now)

    def abandon_probe(self) -> None:
        """Whoever sent the probe is gone (a fork): let another be sent."""
        self._probe = None

    def stay_open(self, until: float) -> None:
        """Others saw it open: open until then here too."""
        if self.open_until is None or self.open_until < until:
            self.openings = max(1, self.openings)
            self.open_until, self._probe = until, None

    def _note(self, ill: int, now: float) -> None:
        fade = exp((self._heard - now) / self._limits.busy_seconds) if self._count else 0.0
        fade = min(max(fade, self._fade_most), self._fade_least)
        self._weight = self._weight * fade + 1
        self._ill = self._ill * fade + ill
        if not self._count:
            self._began = now
        self._count += 1
        self._heard = now

    def _full(self, now: float) -> bool:
        """The sample is worth a verdict: enough outcomes, and not of one moment only."""
        limits = self._limits
        return self._count >= limits.minimum and (
            self._count >= limits.busy_sample or now - self._began >= limits.busy_seconds
        )

    def _more_than_chance(self) -> int:
        """How long a row must be that begins now.

        The usual share of failures is taken as if `minimum` good answers had gone before: of few
        outcomes little is known.
        """
        limits = self._limits
        usual = self._ill / (self._weight + limits.minimum)
        if not usual:
            return limits.consecutive
        return max(limits.consecutive, ceil(log(limits.chance) / log(usual)))

    def _listen(self, now: float) -> None:
        if now - self._heard > self._limits.memory and not self.clean:
            self._forget()

    def _open(self, now: float) -> None:
        self.openings += 1
        limits = self._limits
        self.open_until = now + min(limits.open_seconds * self.openings, limits.open_limit)
        self._probe = None
        self.clean = False

    def _close(self, now: float) -> None:
        self.open_until = self._probe = None
        self._closed_at = now
        self._forget()
