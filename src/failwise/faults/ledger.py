"""What the fault server really did, and which tokens it accepts: the state behind its routes."""

import threading
from typing import Any

from failwise.faults.replies import Effect, Reply
from failwise.faults.requests import Request
from failwise.vocabulary.records import record


@record
class Entry:
    """One effect that happened. `key` is the request's idempotency key, `time` monotonic seconds."""

    name: str
    key: str | None
    data: Any
    time: float


class Ledger:
    """The effects done, in order. What a test compares with what was asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Note one effect as done."""
        with self._lock:
            self._entries.append(entry)

    def of(self, name: str | None = None) -> list[Entry]:
        """The entries of one name, or all."""
        with self._lock:
            return [entry for entry in self._entries if name in (None, entry.name)]

    def count(self, name: str | None = None) -> int:
        """How often an effect was done."""
        return len(self.of(name))

    def duplicates(self, name: str | None = None) -> list[Entry]:
        """Entries that repeat the name and the data of an earlier one."""
        seen: list[tuple[str, Any]] = []
        again = []
        for entry in self.of(name):
            if (entry.name, entry.data) in seen:
                again.append(entry)
            seen.append((entry.name, entry.data))
        return again

    def __len__(self) -> int:
        return self.count()


class Tokens:
    """The bearer tokens that a route accepts; may be changed at any time."""

    def __init__(self, *tokens: str) -> None:
        self._lock = threading.Lock()
        self._valid = set(tokens)
        self._expired: set[str] = set()

    def allow(self, token: str) -> None:
        """Accept a token from now on."""
        with self._lock:
            self._valid.add(token)
            self._expired.discard(token)

    def expire(self, token: str) -> None:
        """Answer 401 "expired" to it from now on."""
        with self._lock:
            self._valid.discard(token)
            self._expired.add(token)

    def revoke(self, token: str) -> None:
        """Answer 401 "invalid" to it from now on."""
        with self._lock:
            self._valid.discard(token)
            self._expired.discard(token)

    def problem(self, token: str | None) -> str | None:
        """Why a token is refused (RFC 6750 wording), or None."""
        with self._lock:
            if token is None:
                return "The request holds no access token"
            if token in self._valid:
                return None
            return (
                "The access token expired"
                if token in self._expired
                else "The access token is invalid"
            )


class Keys:
    """The idempotency keys of one route, as the IETF draft has them.

    A key whose effect was done and that was answered soundly gets the same answer again. A key
    whose answer was lost gets the next reply of the script, but its effect no second time. The
    same key with another body is refused.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: dict[str, bytes] = {}
        self._done: set[tuple[str, str]] = set()
        self._answers: dict[str, Reply] = {}

    def conflict(self, request: Request) -> bool:
        """True when this key came before with another body."""
        key = request.idempotency_key
        if key is None:
            return False
        with self._lock:
            return self._bodies.setdefault(key, request.body) != request.body

    def answer(self, request: Request) -> Reply | None:
        """The answer given before to this key, if it is one to repeat."""
        with self._lock:
            return self._answers.get(request.idempotency_key or "")

    def first(self, request: Request, effect: Effect) -> bool:
        """True once for each key and effect; always for a request without a key."""
        key = request.idempotency_key
        if key is None:
            return True
        with self._lock:
            known = (key, effect.name) in self._done
            self._done.add((key, effect.name))
            return not known

    def keep(self, request: Request, reply: Reply) -> None:
        """Remember an answer for repetition, once the key's effect is done."""
        key = request.idempotency_key
        if key is None or not reply.sound:
            return
        with self._lock:
            if any(done == key for done, _ in self._done):
                self._answers.setdefault(key, reply)
