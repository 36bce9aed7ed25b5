"""The machine's own clock."""

import time


class SystemClock:
    """Monotonic seconds and wall-clock epoch seconds, as this machine has them."""

    __slots__ = ()
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)
