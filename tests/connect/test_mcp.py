"""Guessed repairs confirmed by the user of an MCP client: real servers, clients and upstreams."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer

from failwise import Grade, HttpTool, Repair, Runtime, ToolResult, UsageError
from failwise.connect.mcp import confirm
from failwise.faults import Fault, FaultServer, Reply, Request

Era = Literal["legacy", "2026-07-28"]
Answer = types.ElicitResult | types.ErrorData
SCHEMA = {
    "type": "object",
    "properties": {"city_code": {"type": "string"}, "region": {"type": "string"}},
}
YES = types.ElicitResult(action="accept", content={"confirm": True})
NOT_YES: dict[str, Answer] = {
    "accepted with the box empty": types.ElicitResult(action="accept", content={"confirm": False}),
    "accepted without the form": types.ElicitResult(action="accept"),
    "accepted with a word": types.ElicitResult(action="accept", content={"confirm": "yes"}),
    "declined": types.ElicitResult(action="decline"),
    "cancelled": types.ElicitResult(action="cancel"),
    "declined though ticked": types.ElicitResult(action="decline", content={"confirm": True}),
    "an error": types.ErrorData(code=types.INTERNAL_ERROR, message="the dialogue broke"),
}


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    """A weather service that takes three digits and nothing else."""

    def reply(request: Request, number: int) -> Reply:
        code = request.query.get("city_code", "")
        if len(code) == 3:
            return Fault.json({"degrees": 21, "city_code": code})
        return Fault.json({"error": f"city_code must be 3 digits, got '{code}'"}, 400)

    with FaultServer() as server:
        server.route("GET", "/weather", reply)
        yield server


@pytest.fixture
def rt(upstream: FaultServer) -> Iterator[Runtime]:
    with Runtime(":memory:", jitter=0.0) as runtime:
        runtime.add(HttpTool("weather", "GET", upstream.url("/weather"), schema=SCHEMA))
        yield runtime


class User:
    """Who sits before the client: gives one answer, and remembers what was shown."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.shown: list[str] = []
        self.forms: list[Any] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> Answer:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.shown.append(params.message)
        self.forms.append(params.requested_schema)
        return self.answer


class Host:
    """A server of each kind that hands its calls to a runtime, and keeps the results."""

    def __init__(self, rt: Runtime, **options: Any) -> None:
        self.rt, self.options = rt, options
        self.results: list[ToolResult[Any]] = []

    async def weather(self, asking: Any, arguments: dict[str, Any]) -> ToolResult[Any]:
        async with self.rt.run(confirm=asking) as run:
            result = await run.call("weather", arguments)
        self.results.append(result)
        return result

    def low_level(self) -> Server[Any]:
        async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="weather", input_schema=SCHEMA)])

        async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
            asking = confirm(context, params, **self.options)
            result = await self.weather(asking, params.arguments or {})
            if asking.question is not None:
                return asking.question
            text = types.TextContent(type="text", text=result.for_model())
            return types.CallToolResult(content=[text], is_error=not result.success)

        return Server("host", on_list_tools=on_list_tools, on_call_tool=on_call_tool)

    def high_level(self) -> MCPServer:
        server = MCPServer("host")

        async def weather(city_code: str, ctx: Context) -> str | types.InputRequiredResult:
            asking = confirm(ctx, **self.options)
            result = await self.weather(asking, {"city_code": city_code})
            return asking.question or result.for_model()

        server.tool()(weather)
        return server


@pytest.fixture(params=["low_level", "high_level"])
def serve(request: pytest.FixtureRequest) -> Callable[[Host], Any]:
    """Both kinds of server that the SDK has."""
    return lambda host: getattr(host, request.param)()


@asynccontextmanager
async def connected(server: Any, era: Era, user: Any = None) -> AsyncIterator[Client]:
    async with Client(server, mode=era, elicitation_callback=user) as client:
        yield client


ERAS: tuple[Era, ...] = ("legacy", "2026-07-28")


@pytest.mark.parametrize("era", ERAS)
async def test_a_yes_sends_the_padded_code(
    rt: Runtime, upstream: FaultServer, serve: Callable[[Host], Any], era: Era
) -> None:
    """E10 through MCP: the difference is shown once, agreed to, and sent; nothing else is."""
    host, user = Host(rt), User(YES)
    async with connected(serve(host), era, user) as client:
        answer = await client.call_tool("weather", {"city_code": "12"})
    assert not answer.is_error
    assert host.results[-1].value == {"degrees": 21, "city_code": "012"}
    assert [(r.before, r.after) for r in host.results[-1].repairs] == [("12", "012")]
    assert len(user.shown) == 1
    assert user.shown[0].startswith("weather was refused")
    assert user.shown[0].endswith('/city_code: "12" → "012"')
    box = user.forms[0]["properties"]["confirm"]
    assert (box["type"], box["default"]) == ("boolean", False)
    codes = [request.query["city_code"] for request in upstream.requests]
    # A later protocol asks between two requests of the client: what was refused is asked again.
    assert codes == (["12", "012"] if era == "legacy" else ["12", "12", "012"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("answer", NOT_YES)
async def test_anything_else_is_a_no(
    rt: Runtime, upstream: FaultServer, answer: str, era: Era
) -> None:
    """Only an accepted form with the box ticked is a yes: otherwise no correction is sent."""
    host, user = Host(rt), User(NOT_YES[answer])
    async with connected(host.low_level(), era, user) as client:
        try:
            result = await client.call_tool("weather", {"city_code": "12"})
        except Exception:
            assert (answer, era) == ("an error", "2026-07-28")  # the client ends its own round
        else:
            assert result.is_error
    assert len(user.shown) == 1
    assert not host.results[-1].success
    assert {request.query["city_code"] for request in upstream.requests} == {"12"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_a_no(
    rt: Runtime, upstream: FaultServer, serve: Callable[[Host], Any], era: Era
) -> None:
    """Without an elicitation capability nobody is asked: the model gets the violation."""
    host = Host(rt)
    async with connected(serve(host), era) as client:
        answer = await client.call_tool("weather", {"city_code": "12"})
    assert "city_code" in answer.content[0].text  # type: ignore[union-attr]
    assert upstream.count("/weather") == 1


async def test_no_answer_in_time_is_a_no_and_withdraws_the_question(upstream: FaultServer) -> None:
    """After `callback_timeout` the call ends with the violation, and the client may close its form."""
    withdrawn = asyncio.Event()

    async def absent(context: Any, params: Any) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError("unreachable")

    with Runtime(":memory:", jitter=0.0, callback_timeout=0.05) as runtime:
        runtime.add(HttpTool("weather", "GET", upstream.url("/weather"), schema=SCHEMA))
        async with connected(Host(runtime).low_level(), "legacy", absent) as client:
            answer = await client.call_tool("weather", {"city_code": "12"})
            assert answer.is_error
            await asyncio.wait_for(withdrawn.wait(), 10)
    assert upstream.count("/weather") == 1


async def test_a_call_from_a_thread_asks_on_the_loop_of_the_server(
    rt: Runtime, upstream: FaultServer
) -> None:
    """A sync call in a thread: the question goes out on the loop that the session belongs to."""

    class Threaded(Host):
        async def weather(self, asking: Any, arguments: dict[str, Any]) -> ToolResult[Any]:
            with self.rt.run(confirm=asking) as run:
                result = await asyncio.to_thread(run.call_sync, "weather", arguments)
            self.results.append(result)
            return result

    host, user = Threaded(rt), User(YES)
    async with connected(host.low_level(), "legacy", user) as client:
        await client.call_tool("weather", {"city_code": "12"})
    assert host.results[0].value == {"degrees": 21, "city_code": "012"}
    assert upstream.count("/weather") == 2


@pytest.mark.parametrize("era", ERAS)
async def test_no_effect_is_repeated_by_asking(
    rt: Runtime, upstream: FaultServer, era: Era
) -> None:
    """A handler with two effects, run again for the answer: with named calls each happens once."""

    def orders(request: Request, number: int) -> Reply:
        if len(request.json["city_code"]) == 3:
            return Fault.effect("order", Fault.json({"id": 1}))
        return Fault.json({"error": "city_code must be 3 digits, got '12'"}, 400)

    upstream.route("POST", "/orders", orders)
    upstream.route("POST", "/notes", Fault.effect("note", Fault.json({"id": 1})))
    rt.add(HttpTool("order", "POST", upstream.url("/orders"), schema=SCHEMA))
    rt.add(HttpTool("note", "POST", upstream.url("/notes")))

    class Two(Host):
        async def weather(self, asking: Any, arguments: dict[str, Any]) -> ToolResult[Any]:
            async with self.rt.run("job", confirm=asking) as run:
                assert (await run.call("note", {}, call_id="1")).success
                return await run.call("order", arguments, call_id="2")

    async with connected(Two(rt).low_level(), era, User(YES)) as client:
        answer = await client.call_tool("weather", {"city_code": "12"})
    assert not answer.is_error
    assert (upstream.ledger.count("note"), upstream.ledger.count("order")) == (1, 1)


@pytest.mark.parametrize("change", ["arguments", "state"])
async def test_a_yes_covers_what_was_shown_and_nothing_else(
    rt: Runtime, upstream: FaultServer, change: str
) -> None:
    """A client that repeats the request with other arguments, or another state, has no yes for it."""
    host = Host(rt)
    async with connected(host.low_level(), "2026-07-28", User(YES)) as client:
        asked = await client.session.call_tool(
            "weather", {"city_code": "12"}, allow_input_required=True
        )
        assert isinstance(asked, types.InputRequiredResult)
        assert asked.input_requests
        (key,) = asked.input_requests
        answered = await client.session.call_tool(
            "weather",
            {"city_code": "12", **({"region": "north"} if change == "arguments" else {})},
            input_responses={key: YES},
            request_state=asked.request_state if change == "arguments" else "0" * 64,
            allow_input_required=True,
        )
    assert isinstance(answered, types.CallToolResult)
    assert answered.is_error
    assert all(len(request.query["city_code"]) == 2 for request in upstream.requests)


async def test_a_later_protocol_asks_once_per_request(rt: Runtime, upstream: FaultServer) -> None:
    """Two guesses in one request: the first is asked about, the second is a no."""

    class Two(Host):
        async def weather(self, asking: Any, arguments: dict[str, Any]) -> ToolResult[Any]:
            async with self.rt.run(confirm=asking) as run:
                self.results = [
                    await run.call(name, {"city_code": "12"}) for name in ("weather", "tides")
                ]
            return self.results[0]

    rt.add(HttpTool("tides", "GET", upstream.url("/weather"), schema=SCHEMA))
    host, user = Two(rt), User(YES)
    async with connected(host.low_level(), "2026-07-28", user) as client:
        await client.call_tool("weather", {"city_code": "12"})
    assert [text.partition(" ")[0] for text in user.shown] == ["weather"]
    assert [result.success for result in host.results] == [True, False]


async def test_the_question_is_asked_in_chinese(rt: Runtime, upstream: FaultServer) -> None:
    """`lang` chooses the words of question and form."""
    host, user = Host(rt, lang="zh"), User(YES)
    async with connected(host.low_level(), "legacy", user) as client:
        await client.call_tool("weather", {"city_code": "12"})
    assert user.shown[0].startswith("weather 的参数被拒绝")
    assert user.forms[0]["properties"]["confirm"]["title"] == "按修正后的参数发送"


def asking(answer: Callable[[str], Awaitable[Any]], capability: Any = None) -> Any:
    """A request of a client whose form is answered by a function of the message."""

    async def elicit_form(message: str, schema: Any, related_request_id: Any) -> Any:
        return await answer(message)

    elicitation = capability or types.ElicitationCapability(form=types.FormElicitationCapability())
    session = SimpleNamespace(
        client_capabilities=types.ClientCapabilities(elicitation=elicitation),
        elicit_form=elicit_form,
    )
    return confirm(
        SimpleNamespace(session=session, protocol_version="2025-11-25", request_id=1, params=None)
    )


def guess(path: str, before: Any, after: Any, kind: str = "zero_padding") -> Repair:
    return Repair(kind, path, before, after, Grade.GUESS)


async def shown(*repairs: Repair) -> str | None:
    """The question about some repairs; None where none is asked."""
    messages: list[str] = []

    async def answer(message: str) -> Any:
        messages.append(message)
        return YES

    assert await asking(answer)("pay", repairs) is bool(messages)
    return messages[0] if messages else None


async def test_secrets_are_not_shown() -> None:
    """What redaction hides stays hidden beside what may be shown."""
    text = await shown(
        guess("/limit", 500, 100, "clamped"),
        guess("/headers", {"authorization": "Bearer abcdef0123456789abcdef"}, {}, "fixer"),
    )
    assert text is not None
    assert "/limit: 500 → 100" in text
    assert "abcdef0123456789" not in text


@pytest.mark.parametrize(
    "repairs",
    [
        pytest.param([], id="none"),
        pytest.param([guess("/password", "12345678", "012345678")], id="redacted"),
        pytest.param([guess("/text", "a " * 400 + "1", "a " * 400 + "01")], id="beyond the cut"),
        pytest.param([guess(f"/code_{n}", "1", "01") for n in range(11)], id="too many"),
    ],
)
async def test_what_cannot_be_shown_is_not_agreed_to(repairs: list[Repair]) -> None:
    """A difference the user would not see is a no without a question."""
    assert await shown(*repairs) is None


async def test_the_question_is_bounded_and_holds_no_hidden_marks() -> None:
    """Long values are cut, and no mark can fake a line or turn the direction of the text."""
    text = await shown(
        guess("/a", "x\n/b: 1 → 2\u202e\u2028", "y " * 5000),
        guess("/dry_run", True, None, "unknown_key"),
    )
    assert text is not None
    assert len(text) < 1000
    assert len(text.splitlines()) == 3
    assert "\u202e" not in text
    assert text.endswith("/dry_run: true → (left out)")


@pytest.mark.parametrize(
    ("capability", "asked"),
    [
        (types.ElicitationCapability(), True),
        (types.ElicitationCapability(url=types.UrlElicitationCapability()), False),
    ],
)
async def test_only_clients_that_show_forms_are_asked(capability: Any, asked: bool) -> None:
    """A capability that names no mode means forms; one that names addresses alone does not."""

    async def answer(message: str) -> Any:
        return YES

    assert await asking(answer, capability)("t", (guess("/a", "1", "01"),)) is asked


@pytest.mark.parametrize("answer", [name for name in NOT_YES if name != "an error"])
async def test_the_callback_gives_true_or_false(answer: str) -> None:
    """A no is False itself, not a value that is taken for one."""

    async def given(message: str) -> Any:
        return NOT_YES[answer]

    assert await asking(given)("t", (guess("/a", "1", "01"),)) is False


async def test_a_broken_connection_is_a_no() -> None:
    """Whatever the session raises, the call goes on with a no."""

    async def answer(message: str) -> Any:
        raise ConnectionResetError

    assert await asking(answer)("t", (guess("/a", "1", "01"),)) is False


def test_misuse_is_told() -> None:
    """Outside of a loop there is no request to ask in; and the languages are two."""
    with pytest.raises(UsageError, match="async handler"):
        confirm(SimpleNamespace())

    with pytest.raises(UsageError, match="'en' or 'zh'"):
        confirm(SimpleNamespace(), lang="fr")  # type: ignore[arg-type]
