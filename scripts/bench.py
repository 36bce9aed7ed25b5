"""What a good call costs, and a claim: `make bench`.

Ratios are taken interleaved in one process and can be trusted on a busy machine; absolute figures
cannot. Exits non-zero where a bound is missed.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import tenacity

import failwise
from failwise.journal.journal import Journal
from failwise.vocabulary.steps import Claim

CALL_RATIO = 0.4
CLAIM_MS = 1.0
RAW = '{"query": "running shoes", "limit": 5, "sort": "price", "in_stock": true}'
ARGUMENTS = json.loads(RAW)


async def search(
    query: str, limit: int = 10, sort: str = "name", in_stock: bool = False
) -> dict[str, Any]:
    """Search the catalogue."""
    return {"items": [query], "count": limit}


async def timed(calls: int, make: Callable[[], Awaitable[Any]]) -> float:
    """Microseconds a call."""
    begin = time.perf_counter()
    for _ in range(calls):
        await make()
    return (time.perf_counter() - begin) / calls * 1e6


async def call_ratio(directory: Path, rounds: int, calls: int) -> dict[str, float]:
    """One good call through the whole path against the same function under tenacity's decorator."""
    runtime = failwise.Runtime(directory / "bench.db")
    runtime.add(search, read_only=True, timeout=10)
    bare = tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_exponential())(
        search
    )

    def ours() -> Awaitable[Any]:
        return runtime.call("search", RAW, call_id="call_7")

    def theirs() -> Awaitable[Any]:
        return bare(**ARGUMENTS)

    for warm in (ours, theirs):
        await timed(calls, warm)
    pairs = []
    for _ in range(rounds):
        pairs.append((await timed(calls, ours), await timed(calls, theirs)))
        runtime.flush()
    runtime.close()
    return {
        "ratio": statistics.median(a / b for a, b in pairs),
        "ratio_best": min(a for a, _ in pairs) / min(b for _, b in pairs),
        "failwise_us": min(a for a, _ in pairs),
        "tenacity_us": min(b for _, b in pairs),
    }


def claim_cost(directory: Path, claims: int) -> dict[str, float]:
    """A durable claim, one at a time and 500 at once (which share commits)."""
    journal = Journal(directory / "claims.db")

    def claim(name: str, number: int) -> Any:
        step = Claim(
            f"{name}-{number}", f"f-{name}-{number}", "run", "order", f"c{number}", {"n": number}
        )
        return journal.claim(step, "bench", 60)

    claim("warm", 0).result()
    single = []
    for number in range(claims):
        begin = time.perf_counter()
        claim("one", number).result()
        single.append((time.perf_counter() - begin) * 1000)
    begin = time.perf_counter()
    wait([claim("many", number) for number in range(500)])
    together = (time.perf_counter() - begin) * 1000 / 500
    journal.close()
    single.sort()
    return {
        "claim_p50_ms": single[len(single) // 2],
        "claim_p95_ms": single[int(len(single) * 0.95)],
        "claim_of_500_ms": together,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        figures = asyncio.run(call_ratio(directory, options.rounds, options.calls))
        figures |= claim_cost(directory, 200)
    missed = []
    if figures["ratio"] > CALL_RATIO:
        missed.append(f"a good call costs {figures['ratio']:.2f} of tenacity's, above {CALL_RATIO}")
    if figures["claim_p50_ms"] > CLAIM_MS:
        missed.append(f"a claim takes {figures['claim_p50_ms']:.2f} ms, above {CLAIM_MS}")
    if options.json:
        print(json.dumps({**figures, "missed": missed}))
    else:
        print(
            f"good call    {figures['failwise_us']:7.1f} us   tenacity {figures['tenacity_us']:.1f} us"
            f"   ratio {figures['ratio']:.2f} (bound {CALL_RATIO}; best {figures['ratio_best']:.2f})"
        )
        print(
            f"claim        {figures['claim_p50_ms']:7.2f} ms   p95 {figures['claim_p95_ms']:.2f} ms"
            f"   (bound {CLAIM_MS} at the median)"
        )
        print(f"500 at once  {figures['claim_of_500_ms']:7.2f} ms each")
        for line in missed:
            print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
