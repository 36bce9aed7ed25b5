"""Known trouble is told early, in one bounded line of a tool's description."""

import pytest

import failwise
from failwise.agent import Agent
from failwise.runtime.trouble import troubles
from failwise.testing import ScriptedTool, SteppingClock
from tests.agent.conftest import Script

DOWN = ConnectionRefusedError(111, "refused")


def tool(rt: failwise.Runtime, name: str, answers: list[object], **declared: object) -> None:
    schema = {"type": "object"}
    rt.add(ScriptedTool(name, answers, read_only=True, schema=schema, **declared).spec())  # type: ignore[arg-type]


def description(rt: failwise.Runtime, name: str, **options: object) -> str:
    (shown,) = rt.schemas("openai", tools=[name], **options)  # type: ignore[arg-type]
    return str(shown["function"]["description"])


async def test_a_tool_that_fails_just_now_says_so(
    rt: failwise.Runtime, clock: SteppingClock
) -> None:
    """Nearly all of its last calls failed: one line, in either language; off by a setting; and gone
    once the window has passed."""
    bug = failwise.ToolError("broken", code="server.internal", transient=False)
    tool(rt, "shaky", [bug, bug, bug, bug, "fine"])
    tool(rt, "well", ["fine"])
    for number in range(5):
        await rt.call("shaky", {"n": number})
        await rt.call("well", {"n": number})
    line = description(rt, "shaky")
    assert line == (
        "Known trouble: 4 of its last 5 calls in 5 min failed (server); "
        "prefer another way, or leave it for later."
    )
    assert len(line) <= 200
    assert description(rt, "shaky", lang="zh").startswith(
        "已知故障：最近 5 分钟内 5 次调用有 4 次失败"
    )
    assert description(rt, "shaky", trouble=False) == ""
    assert description(rt, "well") == ""
    clock.advance(400)
    assert description(rt, "shaky") == ""


async def test_answers_are_no_trouble(rt: failwise.Runtime) -> None:
    """ "Not found" and wrong arguments say nothing of a tool's health, however many."""
    no = failwise.ToolError("no", code="business.not_found", effect="rejected", transient=False)
    tool(rt, "search", [no])
    for number in range(10):
        await rt.call("search", {"n": number})
        await rt.call("search", "[1, 2]")
    assert description(rt, "search") == ""


async def test_an_open_circuit_says_so(rt: failwise.Runtime) -> None:
    """All tools of the upstream carry the line, with the time until a probe."""
    tool(rt, "find", [DOWN], upstream="shop")
    tool(rt, "price", ["9"], upstream="shop")
    for number in range(4):
        await rt.call("find", {"n": number})
    assert rt._guards.statistics()[0]["circuit"] == "open"  # type: ignore[attr-defined]
    line = description(rt, "price")
    assert line.startswith(
        "Known trouble: not available now, it failed too often; it may be tried in "
    )
    assert set(troubles(rt)) == {"find", "price"}


async def test_an_agent_tells_its_model(rt: failwise.Runtime) -> None:
    """The line stands in the tools that the agent offers, unless it is told not to."""
    tool(rt, "find", [DOWN], upstream="shop")
    for number in range(4):
        await rt.call("find", {"n": number})
    model = Script(["Hm."])
    await Agent(model, rt).run("x")
    await Agent(model, rt, trouble=False).run("x")
    told = [offered[0]["function"]["description"] for offered in model.offered]
    assert told[0].startswith("Known trouble")
    assert told[1] == ""


async def test_a_journal_that_cannot_be_read_says_nothing(
    rt: failwise.Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No description fails because of a journal."""
    tool(rt, "find", ["fine"])
    await rt.call("find", {})

    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(rt.journal, "rows", broken)
    assert description(rt, "find") == ""
