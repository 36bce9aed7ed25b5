"""What callers ask of the writer."""

from concurrent.futures import Future
from typing import Any

from failwise.effects.claims import Settled
from failwise.vocabulary.errors import FailwiseError
from failwise.vocabulary.records import record
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Claim, Claimed


class JournalUnavailable(FailwiseError, RuntimeError):
    """An effect could not be claimed durably, so it must not be sent. The message says why.

    Its code is ``runtime.journal_unavailable``.
    """


class Claiming:
    """A claim to be answered; `lease` in seconds from when it is written."""

    __slots__ = ("future", "lease", "owner", "step")

    def __init__(self, step: Claim, owner: str, lease: float) -> None:
        self.step, self.owner, self.lease = step, owner, lease
        self.future: Future[Claimed] = Future()

    def refuse(self, error: JournalUnavailable) -> None:
        """Answer with an error, unless nobody waits any more."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


@record
class Settling:
    """A settlement to be noted."""

    key: str
    state: Settled
    result: ToolResult[Any] | None = None


class Mark:
    """A flush: put into both queues, answered once both were met.

    True when everything before it is written.
    """

    __slots__ = ("_missing", "_written", "future")

    def __init__(self) -> None:
        self.future: Future[bool] = Future()
        self._missing, self._written = 2, True

    def met(self, *, written: bool) -> None:
        self._missing -= 1
        self._written = self._written and written
        if self._missing == 0 and self.future.set_running_or_notify_cancel():
            self.future.set_result(self._written)
