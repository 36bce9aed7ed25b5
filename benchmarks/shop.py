"""The upstream of the benchmark: a shop over real sockets whose steps need each other, with faults
drawn per step. What really happened stands in its ledger."""

import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from failwise.faults import Fault, FaultServer, Reply, Request

READS = ("find", "price")
WRITES = ("reserve", "order", "pay", "receipt")
KEYED = ("order", "pay")
"""Writes that honour an idempotency key. `reserve` can be looked up; `receipt` offers nothing."""
ASIDES = ("news", "hours")
CHAINS = {
    3: ("find", "reserve", "order"),
    4: ("find", "price", "reserve", "order"),
    5: ("find", "price", "reserve", "order", "pay"),
    6: ("find", "price", "reserve", "order", "pay", "receipt"),
}

TRANSIENT = {
    "unavailable": 20,
    "gateway": 12,
    "throttled": 15,
    "reset": 12,
    "lost": 15,
    "internal": 8,
    "disguised": 5,
    "outage": 5,
}
"""Faults that pass, by weight; `lost`: it is done, and the answer never comes."""
LASTING = {"refused": 4, "gone": 4}
"""Faults that stay: a refusal for good, a value that is not taken as it is."""


@dataclass
class Job:
    """One task: its chain, the fault of each step (None: none), and how often each was asked."""

    number: int
    chain: tuple[str, ...]
    faults: tuple[str | None, ...]
    asked: Counter[int] = field(default_factory=Counter)

    @property
    def reachable(self) -> bool:
        """Nothing on the way is refused for good."""
        return not any(fault in LASTING for fault in self.faults)

    @property
    def start(self) -> str:
        return f"t-{self.number}-0"


def draw(
    count: int, rate: float, seed: int, *, lasting: bool = True, steps: Sequence[int] = (3, 4, 5, 6)
) -> list[Job]:
    """So many tasks, each of whose steps is at fault with probability `rate`."""
    chance = random.Random(seed)
    weights = {**TRANSIENT, **LASTING} if lasting else dict(TRANSIENT)
    jobs = []
    for number in range(count):
        chain = CHAINS[chance.choice(list(steps))]
        faults = tuple(
            chance.choices(list(weights), list(weights.values()))[0]
            if chance.random() < rate
            else None
            for _ in chain
        )
        jobs.append(Job(number, chain, faults))
    return jobs


class Shop:
    """A running shop for some jobs; use it with ``with``."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = {job.number: job for job in jobs}
        for job in jobs:
            job.asked.clear()
        self.server = FaultServer()
        self._lock = threading.Lock()
        self.requests = 0
        """Requests for the steps of jobs."""

    def __enter__(self) -> "Shop":
        self.server.__enter__()
        for tool in READS:
            self.server.route("GET", f"/{tool}/{{ticket}}", self._step)
        for tool in WRITES:
            self.server.route("POST", f"/{tool}", self._step, honours_key=tool in KEYED)
        self.server.route("GET", "/reserved/{ticket}", self._reserved)
        for name in ASIDES:
            self.server.route("GET", f"/{name}", Fault.json({"text": f"{name}: nothing new"}))
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.close()

    def done(self, job: Job) -> bool:
        """Every write of the job happened."""
        made = {entry.name for entry in self.server.ledger.of() if entry.data["job"] == job.number}
        return all(step in made for step in job.chain if step in WRITES)

    def done_jobs(self) -> set[int]:
        """The numbers of all jobs whose every write happened."""
        made: dict[int, set[str]] = {}
        for entry in self.server.ledger.of():
            made.setdefault(entry.data["job"], set()).add(entry.name)
        return {
            job.number
            for job in self.jobs.values()
            if all(step in made.get(job.number, ()) for step in job.chain if step in WRITES)
        }

    @property
    def duplicates(self) -> int:
        """Effects that were done again."""
        return len(self.server.ledger.duplicates())

    def _reserved(self, request: Request, _: int) -> Reply:
        job, step = self._place(request.parameters["ticket"])
        known = any(
            entry.name == "reserve" and entry.data["job"] == job.number
            for entry in self.server.ledger.of("reserve")
        )
        found = {"ticket": f"t-{job.number}-{step + 1}"} if known else None
        return Fault.json({"reservation": found})

    def _place(self, ticket: str) -> tuple[Job, int]:
        _, number, step = ticket.split("-")
        return self.jobs[int(number)], int(step)

    def _step(self, request: Request, _: int) -> Reply:
        tool = request.path.strip("/").partition("/")[0]
        sent = request.parameters.get("ticket") or (request.json or {}).get("ticket") or ""
        try:
            job, step = self._place(sent)
        except (ValueError, KeyError):
            return Fault.json({"error": "no such ticket", "code": "not_found"}, 404)
        if step >= len(job.chain) or job.chain[step] != tool:
            return Fault.json({"error": f"this ticket is not for {tool}"}, 409)
        with self._lock:
            self.requests += 1
            job.asked[step] += 1
            number = job.asked[step]
        good = Fault.json({"ticket": f"t-{job.number}-{step + 1}", "note": "x" * 200})
        fault = job.faults[step]
        limit = 3 if fault == "outage" else 1
        if fault is None or (number > limit and fault not in LASTING):
            return self._effect(tool, job, good)
        return self._fault(fault, tool, job, good)

    def _effect(self, tool: str, job: Job, then: Reply) -> Reply:
        return Fault.effect(tool, then, data={"job": job.number}) if tool in WRITES else then

    def _fault(self, fault: str, tool: str, job: Job, good: Reply) -> Reply:
        match fault:
            case "unavailable" | "outage":
                return Fault.json({"error": "service unavailable"}, 503)
            case "gateway":
                return Fault.status(502)
            case "throttled":
                return Fault.json({"error": "too many requests"}, 429, headers={"Retry-After": "2"})
            case "reset":
                return Fault.reset()
            case "lost":
                return self._effect(tool, job, Fault.reset())
            case "internal":
                return Fault.json({"error": "internal error"}, 500)
            case "disguised":
                error = {"code": "SYSTEM_BUSY", "message": "system busy, try again later"}
                return Fault.json({"success": False, "error": error})
            case "refused":
                return Fault.json({"error": "forbidden", "message": "not allowed"}, 403)
            case _:
                return Fault.json({"error": "not_found", "message": "no longer offered"}, 404)
