"""`Journal`: what the runtime writes to. Recording never blocks; a claim is answered once on disk."""

import atexit
import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, get_args

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import place as places
from failwise.journal.requests import Claiming, JournalUnavailable, Mark, Settling
from failwise.journal.rows import plain
from failwise.journal.writer import Writer
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim, Claimed

if TYPE_CHECKING:
    from failwise.journal.rows import Redactor
    from failwise.journal.store import Store

__all__ = ["Journal", "JournalUnavailable"]

_SETTLED = get_args(Settled)


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)


class Journal:
    """The embedded journal: finished calls and claims in one SQLite file.

    `path`: the file, or ``":memory:"``; without one the variable ``FAILWISE_JOURNAL``, else
    ``.failwise/journal.db`` in the working directory (`place.resolve` says what is refused).
    `owner` names this process in claims. Records older than `retention_days` or beyond
    `retention_rows` are removed, open claims never. `redactor` has ``text`` and ``data``; without
    one it is `failwise.redaction.default()`. `queue` bounds the records that wait; beyond it they
    are dropped, counted in `dropped` and said once. `lock_timeout`: seconds to wait for another
    process that writes.

    Nothing is opened or started before the first `put` or `claim`. Threads and forks may share one
    journal: the child of a fork has its own thread, queue and connection, and what waited in the
    parent is written by the parent. It is flushed when the interpreter exits.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        owner: str | None = None,
        retention_days: float = 30,
        retention_rows: int = 1_000_000,
        redactor: "Redactor | None" = None,
        clock: Clock | None = None,
        queue: int = 100_000,
        lock_timeout: float = 5.0,
    ) -> None:
        self.place = places.resolve(path)
        self._owner, self._made_owner = owner, ""
        self._retention = float(retention_days), retention_rows
        self._redactor = redactor
        self._clock: Clock = clock or SystemClock()
        self._limit = queue
        self._lock_timeout = lock_timeout
        self._writer = Writer(self.place, self._open_store)
        self._holds_door = False
        _journals.add(self)

    def _open_store(self) -> "Store":
        from failwise.journal.store import Store

        return Store(self.place, self._redactor, self._clock, *self._retention, self._lock_timeout)

    @property
    def owner(self) -> str:
        """The name of this process in its claims, unless the caller gave one."""
        if self._owner is not None:
            return self._owner
        if not self._made_owner.endswith(f":{os.getpid()}"):
            import secrets
            import socket

            self._made_owner = f"{socket.gethostname()}:{secrets.token_hex(4)}:{os.getpid()}"
        return self._made_owner

    @property
    def dropped(self) -> int:
        """Records lost in this process: the queue was full, or they could not be stored."""
        return self._writer.dropped

    @property
    def written(self) -> int:
        """Records written by this process."""
        return self._writer.written

    def put(self, result: ToolResult[Any]) -> None:
        """Record a finished call. Never blocks, never raises; the row is built by the writer."""
        writer = self._writer
        if len(writer.records) >= self._limit:
            writer.lose(1, "the queue is full" if self._limit else "the journal is closed")
            return
        writer.records.append(plain(result))
        if writer.asleep:
            writer.asleep = False  # one ring is enough, however long the thread takes to wake
            writer.rouse()

    def claim(self, step: Claim, owner: str | None = None, lease: float = 60) -> "Future[Claimed]":
        """Claim an effect; answered once the claim is on disk (synchronous=FULL).

        `lease` in seconds: how long the claim holds without news; after that it counts as unknown.
        The future raises `JournalUnavailable` when it cannot be written: then do not send. A future
        that is cancelled before its claim is written claims nothing.
        """
        request = Claiming(step, owner or self.owner, lease)
        writer = self._writer
        if writer.closing:
            request.refuse(JournalUnavailable("the journal is closed"))
        else:
            writer.urge(request)
            if writer.ended:
                writer.refuse("the journal is closed")
        return request.future

    def settle(self, key: str, state: str, result: ToolResult[Any] | None = None) -> None:
        """Note what became of a claim: ``done``, ``not_done`` or ``unknown``. Queued, never blocks.

        A settlement that a crash loses leaves an unknown, which is safe. Raises `UsageError` for
        another state.
        """
        if state not in _SETTLED:
            raise UsageError(f"settle(state={state!r}): say one of {', '.join(_SETTLED)}")
        writer = self._writer
        writer.effects.append(Settling(key, state, result))  # type: ignore[arg-type]
        if writer.asleep:
            writer.asleep = False  # one ring is enough, however long the thread takes to wake
            writer.rouse()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Read: what is noted so far is written first. Rows can be read by column name.

        The one way to read a journal in memory. Raises `sqlite3.Error` where it cannot be read.
        """
        import sqlite3

        self.flush()
        with self._writer.door:
            cursor = self._writer.store.connection().cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(sql, parameters).fetchall()

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        """Settle an open effect by a person's word, now: ``done`` or ``not_done``; gives back the
        claim as it was. Raises `UsageError` where that cannot be (see `Store.resolve`)."""
        if state not in _SETTLED:
            raise UsageError(f"resolve(state={state!r}): say one of {', '.join(_SETTLED)}")
        self.flush()
        with self._writer.door:
            return self._writer.store.resolve(key, state)

    def flush(self, timeout: float | None = 5.0) -> bool:
        """Wait until everything noted before is written. False: not in time, or not possible."""
        writer = self._writer
        if writer.closing or not (writer.started or writer.records or writer.effects):
            return not (writer.records or writer.effects)
        mark = Mark()
        writer.records.append(mark)
        writer.urge(mark)
        try:
            return mark.future.result(timeout)
        except FutureTimeout:
            return False

    def close(self, timeout: float | None = 5.0) -> None:
        """Write what waits, close the file, end the thread. What comes after is dropped."""
        if self._writer.closing:
            return
        self._limit = 0
        self.flush(timeout)
        self._writer.join(timeout)

    # SQLite keeps its locks in the memory of the process, so that an open file must not cross a
    # fork: it is closed before, and opened again by whoever needs it.

    def _before_fork(self) -> None:
        self._holds_door = self._writer.door.acquire(timeout=10)
        if self._holds_door:
            self._writer.close_file()

    def _after_fork_in_parent(self) -> None:
        if self._holds_door:
            self._holds_door = False
            self._writer.door.release()

    def _after_fork_in_child(self) -> None:
        self._holds_door = False
        before = self._writer
        _abandoned.append(before.abandon())
        self._writer = Writer(self.place, self._open_store)
        self._writer.closing = before.closing


_journals: "weakref.WeakSet[Journal]" = weakref.WeakSet()
_abandoned: list[object] = []
"""Connections of a parent process, kept for ever: to close one would touch the parent's locks."""


def _on_each(method: Callable[[Journal], object]) -> Callable[[], None]:
    def run() -> None:
        for journal in list(_journals):
            method(journal)

    return run


atexit.register(_on_each(Journal.flush))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_on_each(Journal._before_fork),
        after_in_parent=_on_each(Journal._after_fork_in_parent),
        after_in_child=_on_each(Journal._after_fork_in_child),
    )
