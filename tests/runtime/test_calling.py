"""How tools are called: by name, from code, many at once; and how misuse is answered."""

import asyncio
import dataclasses
import datetime
import enum
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from failwise import (
    CallContext,
    ConfigurationError,
    Runtime,
    ToolCallFailed,
    ToolError,
    ToolResult,
    ToolSpec,
    UsageError,
)
from failwise.testing import ScriptedTool, SteppingClock, recorded
from tests.runtime import tools_of_a_module as module

Make = Callable[..., Runtime]


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclasses.dataclass
class Address:
    street: str
    number: int


# The decorator


def test_the_decorator_gives_back_the_very_same_function() -> None:
    """A decorated function is itself: callable, testable, picklable, with its name and hints."""
    assert module.double(4) == 8
    assert asyncio.run(module.triple(2)) == 6
    assert pickle.loads(pickle.dumps(module.double)) is module.double
    assert module.double.__annotations__["number"] is int
    assert module.double.__doc__ == "Twice the number."


def test_both_forms_of_the_decorator(rt: Runtime) -> None:
    """``@rt.tool`` and ``@rt.tool(...)`` register alike."""

    @rt.tool
    def one() -> int:
        return 1

    @rt.tool(name="second", read_only=True)
    def two() -> int:
        return 2

    assert rt.call_sync("one").value == 1
    assert rt.call_sync("second").value == 2
    assert rt.call_sync(two).tool_name == "second"
    assert set(rt.tools) == {"one", "second"}
    assert one() == 1


# By name


@pytest.mark.parametrize(
    "raw",
    ['{"query": "shoes", "limit": "5"}', b'{"query": "shoes", "limit": 5}',
     {"query": "shoes", "limit": 5}, '```json\n{"query": "shoes", "limit": 5,}\n```'],
)  # fmt: skip
async def test_raw_text_as_the_model_wrote_it(rt: Runtime, raw: Any) -> None:
    """Text, bytes or a mapping; small slips of the model are mended and recorded."""

    @rt.tool(read_only=True)
    async def search(query: str, limit: int = 10) -> list[Any]:
        return [query, limit]

    result = await rt.call("search", raw, call_id="call_7")
    assert result.value == ["shoes", 5]
    assert result.call_id == "call_7"
    assert bool(result.repairs) is (isinstance(raw, str))


async def test_an_unknown_tool_is_answered_with_the_tools_there_are(rt: Runtime) -> None:
    """E14: nothing is redirected; the answer lists the tools, the nearest first."""
    weather = ScriptedTool("get_weather", ["sun"], read_only=True)
    rt.add(weather)
    rt.add(ScriptedTool("send_mail", ["sent"]))
    result = await rt.call("get_wether", "{}")
    assert result.failure
    assert result.failure.code == "model_output.unknown_tool"
    assert weather.requests == 0
    text = result.for_model()
    assert 0 < text.index("get_weather") < text.index("send_mail")


async def test_arguments_against_the_schema_are_not_sent(rt: Runtime) -> None:
    """E12: no padding, no guess: the model is told the path, what it sent and what was due."""
    tool = ScriptedTool(
        "city",
        ["ok"],
        schema={
            "type": "object",
            "properties": {"city_code": {"type": "string", "pattern": "^[0-9]{3}$"}},
        },
    )
    rt.add(tool)
    result = await rt.call("city", '{"city_code": "12"}')
    assert result.failure
    assert result.failure.code == "model_output.schema_violation"
    assert tool.requests == 0
    assert result.sent == 0
    text = result.for_model()
    assert "city_code" in text
    assert "12" in text
    assert result.repairable


@pytest.mark.parametrize("read_only", [True, None])
async def test_a_value_with_one_reading_is_mended(rt: Runtime, read_only: bool | None) -> None:
    """E13: ``2024-1-1`` for a date has one reading: sent mended, recorded, no round of the model."""
    tool = ScriptedTool(
        "book",
        ["ok"],
        read_only=read_only,
        schema={
            "type": "object",
            "properties": {
                "date": {"type": "string", "format": "date"},
                "note": {"type": "string"},
                "speed": {"enum": ["fast", "slow"]},
            },
        },
    )
    rt.add(tool)
    result = await rt.call("book", {"date": "2024-1-1", "note": "2024-1-1", "speed": "FAST"})
    assert result.success
    assert tool.sent == [{"date": "2024-01-01", "note": "2024-1-1", "speed": "fast"}]
    assert {(r.path, r.before, r.after, r.grade.value) for r in result.repairs} == {
        ("/date", "2024-1-1", "2024-01-01", "unique"),
        ("/speed", "FAST", "fast", "unique"),
    }
    for wrong in ("01/02/2024", "2024-02-30"):
        assert not (await rt.call("book", {"date": wrong})).success
    assert tool.requests == 1


# From code


async def test_typed_calls_from_code(rt: Runtime) -> None:
    """The function's own arguments, by position and by name, with dates, enums and dataclasses."""

    @rt.tool(read_only=True)
    async def order(size: Size, day: datetime.date, to: Address, count: int = 1) -> list[Any]:
        return [size, day, to, count]

    day = datetime.date(2026, 1, 2)
    result = await rt.call(order, Size.LARGE, day, to=Address("Main", 4))
    assert result.unwrap() == [Size.LARGE, day, Address("Main", 4), 1]
    assert rt.call_sync("order", {"size": "small", "day": "2026-01-02",
        "to": {"street": "Main", "number": 4}, "count": 2}).value == [
        Size.SMALL, day, Address("Main", 4), 2]  # fmt: skip


def test_a_sync_tool_from_code(rt: Runtime) -> None:
    """`call_sync` takes the same arguments."""

    @rt.tool(read_only=True)
    def add(a: int, b: int) -> int:
        return a + b

    assert rt.call_sync(add, 1, 2).value == 3
    assert rt.call_sync(add, a=1, b=2).value == 3
    assert rt.call_sync(add, raw='{"a": 1, "b": "2"}').value == 3


def test_methods_and_specs_are_tools_too(rt: Runtime) -> None:
    """A bound method, and a `ToolSpec` with a schema of its own."""

    class Shop:
        def price(self, sku: str) -> str:
            return f"price of {sku}"

    shop = Shop()
    rt.add(shop.price, read_only=True)
    assert rt.call_sync(shop.price, sku="x").value == "price of x"
    spec = rt.add(ToolSpec("echo", call=lambda arguments, context: arguments, read_only=True))
    assert rt.call_sync(spec, {"n": 1}).value == {"n": 1}


def test_the_context_is_filled_in_and_hidden(rt: Runtime) -> None:
    """A `CallContext` parameter is not in the schema, and tells attempt, key, time, credential, ids."""
    seen: list[Any] = []
    rt.credential("shop", "secret-value-1")

    @rt.tool(credential="shop", timeout=10, idempotency_key="context", thread=False)
    def order(sku: str, context: CallContext) -> str:
        seen.append((context.attempt, context.idempotency_key, context.credential,
                     context.call_id, context.run_id, context.remaining))  # fmt: skip
        if context.attempt == 1:
            raise ToolError("no", code="network.connect_refused", effect="not_sent")
        return "placed"

    schema = rt.tools["order"].schema
    assert schema
    assert list(schema["properties"]) == ["sku"]
    assert rt.run("job").call_sync("order", {"sku": "x"}, call_id="c1").success
    (one, two) = seen
    assert (one[0], two[0]) == (1, 2)
    assert one[1]
    assert one[1:5] == two[1:5]
    assert one[2:5] == ("secret-value-1", "c1", "job")
    assert one[5] == pytest.approx(10)


# Many


async def test_many_keep_their_order_and_lose_nobody(rt: Runtime) -> None:
    """Results come in the order of the calls, whoever ends first; a failing one stands in its place."""
    go = asyncio.Event()

    @rt.tool(read_only=True)
    async def slow() -> str:
        await go.wait()
        return "slow"

    @rt.tool(read_only=True)
    async def quick(n: int = 0) -> str:
        go.set()
        return f"quick {n}"

    @rt.tool(read_only=True)
    async def broken() -> str:
        raise ToolError("no", code="business.not_found", effect="rejected")

    results = await rt.call_many(
        [("slow", "{}"), ("broken", {}, "id-2"), {"tool": "quick", "arguments": {"n": 3}},
         (quick, {"n": 4}), "quick", ("nobody", "{}"), {"tool": slow, "call_id": "id-7"}]
    )  # fmt: skip
    values = [r.value for r in results]
    assert values == ["slow", None, "quick 3", "quick 4", "quick 0", None, "slow"]
    assert results[1].call_id == "id-2"
    assert results[6].call_id == "id-7"
    assert results[5].failure
    assert results[5].failure.code == "model_output.unknown_tool"


def test_many_without_a_loop(rt: Runtime) -> None:
    """`call_many_sync` runs them side by side in threads, in order."""
    import threading

    both = threading.Barrier(2, timeout=10)

    @rt.tool(read_only=True)
    def meet(n: int) -> int:
        both.wait()
        return n

    assert [r.value for r in rt.call_many_sync([("meet", {"n": 1}), ("meet", {"n": 2})])] == [1, 2]


async def test_many_in_a_run_share_its_id(rt: Runtime) -> None:
    """`run.call_many` marks every result with the run."""
    rt.add(ScriptedTool("read", ["x"], read_only=True))
    results = await rt.run("job-1").call_many([("read", {}), ("read", {})])
    assert {r.run_id for r in results} == {"job-1"}


async def test_misuse_of_one_of_many_sends_none(rt: Runtime) -> None:
    """A mistake in the last entry is said before the first one is sent."""
    order = ScriptedTool("order", ["placed"])
    rt.add(order)
    calls = [("order", {}), ("order", {}), {"tool": "order", "arguments": {}, "bogus": 1}]
    with pytest.raises(UsageError, match="bogus"):
        await rt.call_many(calls)
    with pytest.raises(UsageError, match="bogus"):
        rt.call_many_sync(calls)
    await asyncio.sleep(0)
    assert order.requests == 0


# Never raises; misuse does


@pytest.mark.parametrize(
    "raw", ["", "not json", "[1, 2]", "null", '{"a": ' + "[" * 500, b"\xff\xfe", 42, {"b": object()}]
)  # fmt: skip
async def test_a_failed_call_never_raises(rt: Runtime, raw: Any) -> None:
    """Whatever the model wrote, a `ToolResult` comes back, async and sync."""

    @rt.tool(read_only=True)
    async def strict(a: int) -> int:
        return a

    for result in (await rt.call("strict", raw), rt.call_sync("strict", raw)):
        assert isinstance(result, ToolResult)
        assert not result.success
        assert result.failure
        assert result.failure.category.value == "model_output"
        assert ToolResult.from_json(result.to_json()).failure


@pytest.mark.parametrize(
    ("misuse", "says"),
    [
        (lambda rt: rt.call_sync("read", {}, dead_line=3), "deadline"),
        (lambda rt: rt.call_sync("read", {}, deadline=-1), "above 0"),
        (lambda rt: rt.call_sync("read", {}, {}), "one text or mapping"),
        (lambda rt: rt.call_sync(len), "rt.add"),
        (lambda rt: rt.call_sync(None), "not a tool"),
        (lambda rt: rt.call_sync([]), "not a tool"),
        (lambda rt: rt.call_many_sync([object()]), "call_many"),
        (lambda rt: rt.call_many_sync([{"arguments": {}}]), "needs 'tool'"),
        (lambda rt: rt.add(42), "give a function"),
        (lambda rt: rt.add(ScriptedTool("read", [1])), "already"),
        (lambda rt: rt.credential("shop"), "get="),
        (lambda rt: rt.credential("shop", "x", refresh="y"), "function"),
        (lambda rt: rt.errors({"x": "y"}), "exception types"),
        (lambda rt: rt.errors({ValueError: 3}), "as_failure"),
        (lambda rt: rt.run(deadline="soon"), "seconds"),
        (lambda rt: rt.on_result(asyncio.sleep), "plain function"),
        (lambda rt: Runtime(mode="maybe"), "observe"),
        (lambda rt: Runtime(policy="defalt"), "default"),
        (lambda rt: rt.tool(read_only=True, retries=3)(lambda: 1), "retries"),
    ],
)
def test_misuse_is_said_at_once(rt: Runtime, misuse: Callable[[Runtime], Any], says: str) -> None:
    """What cannot work raises `UsageError` before anything is sent, with what to do instead."""
    tool = ScriptedTool("read", ["x"], read_only=True, asynchronous=False)
    rt.add(tool)
    with pytest.raises(UsageError, match=says):
        misuse(rt)
    assert tool.requests == 0


def test_a_bad_policy_file_names_its_line(tmp_path: Any) -> None:
    """The file, the line, and what was meant."""
    file = tmp_path / "policy.toml"
    file.write_text("[network]\nretries = 2\n\n[server]\nretrys = 1\n")
    with pytest.raises(ConfigurationError, match=r"policy\.toml:5: .*retries"):
        Runtime(":memory:", policy=file)


def test_a_cycle_of_fallbacks_is_refused(rt: Runtime) -> None:
    """A fallback that leads back to its own start would never end."""
    rt.add(ScriptedTool("a", [1], fallback=("b",)))
    with pytest.raises(UsageError, match="itself"):
        rt.add(ScriptedTool("b", [1], fallback=("a",)))


async def test_unwrap(rt: Runtime) -> None:
    """The value, or `ToolCallFailed` with the whole result on it."""
    rt.add(ScriptedTool("good", [1], read_only=True))
    rt.add(ScriptedTool("bad", [ToolError("no", code="business.not_found")], read_only=True))
    assert (await rt.call("good")).unwrap() == 1
    with pytest.raises(ToolCallFailed) as caught:
        (await rt.call("bad")).unwrap()
    assert caught.value.result.tool_name == "bad"
    assert pickle.loads(pickle.dumps(caught.value)).result.failure.code == "business.not_found"


async def test_extra_is_kept(rt: Runtime) -> None:
    """What the caller attaches comes back on the result, good and bad."""
    results = recorded(rt)
    rt.add(ScriptedTool("read", [1, ToolError("x", code="business.not_found")], read_only=True))
    for _ in range(2):
        await rt.call("read", {}, extra={"user": 7})
    assert [r.extra["user"] for r in results] == [7, 7]


def test_nothing_is_opened_before_the_first_call(tmp_path: Any) -> None:
    """A runtime at module level costs no file, no thread."""
    import threading

    before = threading.active_count()
    runtime = Runtime(tmp_path / "deep" / "journal.db")
    runtime.tool(read_only=True)(lambda_free)
    assert not (tmp_path / "deep").exists()
    assert threading.active_count() == before
    runtime.call_sync("lambda_free")
    runtime.close()
    assert (tmp_path / "deep" / "journal.db").exists()


def lambda_free() -> int:
    return 1


async def test_a_closed_runtime_opens_again(make: Make, clock: SteppingClock) -> None:
    """`close` ends the journal; a later call opens it anew."""
    rt = make(clock=clock)
    rt.add(ScriptedTool("order", ["placed"]))
    assert (await rt.call("order")).success
    await rt.aclose()
    assert (await rt.call("order", {"n": 2})).success
    assert len(rt.journal.rows("SELECT * FROM calls")) == 2


async def test_a_result_names_its_upstream_and_the_model_that_asked(rt: Runtime) -> None:
    """Good or bad, sync or async: the upstream as the guards count it, the run's model if it says one."""

    @rt.tool(upstream="shop", read_only=True)
    def look(number: int) -> int:
        return 1 // number

    with rt.run(model="small-1") as run:
        good, bad = run.call_sync(look, number=1), await run.call(look, number=0)
        run.model = "large-2"
        later = await run.call(look, number=1)
    assert [good.upstream, bad.upstream, later.upstream] == ["shop"] * 3
    assert [good.model, bad.model, later.model] == ["small-1", "small-1", "large-2"]
    loose = await rt.call(look, number=1)
    assert (loose.upstream, loose.model) == ("shop", None)


async def test_a_result_says_how_many_parameters_its_tool_has(rt: Runtime) -> None:
    """Good or bad, used or not; of a tool that is not there nothing is known."""

    @rt.tool(read_only=True)
    async def search(query: str, limit: int = 10, page: int = 1) -> list[Any]:
        return [query, limit, page]

    assert (await rt.call(search, query="shoes")).parameters == 3
    assert (await rt.call("search", '{"limit": "many"}')).parameters == 3
    assert (await rt.call("serch", "{}")).parameters is None
