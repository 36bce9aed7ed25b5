"""Credentials: their values, single-flight refresh over threads and loops, tenants, secrecy."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from failwise import Category, Effect, FixBy, Runtime, ToolError
from failwise.testing import ScriptedTool, SteppingClock, recorded

Make = Callable[..., Runtime]


class Upstream:
    """An upstream that knows one token at a time; whoever shows another is told it expired."""

    def __init__(self, token: str = "token-fresh-1") -> None:
        self.token = token
        self.requests: list[Any] = []

    async def call(self, arguments: Any, context: Any) -> str:
        return self.answer(context)

    def answer(self, context: Any) -> str:
        self.requests.append(context.credential)
        if context.credential != self.token:
            raise ToolError("old", code="auth.credential_expired", effect="rejected")
        return "welcome"


def add(rt: Runtime, upstream: Upstream, *, asynchronous: bool = True) -> None:
    """The tool "read" of this upstream, with the credential "shop"."""
    from failwise import ToolSpec

    rt.add(
        ToolSpec(
            "read",
            call_async=upstream.call if asynchronous else None,
            call=None if asynchronous else lambda arguments, context: upstream.answer(context),
            credential="shop",
            read_only=True,
            thread=False,
        )
    )


async def get_async() -> str:
    return "token-fresh-1"


@pytest.mark.parametrize(
    "get", ["token-fresh-1", lambda: "token-fresh-1", get_async], ids=["value", "sync", "async"]
)
@pytest.mark.parametrize("driver", ["asyncio", "sync"])
def test_a_credential_is_a_value_or_a_function(rt: Runtime, get: Any, driver: str) -> None:
    """However it is given, the tool sees its value; a function is asked once."""
    asked = []

    def counted() -> Any:
        asked.append(1)
        return get()

    upstream = Upstream()
    add(rt, upstream, asynchronous=driver == "asyncio")
    rt.credential("shop", counted if callable(get) else get)
    for _ in range(3):
        if driver == "asyncio":
            assert asyncio.run(rt.call("read")).success
        else:
            assert rt.call_sync("read").success
    assert upstream.requests == ["token-fresh-1"] * 3
    assert len(asked) == (1 if callable(get) else 0)


@pytest.mark.parametrize("driver", ["asyncio", "sync"])
def test_a_credential_nobody_registered(rt: Runtime, driver: str) -> None:
    """Nothing is sent, and the operator is told what to call."""
    upstream = Upstream()
    add(rt, upstream)
    result = asyncio.run(rt.call("read")) if driver == "asyncio" else rt.call_sync("read")
    assert result.failure
    assert result.failure.category is Category.AUTH
    assert result.failure.effect is Effect.NOT_SENT
    assert "credential" in result.failure.message
    assert upstream.requests == []


@pytest.mark.parametrize("driver", ["asyncio", "sync"])
def test_a_credential_that_cannot_be_got(rt: Runtime, driver: str) -> None:
    """A `get` that raises: not sent, its secret text not shown."""

    def get() -> str:
        raise OSError("vault says: password=hunter2hunter2")

    upstream = Upstream()
    add(rt, upstream)
    rt.credential("shop", get)
    result = asyncio.run(rt.call("read")) if driver == "asyncio" else rt.call_sync("read")
    assert result.failure
    assert result.failure.category is Category.AUTH
    assert result.failure.effect is Effect.NOT_SENT
    assert "hunter2" not in result.to_json()
    assert upstream.requests == []


# Refresh


async def test_ten_callers_make_one_refresh(rt: Runtime) -> None:
    """E8: ten concurrent 401s: one refresh, every caller succeeds with two requests."""
    upstream, refreshes = Upstream("token-fresh-2"), []

    async def refresh() -> str:
        refreshes.append(1)
        await asyncio.sleep(0)
        return "token-fresh-2"

    add(rt, upstream)
    rt.credential("shop", "token-old-1", refresh=refresh)
    results = await asyncio.gather(*(rt.call("read") for _ in range(10)))
    assert all(r.success for r in results)
    assert len(refreshes) == 1
    assert len(upstream.requests) == 20
    assert (await rt.call("read")).sent == 1


def test_threads_make_one_refresh(rt: Runtime) -> None:
    """Ten threads with `call_sync`: one refresh."""
    upstream, refreshes = Upstream("token-fresh-2"), []
    together = threading.Barrier(10, timeout=10)

    def refresh() -> str:
        refreshes.append(1)
        return "token-fresh-2"

    def answer(arguments: Any, context: Any) -> str:
        if context.attempt == 1:
            together.wait()
        return upstream.answer(context)

    from failwise import ToolSpec

    rt.add(ToolSpec("read", call=answer, credential="shop", read_only=True, thread=False))
    rt.credential("shop", "token-old-1", refresh=refresh)
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(rt.call_sync("read"))) for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [r.success for r in results] == [True] * 10
    assert len(refreshes) == 1


def test_two_loops_make_one_refresh(rt: Runtime) -> None:
    """Two event loops in two threads share the credential of one runtime."""
    upstream, refreshes = Upstream("token-fresh-2"), []
    together = threading.Barrier(2, timeout=10)

    def refresh() -> str:
        refreshes.append(1)
        return "token-fresh-2"

    async def answer(arguments: Any, context: Any) -> str:
        if context.attempt == 1:
            await asyncio.to_thread(together.wait)
        return upstream.answer(context)

    from failwise import ToolSpec

    rt.add(ToolSpec("read", call_async=answer, credential="shop", read_only=True))
    rt.credential("shop", "token-old-1", refresh=refresh)
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(asyncio.run(rt.call("read"))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [r.success for r in results] == [True, True]
    assert len(refreshes) == 1


async def test_a_cancelled_leader_does_not_fail_its_followers(rt: Runtime) -> None:
    """The refresh has a task of its own: the caller that began it may leave."""
    upstream, go, began = Upstream("token-fresh-2"), asyncio.Event(), asyncio.Event()

    async def refresh() -> str:
        began.set()
        await go.wait()
        return "token-fresh-2"

    add(rt, upstream)
    rt.credential("shop", "token-old-1", refresh=refresh)
    leader = asyncio.create_task(rt.call("read"))
    await began.wait()
    follower = asyncio.create_task(rt.call("read"))
    await asyncio.sleep(0)
    leader.cancel()
    await asyncio.gather(leader, return_exceptions=True)
    go.set()
    assert (await follower).success


async def test_a_refresh_that_fails_stops_the_chain(
    rt: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """One request, the failure goes to the operator, and no secret into the log."""

    def refresh() -> str:
        raise OSError("token=tok_live_51Habcdef0123456789 was refused")

    upstream = Upstream()
    add(rt, upstream)
    rt.credential("shop", "token-old-1", refresh=refresh)
    run = rt.run("job")
    with caplog.at_level(logging.WARNING, "failwise"):
        result = await run.call("read")
    after = await run.call("read")
    assert result.failure
    assert result.failure.fix_by is FixBy.OPERATOR
    assert len(upstream.requests) == 1
    assert after.failure
    assert after.failure.code == "runtime.chain_aborted"
    assert "tok_live" not in caplog.text
    assert "refreshing" in caplog.text


async def test_a_refresher_without_a_value_lets_get_be_asked_again(rt: Runtime) -> None:
    """`refresh` may renew a store that `get` reads."""
    store = {"token": "token-old-1"}
    upstream = Upstream("token-fresh-2")
    add(rt, upstream)
    rt.credential(
        "shop", lambda: store["token"], refresh=lambda: store.update(token="token-fresh-2")
    )
    assert (await rt.call("read")).success
    assert upstream.requests == ["token-old-1", "token-fresh-2"]


@pytest.mark.parametrize("driver", ["asyncio", "sync"])
@pytest.mark.parametrize("what", ["get", "refresh"])
def test_a_callback_that_hangs_holds_nobody(make: Make, driver: str, what: str) -> None:
    """A vault that never answers is waited for `callback_timeout` seconds; then the call ends."""
    rt, go = make(callback_timeout=0.05), threading.Event()
    upstream = Upstream()
    add(rt, upstream)

    def hangs() -> str:
        go.wait(30)
        return "token-too-late"

    if what == "get":
        rt.credential("shop", hangs)
    else:
        rt.credential("shop", "token-old-1", refresh=hangs)
    result = asyncio.run(rt.call("read")) if driver == "asyncio" else rt.call_sync("read")
    go.set()
    assert result.failure
    assert result.failure.category is Category.AUTH
    assert len(upstream.requests) == (0 if what == "get" else 1)


# Tenants


async def test_credentials_of_a_run_keep_tenants_apart(rt: Runtime) -> None:
    """Each run sees its own value, refreshes its own, and is counted apart by the guards."""
    seen, refreshed = [], []
    rt.credential("shop", "of-the-house")

    async def read(arguments: Any, context: Any) -> str:
        seen.append(context.credential)
        if context.credential == "of-alice-old":
            raise ToolError("old", code="auth.credential_expired", effect="rejected")
        return "page"

    from failwise import ToolSpec

    rt.add(ToolSpec("read", call_async=read, credential="shop", read_only=True))

    def refresh() -> str:
        refreshed.append("alice")
        return "of-alice-new"

    alice = rt.run("a", credentials={"shop": {"get": lambda: "of-alice-old", "refresh": refresh}})
    bob = rt.run("b", credentials={"shop": "of-bob-secret"})
    for where in (alice, bob, rt):
        assert (await where.call("read")).success
    assert seen == ["of-alice-old", "of-alice-new", "of-bob-secret", "of-the-house"]
    assert refreshed == ["alice"]
    counted = {row["credential"] for row in rt._guards.statistics()}  # type: ignore[attr-defined]
    assert len(counted) == 3
    assert not any("of-bob" in name or "alice-old" in name for name in counted)


async def test_a_dead_credential_of_one_tenant_stops_only_its_run(rt: Runtime) -> None:
    """An interruption belongs to one run."""
    rt.credential("shop", "token-fresh-1")
    upstream = Upstream()
    add(rt, upstream)
    bad = rt.run("bad", credentials={"shop": "token-of-nobody"})
    good = rt.run("good")
    assert not (await bad.call("read")).success
    aborted = await bad.call("read")
    assert aborted.failure
    assert aborted.failure.code == "runtime.chain_aborted"
    assert (await good.call("read")).success


# Secrecy


@pytest.mark.parametrize("own", [True, False])
async def test_a_credential_is_nowhere_to_be_found(
    make: Make, clock: SteppingClock, tmp_path: Path, caplog: pytest.LogCaptureFixture, own: bool
) -> None:
    """E26: what a tool says with the secret in it reaches neither result, journal, log nor message."""
    secret = f"zq7-plain-words-as-a-secret-{own}"
    rt = make(clock=clock)
    results = recorded(rt)
    if not own:
        rt.credential("shop", lambda: secret)
    tool = ScriptedTool(
        "order",
        [
            ToolError(f"no access for {secret}", code="network.connect_refused", effect="not_sent"),
            RuntimeError(f"sent {secret} to https://x.example/?k={secret}"),
        ],
        credential="shop",
        schema={"type": "object", "properties": {"note": {"type": "string"}}},
    )
    rt.add(tool)
    rt.add(ScriptedTool("login", ["hello"], credential="shop", read_only=True))
    run = rt.run("job", credentials={"shop": secret} if own else None)
    assert (await run.call("login")).success  # from here on the value is known
    with caplog.at_level(logging.DEBUG, "failwise"):
        result = await run.call("order", {"note": f"with {secret}"}, call_id="c1")
    assert result.sent == 2
    await rt.aclose()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    assert secret.encode() not in stored
    assert secret not in result.to_json()
    assert secret not in result.for_model() + result.for_model("zh") + result.for_user()
    assert all(secret not in r.to_json() for r in results)
    assert secret not in "".join(record.getMessage() for record in caplog.records)
