"""How a process talks to the server, and what it does when that is gone."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Final

from failwise.guards.items import Ask, Barrier, Close, Drop, Held, Item, Leave, Tell, Verdict
from failwise.guards.mailbox import AT_ONCE
from failwise.guards.memory import MemoryGuards
from failwise.guards.names import Command, Names
from failwise.guards.settings import SharedLimits
from failwise.guards.wire import Gone, Wire
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

_log = logging.getLogger("failwise")

_HEADS: Final = 8
"""Of those waiting for a slot, how many ask again in one round trip."""

_QUIET: Final = 60.0
"""Seconds within which a server that comes and goes is complained of once."""

_TROUBLES: Final = 10_000

_ADMITTED = Admitted()
_TOO_LATE = Refused("runtime.concurrency", reason="no slot came free in time")


class Speaker:
    """Says many items in one round trip, keeps what is held and who waits, and falls back.

    One at a time: whoever has the turn (see `Mailbox`). Others read `down` (the server is not
    answering; callers count in memory) and `next_try` (monotonic time of the next attempt to come
    back). `put` takes an item for later; `granted` is told of each leave before its caller is.
    """

    def __init__(
        self,
        wire: Wire,
        memory: MemoryGuards,
        limits: SharedLimits,
        monotonic: Callable[[], float],
        owner: str,
        told_time: Callable[[], str],
        granted: Callable[[Admit, Leave], None],
        names_of: Callable[[str, str | None], Names],
        put: Callable[[Item], None],
    ) -> None:
        self._wire, self._memory, self._limits, self._put = wire, memory, limits, put
        self._monotonic, self._owner = monotonic, owner
        self._told_time, self._granted, self._names_of = told_time, granted, names_of
        self._held: dict[str, Held] = {}
        self._waiting: dict[str, deque[Ask]] = {}
        self._troubles: dict[tuple[str, str | None], tuple[float, float]] = {}
        """Until when callers are held, and until when a circuit is open: on the caller's clock."""
        self._beat_at = self._poll_at = 0.0
        self._complained = float("-inf")
        self._level = logging.WARNING
        self.down = False
        self.next_try = float("-inf")

    def perform(self, items: Sequence[Item]) -> None:
        """Say what has come, and what is due by itself.

        Raises only what is no `Exception` (an interrupt), and nobody is left without an answer.
        """
        try:
            self._perform(items)
        except BaseException as error:
            self._wire.drop()
            self._fall(f"{type(error).__name__} in this process")
            self._alone(items)
            if not isinstance(error, Exception):
                raise
            _log.exception("guards at %s: a fault of Failwise's", self._wire.place)
        finally:
            for item in items:
                if isinstance(item, Close):
                    self._say_goodbye()
                if isinstance(item, Close | Barrier):
                    item.reached.set_result(None)

    def pause(self) -> float | None:
        """Seconds until something is due by itself (None: nothing is)."""
        if self.down or not (self._waiting or self._held):
            return None
        due = self._poll_at if self._waiting else self._beat_at
        return max(0.0, due - time.monotonic())

    def open_circuits(self) -> dict[str, float]:
        """For other threads: upstreams with an open circuit, seconds until a probe may go."""
        now = self._monotonic()
        waits: dict[str, float] = {}
        for (upstream, _), (_, opens) in list(self._troubles.items()):
            if opens > now:
                waits[upstream] = max(waits.get(upstream, 0.0), opens - now)
        return waits

    def _perform(self, items: Sequence[Item]) -> None:
        ending = bool(items) and all(isinstance(item, Close) for item in items)
        if not self._wire.connected and (ending or not self._come_back()):
            self._alone(items)
            return
        unsaid: Sequence[Item] = items
        try:
            freed = self._say(items)
            unsaid = ()
            now = time.monotonic()
            if self._waiting and (freed or now >= self._poll_at):
                self._poll()
            if now >= self._beat_at:
                self._beat()
        except Gone as gone:
            self._fall(str(gone))
            self._alone(unsaid)

    def _say(self, items: Sequence[Item]) -> bool:
        """One round trip for all of them; True when a slot came free."""
        said: list[Ask | Tell] = []
        commands: list[Command] = []
        freed = False
        for item in items:
            match item:
                case Ask() if not item.future.cancelled():
                    said.append(item)
                    commands.append(item.command(self._owner))
                case Tell():
                    said.append(item)
                    commands.append(item.command(self._owner))
                case Drop():
                    self._forget(item.ask)
                case _:
                    pass
        if not commands:
            return False
        replies = self._wire.exchange(commands)
        for item, reply in zip(said, replies, strict=True):
            if isinstance(item, Ask):
                self._answer(item, reply)
            else:
                freed = freed or item.leave is not None
                self._returned(item)
                self._note(item.names.upstream, item.names.credential, reply[0], reply[1])
        return freed

    def _answer(self, ask: Ask, reply: Sequence[bytes]) -> bool:
        """Hand on what the server decided; False when the caller goes on waiting."""
        verdict = reply[0]
        if verdict == b"wait":
            if not ask.ticket:
                self._waiting.setdefault(ask.names.upstream, deque()).append(ask)
                ask.future.add_done_callback(
                    lambda done: self._put(Drop(ask)) if done.cancelled() else None
                )
            ask.ticket = reply[1].decode()
            return False
        if verdict == b"go":
            held = self._held.get(ask.names.upstream)
            if held is None:
                held = self._held[ask.names.upstream] = Held(ask.names)
            held.requests += 1
            held.retries += ask.transient
            leave = Leave(ask.cost, ask.transient, reply[1].decode())
            if ask.future.set_running_or_notify_cancel():
                self._granted(ask.step, leave)
                ask.future.set_result(_ADMITTED)
            else:
                self._put(Tell(_unsent(ask.step), ask.names, self._told_time(), leave))
            return True
        code, seconds, reason = (part.decode() for part in reply)
        wait = float(seconds) if seconds else None
        if code == "runtime.cool_down":
            self._note(ask.names.upstream, ask.names.credential, reply[1], b"")
        elif code == "runtime.circuit_open":
            self._note(ask.names.upstream, ask.names.credential, b"", reply[1])
        if ask.future.set_running_or_notify_cancel():
            ask.future.set_result(Refused(code, wait, code == "runtime.cool_down", reason))
        return True

    def _returned(self, tell: Tell) -> None:
        """A leave of the server's is given back, whether or not it could be told so."""
        held = self._held.get(tell.names.upstream)
        if tell.leave is not None and held is not None:
            held.requests = max(0, held.requests - 1)
            held.retries = max(0, held.retries - tell.leave.transient)

    # Waiting for a slot

    def _poll(self) -> None:
        """Those at the head of each queue ask again, as long as one of them is let go."""
        self._poll_at = time.monotonic() + self._limits.poll
        for upstream, queue in list(self._waiting.items()):
            going = True
            while queue and going:
                heads = list(islice(queue, _HEADS))
                for ask in heads:
                    ask.now = self._told_time()
                    if ask.step.until is not None and self._monotonic() > ask.step.until:
                        self._forget(ask)
                        if ask.future.set_running_or_notify_cancel():
                            ask.future.set_result(_TOO_LATE)
                heads = [ask for ask in heads if ask in queue]
                replies = self._wire.exchange([ask.command(self._owner) for ask in heads])
                for ask, reply in zip(heads, replies, strict=True):
                    if self._answer(ask, reply):
                        queue.remove(ask)
                    else:
                        going = False
            if not queue:
                self._waiting.pop(upstream, None)

    def _forget(self, ask: Ask) -> None:
        """Out of the queue, here and in the server."""
        queue = self._waiting.get(ask.names.upstream)
        if queue is None or ask not in queue:
            return
        queue.remove(ask)
        self._wire.remove(ask.names.queue, ask.ticket)

    # Coming and going

    def _come_back(self) -> bool:
        """Connect, and tell the server what is held here; False while it is not to be had."""
        if self.down and time.monotonic() < self.next_try:
            return False
        try:
            self._wire.open()
            self._beat()
            self._pass_on()
        except Gone as gone:
            self._wire.drop()
            self._fall(str(gone))
            return False
        if self.down:
            self.down = False
            _log.log(
                self._level, "guards at %s are back: the fleet counts together", self._wire.place
            )
        return True

    def _pass_on(self) -> None:
        """Waits that this process was told while it was alone hold the fleet too."""
        commands = []
        for row in self._memory.statistics() if self.down else ():
            if row["cool_down"] > 0:
                names = self._names_of(row["upstream"], row["credential"])
                told = Failure(
                    Category.RATE_LIMIT, "rate_limit.requests", retry_after=row["cool_down"]
                )
                step = Release(names.upstream, names.credential, "", 1, told)
                commands.append(Tell(step, names, self._told_time(), None).command(self._owner))
        for start in range(0, len(commands), AT_ONCE):
            self._wire.exchange(commands[start : start + AT_ONCE])

    def _fall(self, reason: str) -> None:
        """From now on this process counts for itself."""
        was_down, self.down = self.down, True
        moment = time.monotonic()
        self.next_try = moment + self._limits.probe
        if was_down:
            return
        now = self._monotonic()
        for (upstream, credential), (held, opens) in self._troubles.items():
            if held > now or opens > now:
                self._memory.foresee(upstream, credential, max(0.0, held - now), opens - now)
        self._troubles.clear()
        queues, self._waiting = self._waiting, {}
        self._alone([ask for queue in queues.values() for ask in queue])
        self._level = logging.WARNING if moment - self._complained > _QUIET else logging.DEBUG
        self._complained = moment
        _log.log(
            self._level,
            "guards at %s do not answer (%s): this process counts for itself until they do",
            self._wire.place,
            reason,
        )

    def _alone(self, items: Sequence[Item]) -> None:
        """The same without the server."""
        for item in items:
            match item:
                case Ask():
                    # It may have given leave all the same: the next beat there says that it is unused.
                    self._held.setdefault(item.names.upstream, Held(item.names))
                    if not item.future.done():
                        _hand_on(self._memory, item.step, item.future)
                case Tell():
                    self._returned(item)
                    if item.leave is not None and item.step.sent:
                        self._memory.learn(item.step)
                case _:
                    pass

    def _say_goodbye(self) -> None:
        for held in self._held.values():
            held.requests = held.retries = 0
        try:
            if self._wire.connected:
                self._beat()
        except Gone as gone:
            _log.debug("guards at %s at the end: %s", self._wire.place, gone)
        self._wire.drop()

    def _beat(self) -> None:
        """Say what is really held, so that nothing that was lost on the way stays counted."""
        self._beat_at = time.monotonic() + self._limits.lease / 3
        now = self._told_time()
        if not self._held:
            return
        self._wire.exchange(
            [
                held.command(self._owner, now, waits=upstream in self._waiting)
                for upstream, held in self._held.items()
            ]
        )
        self._held = {u: held for u, held in self._held.items() if held.requests}

    def _note(self, upstream: str, credential: str | None, held: bytes, opens: bytes) -> None:
        """Remember an upstream's trouble, for the case that the server goes."""
        if not held and not opens:
            self._troubles.pop((upstream, credential), None)
            return
        if len(self._troubles) >= _TROUBLES:
            self._troubles.clear()
        now = self._monotonic()
        until = now + float(held or -1), now + float(opens or -1)
        self._troubles[upstream, credential] = until


def _unsent(step: Admit) -> Release:
    """The release of a leave that nobody took."""
    return Release(step.upstream, step.credential, step.run_id, step.attempt, None, sent=False)


def _hand_on(memory: MemoryGuards, step: Admit, future: "Future[Verdict]") -> None:
    """Let memory answer a question that the server did not."""
    answer = memory.admit(step)
    if not isinstance(answer, Future):
        _give(memory, step, future, answer)
        return
    inner: Future[Verdict] = answer
    inner.add_done_callback(
        lambda done: None if done.cancelled() else _give(memory, step, future, done.result())
    )
    future.add_done_callback(lambda done: inner.cancel() if done.cancelled() else None)


def _give(memory: MemoryGuards, step: Admit, future: "Future[Verdict]", verdict: Verdict) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(verdict)
    elif isinstance(verdict, Admitted):
        memory.release(_unsent(step))
