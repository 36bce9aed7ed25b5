"""The writer: two queues, one daemon thread, one open store.

Records linger up to 20 ms so that many share a commit. A claim wakes the thread at once, and the
claims that are there by then share a commit, on disk before any of them is answered. Nothing here
may end the thread: somebody's claim would wait for ever.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

from failwise.journal.requests import Claiming, JournalUnavailable, Mark, Settling
from failwise.journal.rows import Plain
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claimed

if TYPE_CHECKING:
    from failwise.journal.store import Store

_log = logging.getLogger("failwise")

BATCH = 500
"""Claims in one commit, and records that are worth a commit without lingering."""
LOAD = 4_000
"""Records in one commit when many wait."""
LINGER = 0.02
"""Seconds that records may wait for company, unless the engine likes larger batches."""
_BACKOFF = 0.5, 30.0
"""Seconds between two tries while the file cannot be written: the first, the longest."""

Effect: TypeAlias = "Claiming | Settling | Mark"


class Writer:
    """One process's writer. `records` and `effects` are the queues; callers append, then `rouse`
    when `asleep`. The store is made by `open_store` in the thread, at the first need. `prunes`: it
    also removes what is too old, when there is nothing else to do. `linger` in seconds. `place` is shown in messages."""

    def __init__(
        self,
        place: str,
        open_store: "Callable[[], Store]",
        *,
        prunes: bool = True,
        linger: float = LINGER,
    ) -> None:
        self.place = place
        self._linger = linger
        self.prunes = prunes
        self.records: deque[ToolResult[Any] | Plain | Mark] = deque()
        self.effects: deque[Effect] = deque()
        self.asleep = True
        self.hurry = False
        self.closing = False
        self.ended = False
        self.dropped = 0
        self.written = 0
        self.door = threading.Lock()
        """Held while the store is in use."""
        self._open_store = open_store
        self._store: Store | None = None
        self._kept: list[ToolResult[Any] | Plain] = []
        self._wake_up = threading.Event()
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._next_try = 0.0
        self._said: set[str] = set()

    @property
    def started(self) -> bool:
        return self._thread is not None

    @property
    def store(self) -> "Store":
        """The store; only to be used by whoever holds the `door`."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def rouse(self) -> None:
        """Wake the thread, starting it if need be. Never raises."""
        if not self.started:
            try:
                with self._starting:
                    self._start()
            except RuntimeError as error:  # no thread to be had
                self.say(f"cannot start the writer's thread: {error}")
                self.refuse(f"the journal cannot start its writer: {error}")
        self._wake_up.set()

    def _start(self) -> None:
        if self._thread is not None or self.closing:
            return
        thread = threading.Thread(target=self._work, name="failwise-journal", daemon=True)
        thread.start()
        self._thread = thread

    def urge(self, item: Effect) -> None:
        """Append something that somebody waits for, and wake the thread."""
        self.effects.append(item)
        self.hurry = True
        self.rouse()

    def join(self, timeout: float | None) -> None:
        """End the thread once everything is written."""
        self.closing = True
        self._wake_up.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        elif thread is None:  # only read: nobody else closes the file
            with self.door:
                if self._store is not None:
                    self._store.close()
        self.ended = True
        self.refuse("the journal is closed")

    def refuse(self, reason: str) -> None:
        """Answer everything that waits with "no": nobody will write it."""
        queues: tuple[deque[Any], ...] = self.effects, self.records
        for queue in queues:
            while queue:
                try:
                    item = queue.popleft()
                except IndexError:  # somebody else refused it just now
                    break
                if isinstance(item, Claiming):
                    item.refuse(JournalUnavailable(reason))
                elif isinstance(item, Mark):
                    item.met(written=False)
                elif isinstance(item, ToolResult | tuple):
                    self.dropped += 1

    def lose(self, count: int, reason: str) -> None:
        """Count records that are lost, and say so once for each reason."""
        self.dropped += count
        self.say(f"records are dropped: {reason}; Journal.dropped counts them")

    def say(self, text: str) -> None:
        """Warn once."""
        if text not in self._said:
            self._said.add(text)
            _log.warning("journal: %s", text)

    def close_store(self) -> None:
        """Close the store unless it is in memory; the next use opens it again. Needs the `door`."""
        if self._store is not None and not self._store.in_memory:
            self._store.close()

    def abandon(self) -> object:
        """Give up the connection untouched: after a fork it belongs to the parent."""
        return self._store.abandon() if self._store is not None else None

    # -- the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._rest()
            ending = self.closing
            with self.door:
                self._cycle()
                if ending and (self._failures or not (self.effects or self.records)):
                    if self._store is not None:
                        self._store.close()
                    return

    def _rest(self) -> None:
        """Sleep until there is work; then linger for more records, unless somebody waits."""
        if not self._work_waits():
            self.asleep = True
            # Looked at once more: what came before the flag was up did not ring.
            if not self._work_waits():
                self._wake_up.wait()
            self.asleep = False
        self._wake_up.clear()
        if self.hurry or self.closing:
            return
        if self._failures:
            pause = self._next_try - time.monotonic()
            self._wake_up.wait(max(LINGER, min(pause, 1.0)))
        elif len(self.records) < BATCH:
            self._wake_up.wait(self._linger)

    def _work_waits(self) -> bool:
        return bool(self.effects or self.records or self._kept or self.closing)

    def _cycle(self) -> None:
        try:
            self._write_effects()
            self._write_records()
            idle = not (self.effects or self.records or self._kept)
            if idle and self.prunes and self._store is not None and not self._failures:
                self._store.prune()
                self._store.sum_up()
        except Exception as error:
            self._failed(error)

    def _write_effects(self) -> None:
        self.hurry = False
        items: list[Effect] = []
        while self.effects and len(items) < BATCH:
            item = self.effects.popleft()
            # A future cancelled by now must not be answered, nor its claim be written.
            if not isinstance(item, Claiming) or item.future.set_running_or_notify_cancel():
                items.append(item)
        self.hurry = self.hurry or bool(self.effects)
        batch = [item for item in items if not isinstance(item, Mark)]
        error: Exception | None = None
        if batch:
            try:
                answers = self.store.effects(batch)
            except Exception as caught:
                error = caught
                self._failed(caught)
            else:
                self._healed()
                for item, answer in zip(batch, answers, strict=True):
                    if isinstance(item, Claiming):
                        self._answer(item.future, answer)
        if error is not None:
            for item in batch:
                if isinstance(item, Claiming):
                    self._answer(item.future, error)
            # Settlements wait for better times, in their order.
            self.effects.extendleft(i for i in reversed(batch) if isinstance(i, Settling))
        for item in items:
            if isinstance(item, Mark):
                item.met(written=error is None)

    def _answer(self, future: "Future[Claimed]", answer: Claimed | Exception | None) -> None:
        if isinstance(answer, Claimed):
            future.set_result(answer)
            return
        failure = JournalUnavailable(
            f"the claim could not be written to {self.place}: {answer}; so nothing may be sent"
        )
        failure.__cause__ = answer
        future.set_exception(failure)

    def _write_records(self) -> None:
        mark: Mark | None = None
        while self.records and len(self._kept) < LOAD and mark is None:
            item = self.records.popleft()
            if isinstance(item, Mark):
                mark = item
            else:
                self._kept.append(item)
        if not self._failures or mark or self.closing or time.monotonic() >= self._next_try:
            self._write_kept(patient=mark is None)
        if mark is not None:
            mark.met(written=not self._kept)
        if self._kept and self._failures:
            self._disappoint()
        if self._kept and self.closing:
            self.lose(len(self._kept), "the journal was closed before they could be written")
            self._kept.clear()

    def _write_kept(self, *, patient: bool) -> None:
        while self._kept:
            try:
                dealt, failed = self.store.records(self._kept, lambda: self.hurry)
            except Exception as error:
                self._failed(error)
                return
            del self._kept[:dealt]
            self.written += dealt - failed
            if failed:
                self.lose(failed, "they could not be stored")
            self._healed()
            if self._kept and patient:
                return  # somebody's claim goes first
            if self._kept:
                self._write_effects()

    def _disappoint(self) -> None:
        """Tell those who wait for a flush that it will not come soon."""
        for item in list(self.records):
            if isinstance(item, Mark):
                self.records.remove(item)
                item.met(written=False)

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        first, longest = _BACKOFF
        self._next_try = time.monotonic() + min(longest, first * 2.0 ** min(self._failures - 1, 9))
        if self._failures == 1:
            _log.error(
                "journal: %s cannot be written: %s. Tool calls go on and their records wait in "
                "memory; effects are not sent until it works again.",
                self.place,
                error,
            )

    def _healed(self) -> None:
        if self._failures:
            self._failures = 0
            _log.info("journal: %s is written again", self.place)
