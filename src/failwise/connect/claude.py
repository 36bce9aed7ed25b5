"""Claude Agent SDK: its hooks, and tools of one's own, through a runtime. The SDK is no dependency.

    from failwise.connect.claude import hooks, tools

    options = ClaudeAgentOptions(
        hooks=hooks(rt),
        mcp_servers={"shop": create_sdk_mcp_server("shop", tools=tools(rt, [search, order]))},
    )

Source: claude-agent-sdk 0.2, "Hooks" (`PreToolUse`, `PostToolUse`, `PostToolUseFailure`), "Custom tools".
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, Outcome
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

__all__ = ["hook_functions", "hooks", "tools"]

logger = logging.getLogger("failwise")

Hook = Callable[[Mapping[str, Any], "str | None", Any], Awaitable[dict[str, Any]]]

_OPEN: Final = 1_000
"""Calls that are allowed and not heard of again; the oldest is given up."""
_ONCE: Final = {
    category: {"retries": 0, "retries_read": 0}
    for category in ("network", "server", "rate_limit", "parsing", "invalid_request", "unknown")
}
"""The program calls the tool, and it calls it once."""


def hooks(
    runtime: "Runtime | Run", *, matcher: str = "mcp__.*", lang: Language = "en"
) -> dict[Any, list[Any]]:
    """For ``ClaudeAgentOptions(hooks=hooks(rt))``: the calls of MCP tools, which the program makes itself.

    Before a call it is asked whether it may be sent: an open circuit, a stopped run, or an order that may
    have been placed already deny it, with the text that the model reads. After it the outcome is judged
    and recorded, and a failure told; of an MCP tool the output is replaced, so that no secret in it is
    read. Nothing can be repeated or repaired here: where you write the tools, use `tools` as well, whose
    calls pass these hooks untouched. `matcher` names the tools, as in the SDK; the job of a call is its
    session. Raises `ConfigurationError` where claude-agent-sdk is not installed.
    """
    try:
        from claude_agent_sdk import HookMatcher
    except ImportError as error:
        raise required("the Claude Agent SDK", "claude-agent-sdk", error) from error
    return {
        event: [HookMatcher(matcher=matcher if "Tool" in event else None, hooks=[function])]
        for event, function in hook_functions(runtime, lang=lang).items()
    }


def hook_functions(runtime: "Runtime | Run", *, lang: Language = "en") -> dict[str, Hook]:
    """The hooks as functions by event, for options made by hand; the SDK is not needed for it."""
    made = _Hooks(runtime, lang)
    return {
        "PreToolUse": made.before,
        "PostToolUse": made.after,
        "PostToolUseFailure": made.failed,
        "Stop": made.stopped,
    }


def tools(runtime: "Runtime | Run", given: Iterable[Any], *, lang: Language = "en") -> list[Any]:
    """For ``create_sdk_mcp_server(..., tools=tools(rt, [...]))``: functions decorated with ``@tool``.

    A failed call gives ``is_error`` with the text that a model can use; a success is handed on untouched.
    Wrong arguments are repaired or answered. All calls of one `tools(...)` are of one job, unless
    a `Run` is given: make them where you make the client.
    """
    bridge = Bridge(runtime, lang=lang, judged=_as_value)
    run = bridge.run(bridge)
    made = [_wrapped(bridge, run, tool) for tool in given]
    _own.setdefault(bridge.runtime, set()).update(tool.name for tool in made)
    return made


def _wrapped(bridge: Bridge, run: Run, tool: Any) -> Any:
    perform = tool.handler
    warn_of_retries(perform, tool.name)

    async def handler(arguments: Any) -> Any:
        plan = bridge.tool(
            tool.name,
            lambda: _schema(tool.input_schema),
            source=tool,
            description=tool.description,
        )

        async def attempt(name: str, given: Arguments, _: CallContext) -> Any:
            if name != plan.tool.name:
                raise not_reachable(name)
            return await perform(given)

        outcome = await bridge.call(
            plan, arguments, attempt, lambda: perform(arguments), run=run, call_id=None
        )
        if outcome.as_it_is:
            return outcome.given
        content = [{"type": "text", "text": outcome.text}]
        return {"content": content, "is_error": True} if outcome.failed else {"content": content}

    return replace(tool, handler=handler)


_own: "WeakKeyDictionary[Runtime, set[str]]" = WeakKeyDictionary()
"""The names of the tools that `tools` wrapped, by runtime: the hooks let their calls pass."""
_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(given: Any) -> Mapping[str, Any] | None:
    """The arguments as JSON Schema: given as one, or as a mapping of names to simple types."""
    if not isinstance(given, Mapping):
        return None
    if isinstance(given.get("type"), str) and "properties" in given:
        return given
    properties = {
        name: {"type": _TYPES[kind]} if isinstance(kind, type) and kind in _TYPES else {}
        for name, kind in given.items()
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


class _Denied(Exception):
    """An allowed call that was never made: a person said no."""


class _Pending:
    """A call that the program makes: between the hook before and the hook after it."""

    __slots__ = ("answer", "sent", "task")

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.sent: asyncio.Future[None] = loop.create_future()
        self.answer: asyncio.Future[Any] = loop.create_future()
        self.task: asyncio.Task[Outcome] | None = None

    async def attempt(self, name: str, arguments: Arguments, _: CallContext) -> Any:
        if self.sent.done():
            raise not_reachable(name)
        self.sent.set_result(None)
        return await self.answer


class _Hooks:
    """The hooks of any number of clients, on the loops they run on."""

    def __init__(self, runtime: "Runtime | Run", lang: Language) -> None:
        self._bridge = Bridge(runtime, lang=lang, passthrough=(_Denied,))
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._sessions: dict[str, set[str]] = {}

    async def before(
        self, given: Mapping[str, Any], tool_use_id: str | None, _: Any
    ) -> dict[str, Any]:
        """``PreToolUse``: may it be sent?"""
        name, call_id = str(given["tool_name"]), str(given.get("tool_use_id") or tool_use_id)
        bridge = self._bridge
        if bridge.runtime.mode == "off" or self._is_own(name):
            return {}
        session = str(given.get("session_id") or "")
        plan = bridge.tool(_plain(name), None, source=name)
        pending = _Pending()

        async def original() -> Any:
            return await pending.answer

        pending.task = asyncio.ensure_future(
            bridge.call(
                plan,
                dict(given.get("tool_input") or {}),
                pending.attempt,
                original,
                run=bridge.run((session,), session or None),
                call_id=call_id,
                policy=_ONCE,
            )
        )
        either: list[asyncio.Future[Any]] = [pending.task, pending.sent]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if pending.sent.done():
            self._pending[call_id] = pending
            self._sessions.setdefault(session, set()).add(call_id)
            if len(self._pending) > _OPEN:
                await self._give_up(self._pending.popitem(last=False)[1])
            return {}
        return _said(
            "PreToolUse",
            permissionDecision="deny",
            permissionDecisionReason=(await pending.task).text,
        )

    async def after(
        self, given: Mapping[str, Any], tool_use_id: str | None, _: Any
    ) -> dict[str, Any]:
        """``PostToolUse``: what came of it?"""
        outcome = await self._outcome(given, tool_use_id, given.get("tool_response"))
        if outcome is None or outcome.as_it_is:
            return {}
        if not str(given["tool_name"]).startswith("mcp__"):
            return _said("PostToolUse", additionalContext=outcome.text)
        content = [{"type": "text", "text": outcome.text}]
        return _said("PostToolUse", updatedToolOutput=content)

    async def failed(
        self, given: Mapping[str, Any], tool_use_id: str | None, _: Any
    ) -> dict[str, Any]:
        """``PostToolUseFailure``: what kind of failure is it?"""
        text = str(given.get("error") or "")
        if given.get("is_interrupt"):
            pending = self._taken(given, tool_use_id)
            if pending is not None and pending.task is not None:
                pending.task.cancel()
            return {}
        answer = {"isError": True, "content": [{"type": "text", "text": text}]}
        outcome = await self._outcome(given, tool_use_id, answer)
        if outcome is None or outcome.as_it_is:
            return {}
        return _said("PostToolUseFailure", additionalContext=outcome.text)

    async def stopped(self, given: Mapping[str, Any], _: str | None, __: Any) -> dict[str, Any]:
        """``Stop``: calls that were allowed and then not made are none."""
        for call_id in self._sessions.pop(str(given.get("session_id") or ""), ()):
            pending = self._pending.pop(call_id, None)
            if pending is not None:
                await self._give_up(pending)
        return {}

    async def _outcome(
        self, given: Mapping[str, Any], tool_use_id: str | None, answer: Any
    ) -> Outcome | None:
        pending = self._taken(given, tool_use_id)
        if pending is None or pending.task is None:
            return None
        pending.answer.set_result(_as_value(answer))
        return await pending.task

    def _taken(self, given: Mapping[str, Any], tool_use_id: str | None) -> _Pending | None:
        call_id = str(given.get("tool_use_id") or tool_use_id)
        session = str(given.get("session_id") or "")
        waiting = self._sessions.get(session, set())
        waiting.discard(call_id)
        if not waiting:
            self._sessions.pop(session, None)
        return self._pending.pop(call_id, None)

    async def _give_up(self, pending: _Pending) -> None:
        pending.answer.set_exception(_Denied())
        if pending.task is not None:
            await asyncio.wait([pending.task])
            pending.task.exception()

    def _is_own(self, name: str) -> bool:
        return _plain(name) in _own.get(self._bridge.runtime, ())


def _plain(name: str) -> str:
    """A tool's own name: ``mcp__shop__create_order`` → ``create_order``."""
    return name.split("__", 2)[2] if name.startswith("mcp__") and name.count("__") > 1 else name


def _as_value(answer: Any) -> Any:
    """A tool's output as evidence: blocks of MCP, alone or as ``content``, are an MCP tool's answer."""
    flag, content = False, answer
    if isinstance(answer, Mapping):
        content = answer.get("content")
        flag = bool(answer.get("is_error", answer.get("isError", False)))
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        return {"isError": flag, "content": content}
    return answer


def _said(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
