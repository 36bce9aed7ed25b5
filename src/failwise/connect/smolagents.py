"""smolagents: the tools of an agent, called through a runtime (extra: ``smolagents``).

    from failwise.connect.smolagents import attach

    agent = attach(ToolCallingAgent(tools=[...], model=model), rt)

A `CodeAgent` likewise, where its code runs in this process. Source: smolagents 1.26, "Agents"
(`ToolCallingAgent.execute_tool_call`, `PythonExecutor.send_tools`), "Tools".
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, wrong_arguments
from failwise.connect.remarks import required, warn_of_retries, warn_once
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

__all__ = ["ToolFailed", "attach"]

_FINAL: Final = "final_answer"
_MARK: Final = "_failwise"
_CALLS: Final = 1_000
"""Ids of calls that are kept until their call comes."""

AgentT = TypeVar("AgentT")


class ToolFailed(Exception):
    """What a `CodeAgent`'s code meets where a tool failed: its text is what the model can use."""


def attach(agent: AgentT, runtime: "Runtime | Run", *, lang: Language = "en") -> AgentT:
    """Let an agent, and those that it manages, call their tools through a runtime; gives the same agent.

    A failed call of a `ToolCallingAgent` becomes an observation with the text that a model can use,
    in place of an error that asks for another try; in a `CodeAgent`'s code it is raised as `ToolFailed`.
    A success is handed on untouched. Wrong arguments are repaired or answered. Final answers and the
    agents that it manages pass, as does ``agent.interrupt()``. The job of a call is the agent's memory until it is
    reset, and one task in it. `lang` is the language of what models read. Raises `UsageError` for what is
    no agent, `ConfigurationError` where smolagents is not installed.
    """
    try:
        from smolagents import CodeAgent, ToolCallingAgent
    except ImportError as error:
        raise required("smolagents", "failwise[smolagents]", error) from error
    adapter = _Adapter(agent, Bridge(runtime, lang=lang))
    if hasattr(agent, _MARK):
        raise UsageError("this agent calls its tools through a runtime already: attach it once")
    if isinstance(agent, CodeAgent):
        adapter.open_code()
    elif isinstance(agent, ToolCallingAgent):
        adapter.open_calls()
    else:
        raise UsageError(f"{agent!r} is neither a ToolCallingAgent nor a CodeAgent")
    setattr(agent, _MARK, adapter)
    for managed in (agent.managed_agents or {}).values():
        if isinstance(managed, CodeAgent | ToolCallingAgent) and not hasattr(managed, _MARK):
            attach(managed, runtime, lang=lang)
    return agent


class _Adapter:
    """The calls of one agent."""

    def __init__(self, agent: Any, bridge: Bridge) -> None:
        self._agent, self._bridge = agent, bridge
        self._ids: dict[tuple[str, int], str] = {}
        self._first: Any = None
        self._job = ""

    # A ToolCallingAgent

    def open_calls(self) -> None:
        """Stand around the agent's own way to make a call."""
        agent = self._agent
        perform, process = agent.execute_tool_call, agent.process_tool_calls

        def process_tool_calls(chat_message: Any, memory_step: Any) -> Iterator[Any]:
            if len(self._ids) > _CALLS:
                self._ids.clear()
            for call in chat_message.tool_calls or ():
                self._ids[call.function.name, id(call.function.arguments)] = call.id
            yield from process(chat_message, memory_step)

        def execute_tool_call(tool_name: str, arguments: Any) -> Any:
            if tool_name == _FINAL or tool_name in agent.managed_agents:
                return perform(tool_name, arguments)
            call_id = self._ids.pop((tool_name, id(arguments)), None)
            return self._called(tool_name, arguments, call_id, perform)

        agent.process_tool_calls = process_tool_calls
        agent.execute_tool_call = execute_tool_call

    def _called(
        self, name: str, raw: Any, call_id: str | None, perform: Callable[[str, Any], Any]
    ) -> Any:
        from smolagents import AgentExecutionError, AgentToolCallError

        plan = self._plan(name)
        theirs: Exception | None = None

        def attempt(called: str, arguments: Arguments, _: CallContext) -> Any:
            nonlocal theirs
            if called not in self._agent.tools:
                raise not_reachable(called)
            try:
                return perform(called, arguments)
            except AgentToolCallError as error:
                theirs = error
                raise wrong_arguments(error.__cause__ or error, called) from error
            except AgentExecutionError as error:
                theirs = error
                raise (error.__cause__ or error) from None

        try:
            outcome = self._bridge.call_sync(
                plan,
                raw,
                attempt,
                lambda: perform(name, raw),
                run=self._run(),
                call_id=call_id,
            )
        except Exception:
            if theirs is None or self._bridge.runtime.mode != "observe":
                raise
            raise theirs from theirs.__cause__
        return outcome.given if outcome.as_it_is else outcome.text

    # A CodeAgent

    def open_code(self) -> None:
        """Give the code functions in the place of the tools."""
        executor = self._agent.python_executor
        if type(executor).__name__ != "LocalPythonExecutor":
            warn_once(
                ("smolagents.executor", type(executor).__name__),
                "the code of this agent runs elsewhere (%s), and its tools with it, past the runtime: take "
                "executor_type='local', or a ToolCallingAgent",
                type(executor).__name__,
            )
            return
        send = executor.send_tools

        def send_tools(tools: dict[str, Any]) -> None:
            managed = self._agent.managed_agents
            send(
                {
                    name: tool if name == _FINAL or name in managed else self._function(name, tool)
                    for name, tool in tools.items()
                }
            )

        executor.send_tools = send_tools

    def _function(self, name: str, tool: Any) -> Callable[..., Any]:
        def function(*given: Any, **named: Any) -> Any:
            plan = self._plan(name)
            raw = {**dict(zip(tool.inputs, given, strict=False)), **named}

            def attempt(called: str, arguments: Arguments, _: CallContext) -> Any:
                other = self._agent.tools.get(called)
                if other is None:
                    raise not_reachable(called)
                return other(**arguments)

            outcome = self._bridge.call_sync(
                plan,
                raw,
                attempt,
                lambda: tool(*given, **named),
                run=self._run(),
                call_id=None,
            )
            if outcome.failed:
                raise ToolFailed(outcome.text)
            return outcome.given if outcome.as_it_is else outcome.text

        function.__name__ = name
        return function

    # What both need

    def _plan(self, name: str) -> Plan:
        tools = self._agent.tools
        if name not in tools:
            for other in tools:
                if other != _FINAL:
                    self._known(other)
            return self._bridge.unknown(name)
        plan = self._known(name)
        for other in plan.tool.fallback:
            if other in tools:
                self._known(other)
        return plan

    def _known(self, name: str) -> Plan:
        tool = self._agent.tools[name]
        # What a model writes may name a thing of the agent's state, which is then given in its place.
        stored = sorted(key for key in self._agent.state if isinstance(key, str))

        def looked_at() -> Mapping[str, Any]:
            warn_of_retries(tool.forward, name)
            return _schema(tool, stored)

        source: Any = {"tool": id(tool), "stored": stored} if stored else tool
        return self._bridge.tool(name, looked_at, source=source, description=tool.description)

    def _run(self) -> Run:
        steps = self._agent.memory.steps
        first = steps[0] if steps else self
        if first is not self._first:
            self._first, self._job = first, self._bridge.runtime._new_id("run")
        tasks = sum(1 for step in steps if type(step).__name__ == "TaskStep")
        return self._bridge.run((self._job, str(tasks)), self._job)


_OPEN_TYPES: Final = frozenset({"any", "image", "audio"})


def _schema(tool: Any, stored: list[str]) -> Mapping[str, Any]:
    """A tool's inputs as JSON Schema. ``nullable`` means that an input may be left out; it may be null
    where the function's default is."""
    parameters = inspect.signature(tool.forward).parameters
    properties: dict[str, Any] = {}
    for name, given in tool.inputs.items():
        schema = {key: given[key] for key in ("description", "items", "enum") if key in given}
        kinds = [given["type"]] if isinstance(given["type"], str) else list(given["type"])
        default = parameters[name].default if name in parameters else None
        if given.get("nullable") and default is None and "null" not in kinds:
            kinds.append("null")
        if not _OPEN_TYPES.intersection(kinds):
            schema["type"] = kinds[0] if len(kinds) == 1 else kinds
        properties[name] = {"anyOf": [schema, {"enum": stored}]} if stored else schema
    due = [name for name, given in tool.inputs.items() if not given.get("nullable")]
    return {
        "type": "object",
        "properties": properties,
        "required": due,
        "additionalProperties": False,
    }
