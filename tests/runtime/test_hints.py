"""An upstream that refuses parameters over real HTTP, and the callbacks that are asked about it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from failwise import Action, Runtime, UsageError
from failwise.faults import Fault, FaultServer, Reply, Request
from failwise.tools import HttpTool

Make = Callable[..., Runtime]
WORDINGS = [
    "city_code must be 3 digits, got '12'",
    "city_code 应为 3 位数字，当前为 '12'",
]
SCHEMA = {
    "type": "object",
    "properties": {"city_code": {"type": "string"}, "region": {"type": "string"}},
}
BODIES = {
    "plain": {"error": WORDINGS[0]},
    "chinese": {"code": 400, "message": WORDINGS[1]},
    "fastapi": {
        "detail": [
            {
                "loc": ["query", "city_code"],
                "msg": "city_code must be 3 digits, got '12'",
                "type": "value_error",
            }
        ]
    },
    "problem": {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": WORDINGS[0],
    },
}


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture(params=["sync", "asyncio"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """One call by either driver."""

    def sync(runtime: Any, *args: Any, **options: Any) -> Any:
        return runtime.call_sync(*args, **options)

    def asynchronous(runtime: Any, *args: Any, **options: Any) -> Any:
        async def run() -> Any:
            return await runtime.call(*args, **options)

        return asyncio.run(run())

    return sync if request.param == "sync" else asynchronous


def strict(body: Any, status: int = 400) -> Callable[[Request, int], Reply]:
    """A service that takes three digits and nothing else."""

    def reply(request: Request, number: int) -> Reply:
        code = request.query.get("city_code", "")
        if len(code) == 3:
            return Fault.json({"degrees": 21, "city_code": code})
        return Fault.json(body, status)

    return reply


def weather(runtime: Runtime, server: FaultServer, **options: Any) -> None:
    runtime.add(HttpTool("weather", "GET", server.url("/weather"), schema=SCHEMA, **options))


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("form", BODIES)
def test_a_yes_sends_the_padded_code(
    make: Make, server: FaultServer, call: Callable[..., Any], form: str, status: int
) -> None:
    """E10 over real HTTP, in every form of body: shown, agreed to, sent once more."""
    server.route("GET", "/weather", strict(BODIES[form], status))
    shown: list[Any] = []

    def confirm(tool: str, repairs: Any) -> bool:
        shown.extend((tool, r.path, r.before, r.after) for r in repairs)
        return True

    runtime = make(confirm=confirm)
    weather(runtime, server)
    result = call(runtime, "weather", {"city_code": "12"})
    assert shown == [("weather", "/city_code", "12", "012")]
    assert result.value == {"degrees": 21, "city_code": "012"}
    assert server.count("/weather") == 2


@pytest.mark.parametrize("text", WORDINGS)
@pytest.mark.parametrize(
    ("options", "requests", "action"),
    [
        ({}, 1, Action.ASK_MODEL),
        ({"confirm": lambda tool, repairs: None}, 1, Action.ASK_MODEL),
        ({"repair": "off"}, 1, Action.ASK_MODEL),
        ({"repair": "auto"}, 2, Action.ASK_USER),
    ],
)
def test_a_service_that_always_refuses(
    make: Make,
    server: FaultServer,
    call: Callable[..., Any],
    text: str,
    options: dict[str, Any],
    requests: int,
    action: Action,
) -> None:
    """E10: how many requests each mode makes, and who hears of it."""
    server.route("GET", "/weather", Fault.json({"error": text}, 400))
    runtime = make(**options)
    weather(runtime, server)
    result = call(runtime, "weather", {"city_code": "12"})
    assert (server.count("/weather"), result.suggested_action) == (requests, action)
    assert "city_code" in result.for_model()


@pytest.mark.parametrize("text", WORDINGS)
def test_a_parameter_that_was_not_sent(
    make: Make, server: FaultServer, call: Callable[..., Any], text: str
) -> None:
    """E11 over real HTTP."""
    server.route("GET", "/weather", Fault.json({"error": text}, 400))
    runtime = make(repair="auto")
    weather(runtime, server)
    result = call(runtime, "weather", {"region": "north"})
    assert (server.count("/weather"), result.suggested_action) == (1, Action.ASK_MODEL)


def test_a_page_is_not_what_the_model_reads(make: Make, server: FaultServer) -> None:
    """What the model is told holds the violation, and nothing of what stood around it."""
    body = {"error": WORDINGS[0], "debug": "at Handler.check(/srv/app.js:17)", "help": "x" * 5000}
    server.route("GET", "/weather", Fault.json(body, 400))
    runtime = make()
    weather(runtime, server)
    text = runtime.call_sync("weather", {"city_code": "12"}).for_model()
    assert "city_code" in text
    assert "3 digits" in text
    assert "app.js" not in text
    assert "xxx" not in text


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_fixer_of_either_kind(
    make: Make, server: FaultServer, call: Callable[..., Any], asynchronous: bool
) -> None:
    """Sync and async fixers work under both drivers."""
    server.route("GET", "/weather", strict({"error": "city_code is invalid"}))

    def fixer(tool: str, arguments: Any, failure: Any) -> Any:
        return {**arguments, "city_code": "010"}

    async def fixer_async(tool: str, arguments: Any, failure: Any) -> Any:
        await asyncio.sleep(0)
        return fixer(tool, arguments, failure)

    runtime = make(fixer=fixer_async if asynchronous else fixer)
    weather(runtime, server)
    result = call(runtime, "weather", {"city_code": "Beijing"})
    assert result.value["city_code"] == "010"
    assert [repair.kind for repair in result.repairs] == ["fixer"]


@pytest.mark.parametrize("who", ["fixer", "confirm"])
def test_a_callback_that_hangs(
    make: Make, server: FaultServer, call: Callable[..., Any], who: str
) -> None:
    """After `callback_timeout` it counts as "don't know", and nothing is sent."""
    server.route("GET", "/weather", Fault.json({"error": WORDINGS[0]}, 400))
    ended = threading.Event()

    def hangs(*given: Any) -> Any:
        ended.wait(20)
        return True

    runtime = make(callback_timeout=0.05, **{who: hangs})
    weather(runtime, server)
    result = call(runtime, "weather", {"city_code": "12"})
    ended.set()
    assert (server.count("/weather"), result.suggested_action) == (1, Action.ASK_MODEL)


@pytest.mark.parametrize("answer", [True, False])
def test_a_run_asks_its_own_user(
    make: Make, server: FaultServer, call: Callable[..., Any], answer: bool
) -> None:
    """`run(confirm=)` is asked instead of the runtime's; other runs ask the runtime's."""
    server.route("GET", "/weather", strict(BODIES["plain"]))
    asked: list[str] = []

    def runtimes(tool: str, repairs: Any) -> bool:
        asked.append("runtime")
        return not answer

    async def own(tool: str, repairs: Any) -> bool:
        asked.append("run")
        return answer

    runtime = make(confirm=runtimes)
    weather(runtime, server)
    assert call(runtime.run(confirm=own), "weather", {"city_code": "12"}).success is answer
    assert call(runtime.run(), "weather", {"city_code": "12"}).success is not answer
    assert asked == ["run", "runtime"]


def test_a_call_inside_of_a_tool_asks_the_user_of_its_run(make: Make, server: FaultServer) -> None:
    """Nested calls belong to the run, also where the runtime has nobody to ask."""
    server.route("GET", "/weather", strict(BODIES["plain"]))
    runtime = make()
    weather(runtime, server)
    runtime.add(
        lambda city_code: runtime.call_sync("weather", {"city_code": city_code}).unwrap(),
        name="trip",
        read_only=True,
    )
    run = runtime.run(confirm=lambda tool, repairs: True)
    result = run.call_sync("trip", {"city_code": "12"})
    assert result.value == {"degrees": 21, "city_code": "012"}


def test_a_confirm_that_cannot_be_called_is_misuse(make: Make) -> None:
    """``confirm=True`` would be a yes to everything by accident."""
    with pytest.raises(UsageError, match="give a function"):
        make().run(confirm=True)  # type: ignore[arg-type]


def test_a_question_nobody_waits_for_is_withdrawn(make: Make, server: FaultServer) -> None:
    """An async `confirm` past its time ends, under the sync driver too."""
    server.route("GET", "/weather", Fault.json({"error": WORDINGS[0]}, 400))
    ended = threading.Event()

    async def confirm(tool: str, repairs: Any) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    runtime = make(callback_timeout=0.05, confirm=confirm)
    weather(runtime, server)
    assert not runtime.call_sync("weather", {"city_code": "12"}).success
    assert ended.wait(10)


def test_the_corrected_write_carries_the_same_key(make: Make, server: FaultServer) -> None:
    """A refused write did nothing; its correction is the same effect, once."""

    def orders(request: Request, number: int) -> Reply:
        if len(request.json["city_code"]) == 3:
            return Fault.effect("order", Fault.json({"id": 1}))
        return Fault.json({"error": WORDINGS[0]}, 400)

    server.route("POST", "/orders", orders)
    runtime = make(repair="auto")
    runtime.add(
        HttpTool(
            "order", "POST", server.url("/orders"), schema=SCHEMA, idempotency_key="Idempotency-Key"
        )
    )
    result = runtime.run("job").call_sync("order", {"city_code": "12"}, call_id="call_1")
    assert result.success
    assert server.ledger.count("order") == 1
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1


# Names


@pytest.mark.parametrize(
    "name",
    ["weather<|channel|>commentary", "functions.weather", "functions.weather<|channel|>json"],
)
def test_debris_on_a_name(make: Make, call: Callable[..., Any], name: str) -> None:
    """What a chat template left on the very name of a tool goes, and is noted."""
    runtime = make()
    runtime.add(lambda city: city, name="weather", read_only=True)
    result = call(runtime, name, {"city": "x"})
    assert (result.value, result.tool_name) == ("x", "weather")
    (repair,) = result.repairs
    assert (repair.kind, repair.before, repair.after) == ("tool_name", name, "weather")
    strict = make(repair="off")
    strict.add(lambda city: city, name="weather", read_only=True)
    assert not call(strict, name, {"city": "x"}).success


@pytest.mark.parametrize("name", ["wether", "Weather", "my_functions.weather", "weather|x"])
def test_another_name_is_never_redirected(make: Make, call: Callable[..., Any], name: str) -> None:
    """E14: a name that only resembles a tool's runs nothing; what takes such arguments is named."""
    runtime = make()
    sent: list[str] = []

    def by_text(text: str) -> None:
        sent.append(text)

    def by_city(city: str, days: int) -> None:
        sent.append(city)

    runtime.add(by_text, name="weather_by_text")
    runtime.add(by_city, name="lookup")
    result = call(runtime, name, "{'city': 'x', 'days': 2}")
    assert sent == []
    assert result.failure.code == "model_output.unknown_tool"
    assert result.failure.detail("nearest")[0] == "lookup"
    assert "lookup" in result.for_model()
