"""Strands Agents: the tools of an agent, called through a runtime (extra: ``strands``).

    from failwise.connect.strands import plugin

    agent = Agent(model, tools=[...], plugins=[plugin(rt)])

Source: strands-agents 1.62, "Plugins", "Middleware" (`ExecuteToolStage`), "Interrupts", "Hooks" (`AfterToolCallEvent`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, Outcome, answered, wrong_arguments
from failwise.connect.remarks import required, warn_of_retries, warn_once
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from strands.plugins import Plugin

    from failwise.runtime.runtime import Runtime

__all__ = ["plugin"]

_LEFT_ALONE: Final = frozenset({"handoff_to_agent", "handoff_to_user", "stop"})
"""Tools of Strands' own that steer the agents and call nobody."""
_OWN_KINDS: Final = frozenset({"StructuredOutputTool", "_AgentAsTool"})
"""Classes of Strands' tools that are no calls: a form for the answer, and an agent in an agent."""
_ANSWERED: Final = 1_000
"""Calls that are remembered, to tell a repeat by a hook."""

Next = Callable[[Any], AsyncGenerator[Any, None]]


def plugin(runtime: "Runtime | Run", *, lang: Language = "en", name: str = "failwise") -> "Plugin":
    """For ``Agent(..., plugins=[plugin(rt)])``.

    A failed call becomes a tool result with ``status="error"`` and the text that a model can use; a
    success is handed on untouched, and what a tool streams arrives as it is made. Wrong arguments are
    repaired or answered. Interrupts, handoffs, agents as tools and structured output pass, and all hooks
    run as before. The job of a call is its session, or the agent where it has none, and one invocation in
    it. `lang` is the language of what models read, `name` the plugin's. Raises `ConfigurationError` where
    strands-agents is not installed.
    """
    try:
        return _plugin_class()(name, _Adapter(runtime, lang))
    except ImportError as error:
        raise required("strands-agents", "failwise[strands]", error) from error


class _Passed(Exception):
    """A tool gave an event that says it waits for a person."""

    def __init__(self, event: Any) -> None:
        self.event = event
        super().__init__()


class _Job:
    """What an agent works on: its id over all invocations, and the one under way."""

    __slots__ = ("id", "invocation")

    def __init__(self, id: str) -> None:
        self.id, self.invocation = id, 0


class _Adapter:
    """The calls of any number of agents through one bridge."""

    def __init__(self, runtime: "Runtime | Run", lang: Language) -> None:
        from strands.interrupt import InterruptException

        control = (_Passed, InterruptException)
        self._bridge = Bridge(runtime, lang=lang, passthrough=control, judged=_judged)
        self._jobs: WeakKeyDictionary[Any, _Job] = WeakKeyDictionary()
        self._answered: OrderedDict[tuple[str, int, str], None] = OrderedDict()

    # Jobs

    def begin(self, agent: Any) -> None:
        """An invocation of the agent begins: a chain of its own."""
        self._job(agent).invocation += 1

    def _job(self, agent: Any) -> _Job:
        job = self._jobs.get(agent)
        if job is None:
            session = getattr(getattr(agent, "_session_manager", None), "session_id", None)
            job = self._jobs[agent] = _Job(session or self._bridge.runtime._new_id("run"))
        return job

    # Tool calls

    async def call(self, context: Any, following: Next) -> AsyncGenerator[Any, None]:
        """Stands around the execution of one tool: its events, the result among them."""
        tool, use = context.tool, context.tool_use
        if use["name"] in _LEFT_ALONE or type(tool).__name__ in _OWN_KINDS:
            async for event in following(context):
                yield event
            return
        plan = self._prepared(context)
        job = self._job(context.agent)
        self._warn_of_hooks((job.id, job.invocation, use["toolUseId"]), use["name"])
        run = self._bridge.run((job.id, job.invocation), job.id)
        call = _Call(context, following, plan)
        task = asyncio.ensure_future(self._made(call, plan, run))
        try:
            while (event := await call.events.get()) is not None:
                yield event
            try:
                outcome = await task
            except _Passed as passed:
                yield passed.event
                return
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        self._remember((job.id, job.invocation, use["toolUseId"]))
        yield outcome.given if outcome.as_it_is else _result(use, outcome)

    async def _made(self, call: "_Call", plan: Plan, run: Run) -> Outcome:
        use = call.context.tool_use
        try:
            return await self._bridge.call(
                plan, use["input"], call.attempt, call.original, run=run, call_id=use["toolUseId"]
            )
        except Exception:
            if self._bridge.runtime.mode != "observe" or call.last is None:
                raise
            return Outcome(None, call.last)
        finally:
            call.events.put_nowait(None)

    def _prepared(self, context: Any) -> Plan:
        if context.tool is not None:
            plan = self._plan(context.tool)
            for name in plan.tool.fallback:
                other = _tools(context.agent).get(name)
                if other is not None:
                    self._plan(other)
            return plan
        for known in _tools(context.agent).values():
            self._plan(known)
        return self._bridge.unknown(context.tool_use["name"])

    def _plan(self, tool: Any) -> Plan:
        spec = tool.tool_spec

        def looked_at() -> Mapping[str, Any] | None:
            warn_of_retries(getattr(tool, "_tool_func", None), tool.tool_name)
            schema = spec["inputSchema"]
            found: Mapping[str, Any] | None = schema.get("json", schema)
            return found

        return self._bridge.tool(
            tool.tool_name, looked_at, source=tool, description=spec.get("description", "")
        )

    # Retries of theirs

    def _remember(self, key: tuple[str, int, str]) -> None:
        self._answered[key] = None
        if len(self._answered) > _ANSWERED:
            self._answered.popitem(last=False)

    def _warn_of_hooks(self, key: tuple[str, int, str], name: str) -> None:
        if key in self._answered:
            warn_once(
                "strands.retry",
                "a hook repeats %s by AfterToolCallEvent.retry, once more for each of the runtime's "
                "attempts: take it out of hooks=[...]; the policy says what is repeated",
                name,
            )


class _Call:
    """How Strands runs the tool of one call once. `events` are those before the result; None ends them.
    `last` is the result of the last attempt, which Strands makes of an exception, too."""

    __slots__ = ("_following", "_plan", "context", "events", "last")

    def __init__(self, context: Any, following: Next, plan: Plan) -> None:
        self.context, self._following, self._plan = context, following, plan
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.last: Any = None

    async def original(self) -> Any:
        return await self._result(self.context)

    async def attempt(self, name: str, arguments: Arguments, _: CallContext) -> Any:
        context, use = self.context, self.context.tool_use
        changes: dict[str, Any] = {}
        if name != self._plan.tool.name:
            changes["tool"] = _tools(context.agent).get(name)
            if changes["tool"] is None:
                raise not_reachable(name)
        if changes or arguments != use["input"]:
            changes["tool_use"] = {**use, "name": name, "input": arguments}
            context = replace(context, **changes)
        event = self.last = await self._result(context)
        error = event.exception
        if error is not None:
            cause = error.__cause__
            if cause is not None and str(error).startswith("Validation failed for input"):
                raise wrong_arguments(cause, name) from error
            raise error
        return event

    async def _result(self, context: Any) -> Any:
        """Run what follows; the event with its result. All other events go out as they come."""
        interrupt, result = _events()
        found = None
        events = self._following(context)
        try:
            async for event in events:
                if isinstance(event, interrupt):
                    raise _Passed(event)
                if isinstance(event, result):
                    found = event
                else:
                    self.events.put_nowait(event)
        finally:
            await events.aclose()
        if found is None:
            raise RuntimeError(f"{self._plan.tool.name} gave no result")
        return found


@cache
def _events() -> Any:
    from strands.types._events import ToolInterruptEvent, ToolResultEvent

    return ToolInterruptEvent, ToolResultEvent


def _tools(agent: Any) -> Mapping[str, Any]:
    """All tools of an agent by name."""
    registry = agent.tool_registry
    return {**registry.registry, **registry.dynamic_tools}


def _result(use: Mapping[str, Any], outcome: Outcome) -> Any:
    """A call's end as Strands has it."""
    return _events()[1](
        {
            "toolUseId": use["toolUseId"],
            "status": "error" if outcome.failed else "success",
            "content": [{"text": outcome.text}],
        }
    )


def _judged(event: Any) -> Any:
    """What of a result is evidence: its structured content, or its only text or JSON."""
    result = event.tool_result
    content = result.get("content") or []
    text = "\n".join(str(block["text"]) for block in content if "text" in block)
    if result.get("status") == "error":
        return answered(text, failed=True)
    structured = result.get("structuredContent")
    if structured is not None:
        return structured
    if len(content) == 1:
        return answered(text) if "text" in content[0] else content[0].get("json")
    return text or None


def _stage() -> Any:
    """Where the execution of a tool is stood around."""
    try:
        from strands.middleware.stages import ExecuteToolStage
    except ImportError:  # before 1.62 it was there under another name
        from strands._middleware.stages import ExecuteToolStage
    return ExecuteToolStage


@cache
def _plugin_class() -> Any:
    from strands.hooks import BeforeInvocationEvent
    from strands.plugins import Plugin

    stage = _stage()

    class FailwisePlugin(Plugin):
        """Calls the tools of an agent through a runtime."""

        def __init__(self, name: str, adapter: _Adapter) -> None:
            self._name, self._adapter = name, adapter
            super().__init__()

        @property
        def name(self) -> str:
            return self._name

        def init_agent(self, agent: Any) -> None:
            agent.add_hook(self._begin, BeforeInvocationEvent)
            # Before 1.62 only the agent's registry has it.
            add = (
                getattr(agent, "add_middleware", None) or agent._middleware_registry.add_middleware
            )
            add(stage, self._adapter.call)

        def _begin(self, event: Any) -> None:
            self._adapter.begin(event.agent)

    return FailwisePlugin
