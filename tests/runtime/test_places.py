"""Where a runtime lives: notebooks, several loops and threads, forks, the end of a process."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from failwise import Runtime
from failwise.testing import ScriptedTool

Make = Callable[..., Runtime]


def run_script(text: str, directory: Path) -> str:
    """Run a program of its own in `directory`; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(text)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "FAILWISE_JOURNAL": str(directory / "journal.db")},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


async def test_call_sync_inside_a_running_loop(make: Make) -> None:
    """A notebook: an async tool is called from a cell without ``await``, while a loop is running."""
    rt = make()
    rt.add(ScriptedTool("read", ["x"], read_only=True))

    @rt.tool(read_only=True, timeout=10)
    async def suspends() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert rt.call_sync("read").value == "x"
    assert rt.call_sync("suspends").value == "failwise-loop"
    assert [r.success for r in rt.call_many_sync(["read", "suspends"])] == [True, True]


def test_call_sync_inside_a_tool_of_the_background_loop(make: Make) -> None:
    """An async tool that blocks its own loop with `call_sync` is slow, and does not hang."""
    rt = make()

    @rt.tool(read_only=True)
    async def inner() -> str:
        await asyncio.sleep(0)
        return "inner"

    @rt.tool(read_only=True)
    async def outer() -> Any:
        return rt.call_sync("inner").unwrap()

    assert rt.call_sync("outer").value == "inner"


def test_async_tools_keep_one_loop(make: Make) -> None:
    """`call_sync` runs async tools on one background loop, so that their connections live on."""
    rt, loops = make(), []

    @rt.tool(read_only=True)
    async def read() -> None:
        loops.append(asyncio.get_running_loop())

    for _ in range(3):
        assert rt.call_sync("read").success
    assert len(set(map(id, loops))) == 1


def test_one_runtime_serves_many_loops_and_threads(make: Make) -> None:
    """Loops one after the other, loops at once in threads, sync calls between them."""
    rt = make()

    @rt.tool
    async def order(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @rt.tool(timeout=20)
    def order_sync(n: int) -> int:
        return n

    async def many(start: int) -> list[Any]:
        calls = [("order" if n % 2 else "order_sync", {"n": start + n}) for n in range(10)]
        return [r.value for r in await rt.call_many(calls)]

    assert asyncio.run(many(0)) == list(range(10))
    assert asyncio.run(many(10)) == list(range(10, 20))
    values: list[Any] = []

    def work(start: int) -> None:
        values.extend(asyncio.run(many(start)))
        values.append(rt.call_sync("order", {"n": start + 10}).value)
        values.append(rt.call_sync("order_sync", {"n": start + 11}).value)

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(values) == sorted(100 * n + i for n in range(1, 5) for i in range(12))
    assert len(rt.journal.rows("SELECT * FROM claims WHERE state = 'done'")) == 68


def test_shared_calls_over_two_loops(make: Make) -> None:
    """The same call in two loops at once: one send, one result."""
    rt, sent = make(), []
    started, go = threading.Event(), threading.Event()

    @rt.tool
    async def order() -> str:
        sent.append(1)
        started.set()
        await asyncio.to_thread(go.wait, 20)
        return "placed"

    run, values = rt.run("job"), []

    def work() -> None:
        values.append(asyncio.run(run.call("order", {}, call_id="c1")).value)

    one, two = threading.Thread(target=work), threading.Thread(target=work)
    one.start()
    assert started.wait(10)
    two.start()
    while next(iter(rt._flights.values())).waiters < 2:
        pass
    go.set()
    one.join(20)
    two.join(20)
    assert values == ["placed", "placed"]
    assert sent == [1]


def test_a_run_flushes_when_it_ends(make: Make, tmp_path: Path) -> None:
    """After ``with rt.run(...)`` its records can be read by another connection."""
    rt = make()
    rt.add(ScriptedTool("read", ["x"], read_only=True))

    def count() -> int:
        with sqlite3.connect(tmp_path / "journal.db") as other:
            number: int = other.execute("SELECT count(*) FROM calls").fetchone()[0]
        other.close()
        return number

    with rt.run("one") as run:
        assert run.call_sync("read").success
    assert count() == 1

    async def chain() -> None:
        async with rt.run("two") as run:
            await run.call("read")

    asyncio.run(chain())
    assert count() == 2


def test_records_are_flushed_at_exit(tmp_path: Path) -> None:
    """A program that simply ends loses no record and no settlement."""
    run_script(
        """
        import asyncio, failwise
        rt = failwise.Runtime()

        @rt.tool
        async def order(n: int) -> int:
            return n

        @rt.tool(timeout=5)
        def order_sync(n: int) -> int:
            return n

        asyncio.run(rt.call_many([("order", {"n": n}) for n in range(20)]))
        rt.call_many_sync([("order_sync", {"n": n}) for n in range(20)])
        """,
        tmp_path,
    )
    with sqlite3.connect(tmp_path / "journal.db") as journal:
        calls = journal.execute("SELECT count(*) FROM calls").fetchone()[0]
        states = journal.execute("SELECT DISTINCT state FROM claims").fetchall()
    journal.close()
    assert calls == 40
    assert states == [("done",)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_preload_fork_then_a_claim(tmp_path: Path) -> None:
    """Loaded and used in the parent, forked: the child claims, calls on threads and loops, and ends."""
    out = run_script(
        """
        import asyncio, os, sys, failwise
        rt = failwise.Runtime()

        @rt.tool
        async def order(n: int) -> str:
            await asyncio.sleep(0)
            return f"{n}"

        @rt.tool(timeout=5)
        def order_sync(n: int) -> str:
            return f"{n}"

        def both(n):
            run = rt.run(f"job-{n}")
            assert asyncio.run(run.call("order", {"n": n}, call_id="c1")).success
            assert run.call_sync("order", {"n": n}, call_id="c2").success
            assert run.call_sync("order_sync", {"n": n}, call_id="c3").success

        both(0)
        children = []
        for n in (1, 2, 3):
            child = os.fork()
            if child == 0:
                both(n)
                print(f"child {n} done\\n", end="", flush=True)  # one write
                sys.exit(0)
            children.append(child)
        both(4)
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        again = rt.run("job-2").call_sync("order", {"n": 2}, call_id="c1")
        assert again.extra.get("replayed") is True
        print("parent done")
        """,
        tmp_path,
    )
    assert sorted(out.split("\n")[:-1]) == [
        "child 1 done", "child 2 done", "child 3 done", "parent done"]  # fmt: skip
    with sqlite3.connect(tmp_path / "journal.db") as journal:
        states = journal.execute("SELECT run_id, state FROM claims").fetchall()
        calls = journal.execute("SELECT count(*) FROM calls").fetchone()[0]
    journal.close()
    assert sorted(states) == sorted((f"job-{n}", "done") for n in range(5) for _ in range(3))
    assert calls == 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_under_way_does_not_share_the_parents_calls(tmp_path: Path) -> None:
    """A child forked while a call flies in the parent does not wait for the parent's call."""
    out = run_script(
        """
        import os, sys, threading, failwise
        rt = failwise.Runtime()
        go, started = threading.Event(), threading.Event()
        parent = os.getpid()

        @rt.tool(thread=False)
        def order() -> str:
            if os.getpid() == parent:
                started.set()
                go.wait(20)
            return "placed"

        run = rt.run("job")
        flying = threading.Thread(target=run.call_sync, args=("order", {}), kwargs={"call_id": "c1"})
        flying.start()
        started.wait(20)
        child = os.fork()
        if child == 0:
            print(rt.run("job-of-the-child").call_sync("order", {}, call_id="c1").value, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        go.set()
        flying.join()
        """,
        tmp_path,
    )
    assert out == "placed\n"


def test_two_processes_do_not_send_one_effect_twice(tmp_path: Path) -> None:
    """Two processes with the same run and call id at once: one of them sends."""
    script = textwrap.dedent(
        """
        import failwise, pathlib
        rt = failwise.Runtime()

        @rt.tool(thread=False)
        def order() -> str:
            with pathlib.Path("sent").open("a") as file:
                file.write("x")
            return "placed"

        print(rt.run("job").call_sync("order", {}, call_id="c1").value)
        """
    )
    environment = {**os.environ, "FAILWISE_JOURNAL": str(tmp_path / "journal.db")}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    outputs = [program.communicate(timeout=60)[0].decode().strip() for program in programs]
    assert outputs == ["placed"] * 3
    assert (tmp_path / "sent").read_text() == "x"
