"""The guards of a fleet: their state in a Redis or Valkey server, one round trip a decision."""

import contextlib
import os
import sys
import threading
import time
import weakref
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from failwise.guards.items import Ask, Barrier, Item, Leave, Tell
from failwise.guards.mailbox import Mailbox
from failwise.guards.memory import MemoryGuards
from failwise.guards.names import Names, checked_namespace, names_of
from failwise.guards.settings import GuardSettings, default_settings
from failwise.guards.speaker import Speaker
from failwise.guards.wire import Gone, Wire
from failwise.vocabulary.ports import Clock
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

_CALLERS_WAIT = 5.0
"""Seconds that `statistics` and `close` wait for the thread that talks to the server."""


class ValkeyGuards:
    """`MemoryGuards` for many processes: the same rules, counted in one Redis or Valkey server.

    `url`: ``redis://user:password@host:6379/0``, ``rediss://`` (TLS), ``valkey://``,
    ``valkeys://`` or ``unix:///path``; options of redis-py's connection may follow as a query.
    `namespace` begins every key. `server_time`: the server's clock is the fleet's; False tells it
    `clock`'s (for tests on a clock of their own). Raises `UsageError` for a URL that cannot work.

    Decisions are made by scripts, so that they are atomic, and keys expire. What many callers ask at
    once goes in one round trip: of one small thread per process, or of a caller that may block.
    Where the server is slow
    (``[shared] slow``) or gone, this process counts in its own memory, beginning with the
    cool-downs and open circuits it knew of; it says so once, and goes back when a later try finds
    the server well. Slots of a process that died come free when its lease ends.

    Opens nothing before the first question. Serves threads and loops; a forked child starts anew.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        settings: GuardSettings | None = None,
        *,
        namespace: str = "failwise",
        server_time: bool = True,
    ) -> None:
        self._settings = settings or default_settings()
        self._clock, self._url = clock, url
        self._namespace = checked_namespace(namespace)
        self._server_time = server_time
        self._memory = MemoryGuards(clock, self._settings)
        limits = self._settings.shared
        self._wire = Wire(url, slow=limits.slow, connect=limits.connect)
        self._names: dict[tuple[str, str | None], Names] = {}
        self._begin()
        _living.add(self)

    def _begin(self) -> None:
        """Nothing asked, nothing held, nobody listening: at first, and in a forked child."""
        self._lock = threading.Lock()
        self._leaves: dict[tuple[str, str | None, str, int], list[Leave]] = {}
        self._speaker = Speaker(
            self._wire,
            self._memory,
            self._settings.shared,
            self._clock.monotonic,
            f"{os.urandom(6).hex()}-{os.getpid()}",
            self._told_time,
            self._granted,
            self._names_of,
            self._put,
        )
        self._mailbox = Mailbox(self._speaker.perform, self._speaker.pause)

    def admit(self, step: Admit) -> "Admitted | Refused | Future[Admitted | Refused]":
        """Leave to send, as `MemoryGuards.admit` says.

        Where an event loop runs, the answer is a future; elsewhere it may be one.
        """
        speaker = self._speaker
        if speaker.down:
            if time.monotonic() >= speaker.next_try:
                # Whether the server is back is found out beside the callers, not at their cost.
                self._put(Barrier(Future()))
            return self._memory.admit(step)
        ask = Ask(step, self._names_of(step.upstream, step.credential), self._told_time())
        if _on_a_loop() or not self._mailbox.say(ask):
            self._put(ask)
        return ask.future.result() if ask.future.done() else ask.future

    def release(self, step: Release) -> None:
        """Give the slot back and learn from the outcome; never holds up an event loop."""
        leave = self._leave_of(step)
        if leave is None:
            self._memory.release(step)
            if self._speaker.down or not step.sent:
                return
        names = self._names_of(step.upstream, step.credential)
        tell = Tell(step, names, self._told_time(), leave)
        if self._speaker.down or _on_a_loop() or not self._mailbox.say(tell):
            self._put(tell)

    def open_circuits(self) -> dict[str, float]:
        """Upstreams whose circuit is open, as this process heard last: seconds until a probe may go.

        Never blocks.
        """
        speaker = self._speaker
        return self._memory.open_circuits() if speaker.down else speaker.open_circuits()

    def statistics(self) -> list[dict[str, Any]]:
        """For people: rows as of `MemoryGuards.statistics`, of every upstream the fleet knows.

        `in_flight`, `waiting` and `retrying` are the fleet's. A credential that this process has
        not seen is named by its digest. Comes after all that was asked before it, and blocks for a
        few round trips; where the server does not answer: this process's own rows.
        """
        reached: Future[None] = Future()
        self._put(Barrier(reached))
        with contextlib.suppress(FutureTimeout, Gone):
            reached.result(_CALLERS_WAIT)
            if not self._speaker.down:
                return self.look()
        return self._memory.statistics()

    def look(self) -> list[dict[str, Any]]:
        """The fleet's rows, over a connection of their own. Raises `Gone`."""
        from failwise.guards.view import rows

        limits = self._settings.shared
        wire = Wire(self._url, slow=limits.connect, connect=limits.connect)
        known = list(self._names.values())
        return rows(wire, self._namespace, self._settings, known, self._told_time())

    @property
    def place(self) -> str:
        """The server, for people: without its password."""
        return self._wire.place

    def close(self) -> None:
        """Give this process's slots back and close the connection. A later question opens it again."""
        self._mailbox.close(_CALLERS_WAIT)

    def _put(self, item: Item) -> None:
        self._mailbox.put(item)

    def _told_time(self) -> str:
        """What the scripts are told as time: nothing, where the server's own counts."""
        return "" if self._server_time else repr(self._clock.monotonic())

    def _names_of(self, upstream: str, credential: str | None) -> Names:
        names = self._names.get((upstream, credential))
        if names is None:
            if len(self._names) >= self._settings.keys:
                self._names.clear()
            settings = self._settings.of(upstream)
            names = names_of(self._namespace, upstream, credential, settings)
            self._names[upstream, credential] = names
        return names

    def _granted(self, step: Admit, leave: Leave) -> None:
        """Note that the server gave this leave, so that it is given back there."""
        name = (step.upstream, step.credential, step.run_id, step.attempt)
        with self._lock:
            self._leaves.setdefault(name, []).append(leave)

    def _leave_of(self, step: Release) -> Leave | None:
        name = (step.upstream, step.credential, step.run_id, step.attempt)
        with self._lock:
            leaves = self._leaves.get(name)
            if not leaves:
                return None
            leave = leaves.pop()
            if not leaves:
                del self._leaves[name]
            return leave

    def _after_fork(self) -> None:
        """In a child process: the connection, the thread and what is under way are the parent's."""
        self._wire.forget()
        self._begin()


def _on_a_loop() -> bool:
    """Whether blocking here would hold up an event loop."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_living: "weakref.WeakSet[ValkeyGuards]" = weakref.WeakSet()


def _after_fork() -> None:
    for guards in list(_living):
        guards._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
