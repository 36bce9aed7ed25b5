"""`Agent`: the loop with a scripted model."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import failwise
from failwise.agent import Budget, Completion, Prices, ToolBudget, Usage
from failwise.faults import AfterCall, inject
from failwise.testing import ScriptedTool, SteppingClock
from failwise.vocabulary.errors import UsageError
from tests.agent.conftest import Script, asks

REFUSED = failwise.ToolError(
    "not for you", code="business.refused", effect="rejected", transient=False
)


@pytest.fixture
def tools(rt: failwise.Runtime) -> failwise.Runtime:
    @rt.tool(read_only=True)
    async def find(name: str) -> dict[str, str]:
        """Find a customer."""
        if name == "nobody":
            raise failwise.ToolError(
                "no such customer", code="business.not_found", effect="rejected", transient=False
            )
        return {"id": f"id-{name}"}

    @rt.tool
    async def order(customer: str, note: str = "") -> str:
        """Order."""
        return f"order for {customer}"

    return rt


async def test_a_task_is_worked_on_until_it_is_done(tools: failwise.Runtime) -> None:
    """Calls are made, answered in order, counted; the last text is the model's answer."""
    model = Script(
        [
            asks(("find", '{"name": "Ada"}'), ("find", {"name": "Bob"})),
            asks(("order", '{"customer": "id-Ada"}')),
            "All done.",
        ]
    )
    result = await failwise.Agent(model, tools, instructions="Be brief.").run("Order for Ada.")
    assert (result.status, result.ok, result.text) == ("done", True, "All done.")
    assert [r.tool_name for r in result.results] == ["find", "find", "order"]
    assert result.done == ('order("customer": "id-Ada")',)
    assert model.heard[0][0] == {"role": "system", "content": "Be brief."}
    roles = [message["role"] for message in model.heard[-1]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert [r.model for r in result.results] == ["scripted"] * 3
    assert result.turns == 3
    assert result.usage.output >= 10
    assert result.report() == 'The task was done.\nDone: order("customer": "id-Ada").'


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        {"role": "assistant", "content": "text"},
        {"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}]},
        Completion("text"),
    ],
)
async def test_any_object_with_a_complete_method_is_a_model(
    tools: failwise.Runtime, answer: Any
) -> None:
    """Sync or async; a text, a message or a completion in OpenAI's shape, or a `Completion`."""

    class Plain:
        def complete(self, messages: list[Any], tools: list[Any]) -> Any:
            assert tools[0]["function"]["name"] == "find"
            return answer

    result = await failwise.Agent(Plain(), tools).run("hello")
    assert (result.status, result.text, result.usage_estimated) == ("done", "text", True)


async def test_what_is_no_completion_is_a_failure_of_the_model(tools: failwise.Runtime) -> None:
    """An answer in no known shape ends the task as failed, not with an exception."""
    result = await failwise.Agent(Script([42]), tools).run("hello")
    assert result.status == "failed"
    assert result.cause is not None
    assert result.cause.failure is not None
    assert result.cause.failure.code == "parsing.schema_mismatch"


async def test_a_repeat_of_a_failed_call_is_not_sent(tools: failwise.Runtime) -> None:
    """The model is told that, and what the failure left to try; the tool sees one request."""
    tool = ScriptedTool("pay", [REFUSED], schema={"type": "object"})
    tools.add(tool.spec())
    model = Script([asks(("pay", "{}")), asks(("pay", "{ }")), "I cannot."])
    result = await failwise.Agent(model, tools, remind=False).run("Pay.")
    assert tool.requests == 1
    told = model.heard[2][-1]["content"]
    assert told.startswith("NOT SENT: this very call of pay failed before")
    assert "Choices: 1) skip this step 2) stop and report the reason upwards" in told
    assert result.status == "partial"
    assert result.results[1].failure is not None
    assert result.results[1].failure.code == "runtime.repeated_call"
    assert result.not_done == ("pay",)


async def test_after_something_changed_the_same_call_may_work(tools: failwise.Runtime) -> None:
    """A login in between, and the call that failed is sent again."""
    state = {"in": False}

    @tools.tool
    async def login() -> str:
        """Log in."""
        state["in"] = True
        return "ok"

    @tools.tool(read_only=True)
    async def mail() -> str:
        """Read mail."""
        if not state["in"]:
            raise failwise.ToolError(
                "log in first", code="business.precondition", effect="rejected", transient=False
            )
        return "one letter"

    model = Script([asks(("mail", "{}")), asks(("login", "{}")), asks(("mail", "{}")), "Read."])
    result = await failwise.Agent(model, tools).run("Read my mail.")
    assert result.status == "done"
    assert result.results[-1].value == "one letter"


async def test_a_model_that_tries_nothing_new_is_stopped(tools: failwise.Runtime) -> None:
    """The same failing call, with idle reads in between: an end after as many as there are rounds."""
    tool = ScriptedTool("pay", [REFUSED], schema={"type": "object"})
    tools.add(tool.spec())
    model = Script([asks(("pay", "{}")), asks(("find", '{"name": "Ada"}'))] * 50)
    result = await failwise.Agent(model, tools, rounds=3).run("Pay.")
    assert result.status == "stuck"
    assert tool.requests == 1
    assert len(model.heard) <= 8
    assert "again and again" in result.report()


async def test_corrections_are_counted_and_end(tools: failwise.Runtime) -> None:
    """The message says which round it is; when they are used up the tool is not called any more."""
    model = Script([asks(("order", f'{{"customer": [{n}]}}')) for n in range(6)] + ["I give up."])
    result = await failwise.Agent(model, tools, rounds=3, remind=False).run("Order.")
    told = [messages[-1]["content"] for messages in model.heard[1:]]
    assert told[0].endswith("Correction 1 of 3 for this kind of mistake.")
    assert told[2].endswith(
        "No further correction is left for this kind of mistake: do without order, or report."
    )
    assert told[4].startswith("NOT SENT: order could not be called correctly after 3 corrections")
    assert result.corrections == 4
    assert result.not_done


async def test_the_models_own_retries_use_no_round(
    tools: failwise.Runtime, clock: SteppingClock
) -> None:
    """Overload of the model is waited for and repeated; no correction, no turn more for the model."""
    model = Script(
        [
            ConnectionRefusedError(111, "refused"),
            TimeoutError("slow"),
            "Here.",
        ]
    )
    result = await failwise.Agent(model, tools).run("hello")
    assert (result.status, result.corrections, result.turns) == ("done", 0, 1)
    (call,) = result.model_results
    assert call.sent == 3
    assert {a.failure.layer for a in call.attempts if a.failure} == {failwise.Layer.TRANSPORT}
    assert len(clock.sleeps) == 2


async def test_a_dead_credential_stops_the_chain_with_a_report(tools: failwise.Runtime) -> None:
    """The rest of the calls are answered as aborted; nobody in the loop can cure it: it ends."""

    @tools.tool(read_only=True)
    async def account(number: int) -> None:
        """Fails for good."""
        raise failwise.ToolError(
            "the key was revoked", code="auth.account_disabled", effect="rejected", transient=False
        )

    model = Script([asks(("account", '{"number": 1}'), ("order", '{"customer": "x"}')), "Hm."])
    agent = failwise.Agent(model, tools, parallel=1, lang="zh")
    result = await agent.run("Do it.")
    assert result.status == "refused"
    assert [r.failure and r.failure.code for r in result.results] == [
        "auth.account_disabled",
        "runtime.chain_aborted",
    ]
    assert len(model.heard) == 1
    assert result.cause is result.results[0]
    report = result.report()
    assert report.startswith("任务已停止")
    assert "未完成" in report
    assert "order" in report
    assert "您可以" in report
    assert result.report("en").startswith("The task was stopped: ")


async def test_a_model_that_ends_too_early_is_reminded_once(tools: failwise.Runtime) -> None:
    """It is told what is left failed; where it still ends, the result says that not all was done."""
    tool = ScriptedTool("pay", [REFUSED, "paid"], schema={"type": "object"})
    tools.add(tool.spec())
    model = Script([asks(("pay", "{}")), "Done!", asks(("pay", "{}")), "Now it is."])
    result = await failwise.Agent(model, tools).run("Pay.")
    assert model.heard[2][-1]["content"].startswith("Before you finish: pay failed")
    assert (result.status, result.text) == ("done", "Now it is.")
    stubborn = Script([asks(("pay", "{}")), "Done!"])
    tool.answers, tool.sent = [REFUSED], []
    again = await failwise.Agent(stubborn, tools).run("Pay.")
    assert (again.status, again.text, len(stubborn.heard)) == ("partial", "Done!", 3)
    assert again.report() == "The model ended, but not everything was done.\nNot done: pay."


async def test_an_order_that_may_have_happened_is_told_and_not_repeated(
    tools: failwise.Runtime,
) -> None:
    """In the same words or in others, it is not sent twice; the report says that it may have happened."""
    placed: list[str] = []

    def buy(sku: str, note: str = "") -> str:
        """Buy."""
        placed.append(sku)
        return "ok"

    tools.add(inject(buy, [AfterCall(TimeoutError("lost"))]), name="buy")
    model = Script(
        [
            asks(("buy", '{"sku": "A"}')),
            asks(("buy", '{"sku": "A"}')),
            asks(("buy", '{"sku": "A", "note": "again"}')),
            asks(("buy", '{"sku": "B"}')),
            "Bought.",
        ]
    )
    result = await failwise.Agent(model, tools, remind=False).run("Buy A, then B.")
    assert placed == ["A", "B"]
    assert result.status == "partial"
    assert result.open == ('buy("sku": "A")',)
    assert "May have happened, check before doing it again" in result.report()
    told = model.heard[3][-1]["content"]
    assert told.startswith(
        "NOT SENT: an earlier call of buy for the same thing may have taken effect"
    )


async def test_the_user_can_be_asked(tools: failwise.Runtime) -> None:
    """A built-in tool asks through the callback; what the user answers changes the world."""
    asked: list[str] = []

    async def ask(question: str) -> str:
        asked.append(question)
        return "in Paris"

    model = Script([asks(("ask_user", '{"question": "Where?"}')), "Thanks."])
    agent = failwise.Agent(model, tools, ask_user=ask)
    result = await agent.run("Order.")
    assert (result.status, asked) == ("done", ["Where?"])
    assert model.heard[1][-1]["content"] == "in Paris"
    assert model.offered[0][-1]["function"]["name"] == "ask_user"

    def nobody(question: str) -> None:
        raise RuntimeError("the line is dead")

    other = Script([asks(("ask_user", '{"question": "Where?"}')), "Then not."])
    await failwise.Agent(other, tools, ask_user=nobody).run("Order.")
    assert other.heard[1][-1]["content"].startswith("FAILED: the user could not be asked")


async def test_only_the_agents_own_tools_can_be_called(tools: failwise.Runtime) -> None:
    """A tool that the runtime has and the agent does not offer is unknown to it."""
    model = Script([asks(("order", '{"customer": "x"}')), "Hm."])
    result = await failwise.Agent(model, tools, tools=["find"]).run("Order.")
    assert [tool["function"]["name"] for tool in model.offered[0]] == ["find"]
    assert result.results[0].failure is not None
    assert result.results[0].failure.code == "model_output.unknown_tool"
    assert "find" in model.heard[1][-1]["content"]


async def test_calls_run_at_once_within_the_limit_and_keep_their_order(
    rt: failwise.Runtime,
) -> None:
    """`parallel` bounds how many run; the answers stand in the order of the calls."""
    running = [0, 0]

    @rt.tool(read_only=True)
    async def work(number: int) -> int:
        """Works."""
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.002 * (5 - number))
        running[0] -= 1
        return number

    model = Script([asks(*[("work", f'{{"number": {n}}}') for n in range(5)]), "Done."])
    await failwise.Agent(model, rt, parallel=2).run("Work.")
    assert [m["content"] for m in model.heard[1][-5:]] == ["0", "1", "2", "3", "4"]
    assert running[1] == 2


async def test_ids_that_come_twice_are_two_calls(tools: failwise.Runtime) -> None:
    """Servers that number their calls anew in each turn: two orders stay two."""
    first = asks(("order", '{"customer": "a"}'))
    second = asks(("order", '{"customer": "b"}'))
    for turn in (first, second):
        object.__setattr__(turn.calls[0], "id", "call_0")
    result = await failwise.Agent(Script([first, second, "Done."]), tools).run("Two orders.")
    assert [r.value for r in result.results] == ["order for a", "order for b"]
    assert len({r.call_id for r in result.results}) == 2


async def test_a_call_cut_off_is_not_sent_and_a_text_cut_off_goes_on(
    tools: failwise.Runtime,
) -> None:
    """The output limit: the last call may be cut; a text is asked to go on, once."""
    cut = asks(("find", '{"name": "Ada"}'), ("order", '{"customer": "id-'), stop="length")
    model = Script([cut, Completion("One, two", stop="length"), Completion(", three.")])
    result = await failwise.Agent(model, tools, remind=False).run("Count.")
    assert result.results[0].success
    assert result.results[1].failure is not None
    assert result.results[1].failure.code == "model_output.truncated"
    assert result.text == "One, two, three."


async def test_a_refusal_of_the_model_is_said(tools: failwise.Runtime) -> None:
    """The model declines: no error, no done."""
    result = await failwise.Agent(Script([Completion("I will not.", stop="refusal")]), tools).run(
        "x"
    )
    assert (result.status, result.text) == ("declined", "I will not.")


async def test_events_tell_the_story(tools: failwise.Runtime, clock: SteppingClock) -> None:
    """Turns, calls, retries and the end, in order; the last has the outcome."""
    flaky = ScriptedTool(
        "flaky", [ConnectionRefusedError(111, "no"), "fine"], clock=clock, read_only=True,
        schema={"type": "object"},
    )  # fmt: skip
    tools.add(flaky.spec())
    agent = failwise.Agent(Script([asks(("flaky", "{}")), "Done."]), tools)
    events = [event async for event in agent.stream("Go.")]
    assert [e.kind for e in events if e.kind != "retry"] == [
        "answer",
        "call",
        "result",
        "answer",
        "end",
    ]
    (retry,) = [e for e in events if e.kind == "retry"]
    assert retry.tool == "flaky"
    assert retry.attempt is not None
    assert events[-1].outcome is not None
    assert events[-1].outcome.status == "done"
    assert tools._attempt_callbacks == []


async def test_leaving_the_events_cancels_the_task(tools: failwise.Runtime) -> None:
    """Nothing goes on working for nobody."""
    ended = asyncio.Event()

    @tools.tool(read_only=True)
    async def endless() -> None:
        """Never ends."""
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    events = failwise.Agent(Script([asks(("endless", "{}"))]), tools).stream("Go.")
    async for event in events:
        if event.kind == "call":
            break
    await asyncio.sleep(0.01)
    await events.aclose()  # type: ignore[attr-defined]
    assert ended.is_set()


async def test_cancelling_ends_waits_too(tools: failwise.Runtime) -> None:
    """A wait for an overloaded model ends with the task's cancellation."""
    model = Script([ConnectionRefusedError(111, "no")])
    rt = failwise.Runtime(":memory:")
    working = asyncio.ensure_future(failwise.Agent(model, rt).run("x"))
    await asyncio.sleep(0.1)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(working, 1)
    rt.close()


async def test_the_next_task_goes_on_from_the_history(tools: failwise.Runtime) -> None:
    """`history` carries the conversation over."""
    model = Script([asks(("find", '{"name": "Ada"}')), "Found.", "As I said."])
    agent = failwise.Agent(model, tools)
    first = await agent.run("Find Ada.")
    await agent.run("Again?", history=first.history)
    assert [m["role"] for m in model.heard[-1]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


def test_without_a_loop(tools: failwise.Runtime) -> None:
    """`run_sync` works in a thread without a loop of its own."""
    result = failwise.Agent(Script([asks(("find", '{"name": "Ada"}')), "Found."]), tools).run_sync(
        "Find Ada.", id="job-9"
    )
    assert (result.status, result.run_id) == ("done", "job-9")
    assert result.to_dict()["status"] == "done"


async def test_an_open_circuit_is_waited_for_once(
    tools: failwise.Runtime, clock: SteppingClock
) -> None:
    """A call that may be sent soon is waited for within `patience`; past it the model is told."""
    down = [ConnectionRefusedError(111, "no")] * 12
    for name in ("first", "second"):
        tool = ScriptedTool(
            name, [*down, "up"] if name == "first" else ["up"], clock=clock, read_only=True,
            upstream="shop", schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        )  # fmt: skip
        tools.add(tool.spec())
    for number in range(3):
        await tools.call("first", {"n": number})
    assert tools._guards.statistics()[0]["circuit"] == "open"  # type: ignore[attr-defined]
    impatient = Script([asks(("second", "{}")), "Later."])
    await failwise.Agent(impatient, tools, patience=0, remind=False).run("Go.")
    assert "circuit_open" in impatient.told
    patient = Script([asks(("second", "{}")), "Done."])
    result = await failwise.Agent(patient, tools, patience=60).run("Go.")
    assert (result.status, result.results[0].value) == ("done", "up")


# Models that take over, and budgets


QUOTA = failwise.ToolError(
    "quota used up", code="business.quota_exhausted", effect="rejected", transient=False
)


async def test_the_next_model_takes_over_and_the_result_says_so(tools: failwise.Runtime) -> None:
    """Exhausted quota: the first is not asked again in this task; calls name who asked for them."""
    first = Script([QUOTA], name="dear")
    second = Script([asks(("find", '{"name": "Ada"}')), "Found."], name="cheap")
    result = await failwise.Agent(models=[first, second], runtime=tools).run("Find Ada.")
    assert (result.status, result.degraded_to) == ("done", "cheap")
    assert len(first.heard) == 1
    assert result.results[0].model == "cheap"
    assert result.model_results[-1].degraded_to == "cheap"
    assert "Answered by cheap instead of the first model." in result.report()


async def test_a_spent_token_budget_hands_over(tools: failwise.Runtime) -> None:
    """The tokens of the first model are used up: the second goes on, with as many of its own."""
    first = Script(
        [asks(("find", '{"name": "A"}')), asks(("find", '{"name": "B"}'))] * 9, name="dear"
    )
    second = Script([Completion("Done.", usage=Usage(10, 10))], name="cheap")
    budget = Budget(tokens=30)
    result = await failwise.Agent(models=[first, second], runtime=tools, budget=budget).run("Go.")
    assert (result.status, result.degraded_to, len(first.heard)) == ("done", "cheap", 2)


async def test_an_open_circuit_hands_over(tools: failwise.Runtime, clock: SteppingClock) -> None:
    """A model whose circuit is open is not asked at all; it is again once it is well."""
    first = Script([ConnectionRefusedError(111, "no")], name="dear")
    second = Script(["Done."], name="cheap")
    agent = failwise.Agent(models=[first, second], runtime=tools)
    for _ in range(4):
        assert (await agent.run("Go.")).degraded_to == "cheap"
    asked = len(first.heard)
    result = await agent.run("Go.")
    assert len(first.heard) == asked
    assert result.model_results[0].failure is not None
    assert result.model_results[0].failure.code == "runtime.circuit_open"
    first.turns = ["I am back."]
    first.heard.clear()
    clock.advance(600)
    assert (await agent.run("Go.")).text == "I am back."


async def test_a_refused_request_goes_to_no_other_model_for_filtered_content(
    tools: failwise.Runtime,
) -> None:
    """What the content filter withheld is not shopped around."""
    first = Script(
        [failwise.ToolError("filtered", code="model_output.content_filter", transient=False)],
        name="first",
    )
    second = Script(["Here."], name="second")
    result = await failwise.Agent(models=[first, second], runtime=tools).run("x")
    assert (result.status, second.heard) == ("failed", [])
    assert result.cause is not None
    assert result.cause.failure is not None
    assert result.cause.failure.layer is failwise.Layer.MODEL_OUTPUT


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(turns=3), "turns"),
        (Budget(tokens=45), "tokens"),
        (Budget(money=0.00045), "money"),
        (Budget(calls=3), "calls"),
    ],
)
async def test_at_a_limit_the_model_may_answer_once_more(
    tools: failwise.Runtime, budget: Budget, limit: str
) -> None:
    """``finish``: it is told what is used up, and its last word is the answer; no call is sent any more."""
    turns = [asks(("find", f'{{"name": "n{n}"}}')) for n in range(3)]
    model = Script([*turns, "That is what I have."], prices=Prices(10, 10))
    result = await failwise.Agent(model, tools, budget=budget).run("Find all.")
    assert (result.status, result.limit, result.text) == ("limit", limit, "That is what I have.")
    assert model.told.startswith("What this task may use is used up")
    stubborn = Script(
        [asks(("order", f'{{"customer": "n{n}"}}')) for n in range(9)], prices=Prices(10, 10)
    )
    again = await failwise.Agent(stubborn, tools, budget=budget).run("Order all.")
    assert again.status == "limit"
    assert sum(r.success for r in again.results) == 3
    assert again.results[-1].failure is not None
    assert again.results[-1].failure.code == "runtime.iteration_limit"


async def test_on_limit_stop_and_ask(tools: failwise.Runtime) -> None:
    """``stop`` ends at once; ``ask`` asks the user, who may allow as much again."""
    turns = [asks(("find", f'{{"name": "n{n}"}}')) for n in range(6)]
    model = Script([*turns, "All found."])
    stopped = await failwise.Agent(model, tools, budget=Budget(turns=2, on_limit="stop")).run("x")
    assert (stopped.status, len(model.heard)) == ("limit", 2)
    answers = iter(["yes", "好", "yes", "no"])
    other = Script([*turns, "All found."])
    agent = failwise.Agent(
        other, tools, budget=Budget(turns=2, on_limit="ask"), ask_user=lambda _: next(answers)
    )
    result = await agent.run("x")
    assert (result.status, result.text) == ("done", "All found.")
    assert next(answers) == "no"


async def test_wall_time_ends_a_task(tools: failwise.Runtime, clock: SteppingClock) -> None:
    """After `seconds` nobody is asked any more."""

    def slow(_: Any) -> Any:
        clock.advance(20)
        return asks(("find", f'{{"name": "{clock.now}"}}'))

    result = await failwise.Agent(Script([slow]), tools, budget=Budget(seconds=50)).run("x")
    assert (result.status, result.limit, result.turns) == ("limit", "seconds", 3)


async def test_tools_have_budgets_of_their_own(tools: failwise.Runtime) -> None:
    """A tool's limit closes that tool, not the task; a price counts for both."""
    turns = [asks(("find", f'{{"name": "n{n}"}}')) for n in range(3)]
    model = Script([*turns, asks(("order", '{"customer": "x"}')), "Done."])
    budget = Budget(tools={"find": 2, "order": ToolBudget(price=0.5)})
    result = await failwise.Agent(model, tools, budget=budget, remind=False).run("x")
    assert [r.success for r in result.results] == [True, True, False, True]
    told = model.heard[3][-1]["content"]
    assert told == "NOT SENT: what find may use in this task is used up (calls). Do without it."
    assert result.money == 0.5


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": object()},
        {"model": Script([]), "models": [Script([])]},
        {"model": Script([]), "rounds": 0},
        {"model": Script([]), "parallel": 0},
        {"model": Script([]), "result_limit": 10},
        {"model": Script([]), "tools": ["nothing"]},
        {"model": Script([]), "lang": "fr"},
        {"model": Script([]), "ask_user": "me"},
        {"model": Script([]), "patience": -1},
        {"model": Script([]), "budget": Budget(turns=0)},
        {"model": Script([]), "budget": Budget(on_limit="panic")},  # type: ignore[arg-type]
        {"model": Script([], dialect="gemini")},
    ],
)
def test_options_that_cannot_work_are_refused(
    rt: failwise.Runtime, options: dict[str, Any]
) -> None:
    """Each is said when the agent is made, with what to say instead."""
    with pytest.raises(UsageError):
        failwise.Agent(options.pop("model", None), rt, **options)
    with pytest.raises(UsageError):
        failwise.Agent(Script([]))


@pytest.mark.parametrize("made", [lambda: failwise.Agent])
def test_it_is_a_public_name(made: Callable[[], Any]) -> None:
    """`failwise.Agent` resolves on first use."""
    assert made().__name__ == "Agent"


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_an_agent_works_where_the_runtime_only_watches(mode: Any) -> None:
    """`observe` and `off` change nothing of what the loop does with calls that work."""
    with failwise.Runtime(":memory:", mode=mode, clock=SteppingClock()) as rt:

        @rt.tool(read_only=True)
        async def find(name: str) -> str:
            """Find."""
            return f"id-{name}"

        model = Script([asks(("find", '{"name": "Ada"}')), "Found."])
        result = await failwise.Agent(model, rt).run("Find Ada.")
    assert (result.status, result.text, result.results[0].value) == ("done", "Found.", "id-Ada")


async def test_reports_show_no_secret(tools: failwise.Runtime) -> None:
    """What was asked stands in the report without the secrets in it."""

    @tools.tool
    async def log_in(user: str, password: str) -> str:
        """Log in."""
        raise REFUSED

    model = Script(
        [asks(("log_in", '{"user": "ada", "password": "hunter2-hunter2"}')), "I could not."]
    )
    result = await failwise.Agent(model, tools, remind=False).run("Log in.")
    assert "ada" in result.report()
    assert "hunter2" not in result.report() + str(result.to_dict())


async def test_two_equal_orders_are_two(tools: failwise.Runtime) -> None:
    """An order that worked does not make good the equal one after it whose answer was lost."""
    lost = ScriptedTool(
        "buy_twice", ["one", TimeoutError("lost")], schema={"type": "object", "required": ["sku"]}
    )
    tools.add(lost.spec())
    call = ("buy_twice", '{"sku": "A"}')
    model = Script([asks(call), asks(call), "Two bought."])
    result = await failwise.Agent(model, tools, remind=False).run("Buy two A.")
    assert (result.status, len(result.done), len(result.open)) == ("partial", 1, 1)
