"""What one upstream carries now: requests under way, repeats among them, who waits for a slot."""

from collections import deque
from concurrent.futures import Future

from failwise.guards.settings import GuardSettings
from failwise.vocabulary.steps import Admit, Admitted, Refused


class Load:
    """One upstream's slots and its window of first attempts, successes and retries.

    All credentials share it: an outage is one of the upstream, whoever asks. Two half windows,
    turned over by the clock, make the sliding window. The few retries that are always granted end
    when several calls fail in a row: many tenants, each with a closed circuit of its own and a
    call a minute, would otherwise use them up for ever. Not locked: its owner is.
    """

    __slots__ = (
        "_failed_calls",
        "_first_before",
        "_limits",
        "_retries_before",
        "_row",
        "_succeeded_before",
        "failures_in_row",
        "first",
        "in_flight",
        "keys",
        "limit",
        "retries",
        "retrying",
        "succeeded",
        "turn",
        "waiting",
    )

    def __init__(self, settings: GuardSettings, now: float) -> None:
        self._limits = settings.retries
        self._row = settings.breaker.consecutive
        self.limit: float = settings.concurrency if settings.concurrency else float("inf")
        self.keys = 0
        self.in_flight = 0
        self.retrying = 0
        self.waiting: deque[tuple[Admit, Future[Admitted | Refused]]] = deque()
        self.turn = now + self._limits.window / 2
        self.first = self._first_before = 0
        self.succeeded = self._succeeded_before = 0
        self.retries = self._retries_before = 0
        self.failures_in_row = self._failed_calls = 0

    def failed(self, attempt: int) -> None:
        """Ill health was seen, with whatever credential."""
        if not self.failures_in_row:
            self._failed_calls = 0
        self.failures_in_row += 1
        self._failed_calls += attempt <= 1

    def turn_over(self, now: float) -> None:
        """Begin the next half window; after a longer silence, two empty ones."""
        half = self._limits.window / 2
        quiet = now >= self.turn + half
        self._first_before = 0 if quiet else self.first
        self._succeeded_before = 0 if quiet else self.succeeded
        self._retries_before = 0 if quiet else self.retries
        self.first = self.succeeded = self.retries = 0
        self.turn = now + half

    def crowded(self) -> str | None:
        """Why one retry more would be too many now; None when it is not."""
        limits = self._limits
        self.retrying = max(0, min(self.retrying, self.in_flight))
        most = max(limits.parallel_floor, limits.parallel_share * self.in_flight)
        if self.retrying >= most:
            return f"{self.retrying} retries are under way among {self.in_flight} requests"
        first = self.first + self._first_before
        succeeded = self.succeeded + self._succeeded_before
        share = limits.first_share * first + limits.success_share * succeeded
        retries = self.retries + self._retries_before
        out = self.failures_in_row >= self._row and self._failed_calls >= 2
        if retries + 1 > (share if out else max(limits.floor, share)):
            return f"{retries} retries for {first} calls, {succeeded} of them good, in {limits.window:g} s"
        return None

    def forget_waiting(self) -> None:
        """Drop those that were cancelled while they waited."""
        self.waiting = deque(entry for entry in self.waiting if not entry[1].cancelled())
