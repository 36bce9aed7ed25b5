"""`Journal`: what the runtime writes to. Recording never blocks; a claim is answered once on disk."""

import atexit
import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING, Any, Literal, get_args

from failwise.effects.claims import Settled, StoredClaim
from failwise.journal import place as places
from failwise.journal.requests import Claiming, JournalUnavailable, Mark, Settling
from failwise.journal.rows import plain
from failwise.journal.store import Keeping
from failwise.journal.writer import LINGER, Writer
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim, Claimed

if TYPE_CHECKING:
    from failwise.journal.rows import Redactor
    from failwise.journal.store import Store

__all__ = ["Journal", "JournalUnavailable"]

_SETTLED = get_args(Settled)
_LINGER = {"clickhouse": 1.0, "chdb": 0.2}
"""Seconds that records wait for company, where each insert makes a file of its own."""


class Journal:
    """The journal: finished calls and claims, kept where `place` says.

    `place`: a file, ``":memory:"`` or a URL (`place.locate` has the forms); without one the variable
    ``FAILWISE_JOURNAL``, else ``.failwise/journal.db`` in the working directory. `claims`: where
    claims are kept, if not in the same place; beside ClickHouse, which cannot keep them, that is
    ``.failwise/claims.db`` unless another SQLite file or PostgreSQL URL is named, here or in
    ``FAILWISE_CLAIMS``.

    `owner` names this process in claims. Records older than `retention_days` or beyond
    `retention_rows` are removed, rollups after `figures_days`, open claims never. `raw`: keep the
    raw answers of failures in a table of their own for `raw_days`, cut at `raw_bytes`; True keeps
    them redacted, ``"as is"`` unchanged. `redactor` has ``text`` and ``data``; without one it is
    `failwise.redaction.default()`. `queue` bounds the records that wait; beyond it they are dropped,
    counted in `dropped` and said once. `lock_timeout`: seconds to wait for another process's lock.
    `clock` is for tests; without one it is the machine's, of PostgreSQL the server's.

    Nothing is opened or started before the first `put` or `claim`. Threads and forks may share one
    journal: the child of a fork has its own threads, queue and connections, and what waited in the
    parent is written by the parent. It is flushed when the interpreter exits. Raises `UsageError`
    for a URL of another kind, `ConfigurationError` for a network file system.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | None = None,
        *,
        claims: str | os.PathLike[str] | None = None,
        owner: str | None = None,
        retention_days: float = 30,
        retention_rows: int = 1_000_000,
        figures_days: float = 400,
        raw: "bool | Literal['redacted', 'as is']" = False,
        raw_days: float = 7,
        raw_bytes: int = 64_000,
        redactor: "Redactor | None" = None,
        clock: Clock | None = None,
        queue: int = 100_000,
        lock_timeout: float = 5.0,
    ) -> None:
        self._target = places.locate(place)
        self._claims_target = places.claims_target(self._target, claims)
        self.place, self.engine = self._target.shown, self._target.engine
        self._owner, self._made_owner = owner, ""
        if raw not in (False, True, "redacted", "as is"):
            raise UsageError(f"Journal(raw={raw!r}): say True, 'redacted', 'as is' or False")
        self.raw = "redacted" if raw is True else raw or ""
        self._keeping = Keeping(
            float(retention_days),
            retention_rows,
            float(figures_days),
            self.raw,
            float(raw_days),
            raw_bytes,
            lock_timeout,
            clock,
            redactor,
        )
        self._limit = queue
        self._holding: list[Writer] = []
        self._make_writers()
        _journals.add(self)

    def _make_writers(self) -> None:
        """One writer, but where claims live elsewhere, or records would keep them waiting, two."""
        linger = _LINGER.get(self._target.engine, LINGER)
        writer = Writer(self.place, self._open(self._target), linger=linger)
        self._writer = self._claimer = writer
        if self._claims_target != self._target:
            self._claimer = Writer(self._claims_target.shown, self._open(self._claims_target))
        elif self._target.engine == "postgresql":
            self._claimer = Writer(self.place, self._open(self._target), prunes=False)

    def _open(self, target: "places.Target") -> "Callable[[], Store]":
        def opened() -> "Store":
            from failwise.journal.store import open_store

            return open_store(target, self._keeping)

        return opened

    @property
    def _writers(self) -> "tuple[Writer, ...]":
        return tuple({id(one): one for one in (self._writer, self._claimer)}.values())

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
        writer = self._claimer
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
        writer = self._claimer
        writer.effects.append(Settling(key, state, result))  # type: ignore[arg-type]
        if writer.asleep:
            writer.asleep = False  # one ring is enough, however long the thread takes to wake
            writer.rouse()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Read, with ``?`` for values: what is noted so far is written first. Rows can be read by
        position and by column name.

        The one way to read a journal in memory. Raises what its engine raises where it cannot.
        """
        self.flush()
        writer = self._writer_of(sql)
        with writer.door:
            return writer.store.rows(sql, parameters)

    def write(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Run statements of one's own as one transaction, after what is noted so far."""
        self.flush()
        writer = self._writer_of(statements[0][0] if statements else "")
        with writer.door:
            writer.store.write(statements)

    def _writer_of(self, sql: str) -> Writer:
        return self._claimer if places.beside(sql) else self._writer

    def resolve(self, key: str, state: Settled) -> StoredClaim:
        """Settle an open effect by a person's word, now: ``done`` or ``not_done``; gives back the
        claim as it was. Raises `UsageError` where that cannot be (see `Store.resolve`)."""
        if state not in _SETTLED:
            raise UsageError(f"resolve(state={state!r}): say one of {', '.join(_SETTLED)}")
        self.flush()
        with self._claimer.door:
            return self._claimer.store.resolve(key, state)

    def prune(self) -> bool:
        """Remove a piece of what is too old or too much, now; True when there is more. The writer
        does it by itself every few minutes."""
        self.flush()
        more = False
        for writer in self._writers:
            if writer.prunes:
                with writer.door:
                    more = writer.store.prune(at_once=True) or more
        return more

    def sum_up(self) -> bool:
        """Sum up one day or week that is over, so that questions over long stretches are quick; True
        when there is more. The writer does it by itself; whoever only reads may."""
        self.flush()
        with self._writer.door:
            return self._writer.store.sum_up(at_once=True)

    def flush(self, timeout: float | None = 5.0) -> bool:
        """Wait until everything noted before is written. False: not in time, or not possible."""
        marks = [self._marked(writer) for writer in self._writers]
        until = None if timeout is None else time.monotonic() + timeout
        try:
            return all(
                mark.result(None if until is None else max(0.0, until - time.monotonic()))
                if isinstance(mark, Future)
                else mark
                for mark in marks
            )
        except FutureTimeout:
            return False

    @staticmethod
    def _marked(writer: Writer) -> "Future[bool] | bool":
        if writer.closing or not (writer.started or writer.records or writer.effects):
            return not (writer.records or writer.effects)
        mark = Mark()
        writer.records.append(mark)
        writer.urge(mark)
        return mark.future

    def close(self, timeout: float | None = 5.0) -> None:
        """Write what waits, close what is open, end the threads. What comes after is dropped."""
        if self._writer.closing:
            return
        self._limit = 0
        self.flush(timeout)
        for writer in self._writers:
            writer.join(timeout)

    # SQLite keeps its locks in the memory of the process, and two processes cannot share one
    # connection to a server: all are closed before a fork, and opened again by whoever needs them.

    def _before_fork(self) -> None:
        self._holding = [one for one in self._writers if one.door.acquire(timeout=10)]
        for writer in self._holding:
            writer.close_store()

    def _after_fork_in_parent(self) -> None:
        holding, self._holding = self._holding, []
        for writer in holding:
            writer.door.release()

    def _after_fork_in_child(self) -> None:
        self._holding = []
        before = self._writers
        _abandoned.extend(writer.abandon() for writer in before)
        self._make_writers()
        for writer in self._writers:
            writer.closing = before[0].closing


_journals: "weakref.WeakSet[Journal]" = weakref.WeakSet()
_abandoned: list[object] = []
"""Connections of a parent process, kept for ever: to close one would touch the parent's locks."""


def _on_each(method: Callable[[Journal], object]) -> Callable[[], None]:
    def run() -> None:
        for journal in list(_journals):
            method(journal)

    return run


def _at_exit() -> None:
    """Write what waits; then end the engine that lives in this process, if there is one."""
    _on_each(Journal.flush)()
    embedded = sys.modules.get("failwise.journal.clickhouse_client")
    if embedded is not None:
        embedded.close_engines()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_on_each(Journal._before_fork),
        after_in_parent=_on_each(Journal._after_fork_in_parent),
        after_in_child=_on_each(Journal._after_fork_in_child),
    )
