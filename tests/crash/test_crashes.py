"""Processes killed at every step: nothing is done twice, no claim is lost, every unknown is reported."""

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from failwise.effects.identity import effect_key
from failwise.journal.journal import Journal
from failwise.journal.read import open_effects, opened
from tests.crash.process import Ahead
from tests.crash.shop import Shop, open_shop

if not hasattr(os, "fork"):
    pytest.skip("crashes are tested where processes can fork", allow_module_level=True)

ROOT = Path(__file__).parents[2]
DEPTH = int(os.environ.get("FAILWISE_CRASH_DEPTH", "1"))
"""How many times the usual number of seeds: 1 takes about half a minute."""

TOOLS = ("plain", "keyed", "verified", "final")
LATER = 10_000.0
"""Seconds by which each process is later than the one before it: leases are over."""
_NUMBERS = itertools.count()


class Zygote:
    """Gives birth to processes and says how they died."""

    killed = 0

    def __init__(self, ca_file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # An empty trust store: reading the system's would be most of a child's life.
            env={**os.environ, "SSL_CERT_FILE": str(ca_file), "FAILWISE": ""},
        )

    def live(self, order: dict[str, Any]) -> str:
        """One life: ``killed`` or ``done``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        ended = str(json.loads(self._process.stdout.readline()))
        self.killed += ended == "killed"
        return ended

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@dataclass
class Job:
    """A job of several calls that goes on through any number of processes."""

    zygote: Zygote
    shop: Shop
    folder: Path
    seed: int
    deadline: float | None = None
    lives: int = 0
    calls: list[tuple[str, str, dict[str, Any], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = f"job-{self.seed}-{next(_NUMBERS)}"
        self.journal = self.folder / f"{self.name}.db"
        self.results = self.folder / f"{self.name}.jsonl"
        chance = random.Random(self.seed)
        tools = chance.sample(TOOLS, 2)
        self.calls = [("look", "look", {}, "")]
        for tool in tools:
            arguments = {"order": f"{self.name}-{tool}"}
            self.calls.append((tool, tool, arguments, ""))
            # A model that repeats a failed order under a new id.
            self.calls.append((f"{tool}-again", tool, arguments, tool))

    @property
    def orders(self) -> dict[str, str]:
        """Each order with its tool."""
        return {arguments["order"]: tool for _, tool, arguments, _ in self.calls if arguments}

    def live(self, kill: tuple[str, int] | None, *, later: bool = True) -> str:
        """One process of the job, killed as told, or to its end."""
        ended = self.zygote.live(
            {
                "run": self.name,
                "journal": str(self.journal),
                "url": self.shop.url,
                "results": str(self.results),
                "later": LATER * self.lives,
                "kill": kill,
                "calls": self.calls,
                "deadline": self.deadline,
            }
        )
        self.lives += later
        assert ended in ("killed", "done"), ended
        return ended

    def last(self) -> dict[str, dict[str, Any]]:
        """What was last said about each call."""
        lines = self.results.read_text("utf-8").splitlines() if self.results.exists() else []
        return {said["call_id"]: said for said in map(json.loads, lines)}

    def open_keys(self) -> set[str]:
        """The effects that the journal reports as open, once all leases are over."""
        with opened(str(self.journal)) as source:
            far = 4e9
            return {effect.key for effect in open_effects(source, now=far)}

    def claimed_keys(self) -> set[str]:
        with opened(str(self.journal)) as source:
            return {row["key"] for row in source.rows("SELECT key FROM claims")}

    def check(self) -> None:
        """What must hold after a job has come to its end, however often it was killed."""
        last, claimed, unknown = self.last(), self.claimed_keys(), self.open_keys()
        for order, tool in self.orders.items():
            happened, story = self.shop.placed(order), (self.name, order, last)
            assert happened <= 1, ("done twice", story)
            keys = {call: effect_key(self.name, call) for call in (tool, f"{tool}-again")}
            if self.shop.asked(order):
                assert claimed & set(keys.values()), ("sent without a claim", story)
            said = [last[call] for call in keys if call in last]
            assert said, ("nothing was said of it", story)
            if any(each["success"] for each in said):
                assert happened == 1, ("said to be done, and is not", story)
            elif happened:
                # Not known to be done: then the model is told so, and a person finds it.
                told = {each["effect"] for each in said}
                assert told & {"unknown", "applied"}, ("a lost claim", story)
                assert unknown & set(keys.values()), ("not reported as open", story)
            for key in unknown & set(keys.values()):
                call = next(name for name, each in keys.items() if each == key)
                assert last[call]["effect"] == "unknown", ("open, but not said so", story)
            if tool == "keyed":
                used = self.shop.keys.get(order, set())
                assert used <= set(keys.values()), ("a key of another process", story)
                assert len(used) <= 1, ("the key has changed", story)

    def settle_all(self) -> None:
        """A person looks at the ledger and settles every open effect accordingly."""
        names = {effect_key(self.name, call): arguments for call, _, arguments, _ in self.calls}
        journal = Journal(self.journal, clock=Ahead(LATER * self.lives))
        for key in self.open_keys():
            placed = self.shop.placed(names[key]["order"])
            journal.resolve(key, "done" if placed else "not_done")
        journal.close()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as opened_shop:
        yield opened_shop


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    trust = tmp_path_factory.mktemp("trust") / "none.pem"
    trust.write_text("")
    mother = Zygote(trust)
    yield mother
    mother.close()


def seeds(count: int) -> list[int]:
    return list(range(count * DEPTH))


@pytest.mark.parametrize("seed", seeds(6))
def test_killed_before_every_step(seed: int, zygote: Zygote, shop: Shop, tmp_path: Path) -> None:
    """For each step of a job: one process dies just before it, the next brings the job to its end."""
    kills = 0
    for number in itertools.count(1):
        job = Job(zygote, shop, tmp_path, seed)
        if job.live(("step", number)) == "done":
            break
        kills += 1
        assert job.live(None) == "done"
        job.check()
    assert kills >= 8


@pytest.mark.parametrize("kind", ["sent", "answered"])
@pytest.mark.parametrize("seed", seeds(6))
def test_killed_around_a_request(
    seed: int, kind: str, zygote: Zygote, shop: Shop, tmp_path: Path
) -> None:
    """A process dies while the server works for it, or with the answer in hand."""
    for number in itertools.count(1):
        job = Job(zygote, shop, tmp_path, seed)
        if job.live((kind, number)) == "done":
            break
        assert job.live(None) == "done"
        job.check()
    assert number > 2


@pytest.mark.parametrize("seed", seeds(16))
def test_killed_again_and_again(seed: int, zygote: Zygote, shop: Shop, tmp_path: Path) -> None:
    """Five processes in sequence die at any step or moment; the sixth ends the job. A person settles
    by the ledger what stayed open, and after that every order is there exactly once."""
    chance = random.Random(seed)
    job = Job(zygote, shop, tmp_path, seed)
    for _ in range(5):
        kind = chance.choice(["step", "step", "after", "sent"])
        most = {"step": 18, "after": 120, "sent": 3}[kind]
        job.live((kind, chance.randint(1, most)))
    assert job.live(None) == "done"
    job.check()
    for _ in range(4):  # what was settled as not done is sent again, and may be lost again
        if job.open_keys():
            job.settle_all()
            assert job.live(None) == "done"
            job.check()
    assert not job.open_keys()
    for order in job.orders:
        assert shop.placed(order) == 1, order


@pytest.mark.parametrize("seed", seeds(16))
def test_killed_at_any_moment(seed: int, zygote: Zygote, shop: Shop, tmp_path: Path) -> None:
    """A process dies by the clock, in the middle of whatever it does: a commit, a write, a read."""
    job = Job(zygote, shop, tmp_path, seed)
    job.live(("after", 3 + 9 * (seed % 16)))
    assert job.live(None) == "done"
    job.check()


@pytest.mark.parametrize("seed", seeds(5))
def test_while_a_lease_lasts_nobody_else_sends(
    seed: int, zygote: Zygote, shop: Shop, tmp_path: Path
) -> None:
    """A process that comes at once finds the dead one's claim held: it waits, sends nothing, says so."""
    job = Job(zygote, shop, tmp_path, seed)
    assert job.live(("sent", 1), later=False) == "killed"
    order, tool = next(iter(job.orders.items()))
    asked = shop.asked(order)
    job.deadline = 0.4
    assert job.live(None) == "done"
    assert job.last()[tool]["code"] in ("runtime.in_flight", "runtime.deadline")
    assert shop.asked(order) == asked
    job.deadline = None
    assert job.live(None) == "done"
    job.check()
