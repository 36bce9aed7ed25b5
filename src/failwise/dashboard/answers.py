"""Questions to the journal, asked by many viewers: few connections, and one answer for all who ask
the same within a moment."""

import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

from failwise.journal.reader import Place, Reader, open_reader

_CONNECTIONS: Final = 4
SUMMED: Final = 600.0
"""Seconds between two looks whether days are to be summed up."""
_PAUSE: Final = 0.05
"""Seconds between two days that are summed up: whoever writes goes first."""
_KEPT: Final = 256
"""Answers that are remembered."""
SLOW: Final = 0.15
"""Seconds from which on an answer took long to find."""
_OLDEST: Final = 300.0
"""Seconds after which an answer is given to nobody."""


class Readers:
    """Readers of one journal, lent to one thread at a time.

    `place` is a path or URL, of which each reader has a connection of its own, or an open journal,
    which all share; `claims` says where claims are, if not in the same place. Nothing is opened before
    the first question.
    """

    def __init__(self, place: Place, claims: "str | os.PathLike[str] | None" = None) -> None:
        self._place, self._claims = place, claims
        self._own = place is None or isinstance(place, (str, os.PathLike))
        self._idle: queue.LifoQueue[Reader | None] = queue.LifoQueue()
        for _ in range(_CONNECTIONS):
            self._idle.put(None)
        self._writing = threading.Lock()
        self._closings = 0

    @contextmanager
    def lent(self) -> Iterator[Reader]:
        """A reader; waits while all are lent. One that failed is opened anew the next time."""
        reader = self._idle.get()
        closings = self._closings
        try:
            if reader is None:
                reader = open_reader(self._place, self._claims)
            yield reader
        except BaseException:
            if reader is not None and self._own:
                reader.close()
            reader = None
            raise
        finally:
            if reader is not None and self._own and closings != self._closings:
                reader.close()
                reader = None
            self._idle.put(reader)

    @contextmanager
    def changing(self) -> Iterator[Reader]:
        """A reader with which something is changed: one at a time."""
        with self._writing, self.lent() as reader:
            yield reader

    def sum_up(self) -> None:
        """Sum up the days that are over, where nobody who writes has done it. One that may only be read
        stays as it is: its pages take longer."""
        more, pause = True, threading.Event()
        with suppress(Exception):
            while more:
                with self.lent() as reader:
                    more = reader.sum_up()
                pause.wait(_PAUSE if more else 0.0)

    def close(self) -> None:
        """Close what is idle, and what is lent once it is given back; the next question opens anew."""
        self._closings += 1
        idle: list[Reader | None] = []
        with suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for reader in idle:
            self._idle.put(None)
            if reader is not None and self._own:
                reader.close()


class Answers:
    """What was answered a moment ago. Who asks while an answer is being found waits for that one, and a
    few threads of its own find them: a thousand who wait cost nothing.

    An answer that took long to find is given again for a while after its time, and found anew behind
    the scenes: however large the journal is, only the first who asks has to wait. `now` gives seconds of
    any clock that runs on.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._threads = ThreadPoolExecutor(_CONNECTIONS, "failwise-dashboard")

    def get(self, key: Hashable, ask: Callable[[], Any], seconds: float) -> Any:
        """`told`, waited for."""
        return self.told(key, ask, seconds).result()

    def told(self, key: Hashable, ask: Callable[[], Any], seconds: float) -> "Future[Any]":
        """The answer to `key`, found at most `seconds` ago; one that took `SLOW` seconds or more, up to
        a hundred times as long ago as it took. An error is everybody's who waits, and not kept."""
        with self._lock:
            known = self._known.get(key)
            now = self._now()
            age = now - known.found if known is not None else 0.0
            if known is not None and (
                not known.told.done() or age < seconds or now < known.renewing
            ):
                self._known.move_to_end(key)
                return known.told
            mine = _Answer(now)
            given = mine.told
            if known is not None and known.took >= SLOW and age < min(100 * known.took, _OLDEST):
                mine.instead, given = known.told, known.told
                known.renewing = now + known.took + 1.0  # nobody else starts the same
            else:
                self._known[key] = mine
                self._known.move_to_end(key)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        self._threads.submit(self._find, key, ask, mine)
        return given

    def soon(self, do: Callable[[], object]) -> None:
        """Do something when there is time."""
        self._threads.submit(do)

    def _find(self, key: Hashable, ask: Callable[[], Any], answer: "_Answer") -> None:
        began = self._now()
        try:
            found = ask()
        except BaseException as error:
            with self._lock:
                if self._known.get(key) is answer:
                    del self._known[key]
            answer.told.set_exception(error)
            return
        with self._lock:  # its time begins when it is known
            answer.found = self._now()
            answer.took = answer.found - began
            current = self._known.get(key)
            if current is not None and current.told is answer.instead:
                self._known[key] = answer
        answer.told.set_result(found)

    def forget(self) -> None:
        """Something was changed: nothing that is known holds any more."""
        with self._lock:
            self._known.clear()

    def close(self) -> None:
        """End the threads; what is under way is finished."""
        self._threads.shutdown(wait=False)


class _Answer:
    """One answer: when it was `found`, how long it `took`, and what is given `instead` meanwhile."""

    __slots__ = ("found", "instead", "renewing", "told", "took")

    def __init__(self, began: float) -> None:
        self.found, self.took, self.renewing = began, 0.0, 0.0
        self.told: Future[Any] = Future()
        self.told.set_running_or_notify_cancel()  # one who goes away ends nobody else's waiting
        self.instead: Future[Any] | None = None
