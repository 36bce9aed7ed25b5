"""The other side: a real server that places orders, misbehaves by seed, and knows what was really done."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from failwise.faults import Fault, FaultServer, Reply
from failwise.faults.requests import Request

HELD_BACK = 0.008
"""Seconds by which an answer comes after its effect: time to be killed in between."""


class Shop:
    """A fault server whose ledger is the truth. Routes are the tools' names."""

    def __init__(self, server: FaultServer) -> None:
        self._server, self._lock = server, Lock()
        self._asked: Counter[str] = Counter()
        self.keys: dict[str, set[str]] = {}
        """The idempotency keys with which each order came."""
        for tool in ("plain", "verified", "final"):
            server.route("POST", f"/{tool}", self._order)
        server.route("POST", "/keyed", self._order, honours_key=True)
        server.route("GET", "/look", Fault.json({"items": []}))
        server.route("GET", "/placed/{order}", self._placed)
        self.url = server.url()

    def placed(self, order: str) -> int:
        """How often an order was really placed."""
        return sum(1 for e in self._server.ledger.of("order") if e.data["order"] == order)

    def asked(self, order: str) -> int:
        """How many requests came for it."""
        return self._asked[order]

    def _placed(self, request: Request, number: int) -> Reply:
        return Fault.json({"placed": self.placed(request.parameters["order"]) > 0})

    def _order(self, request: Request, number: int) -> Reply:
        order = request.json["order"]
        with self._lock:
            self._asked[order] += 1
            attempt = self._asked[order]
            if request.idempotency_key is not None:
                self.keys.setdefault(order, set()).add(request.idempotency_key)
        good = Fault.json({"id": order}, delay=HELD_BACK)
        # The first two answers are the seed's, then all is well: a job must be able to end.
        kind = random.Random(f"{order}/{attempt}").choice(_MOODS) if attempt <= 2 else "good"
        match kind:
            case "good":
                return Fault.effect("order", good)
            case "lost":
                return Fault.effect("order", Fault.reset(HELD_BACK))
            case "gone":
                return Fault.reset()
            case "failed_after":
                return Fault.effect("order", Fault.status(500, delay=HELD_BACK))
            case "failed_before":
                return Fault.status(500)
            case _:
                return Fault.status(429)


_MOODS = (
    "good", "good", "good", "good", "lost", "gone", "failed_after", "failed_before", "throttled",
)  # fmt: skip


@contextmanager
def open_shop() -> Iterator[Shop]:
    """A shop on loopback, as long as the block lasts."""
    with FaultServer() as server:
        yield Shop(server)
