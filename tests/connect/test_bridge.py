"""What every framework's adapter needs: a framework's tool call, made through a runtime."""

import asyncio
from typing import Any

import pytest

import failwise
from failwise.connect.bridge import Bridge, Outcome
from failwise.testing import recorded

SCHEMA = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}},
    "required": ["sku"],
}


class Framework:
    """A framework's tool, and its own way of calling it."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.got = list(answers), []

    async def attempt(self, name: str, arguments: Any, context: Any) -> Any:
        self.got.append((name, arguments))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def original(self) -> Any:
        return await self.attempt("original", None, None)

    def call(self, bridge: Bridge, raw: Any, call_id: str = "c1", **options: Any) -> Outcome:
        plan = bridge.tool("order", SCHEMA, source=self, **options)
        run = bridge.run("job")
        return asyncio.run(
            bridge.call(plan, raw, self.attempt, self.original, run=run, call_id=call_id)
        )


def test_a_success_is_handed_on_as_the_very_object() -> None:
    """What the framework's tool gave comes back as it is; the arguments were repaired before."""
    given = object()
    tool = Framework(given)
    with failwise.Runtime(":memory:") as rt:
        outcome = tool.call(Bridge(rt, judged=lambda _: "fine"), "{'sku': 'A', 'quantity': '2'}")
    assert outcome.as_it_is
    assert outcome.given is given
    assert tool.got == [("order", {"sku": "A", "quantity": 2})]


def test_a_call_that_was_done_is_answered_from_the_record() -> None:
    """The same call id in the same job is not done again: its value comes back as a text."""
    tool = Framework("o-1")
    with failwise.Runtime(":memory:") as rt:
        bridge = Bridge(rt)
        tool.call(bridge, {"sku": "A"})
        again = tool.call(bridge, {"sku": "A"})
    assert len(tool.got) == 1
    assert not again.as_it_is
    assert not again.failed
    assert "o-1" in again.text


def test_control_flow_leaves_nothing_behind() -> None:
    """A signal that passes is raised as it was, and the same call can be made after it."""

    class Interrupt(Exception): ...

    signal = Interrupt()
    tool = Framework(signal, "o-1")
    with failwise.Runtime(":memory:") as rt:
        bridge = Bridge(rt, passthrough=(Interrupt,))
        with pytest.raises(Interrupt) as raised:
            tool.call(bridge, {"sku": "A"})
        assert raised.value is signal
        assert tool.call(bridge, {"sku": "A"}).given == "o-1"


def test_who_has_the_word_about_a_tool() -> None:
    """The runtime's declarations over the tool's own word over the runtime's tool of that name; how a key
    is sent is no part of it, since the framework's tool does not see it."""

    def order(sku: str, key: str) -> str:
        return sku

    with failwise.Runtime(":memory:", declarations={"or*": {"timeout": 7}}) as rt:
        rt.add(order, timeout=3, upstream="shop", idempotency_key="key", read_only=False)
        bridge = Bridge(rt)
        spec = bridge.tool("order", SCHEMA, source=1, said={"read_only": True}).tool
        assert (spec.timeout, spec.upstream, spec.read_only) == (7, "shop", True)
        assert spec.idempotency_key is None
        assert rt.tools["order"].timeout == 7
        assert rt.tools["order"].idempotency_key == "key"
        assert rt.call_sync("order", {"sku": "A"}).value == "A"


def test_agents_may_share_a_name() -> None:
    """Two tools of one name keep apart in their bridges; the runtime's own is called by its name."""
    first, second = Framework(1), Framework(2)
    other = {"type": "object", "properties": {"sku": {"type": "integer"}}}
    with failwise.Runtime(":memory:") as rt:
        a, b = Bridge(rt), Bridge(rt)
        plan = a.tool("order", SCHEMA, source=first)
        assert b.tool("order", other, source=second) is not plan
        assert a.tool("order", SCHEMA, source=first) is plan
        assert first.call(a, {"sku": "A"}).given == 1
        result = rt.call_sync("order", {"sku": 1})
    assert result.failure is not None
    assert "belongs" in result.failure.message or "framework" in result.failure.message


def test_a_tool_that_is_not_there_is_not_looked_for_in_the_runtime() -> None:
    """A name that the agent does not have ends as unknown, also where the runtime has a tool of it."""
    ran = []
    with failwise.Runtime(":memory:") as rt:
        rt.tool(name="wipe")(lambda: ran.append(1))
        tool, bridge = Framework(), Bridge(rt)
        outcome = asyncio.run(
            bridge.call(
                bridge.unknown("wipe"),
                {},
                tool.attempt,
                tool.original,
                run=bridge.run("job"),
                call_id="c",
            )
        )
    assert "unknown_tool" in outcome.text
    assert ran == []


def test_a_schema_that_cannot_be_read_is_done_without() -> None:
    """Arguments then go as they came."""
    tool = Framework("ok")
    with failwise.Runtime(":memory:") as rt:
        bridge = Bridge(rt)
        plan = bridge.tool("order", {"type": "array"}, source=tool)
        assert plan.tool.schema is None
        with pytest.raises(failwise.ConfigurationError):
            bridge.tool("order", SCHEMA, source=2, said={"read_olny": True})


def test_the_runs_of_jobs() -> None:
    """A job's key finds its run again; a run that was given is everyone's; objects are told by identity."""
    with failwise.Runtime(":memory:") as rt:
        bridge = Bridge(rt)
        assert bridge.run("a", "thread-1") is bridge.run("a", "thread-1")
        assert bridge.run("a").id == "thread-1"
        assert bridge.run(("a", "b")) is not bridge.run("a")
        one, other = [1], [1]
        assert bridge.run(one) is bridge.run(one)
        assert bridge.run(one) is not bridge.run(other)
        run = rt.run(id="job-42")
        assert Bridge(run).run("whatever") is run


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """Exceptions, refusals and unreadable arguments are the framework's own affair again."""
    refusal = {"ok": False, "error": {"code": "sold_out"}}
    error = ConnectionResetError("reset")
    tool = Framework(refusal, error, "as it would be")
    with failwise.Runtime(":memory:", mode=mode) as rt:
        results = recorded(rt)
        bridge = Bridge(rt)
        assert tool.call(bridge, {"sku": "A"}).given == refusal
        with pytest.raises(ConnectionResetError) as raised:
            tool.call(bridge, {"sku": "B"}, "c2")
        assert raised.value is error
        assert tool.call(bridge, "no JSON at all", "c3").given == "as it would be"
    assert len(results) == (3 if mode == "observe" else 0)
