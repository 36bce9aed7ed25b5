"""Tasks of dependent calls under faults: goals reached, duplicates, false "done", tokens read again.

``python -m benchmarks.agent_tasks`` from the root of the project (``make bench-agent``). Three loops,
the same simulated model, the same faults; the ledger of the upstream decides what happened.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

import httpx

from benchmarks.loops import Outcome, bare, ours, runtime
from benchmarks.shop import Job, Shop, draw

SEED = 20261130


def measured(shop: Shop, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of one loop."""
    done = shop.done_jobs()
    reachable = [job for job in jobs if job.reachable]
    calls = sum(len(job.chain) for job in jobs)
    return {
        "tasks": len(jobs),
        "reached": len(done),
        "reached_share": round(len(done) / len(jobs), 4),
        "of_reachable": round(sum(job.number in done for job in reachable) / len(reachable), 4),
        "false_done": sum(
            outcome.said_done and job.number not in done
            for job, outcome in zip(jobs, outcomes, strict=True)
        ),
        "said_done": sum(outcome.said_done for outcome in outcomes),
        "duplicates": shop.duplicates,
        "requests_per_call": round(shop.requests / calls, 4),
        "result_tokens": sum(outcome.result_tokens for outcome in outcomes),
        "turns": sum(outcome.turns for outcome in outcomes),
    }


def compare(
    jobs: Sequence[Job], seed: int, *, only_ours: bool = False
) -> dict[str, dict[str, Any]]:
    """All three loops on these jobs."""
    figures = {}
    loops = {} if only_ours else {"try/except": 1, "blanket retry": 4}
    for name, attempts in loops.items():
        with Shop(jobs) as shop, httpx.Client(base_url=shop.server.url(), timeout=5) as client:
            run = bare(client, attempts=attempts)
            figures[name] = measured(shop, jobs, [run(job, seed) for job in jobs])
    with Shop(jobs) as shop, runtime(shop) as rt:
        agent = ours(rt)

        async def all_of_them() -> list[Outcome]:
            return [await agent(job, seed) for job in jobs]

        figures["failwise"] = measured(shop, jobs, asyncio.run(all_of_them()))
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 where a yardstick is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--rate", type=float, default=0.2, help="faults per step")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    jobs = draw(given.tasks, given.rate, given.seed)
    figures = compare(jobs, given.seed)
    sound = compare(draw(given.tasks, 0.0, given.seed), given.seed)
    for name, row in figures.items():
        row["reread"] = round(row["result_tokens"] / sound[name]["result_tokens"], 3)
    three = draw(1000, 0.05, given.seed, lasting=False, steps=(3,))
    e30 = compare(three, given.seed, only_ours=True)["failwise"]
    untouched = sum(not any(job.faults) for job in three) / len(three)
    if given.json:
        print(json.dumps({"tasks": figures, "three_calls": e30, "untouched": untouched}, indent=1))
    else:
        _print(figures, e30, untouched)
    best = figures["failwise"]
    held = (
        best["duplicates"] == 0
        and best["false_done"] == 0
        and best["reread"] <= 1.3
        and e30["reached_share"] >= 0.99
        and e30["requests_per_call"] <= 1.1
        and e30["duplicates"] == 0
    )
    return 0 if held else 1


def _print(figures: dict[str, dict[str, Any]], e30: dict[str, Any], untouched: float) -> None:
    columns = (
        "reached_share",
        "of_reachable",
        "duplicates",
        "false_done",
        "reread",
        "requests_per_call",
        "turns",
    )
    print(f"{'loop':<14}" + "".join(f"{name:>19}" for name in columns))
    for name, row in figures.items():
        print(f"{name:<14}" + "".join(f"{row[column]:>19}" for column in columns))
    print(
        f"\nthree calls at 5 % faults: {e30['reached_share']:.1%} of {e30['tasks']} tasks reached "
        f"({untouched:.1%} met no fault), {e30['requests_per_call']:.3f} requests a call, "
        f"{e30['duplicates']} duplicates, {e30['false_done']} false reports"
    )


if __name__ == "__main__":
    sys.exit(main())
