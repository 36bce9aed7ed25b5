"""`Upstream`: short words for asking guards about one upstream, in tests of guards."""

from concurrent.futures import Future
from typing import Any, Protocol, TypeAlias

from failwise.testing.clock import SteppingClock
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.kinds import Category
from failwise.vocabulary.ports import Guards
from failwise.vocabulary.steps import Admit, Admitted, Refused, Release

Reply: TypeAlias = Admitted | Refused


class WatchedGuards(Guards, Protocol):
    """Guards that can be looked at: rows as of `MemoryGuards.statistics`."""

    def statistics(self) -> list[dict[str, Any]]: ...


def ill(code: str = "network.connection_reset", retry_after: float | None = None) -> Failure:
    """A failure with this code."""
    return Failure(Category(code.partition(".")[0]), code, retry_after=retry_after)


RESET = ill()
THROTTLED = ill("rate_limit.requests")


class Upstream:
    """One upstream under test: short words for the steps towards it."""

    def __init__(
        self, guards: WatchedGuards, clock: SteppingClock, name: str = "shop", patience: float = 5.0
    ) -> None:
        self.guards, self.clock, self.name, self.patience = guards, clock, name, patience

    def ask(
        self,
        run: str = "r",
        attempt: int = 1,
        repeats: Failure | None = None,
        credential: str | None = None,
        until: float | None = None,
    ) -> "Reply | Future[Reply]":
        return self.guards.admit(Admit(self.name, credential, run, attempt, repeats, until))

    def admit(self, run: str = "r", attempt: int = 1, *rest: Any, **more: Any) -> Reply:
        """The answer; asked for only where one must come."""
        return self.answer(self.ask(run, attempt, *rest, **more))

    def answer(self, reply: "Reply | Future[Reply]") -> Reply:
        return reply.result(self.patience) if isinstance(reply, Future) else reply

    def waiting(self, run: str, until: float | None = None) -> "Future[Reply]":
        """A caller that has to wait for a slot."""
        reply = self.ask(run, until=until)
        assert isinstance(reply, Future), reply
        self.row()
        assert not reply.done()
        return reply

    def sent(self, run: str = "r", attempt: int = 1, *rest: Any, **more: Any) -> None:
        reply = self.admit(run, attempt, *rest, **more)
        assert isinstance(reply, Admitted), reply

    def refused(self, code: str, run: str = "r", attempt: int = 1, *rest: Any) -> Refused:
        reply = self.admit(run, attempt, *rest)
        assert isinstance(reply, Refused), reply
        assert reply.code == code, reply
        assert reply.reason
        return reply

    def release(
        self,
        outcome: Failure | None = None,
        run: str = "r",
        attempt: int = 1,
        credential: str | None = None,
        sent: bool = True,
    ) -> None:
        self.guards.release(Release(self.name, credential, run, attempt, outcome, sent))

    def call(self, outcome: Failure | None = None, run: str = "r") -> Reply:
        reply = self.admit(run)
        if isinstance(reply, Admitted):
            self.release(outcome, run)
        return reply

    def row(self) -> dict[str, Any]:
        (row,) = (row for row in self.guards.statistics() if row["upstream"] == self.name)
        return row

    def open_circuit(self) -> None:
        while isinstance(self.call(RESET), Admitted):
            pass
        assert self.row()["circuit"] == "open"
