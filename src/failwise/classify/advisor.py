"""`Advisor`: somebody else's view (a model's, say) of failures that no rule knows, kept by fingerprint.

The call that failed does not wait: the answer serves the next failure of the same fingerprint. An
answer names a code; it never says anything about the effect, so nothing becomes safe to repeat by it.
"""

import asyncio
import dataclasses
import inspect
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from failwise.vocabulary.codes import category_of, lookup
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category

logger = logging.getLogger("failwise")

RULE: Final = "advisor"
_AT_ONCE: Final = 2
_OURS: Final = frozenset({Category.UNKNOWN, Category.RUNTIME, Category.MODEL_OUTPUT})
"""Categories that are Failwise's own to give."""


class Advisor:
    """Asks `ask` once per fingerprint about failures of category ``unknown``, or of a confidence
    under `below`, and labels later ones of that fingerprint with its answer.

    `ask` takes a `Failure` without its exception (redacted as all that leaves) and gives a code of
    the registry (``server.overloaded``), or None for no opinion; it may be a coroutine function. It
    runs in a thread of its own, at most two at once, and an answer that comes after `seconds` is
    not used. `limit` fingerprints are kept, the latest used. Whatever it raises is logged once and
    counts as no opinion. Safe to share between threads.
    """

    def __init__(
        self,
        ask: Callable[[Failure], Any],
        *,
        below: float = 0.3,
        seconds: float = 30.0,
        limit: int = 1_024,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(ask):
            raise UsageError(f"advisor={ask!r}: give a function that takes a failure")
        self._ask = ask
        self._below = below
        self._seconds = seconds
        self._limit = limit
        self._now = now
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._codes: OrderedDict[str, str | None] = OrderedDict()

    def advised(self, failure: Failure) -> Failure:
        """The failure with the label that is known for its fingerprint; else itself, and it is asked."""
        if failure.category is not Category.UNKNOWN and failure.confidence >= self._below:
            return failure
        if failure.rule == "stated" or failure.rule.startswith("inner:"):
            return failure
        with self._lock:
            known = failure.fingerprint in self._codes
            code = self._codes.get(failure.fingerprint)
            if known:
                self._codes.move_to_end(failure.fingerprint)
            elif self._slots.acquire(blocking=False):
                self._codes[failure.fingerprint] = None
                if len(self._codes) > self._limit:
                    self._codes.popitem(last=False)
            else:
                return failure
        if not known:
            told = dataclasses.replace(failure, exception=None)
            threading.Thread(
                target=self._consult, args=(told,), name="failwise-advisor", daemon=True
            ).start()
        return failure if code is None else _labelled(failure, code)

    def answers(self) -> dict[str, str]:
        """The codes it gave, by fingerprint."""
        with self._lock:
            return {name: code for name, code in self._codes.items() if code is not None}

    def _consult(self, failure: Failure) -> None:
        started = self._now()
        try:
            answer = self._ask(failure)
            if inspect.isawaitable(answer):
                answer = asyncio.run(_awaited(answer, self._seconds))
        except Exception:
            logger.exception("the advisor failed; %s stays as it is", failure.code)
            return
        finally:
            self._slots.release()
        if answer is None or self._now() - started > self._seconds:
            return
        entry = lookup(answer) if isinstance(answer, str) else None
        if entry is None or category_of(entry.name) in _OURS:
            logger.warning("the advisor said %r, which is no code it may give", str(answer)[:80])
            return
        with self._lock:
            if failure.fingerprint in self._codes:
                self._codes[failure.fingerprint] = entry.name


async def _awaited(answer: Any, seconds: float) -> Any:
    return await asyncio.wait_for(answer, seconds)


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
        rule=RULE,
        confidence=failure.confidence,
        samples=0,
    )
