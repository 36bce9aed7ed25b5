"""What a tool's end means: its own word, others' exceptions, bugs, signals that pass, modes."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from failwise import Action, Category, Effect, Runtime, StopReason, ToolError, as_failure
from failwise.testing import ScriptedTool, SteppingClock, recorded

Make = Callable[..., Runtime]


class Interrupted(Exception):
    """A framework's signal: a person is asked, and the tool is run again later."""


class Handoff(BaseException):
    """A framework's signal that is no Exception."""


class SeatTaken(Exception):
    """A library's own exception."""


class Strange(Exception):
    """An exception class nobody knows."""

    def __init__(self, status: int) -> None:
        super().__init__("the door is closed")
        self.status_code = status


@pytest.fixture(params=["asyncio", "sync", "thread"])
def call(request: pytest.FixtureRequest, rt: Runtime) -> Callable[..., Any]:
    """Registers a function that raises or returns, and calls it on each driver."""

    def perform(answer: Any, runtime: Runtime | None = None, **declarations: Any) -> Any:
        runtime = runtime or rt

        def finish() -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return answer() if callable(answer) else answer

        async def finish_async() -> Any:
            return finish()

        if request.param == "asyncio":
            runtime.add(finish_async, name="tool", **declarations)
            return asyncio.run(runtime.call("tool"))
        runtime.add(finish, name="tool", thread=request.param == "thread", **declarations)
        if request.param == "thread":
            return asyncio.run(runtime.call("tool"))
        return runtime.call_sync("tool")

    return perform


def test_a_tool_speaks_for_itself(call: Callable[..., Any]) -> None:
    """`ToolError`: code, effect, transience and wait are taken as they are said, unknown codes too."""
    result = call(
        ToolError("seat 14A is taken", code="business.seat_taken", effect="rejected",
                  transient=False, http_status=409, provider_code="E7", details={"seat": "14A"})
    )  # fmt: skip
    failure = result.failure
    assert (failure.category, failure.code) == (Category.BUSINESS, "business.seat_taken")
    assert (failure.effect, failure.transient) == (Effect.REJECTED, False)
    assert (failure.http_status, failure.provider_code) == (409, "E7")
    assert failure.detail("seat") == "14A"
    assert "seat 14A is taken" in failure.message
    assert result.sent == 1


def test_others_exceptions_through_the_runtimes_mapping(
    call: Callable[..., Any], rt: Runtime
) -> None:
    """``rt.errors``: a library's exception means what the user says, subclasses too."""
    rt.errors({SeatTaken: as_failure("business.conflict", effect="rejected", transient=False)})

    class VerySeatTaken(SeatTaken):
        pass

    result = call(VerySeatTaken("seat 14A"))
    assert result.failure.code == "business.conflict"
    assert result.failure.effect is Effect.REJECTED
    assert "seat 14A" in result.failure.message
    assert isinstance(result.failure.exception, SeatTaken)


def test_a_tools_own_mapping_wins(call: Callable[..., Any], rt: Runtime) -> None:
    """``errors=`` of the tool comes before the runtime's; a code or a function will do."""
    rt.errors({SeatTaken: "business.conflict"})
    result = call(
        SeatTaken("x"),
        errors={SeatTaken: lambda error: ToolError("sold out", code="business.out_of_stock")},
    )
    assert result.failure.code == "business.out_of_stock"


def test_an_unknown_class_is_read_by_its_attributes(call: Callable[..., Any]) -> None:
    """E33: an unknown exception class with ``status_code = 403`` is `auth`, as a typed one would be."""
    result = call(Strange(403))
    assert result.failure.category is Category.AUTH
    assert result.failure.http_status == 403
    assert result.suggested_action is Action.ABORT
    assert result.sent == 1


@pytest.mark.parametrize("bug", [KeyError("price"), TypeError("no"), ZeroDivisionError("x")])
def test_a_bug_in_a_tool_is_logged_with_its_traceback(
    call: Callable[..., Any], bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is the operator's: at ERROR with the traceback, the live exception on the failure only."""
    with caplog.at_level(logging.ERROR, "failwise"):
        result = call(bug)
    assert result.failure.code == "tool.exception"
    assert result.failure.exception is bug
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "Traceback" in record.getMessage()
    assert type(bug).__name__ in record.getMessage()
    assert "exception" not in json.loads(result.to_json())["failure"]


def test_the_logged_traceback_holds_no_secret(
    call: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """What a tool put into its exception is redacted before it is logged."""
    secret = "hunter" + "2hunter2"
    with caplog.at_level(logging.ERROR, "failwise"):
        call(KeyError(f"postgres://admin:{secret}@db/shop"))
    assert "Traceback" in caplog.text
    assert secret not in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("cannot connect to the database"),
        RuntimeError("HTTP 429 Too Many Requests"),
        Exception("401 Unauthorized: token expired"),
    ],
)
def test_words_alone_never_repeat_a_write(call: Callable[..., Any], error: Exception) -> None:
    """A generic exception's text is no proof that nothing happened: the tool may have acted before."""
    result = call(error)
    assert result.sent == 1
    assert result.effect is Effect.UNKNOWN


def test_words_are_enough_to_repeat_a_read(call: Callable[..., Any]) -> None:
    """A read does no harm twice, so what the text says is acted on."""
    result = call(RuntimeError("cannot connect to the database"), read_only=True)
    assert result.failure.code == "network.connect_refused"
    assert result.sent == 4


@pytest.mark.parametrize("bug", [StopIteration("empty"), StopAsyncIteration()])
def test_odd_exceptions_are_failures_too(call: Callable[..., Any], bug: Any) -> None:
    """``next()`` on an empty iterator is a bug of the tool, never a success, and nothing hangs."""
    result = call(bug)
    assert not result.success
    assert result.failure.category in (Category.TOOL, Category.UNKNOWN)
    assert result.sent == 1


@pytest.mark.parametrize("signal", [Interrupted("ask"), Handoff("next")])
@pytest.mark.parametrize("where", ["runtime", "tool"])
def test_signals_pass_unharmed(
    call: Callable[..., Any], make: Make, signal: BaseException, where: str
) -> None:
    """`passthrough` types leave the call as they are, after the record; the effect stays free."""
    kinds: Any = (Interrupted, Handoff)
    runtime = make(passthrough=kinds if where == "runtime" else ())
    results = recorded(runtime)
    with pytest.raises(type(signal)) as caught:
        call(signal, runtime, **({"passthrough": kinds} if where == "tool" else {}))
    assert caught.value is signal
    assert [r.failure.code for r in results] == ["runtime.cancelled"]
    states = runtime.journal.rows("SELECT state FROM claims")
    assert [row[0] for row in states] == ["not_done"]


@pytest.mark.parametrize("kind", [Interrupted, Handoff])
async def test_signals_reach_everybody_who_shares_the_call(
    make: Make, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    """Two waiters of one call in a run: both get the signal, and nobody complains of it."""
    import gc

    rt = make(passthrough=(Interrupted, Handoff))
    go, started = asyncio.Event(), asyncio.Event()

    @rt.tool
    async def order() -> None:
        started.set()
        await go.wait()
        raise kind("ask")

    run = rt.run("job")
    first = asyncio.create_task(run.call("order", {}, call_id="c1"))
    await started.wait()
    second = asyncio.create_task(run.call("order", {}, call_id="c1"))
    await asyncio.sleep(0)
    go.set()
    ends = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(end) for end in ends] == [kind, kind]
    await asyncio.sleep(0)
    gc.collect()
    assert not caplog.records
    assert rt._flights == {}


def test_a_base_exception_passes_with_the_effect_unknown(
    call: Callable[..., Any], make: Make
) -> None:
    """Any other BaseException leaves too; what it interrupted may have happened."""
    runtime = make()
    results = recorded(runtime)
    with pytest.raises(Handoff):
        call(Handoff("stop"), runtime)
    assert [r.failure.code for r in results] == ["runtime.cancelled"]
    assert results[0].effect is Effect.UNKNOWN
    assert [row[0] for row in runtime.journal.rows("SELECT state FROM claims")] == ["unknown"]


def test_a_success_test_of_the_tools_own(call: Callable[..., Any]) -> None:
    """``success=``: a body that it refuses is a failure, whatever it looks like."""
    result = call({"state": "queued"}, success=lambda value: value["state"] == "done")
    assert not result.success
    assert result.failure.category is Category.BUSINESS


def test_a_success_test_overrides_appearances(call: Callable[..., Any]) -> None:
    """A body that looks like an error is a success where the tool says so."""
    result = call({"error": "none at all"}, success=lambda value: True)
    assert result.value == {"error": "none at all"}


def test_a_success_test_that_raises_is_ignored(
    call: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It means "don't know": the answer is judged as any other."""
    assert call({"items": []}, success=lambda value: value["nothing"]).success
    assert "success test" in caplog.text


@pytest.mark.parametrize(
    "value", [None, 0, False, "", [], {}, {"error": None}, {"errcode": 0, "items": [1]},
              {"price": 500}, "a document about timeouts and error 500", {"code": 0, "data": {}}]
)  # fmt: skip
def test_a_success_is_no_failure(call: Callable[..., Any], value: Any) -> None:
    """Nothing at all, zero, ``"error": null``, a price of 500 are good answers, handed over as they are."""
    result = call(value)
    assert result.success, result
    assert result.value == value


def test_a_body_that_says_no_is_a_failure(call: Callable[..., Any]) -> None:
    """E9: a refusal inside a good answer is one request and ``success`` false."""
    result = call({"code": 10001, "msg": "账户余额不足"})
    assert not result.success
    assert result.failure.category is Category.BUSINESS
    assert result.failure.provider_code == "10001"
    assert result.sent == 1
    assert "稍后重试" not in result.for_user("zh")


def test_callbacks_hear_of_every_result(
    call: Callable[..., Any], rt: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """`on_result`: each finished call; a callback that raises is logged and harms nobody."""
    heard: list[Any] = []

    @rt.on_result
    def broken(result: Any) -> None:
        raise RuntimeError("the dashboard is down")

    @rt.on_result
    def listen(result: Any) -> None:
        heard.append(result)

    result = call("fine")
    assert heard == [result]
    assert "on_result" in caplog.text


# Observe, off


async def test_observe_changes_nothing(make: Make, clock: SteppingClock) -> None:
    """Observe mode: one send, as the model wrote it, classified and recorded; no claim, no retry."""
    rt = make(mode="observe", clock=clock)
    tool = ScriptedTool(
        "tool",
        [ToolError("x", code="network.connect_refused", effect="not_sent")],
        read_only=True,
        fallback_value="cached",
        schema={"type": "object", "properties": {"n": {"type": "integer"}}},
    )
    rt.add(tool)
    result = await rt.call("tool", '{"n": "5"}')
    assert tool.sent == [{"n": "5"}]
    assert result.failure
    assert result.failure.code == "network.connect_refused"
    assert result.stop_reason is StopReason.OBSERVED
    assert clock.sleeps == []
    assert len(rt.journal.rows("SELECT * FROM calls")) == 1
    order = ScriptedTool("order", ["placed"])
    rt.add(order)
    for _ in range(2):
        assert (await rt.run("job").call("order", {}, call_id="c1")).success
    assert order.requests == 2
    assert rt.journal.rows("SELECT * FROM claims") == []


@pytest.mark.parametrize("word", ["off", "OFF", "0", "false"])
async def test_off_switches_everything_off(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, word: str
) -> None:
    """``FAILWISE=off``: the tool is called with what was given; no journal, no retry, still a result."""
    monkeypatch.setenv("FAILWISE", word)
    rt = make(journal=tmp_path / "never" / "journal.db", mode="act")
    tool = ScriptedTool("tool", ["fine", RuntimeError("boom"), {"error": "ignored"}])
    rt.add(tool)
    values = [await rt.run("job").call("tool", '{"n": 1}', call_id="c1") for _ in range(3)]
    assert [r.value for r in values] == ["fine", None, {"error": "ignored"}]
    assert values[1].failure
    assert isinstance(values[1].failure.exception, RuntimeError)
    assert not (tmp_path / "never").exists()
    assert rt.call_sync("tool", "not json").success is False
    assert rt.call_sync("nobody", {}).success is False


async def test_observe_by_environment(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """``FAILWISE=observe`` holds where the code says nothing else."""
    monkeypatch.setenv("FAILWISE", "observe")
    assert make().mode == "observe"
    assert make(mode="act").mode == "act"


# Nested calls


async def test_nested_calls_inherit(rt: Runtime) -> None:
    """A tool that calls tools: the run, the deadline and the parent are the outer call's."""
    results = recorded(rt)
    inner = ScriptedTool("inner", ["x"], read_only=True, clock=None)
    rt.add(inner)

    @rt.tool(read_only=True)
    async def outer() -> Any:
        return (await rt.call("inner", {})).unwrap()

    result = await rt.run("job", deadline=10).call("outer", "{}", call_id="c1")
    assert result.value == "x"
    child, parent = results
    assert (child.run_id, child.parent_id) == ("job", "c1")
    assert (parent.run_id, parent.parent_id) == ("job", None)
    assert inner.contexts[0].remaining == pytest.approx(10)


@pytest.mark.parametrize("threaded", [True, False])
def test_nested_calls_inherit_in_threads(rt: Runtime, threaded: bool) -> None:
    """The same for sync tools, in the caller's thread or one of the pool."""
    results = recorded(rt)
    rt.add(ScriptedTool("inner", ["x"], read_only=True, asynchronous=False))

    @rt.tool(read_only=True, thread=threaded, timeout=20)
    def outer() -> Any:
        return rt.call_sync("inner", {}).unwrap()

    assert rt.run("job").call_sync("outer", {}, call_id="c1").value == "x"
    assert results[0].parent_id == "c1"
    assert results[0].run_id == "job"


async def test_an_inner_failure_is_not_repeated_again(rt: Runtime) -> None:
    """A `ToolCallFailed` that leaves a tool is the inner failure, already retried: no multiplication."""
    refused = ToolError("x", code="network.connect_refused", effect="not_sent")
    inner = [ScriptedTool(f"inner_{n}", [refused], read_only=True) for n in range(2)]
    for tool in inner:
        rt.add(tool)
    outer_calls = []

    @rt.tool(read_only=True)
    async def outer() -> Any:
        outer_calls.append(1)
        return (await rt.call("inner_0")).unwrap()

    @rt.tool(read_only=True)
    async def returns() -> Any:
        outer_calls.append(2)
        return await rt.call("inner_1")

    for name in ("outer", "returns"):
        result = await rt.call(name)
        assert result.failure
        assert result.failure.code == "network.connect_refused"
        assert result.tool_name == name
    assert outer_calls == [1, 2]
    assert [tool.requests for tool in inner] == [4, 4]


async def test_a_result_returned_by_a_tool_is_opened(rt: Runtime) -> None:
    """A tool that hands on another's `ToolResult` hands on its value."""
    rt.add(ScriptedTool("inner", [{"n": 1}], read_only=True))

    @rt.tool(read_only=True)
    async def outer() -> Any:
        return await rt.call("inner")

    assert (await rt.call("outer")).value == {"n": 1}
