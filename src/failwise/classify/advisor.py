"""`Advisor`: somebody else's view (a model's, say) of failures that no rule knows, kept by fingerprint.

The call that failed does not wait: the answer serves the next failure of the same fingerprint, in every
process that shares the journal. A new process loads what is kept before its first call ends (`recall`).
An answer names a code; it never says anything about the effect, so nothing becomes safe to repeat by it.
"""

import asyncio
import dataclasses
import inspect
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol

from failwise.classify.tables import likely_causes
from failwise.redaction import default
from failwise.vocabulary.codes import category_of, lookup
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure, Spoke
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.records import record

logger = logging.getLogger("failwise")

RULE: Final = "advisor"
AT_ONCE: Final = 2
"""Questions that may be open at once in a process."""
_HOUR: Final = 3_600.0
_OURS: Final = frozenset({Category.UNKNOWN, Category.RUNTIME, Category.MODEL_OUTPUT})
"""Categories that are Failwise's own to give."""


@record
class Question:
    """What is kept of a question beside its answer: redacted, for the person who looks at it later."""

    fingerprint: str
    message: str
    tool: str
    provider: str | None
    advisor: str


class Memory(Protocol):
    """Where questions and answers outlive the process: a `Journal` is one. It may block and raise;
    only the advisor's own threads ask."""

    def ask_advice(self, question: Question) -> "tuple[bool, str | None]":
        """Whether somebody has asked this already, and the answer. Whoever is told no asks now."""
        ...

    def advise(self, fingerprint: str, code: str | None) -> None:
        """Keep an answer; None is "no opinion"."""
        ...

    def kept_advice(self, limit: int) -> list[tuple[str, str | None]]:
        """Fingerprints and answers that are kept, at most `limit`, the newest first."""
        ...


class Advisor:
    """Asks `ask` once per fingerprint about failures of category ``unknown``, or of a confidence
    under `below`, and labels later ones of that fingerprint with its answer.

    `ask` takes a `Failure` without its exception (redacted as all that leaves) and gives a code of
    the registry (``server.overloaded``), or None for no opinion; it may be a coroutine function. It
    runs in a thread of its own, at most two at once and `per_hour` times in an hour, and an answer
    that comes after `seconds` is not used. `limit` fingerprints are kept, the latest used. What it
    raises counts as no opinion, and is logged the first time. `memory` gives the place where answers
    outlive the process. Safe to share between threads. Raises `UsageError` for what cannot work.
    """

    def __init__(
        self,
        ask: Callable[[Failure], Any],
        *,
        below: float = 0.5,
        seconds: float = 30.0,
        per_hour: int = 60,
        limit: int = 1_024,
        memory: "Callable[[], Memory | None] | None" = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(ask):
            raise UsageError(f"advisor={ask!r}: give a function that takes a failure")
        for name, value, most in (
            ("below", below, 1.0), ("seconds", seconds, _HOUR), ("per_hour", per_hour, 1e6), ("limit", limit, 1e6),
        ):  # fmt: skip
            if not _is_number(value) or not 0 < value <= most:
                raise UsageError(
                    f"advisor: {name}={value!r}: write a number above 0, at most {most:g}"
                )
        self._ask = ask
        self._below = below
        self._seconds = seconds
        self._per_hour = per_hour
        self._limit = limit
        self._memory = memory
        self._now = now
        self._codes: OrderedDict[str, str | None] = OrderedDict()
        self._asked: deque[float] = deque()
        self._said: set[str] = set()
        self._recalling: Future[None] | None = None
        self._begin()
        _living.add(self)

    def _begin(self) -> None:
        """No question is open: at first, and in the child of a fork, where no thread followed."""
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._codes = OrderedDict((name, code) for name, code in self._codes.items() if code)
        if self._recalling is not None and not self._recalling.done():
            self._recalling = None

    def remembering(self, memory: "Callable[[], Memory | None]") -> "Advisor":
        """This advisor, with a place where its answers outlive the process, unless it has one."""
        if self._memory is None:
            self._memory = memory
        return self

    def recall(self) -> "Future[None]":
        """Load the answers that `memory` keeps (at most `limit`), once, in a thread of its own.

        Done when they label failures; where they cannot be loaded that is logged, and it is done too.
        """
        with self._lock:
            loading = self._recalling
            if loading is None:
                loading = self._recalling = Future()
                loading.set_running_or_notify_cancel()
                threading.Thread(
                    target=self._load, args=(loading,), name="failwise-advice", daemon=True
                ).start()
        return loading

    def _load(self, loading: "Future[None]") -> None:
        try:
            memory = self._open_memory()
            kept = [] if memory is None else memory.kept_advice(self._limit)
            told = [(name, code and usable(code, self._say)) for name, code in kept]
        except Exception as error:
            self._say(f"kept advice could not be loaded: {_told(error)}")
        else:
            with self._lock:
                for name, code in reversed(told):
                    if name not in self._codes:
                        self._keep(name, code)
        finally:
            loading.set_result(None)

    def advised(self, failure: Failure, tool: str = "") -> Failure:
        """The failure with the label that is known for its fingerprint; else itself, and it is asked."""
        if failure.category is not Category.UNKNOWN and (
            failure.confidence >= self._below or failure.category in _OURS
        ):
            return failure
        if failure.rule == "stated" or failure.rule.startswith("inner:"):
            return failure
        name = failure.fingerprint
        with self._lock:
            known = name in self._codes
            code = self._codes.get(name)
            if known:
                self._codes.move_to_end(name)
            elif self._may_ask() and self._slots.acquire(blocking=False):
                self._asked.append(self._now())
                self._keep(name, None)
            else:
                return failure
        if not known:
            told = dataclasses.replace(failure, exception=None)
            threading.Thread(
                target=self._consult, args=(told, tool), name="failwise-advisor", daemon=True
            ).start()
        return failure if code is None else _labelled(failure, code)

    def answers(self) -> dict[str, str]:
        """The codes it gave, by fingerprint."""
        with self._lock:
            return {name: code for name, code in self._codes.items() if code is not None}

    def _may_ask(self) -> bool:
        """Fewer than `per_hour` questions in the last hour. Under the lock."""
        now = self._now()
        while self._asked and now - self._asked[0] >= _HOUR:
            self._asked.popleft()
        if len(self._asked) < self._per_hour:
            return True
        self._say(f"the advisor was asked {self._per_hour} times within an hour; the rest waits")
        return False

    def _keep(self, name: str, code: str | None) -> None:
        """Remember an answer (or that one is awaited), and forget the one least used. Under the lock."""
        self._codes[name] = code
        if len(self._codes) > self._limit:
            self._codes.popitem(last=False)

    def _consult(self, failure: Failure, tool: str) -> None:
        """In a thread of its own: look whether it is known, else ask, and keep the answer."""
        try:
            memory = self._open_memory()
            asked, code = self._recalled(memory, failure, tool)
            if not asked:
                code = self._answer(failure)
        except Exception as error:
            self._say(f"the advisor failed ({_told(error)}): failures stay as they are")
            return
        finally:
            self._slots.release()
        with self._lock:
            if failure.fingerprint in self._codes:
                self._codes[failure.fingerprint] = code
            if asked and self._asked:
                self._asked.pop()  # it cost nobody anything
        if memory is not None and not asked:
            self._memorise(memory, failure.fingerprint, code)

    def _answer(self, failure: Failure) -> str | None:
        """Ask; None for no opinion, for an answer that came late, for one that is none."""
        started = self._now()
        answer = self._ask(failure)
        if inspect.isawaitable(answer):
            answer = asyncio.run(_awaited(answer, self._seconds))
        if answer is None:
            return None
        if self._now() - started > self._seconds:
            self._say(f"the advisor took more than {self._seconds:g} s: such answers are not used")
            return None
        return usable(answer, self._say)

    def _open_memory(self) -> "Memory | None":
        try:
            return self._memory() if self._memory is not None else None
        except Exception as error:
            self._say(f"advice is not kept beyond this process: {_told(error)}")
            return None

    def _recalled(
        self, memory: "Memory | None", failure: Failure, tool: str
    ) -> tuple[bool, str | None]:
        if memory is None:
            return False, None
        who = getattr(self._ask, "__qualname__", type(self._ask).__name__)
        question = Question(
            failure.fingerprint, failure.message, tool, failure.provider, str(who)[:120]
        )
        try:
            asked, code = memory.ask_advice(question)
        except Exception as error:
            self._say(f"advice is not kept beyond this process: {_told(error)}")
            return False, None
        return asked, None if code is None else usable(code, self._say)

    def _memorise(self, memory: "Memory", fingerprint: str, code: str | None) -> None:
        try:
            memory.advise(fingerprint, code)
        except Exception as error:
            self._say(f"advice is not kept beyond this process: {_told(error)}")

    def _say(self, text: str) -> None:
        """Warn, each thing once."""
        kind = text.partition("(")[0][:60]
        if kind not in self._said:
            self._said.add(kind)
            logger.warning("%s", text)


_living: "weakref.WeakSet[Advisor]" = weakref.WeakSet()


def _after_fork() -> None:
    for advisor in list(_living):
        advisor._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def usable(answer: Any, say: Callable[[str], None]) -> str | None:
    """The code that an answer names, if it is one that an advisor may give."""
    entry = lookup(answer.strip()) if isinstance(answer, str) else None
    if entry is None or category_of(entry.name) in _OURS:
        said = default().text(str(answer)[:200])[:80]
        say(
            f"the advisor said something ({said!r}) that is no code it may give; `failwise codes` lists them"
        )
        return None
    return entry.name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


async def _awaited(answer: Any, seconds: float) -> Any:
    return await asyncio.wait_for(answer, seconds)


def _told(error: Exception) -> str:
    """An error of somebody else's code, without secrets."""
    return default().text(f"{type(error).__name__}: {error}"[:2_000])[:200]


def _labelled(failure: Failure, code: str) -> Failure:
    """The failure under another code: whom it concerns changes, what became of the effect does not.

    It is not called transient where it was not: a label alone is no reason to send again.
    """
    entry = lookup(code)
    assert entry is not None
    return dataclasses.replace(
        failure,
        category=category_of(code),
        code=code,
        transient=False if entry.transient is False else failure.transient,
        fix_by=entry.fix_by,
        meaning=dict(entry.meaning),
        remedies=None,
        advice=None,
        likely_causes=likely_causes(code),
        rule=RULE,
        why="no rule knew it; the advisor named it",
        spoke=(Spoke(RULE, code, 1), *failure.spoke),
        samples=0,
    )
