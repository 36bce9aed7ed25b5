"""Time from the system. Tests and the simulator put another clock in its place."""

import time as _time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio


class Timer(Protocol):
    """Something armed that can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as the drivers need it: two readings, two ways to sleep, and an alarm."""

    def monotonic(self) -> float: ...
    def time(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    async def sleep_async(self, seconds: float) -> None: ...
    def alarm(
        self, loop: "asyncio.AbstractEventLoop", seconds: float, callback: Callable[[], Any]
    ) -> Timer: ...


class SystemClock:
    """The machine's own clock."""

    monotonic = staticmethod(_time.monotonic)
    time = staticmethod(_time.time)
    sleep = staticmethod(_time.sleep)

    @staticmethod
    async def sleep_async(seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    @staticmethod
    def alarm(
        loop: "asyncio.AbstractEventLoop", seconds: float, callback: Callable[[], Any]
    ) -> Timer:
        return loop.call_later(seconds, callback)
