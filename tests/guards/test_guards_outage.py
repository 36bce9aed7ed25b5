"""A full outage on a virtual clock: what all callers together send, and what a lone one may."""

import heapq
import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from failwise.guards import GuardSettings, MemoryGuards, default_settings, parse_settings
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

REFUSED = Failure(Category.NETWORK, "network.connect_refused")
LINEAR = (2.0, 4.0)
EXPONENTIAL = (1.0, 2.0, 4.0)


class World:
    """Callers as generators that yield how long they sleep; an upstream that counts."""

    def __init__(self, settings: GuardSettings | None = None, seed: int = 7) -> None:
        self.now = 0.0
        self.guards = MemoryGuards(self, settings)
        self.chance = random.Random(seed)
        self.calls = self.requests = self.cured = 0
        self.sent_at: list[float] = []
        self._order = itertools.count()
        self._agenda: list[tuple[float, int, Iterator[float]]] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def start(self, caller: Iterator[float], at: float = 0.0) -> None:
        heapq.heappush(self._agenda, (at, next(self._order), caller))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, caller = heapq.heappop(self._agenda)
            pause = next(caller, None)
            if pause is not None:
                self.start(caller, self.now + pause)

    def call(
        self,
        name: str,
        waits: tuple[float, ...],
        fails: Callable[[], bool],
        credential: str | None = None,
    ) -> Iterator[float]:
        """One call with its retries, as the runtime makes it."""
        self.calls += 1
        failure = None
        for attempt, wait in enumerate((0.0, *waits), 1):
            if wait:
                yield wait * self.chance.uniform(0.5, 1.5)
            reply = self.guards.admit(Admit("dead", credential, name, attempt, failure))
            if isinstance(reply, Refused):
                return
            assert isinstance(reply, Admitted)
            self.requests += 1
            self.sent_at.append(self.now)
            yield self.chance.uniform(0.02, 0.2)
            failure = REFUSED if fails() else None
            self.guards.release(Release("dead", credential, name, attempt, failure))
            if failure is None:
                self.cured += 1
                return

    def caller(
        self,
        name: str,
        waits: tuple[float, ...],
        pause: float,
        fails: Callable[[], bool] = lambda: True,
        credential: str | None = None,
    ) -> Iterator[float]:
        """Calls without end, thinking `pause` seconds in the mean between them."""
        for number in itertools.count():
            yield from self.call(f"{name}.{number}", waits, fails, credential)
            yield self.chance.uniform(0.5, 1.5) * pause


@pytest.mark.parametrize("waits", [LINEAR, EXPONENTIAL])
@pytest.mark.parametrize("pause", [0.1, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("tenants", [1, 64])
def test_sixty_four_callers_in_an_outage_of_three_minutes(
    waits: tuple[float, ...], pause: float, tenants: int
) -> None:
    """All together send at most 1.1 requests a call, also where each has its own credential."""
    world = World()
    for number in range(64):
        credential = f"tenant{number % tenants}"
        world.start(world.caller(f"c{number}", waits, pause, credential=credential))
    world.run(180)
    assert world.requests <= 1.1 * world.calls, (world.requests, world.calls)


@pytest.mark.parametrize("calls", [50, 64, 500])
@pytest.mark.parametrize("healthy", [0, 5, 1000])
def test_a_burst_into_an_upstream_that_has_just_died(calls: int, healthy: int) -> None:
    """All are under way before anyone knows; none of them may bring the sum above 1.1."""
    world = World(parse_settings('[concurrency]\nlimit = "unlimited"', base=default_settings()))
    for number in range(healthy):
        for _ in world.call(f"good{number}", (), lambda: False):
            pass
    world.calls = world.requests = 0
    for number in range(calls):
        world.start(world.call(f"c{number}", EXPONENTIAL, lambda: True))
    world.run(60)
    assert world.calls == calls
    assert world.requests <= 1.1 * calls


def test_the_shares_hold_a_busy_outage_even_without_the_circuit() -> None:
    """Two guards stand for one promise: with the circuit off, retries stay within a tenth."""
    world = World(
        parse_settings(
            "[breaker]\nconsecutive = 1000000\nminimum = 1000\nsample = 1000\nratio = 1.0\n"
            "lone_attempts = 1000000\n[retries]\ncapacity = 1000000",
            base=default_settings(),
        )
    )
    for number in range(64):
        world.start(world.caller(f"c{number}", EXPONENTIAL, 0.5))
    world.run(15)
    assert 1.0 < world.requests / world.calls <= 1.1


@pytest.mark.parametrize(("waits", "retries"), [(LINEAR, 2), (EXPONENTIAL, 3)])
def test_a_lone_caller_keeps_its_retries(waits: tuple[float, ...], retries: int) -> None:
    """Its first call is repeated as the policy says; then the circuit opens."""
    world = World()
    world.start(world.call("only", waits, lambda: True))
    world.run(60)
    assert world.requests == 1 + retries


def test_a_lone_caller_that_goes_on_calling_sends_probes_only() -> None:
    """After the circuit opened, three minutes of calls cost a handful of requests."""
    world = World()
    world.start(world.caller("only", LINEAR, 1.0))
    world.run(180)
    assert world.calls > 100
    assert world.requests <= 10


def test_all_go_on_as_before_once_the_upstream_is_well() -> None:
    """The first probe after recovery opens the door for everybody."""
    world = World()
    for number in range(64):
        world.start(world.caller(f"c{number}", LINEAR, 1.0, fails=lambda: world.now < 100))
    world.run(400)
    assert world.guards.statistics()[0]["circuit"] == "closed"
    last = [moment for moment in world.sent_at if moment > 390]
    assert len(last) > 400


@pytest.mark.parametrize("callers", [1, 4, 64])
def test_five_per_cent_faults_are_cured_for_few_requests(callers: int) -> None:
    """In everyday trouble the guards are not in the way: 99.7 % of calls succeed, 1.06 requests each."""
    world = World()

    def fails() -> bool:
        return world.chance.random() < 0.05

    for number in range(callers):
        world.start(world.caller(f"c{number}", EXPONENTIAL, 0.3, fails=fails))
    world.run(1200 if callers < 64 else 120)
    assert world.cured >= 0.997 * (world.calls - callers)
    assert world.requests <= 1.07 * world.calls
