"""`SteppingClock`: time that moves only when somebody sleeps on it, or moves it."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class _Alarm:
    def __init__(self, clock: "SteppingClock", at: float, callback: Callable[[], Any]) -> None:
        self.clock, self.at, self.callback = clock, at, callback

    def cancel(self) -> None:
        self.clock._drop(self)


class SteppingClock:
    """A clock for `Runtime(clock=...)`: a sleep returns at once and moves the time.

    `sleeps` lists the seconds slept, in order. `epoch` is the wall-clock second at which it starts.
    """

    def __init__(self, epoch: float = 1_800_000_000.0) -> None:
        self.epoch = epoch
        self.now = 0.0
        self.sleeps: list[float] = []
        self._alarms: list[_Alarm] = []
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.epoch + self.now

    def advance(self, seconds: float) -> None:
        """Move the time; alarms that are due go off."""
        with self._lock:
            self.now += seconds
            due = sorted((a for a in self._alarms if a.at <= self.now), key=lambda alarm: alarm.at)
            for alarm in due:
                self._alarms.remove(alarm)
        for alarm in due:
            alarm.callback()

    def sleep(self, seconds: float) -> None:
        """Move the time by `seconds`."""
        self.sleeps.append(seconds)
        self.advance(seconds)

    async def sleep_async(self, seconds: float) -> None:
        """`sleep`, giving way to other tasks once."""
        import asyncio

        self.sleep(seconds)
        await asyncio.sleep(0)

    def alarm(
        self, loop: "asyncio.AbstractEventLoop", seconds: float, callback: Callable[[], Any]
    ) -> _Alarm:
        """Arm an alarm; it goes off when the time is moved past it."""
        alarm = _Alarm(self, self.now + seconds, callback)
        with self._lock:
            self._alarms.append(alarm)
        return alarm

    def _drop(self, alarm: _Alarm) -> None:
        with self._lock:
            if alarm in self._alarms:
                self._alarms.remove(alarm)

    async def expire(self) -> None:
        """Hang until the caller's own alarm goes off: what a tool that never answers does.

        The time is moved from one alarm to the next, those of others included. Raises
        `RuntimeError` where no alarm is left.
        """
        import asyncio

        while True:
            await asyncio.sleep(
                0
            )  # lets an alarm be armed (only a tool that suspends has one), or end this
            with self._lock:
                nearest = min((alarm.at for alarm in self._alarms), default=None)
            if nearest is None:
                raise RuntimeError("nothing limits this wait: the tool has no timeout")
            self.advance(max(0.0, nearest - self.now))
