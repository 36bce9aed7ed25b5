"""Claude Agent SDK: hooks and tools. Its program is no part of this: the functions are called as it does."""

import asyncio
import dataclasses
import sys
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

import failwise
from failwise.connect.claude import hook_functions, hooks, tools
from failwise.faults import FaultServer
from failwise.testing import recorded
from tests.frameworks.driving import alike, by_runtime, runtime
from tests.frameworks.scenarios import ORDER, SCENARIOS, Scenario, names
from tests.frameworks.shop import SECRET, Function, Shop

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@dataclasses.dataclass
class Made:
    """As the SDK's `SdkMcpTool`."""

    name: str
    description: str
    input_schema: Any
    handler: Callable[[Any], Awaitable[dict[str, Any]]]


def sdk_tool(function: Function) -> Made:
    """A function as ``@tool`` makes one."""
    import json

    from failwise.tools import function_tool

    async def handler(arguments: Mapping[str, Any]) -> dict[str, Any]:
        value = await asyncio.to_thread(lambda: function(**arguments))
        return {"content": [{"type": "text", "text": json.dumps(value)}]}

    spec = function_tool(function)
    return Made(spec.name, spec.description, spec.schema, handler)


@pytest.mark.parametrize("scenario", names())
def test_tools_under_faults(scenario: Scenario, shop: FaultServer) -> None:
    """Every scenario ends as a runtime alone would end it, and the model reads the same text."""
    server = Shop(shop)
    scenario.routes(shop)
    with runtime() as rt:
        made = {tool.name: tool for tool in tools(rt, map(sdk_tool, server.functions().values()))}

        async def play() -> list[Any]:
            return [await made[name].handler(raw) for name, raw in scenario.calls]

        answers = asyncio.run(play())
    read = ["".join(block["text"] for block in answer["content"]) for answer in answers]
    assert [answer.get("is_error", False) for answer in answers] == list(scenario.told)
    assert scenario.holds(server)
    assert SECRET not in "".join(read)
    with FaultServer() as other:
        expected = by_runtime(scenario, other)
    for text, own, told in zip(alike(read), alike(expected), scenario.told, strict=True):
        assert text == own if told else "shoes 1" in text


def before(tool: str, arguments: Any, call_id: str, session: str = "s-1") -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "session_id": session,
        "tool_name": tool,
        "tool_input": arguments,
        "tool_use_id": call_id,
    }


def after(asked: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    return {**asked, "hook_event_name": "PostToolUse", "tool_response": answer}


def failed(asked: Mapping[str, Any], error: str, **more: Any) -> dict[str, Any]:
    return {**asked, "hook_event_name": "PostToolUseFailure", "error": error, **more}


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


class Program:
    """Calls hooks as Claude's program does."""

    def __init__(self, rt: failwise.Runtime) -> None:
        self.hooks = hook_functions(rt)

    async def call(self, event: str, given: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self.hooks[event](given, given.get("tool_use_id"), {"signal": None})
        return dict(answer.get("hookSpecificOutput") or {})


def test_a_good_call_is_let_through_and_recorded() -> None:
    """Nothing is said of a good call; its record has the tool's own name and the session as its run."""

    async def main(rt: failwise.Runtime) -> None:
        program = Program(rt)
        asked = before("mcp__shop__search", {"query": "x"}, "t1")
        assert await program.call("PreToolUse", asked) == {}
        assert await program.call("PostToolUse", after(asked, text('{"found": 1}'))) == {}

    with runtime() as rt:
        results = recorded(rt)
        asyncio.run(main(rt))
    assert [(r.tool_name, r.success, r.run_id, r.call_id) for r in results] == [
        ("search", True, "s-1", "t1")
    ]


def test_a_refusal_in_a_good_answer_is_told_and_its_secret_is_not() -> None:
    """A business refusal is judged; what the model reads of an MCP tool is replaced, without secrets."""
    answer = text(
        f'{{"ok": false, "error": {{"code": "insufficient_balance", "message": "api_key={SECRET}"}}}}'
    )

    async def main(rt: failwise.Runtime) -> dict[str, Any]:
        program = Program(rt)
        asked = before("mcp__shop__create_order", ORDER, "t1")
        await program.call("PreToolUse", asked)
        return await program.call("PostToolUse", after(asked, answer))

    with runtime() as rt:
        said = asyncio.run(main(rt))
    [block] = said["updatedToolOutput"]
    assert block["text"].startswith("FAILED: tool create_order · business (insufficient_balance)")
    assert SECRET not in block["text"]


def test_an_order_that_may_have_been_placed_is_denied() -> None:
    """After a failure that leaves the effect open, the same order is denied under any id."""

    async def main(rt: failwise.Runtime) -> tuple[dict[str, Any], dict[str, Any]]:
        program = Program(rt)
        asked = before("mcp__shop__create_order", ORDER, "t1")
        await program.call("PreToolUse", asked)
        told = await program.call("PostToolUseFailure", failed(asked, "504 Gateway Timeout"))
        return told, await program.call(
            "PreToolUse", before("mcp__shop__create_order", ORDER, "t2")
        )

    with runtime() as rt:
        told, denied = asyncio.run(main(rt))
    assert "may have taken effect" in told["additionalContext"]
    assert denied["permissionDecision"] == "deny"
    assert "effect_open" in denied["permissionDecisionReason"]


def test_a_stopped_chain_denies_what_follows() -> None:
    """After a refused identity the session's calls are denied without being sent; another session's not."""

    async def main(rt: failwise.Runtime) -> list[dict[str, Any]]:
        program = Program(rt)
        asked = before("mcp__shop__profile", {"user": "ann"}, "t1")
        await program.call("PreToolUse", asked)
        await program.call("PostToolUseFailure", failed(asked, "403 Forbidden"))
        return [
            await program.call("PreToolUse", before("mcp__shop__search", {"q": 1}, "t2", session))
            for session in ("s-1", "s-2")
        ]

    with runtime() as rt:
        same, other = asyncio.run(main(rt))
    assert same["permissionDecision"] == "deny"
    assert "chain_aborted" in same["permissionDecisionReason"]
    assert other == {}


def test_a_call_that_a_person_forbade_was_not_made() -> None:
    """An allowed call of which nothing more is heard is closed at the end of the turn: not sent."""

    async def main(rt: failwise.Runtime) -> dict[str, Any]:
        program = Program(rt)
        await program.call("PreToolUse", before("mcp__shop__create_order", ORDER, "t1"))
        await program.call("Stop", {"hook_event_name": "Stop", "session_id": "s-1"})
        return await program.call("PreToolUse", before("mcp__shop__create_order", ORDER, "t2"))

    with runtime() as rt:
        assert asyncio.run(main(rt)) == {}


def test_an_interrupted_call_stays_open() -> None:
    """A person who stops a call under way leaves its effect unknown."""

    async def main(rt: failwise.Runtime) -> dict[str, Any]:
        program = Program(rt)
        asked = before("mcp__shop__create_order", ORDER, "t1")
        await program.call("PreToolUse", asked)
        await program.call("PostToolUseFailure", failed(asked, "interrupted", is_interrupt=True))
        await asyncio.sleep(0)
        return await program.call("PreToolUse", before("mcp__shop__create_order", ORDER, "t2"))

    with runtime() as rt:
        assert asyncio.run(main(rt))["permissionDecision"] == "deny"


def test_the_calls_of_wrapped_tools_pass_the_hooks(shop: FaultServer) -> None:
    """Tools that `tools` wrapped are not counted twice."""
    BY_NAME["good"].routes(shop)

    async def main(rt: failwise.Runtime) -> dict[str, Any]:
        program = Program(rt)
        made = tools(rt, [sdk_tool(Shop(shop).functions()["search"])])
        asked = before("mcp__shop__search", {"query": "x"}, "t1")
        said = await program.call("PreToolUse", asked)
        await made[0].handler({"query": "x"})
        await program.call("PostToolUse", after(asked, text("{}")))
        return said

    with runtime() as rt:
        results = recorded(rt)
        assert asyncio.run(main(rt)) == {}
    assert len(results) == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_watching_changes_nothing(mode: Any) -> None:
    """In observe mode calls are recorded and nothing is said; switched off, nothing at all happens."""

    async def main(rt: failwise.Runtime) -> list[dict[str, Any]]:
        program = Program(rt)
        said = []
        for call_id in ("t1", "t2"):
            asked = before("mcp__shop__create_order", ORDER, call_id)
            said.append(await program.call("PreToolUse", asked))
            told = failed(asked, "504 Gateway Timeout")
            said.append(await program.call("PostToolUseFailure", told))
        return said

    with runtime(mode=mode) as rt:
        results = recorded(rt)
        assert asyncio.run(main(rt)) == [{}] * 4
    assert [r.failure and r.failure.code for r in results] == (
        ["network.gateway_timeout"] * 2 if mode == "observe" else []
    )


def test_the_options_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """`hooks` gives the SDK's own matchers, for the tools of MCP servers."""
    if "claude_agent_sdk" not in sys.modules:
        try:
            import claude_agent_sdk  # noqa: F401
        except ImportError:
            stand_in = types.ModuleType("claude_agent_sdk")

            @dataclasses.dataclass
            class HookMatcher:
                matcher: str | None = None
                hooks: list[Any] = dataclasses.field(default_factory=list)

            stand_in.HookMatcher = HookMatcher  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "claude_agent_sdk", stand_in)
    with runtime() as rt:
        made = hooks(rt)
    assert [matcher.matcher for matcher in made["PreToolUse"]] == ["mcp__.*"]
    assert set(made) == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"}


def test_without_the_sdk_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing SDK is an error that says what to do."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with runtime() as rt, pytest.raises(failwise.ConfigurationError, match="pip install"):
        hooks(rt)
