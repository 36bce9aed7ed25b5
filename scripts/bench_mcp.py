"""What the proxy adds to a call over stdio, and what a long run leaves behind.

``python scripts/bench_mcp.py`` compares an echo tool called directly, through a bare pass-through on the
same SDK, and through ``failwise mcp wrap``, in turns. ``--soak SECONDS`` calls through one proxy with 50
callers while the server is killed again and again, and counts processes, descriptors and memory of the proxy.
"""

import argparse
import asyncio
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, MCPError, StdioServerParameters

ROOT = Path(__file__).parents[1]
SERVER = ["-m", "tests.connect.proxy.shop"]
BARE = """
import anyio, sys
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
async def main():
    target = StdioServerParameters(command=sys.executable, args=sys.argv[1:])
    async with Client(target, cache=None) as client:
        async def listed(context, params):
            return await client.session.list_tools()
        async def called(context, params):
            return await client.session.call_tool(params.name, params.arguments)
        server = Server("bare", on_list_tools=listed, on_call_tool=called)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
anyio.run(main)
"""


def parameters(home: str, *arguments: str) -> StdioServerParameters:
    environment = {"HOME": home, "PYTHONPATH": str(ROOT)}
    return StdioServerParameters(
        command=sys.executable, args=list(arguments), env=environment, cwd=str(ROOT)
    )


async def echo(target: StdioServerParameters, calls: int) -> float:
    """The median of an echo, in milliseconds."""
    async with Client(target, cache=None) as client:
        await client.session.list_tools()
        taken = []
        for number in range(calls + 20):
            began = time.perf_counter()
            await client.session.call_tool("echo", {"text": "x"})
            if number >= 20:
                taken.append((time.perf_counter() - began) * 1000)
        return statistics.median(taken)


async def latency(home: str, rounds: int, calls: int) -> None:
    wrap = ("-m", "failwise", "mcp", "wrap", "--trust-annotations", "--", sys.executable, *SERVER)
    added = []
    print(f"{'direct':>8} {'bare':>8} {'failwise':>9}   ms at the median of {calls} calls")
    for _ in range(rounds):
        direct = await echo(parameters(home, *SERVER), calls)
        bare = await echo(parameters(home, "-c", BARE, *SERVER), calls)
        ours = await echo(parameters(home, *wrap), calls)
        added.append(ours - bare)
        print(f"{direct:8.2f} {bare:8.2f} {ours:9.2f}")
    print(f"added to a bare pass-through: {statistics.median(added):.2f} ms (median of {rounds})")


def below(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[1:]
    rows = [tuple(map(int, line.split())) for line in listed]
    return [child for child, parent in rows if parent == pid]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def state(pid: int) -> tuple[int, int, int]:
    """Descriptors, memory (kB) and children of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.split("VmRSS:")[1].split()[0])
    return len(os.listdir(f"/proc/{pid}/fd")), memory, len(below(pid))


async def soak(home: str, seconds: float) -> None:
    wrap = ("-m", "failwise", "mcp", "wrap", "--trust-annotations", "--", sys.executable, *SERVER)
    chance = random.Random(1)
    until = time.monotonic() + seconds
    counts = {"ok": 0, "failed": 0, "kills": 0}
    async with Client(parameters(home, *wrap), cache=None) as client:
        await client.session.list_tools()
        proxy = next(child for child in below(os.getpid()) if "wrap" in command_line(child))

        async def caller() -> None:
            while time.monotonic() < until:
                try:
                    result = await client.session.call_tool("echo", {"text": "x"})
                    counts["failed" if result.is_error else "ok"] += 1
                except MCPError:
                    counts["failed"] += 1
                await asyncio.sleep(chance.random() * 0.5)

        async def killer() -> None:
            while time.monotonic() < until - 30:
                await asyncio.sleep(15 + chance.random() * 10)
                for child in below(proxy):
                    os.kill(child, signal.SIGKILL)
                    counts["kills"] += 1

        async def watch() -> None:
            while time.monotonic() < until:
                descriptors, memory, children = state(proxy)
                left = until - time.monotonic()
                print(
                    f"{left:5.0f} s left: {descriptors} descriptors, {memory // 1024} MB, {children} children, {counts}",
                    flush=True,
                )
                await asyncio.sleep(min(30, seconds / 4))

        await asyncio.gather(*(caller() for _ in range(50)), killer(), watch())
        print("end:", state(proxy), counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--soak", type=float, metavar="SECONDS")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        if given.soak:
            asyncio.run(soak(home, given.soak))
        else:
            asyncio.run(latency(home, given.rounds, given.calls))


if __name__ == "__main__":
    main()
