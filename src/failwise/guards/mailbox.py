"""What waits to be said to the server, and whose turn it is to say it: a thread's, or a caller's own."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Final

from failwise.guards.items import Close, Item

AT_ONCE: Final = 128
"""Items in one round trip: the last of them must not wait for more than the bound."""

_NEVER: Final = float("inf")


class Mailbox:
    """Items in order of arrival, performed in that order by one at a time.

    A thread, started when first needed, performs what was `put`. A caller that may block performs
    its own item at once with `say`, and with it all that came before, where nobody else is at it:
    that spares two changes of thread. `perform` must not raise; `pause` tells how many seconds the
    thread may sleep before it has to perform nothing (None: until something comes).
    """

    def __init__(
        self, perform: Callable[[Sequence[Item]], None], pause: Callable[[], float | None]
    ) -> None:
        self._perform, self._pause = perform, pause
        self._items: deque[Item] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._called = False
        self._turn = threading.Lock()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sleeps_until = _NEVER
        self._ended = False

    def put(self, item: Item) -> None:
        """Leave it to the thread; never blocks."""
        self._items.append(item)
        self._call()
        if self._thread is None:
            self._start()

    def say(self, item: Item) -> bool:
        """Perform it in this very thread; False, and nothing is done, where others are at it."""
        if len(self._items) >= AT_ONCE or not self._turn.acquire(blocking=False):
            return False
        try:
            self._perform_now([*self._taken(), item])
            pause = self._pause()
        finally:
            self._turn.release()
        if self._thread is None:
            self._start()
        if self._items or (pause is not None and time.monotonic() + pause < self._sleeps_until):
            self._call()
        return True

    def close(self, timeout: float) -> None:
        """Perform what is there, then `Close`, and end the thread; seconds to wait for that at most."""
        thread = self._thread
        if thread is None:
            return
        self.put(Close(Future()))
        thread.join(timeout)
        with self._starting:
            self._thread = None
            self._ended = False
        if self._items:
            self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="failwise-guards", daemon=True
                )
                self._thread.start()

    def _call(self) -> None:
        """Wake the thread, once for all that it will find."""
        if not self._called:
            self._called = True
            self._wake.put(None)

    def _serve(self) -> None:
        while not self._ended:
            self._sleeps_until = _NEVER  # whoever makes something due from here on calls
            pause = self._pause()
            if pause is not None:
                self._sleeps_until = time.monotonic() + pause
            with contextlib.suppress(Empty):
                self._wake.get(timeout=pause)
            self._called = False
            with self._turn:
                self._perform_now(self._taken())
            if self._items:
                self._call()

    def _taken(self) -> list[Item]:
        items = self._items
        return [items.popleft() for _ in range(min(len(items), AT_ONCE))]

    def _perform_now(self, items: Sequence[Item]) -> None:
        self._perform(items)
        if any(item.__class__ is Close for item in items):
            self._ended = True
            self._call()
