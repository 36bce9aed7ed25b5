"""OpenAI Agents SDK: tools and MCP servers, called through a runtime (extra: ``openai-agents``).

    from failwise.connect.openai_agents import servers, tools

    agent = Agent(name="shop", tools=tools(rt, [search, order]), mcp_servers=servers(rt, [mcp]))

Source: openai-agents 0.24, "Tools" (`FunctionTool.on_invoke_tool`), "MCP" (`MCPServer`), "Tracing".
"""

import json
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, Outcome, wrong_arguments
from failwise.connect.remarks import required, warn_of_retries, warn_once
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.errors import ConfigurationError
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from agents import Tool
    from agents.mcp import MCPServer

    from failwise.runtime.runtime import Runtime

__all__ = ["servers", "tools"]


def tools(
    runtime: "Runtime | Run", given: "Iterable[Tool]", *, lang: Language = "en"
) -> "list[Tool]":
    """For ``Agent(tools=tools(rt, [...]))``: the function tools, called through a runtime.

    A failed call gives the text that a model can use, in place of the SDK's fixed sentence or of
    `failure_error_function`; a success is handed on untouched. Wrong arguments are repaired or answered
    likewise; those of a tool that people approve are not repaired. `timeout_seconds` becomes the limit of
    one attempt, where it would give a text. Agents as tools, handoffs and hosted tools are left as they
    are. The job of a call is the run of the agent, named by ``RunConfig(group_id=)`` where one is given.
    Attempts stand in the SDK's traces. `lang` is the language of what models read. Raises
    `ConfigurationError` where the SDK is not installed.
    """
    try:
        from agents import FunctionTool
    except ImportError as error:
        raise required("openai-agents", "failwise[openai-agents]", error) from error
    bridge = _bridge(runtime, lang)
    return [
        _wrapped(bridge, tool)
        if isinstance(tool, FunctionTool) and not getattr(tool, "_is_agent_tool", False)
        else tool
        for tool in given
    ]


def servers(
    runtime: "Runtime | Run", given: "Iterable[MCPServer]", *, lang: Language = "en"
) -> "list[MCPServer]":
    """For ``Agent(mcp_servers=servers(rt, [...]))``: the tools of MCP servers, called through a runtime.

    As for `tools`; a failed call gives a result with ``isError``. Arguments that are no JSON are answered by
    the SDK, before a server is asked. Connect and clean up the servers as before, or what this gives.
    """
    try:
        import agents.mcp  # noqa: F401 - whether it is there
    except ImportError as error:
        raise required("openai-agents", "failwise[openai-agents]", error) from error
    bridge = _bridge(runtime, lang)
    made: Any = [_Server(server, bridge) for server in given]
    return made  # type: ignore[no-any-return, unused-ignore]


def _bridge(runtime: "Runtime | Run", lang: Language) -> Bridge:
    from agents.exceptions import (
        InputGuardrailTripwireTriggered,
        MaxTurnsExceeded,
        OutputGuardrailTripwireTriggered,
    )

    control = (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered, MaxTurnsExceeded)
    return Bridge(runtime, lang=lang, passthrough=control)


def _run(bridge: Bridge, context: Any) -> Run:
    """The run of a call: one a run of the agent, whose usage is counted in one place."""
    config = getattr(context, "run_config", None)
    return bridge.run(context.usage, getattr(config, "group_id", None))


def _trace(outcome: Outcome) -> None:
    """What was tried, as a span of the SDK's trace, where there is more to say than "first try, fine"."""
    result = outcome.result
    if result is None or not result.attempts:
        return
    from agents.tracing import custom_span

    data = {
        "attempts": [
            {
                "number": attempt.number,
                "duration_ms": round(attempt.duration_ms, 1),
                "code": attempt.failure.code if attempt.failure else None,
                "decision": attempt.decision.action.value if attempt.decision else None,
            }
            for attempt in result.attempts
        ],
        "stop_reason": result.stop_reason.value,
    }
    with custom_span(f"failwise {result.tool_name}", data):
        pass


# Function tools


def _wrapped(bridge: Bridge, tool: Any) -> Any:
    inner = _raising(tool)
    approved = bool(getattr(tool, "needs_approval", False))
    limit = getattr(tool, "timeout_seconds", None)
    if getattr(tool, "timeout_behavior", "error_as_result") != "error_as_result":
        limit = None
    function = getattr(getattr(tool, "on_invoke_tool", None), "__wrapped__", None)
    warn_of_retries(getattr(tool, "__wrapped__", function), tool.name)

    async def on_invoke_tool(context: Any, text: str) -> Any:
        plan = bridge.tool(
            tool.name,
            lambda: _lenient(tool.params_json_schema),
            source=tool,
            description=tool.description,
            said={"repair": "off"} if approved else None,
            timeout=limit,
        )
        call = _Call(inner, context, text, plan)
        try:
            outcome = await bridge.call(
                plan,
                text,
                call.attempt,
                lambda: tool.on_invoke_tool(context, text),
                run=_run(bridge, context),
                call_id=context.tool_call_id,
            )
        except Exception as error:
            if bridge.runtime.mode != "observe":
                raise
            return await _as_ever(tool, context, error)
        _trace(outcome)
        return outcome.given if outcome.as_it_is else outcome.text

    options = {"timeout_seconds": None} if limit is not None else {}
    return replace(tool, on_invoke_tool=on_invoke_tool, **options)


def _raising(tool: Any) -> Any:
    """The same tool with its exceptions let out, to be seen as they are."""
    try:
        return replace(
            tool, _use_default_failure_error_function=False, _failure_error_function=None
        )
    except TypeError as error:
        raise ConfigurationError(
            "failwise.connect.openai_agents needs a newer openai-agents: "
            "pip install --upgrade 'failwise[openai-agents]'"
        ) from error


async def _as_ever(tool: Any, context: Any, error: Exception) -> Any:
    """Observe mode: what the SDK makes of an exception by itself."""
    from agents.tool import maybe_invoke_function_tool_failure_error_function

    told = await maybe_invoke_function_tool_failure_error_function(
        function_tool=tool, context=context, error=error
    )
    if told is None:
        raise error
    return told


class _Call:
    """How the SDK runs the tool of one call once."""

    __slots__ = ("_context", "_plan", "_text", "_tool")

    def __init__(self, tool: Any, context: Any, text: str, plan: Plan) -> None:
        self._tool, self._context, self._text, self._plan = tool, context, text, plan

    async def attempt(self, name: str, arguments: Arguments, _: CallContext) -> Any:
        from agents.exceptions import ModelBehaviorError

        if name != self._plan.tool.name:
            raise not_reachable(name)
        text = self._text if _says(self._text, arguments) else json.dumps(arguments)
        if text != self._text and getattr(self._context, "_function_tool_arguments", None):
            self._context._function_tool_arguments = None  # prepared of the text before its repair
        try:
            return await self._tool.on_invoke_tool(self._context, text)
        except ModelBehaviorError as error:
            raise wrong_arguments(error.__cause__ or error, name) from error


def _says(text: str, arguments: Arguments) -> bool:
    """The text is just these arguments."""
    try:
        return bool(json.loads(text) == arguments)
    except (ValueError, RecursionError):
        return False


def _lenient(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as the function means it: the strict form demands what has a default, too."""
    properties = schema.get("properties") or {}
    due = [
        name for name in schema.get("required") or () if "default" not in properties.get(name, {})
    ]
    return {**schema, "required": due}


# MCP servers

_calling: ContextVar[Any] = ContextVar("failwise_agents_context", default=None)
"""The context of the tool call under way: the SDK gives it to the resolver, not to the server."""


class _Server:
    """An MCP server whose tools are called through a runtime; all else is the server's own."""

    def __init__(self, server: Any, bridge: Bridge) -> None:
        self._server, self._bridge = server, bridge
        self._tools: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def __aenter__(self) -> "_Server":
        await self._server.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.cleanup()

    async def list_tools(self, *args: Any, **options: Any) -> Any:
        listed = await self._server.list_tools(*args, **options)
        self._tools = {tool.name: tool for tool in listed}
        return listed

    def tool_meta_resolver(self, context: Any) -> Any:
        """Asked just before each call, in the call's own task."""
        _calling.set(context.run_context)
        resolver = self._server.tool_meta_resolver
        return None if resolver is None else resolver(context)

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> Any:
        server, context = self._server, _calling.get()
        if getattr(server, "max_retry_attempts", 0):
            warn_once(
                ("agents.mcp", server.name),
                "the MCP server %s is made with max_retry_attempts: the SDK then repeats tool calls blindly, "
                "writes too, and once more for each of the runtime's attempts: leave it at 0",
                server.name,
            )
        listed = self._tools.get(tool_name)
        plan = self._bridge.tool(
            tool_name,
            dict(_input_schema(listed) or {}) or None,
            source=listed,
            description=getattr(listed, "description", None) or "",
        )
        options = {} if meta is None else {"meta": meta}

        async def attempt(name: str, given: Arguments, _: CallContext) -> Any:
            return await server.call_tool(name, given, **options)

        outcome = await self._bridge.call(
            plan,
            arguments or {},
            attempt,
            lambda: server.call_tool(tool_name, arguments, **options),
            run=self._bridge.run(server) if context is None else _run(self._bridge, context),
            call_id=getattr(context, "tool_call_id", None),
        )
        _trace(outcome)
        return outcome.given if outcome.as_it_is else _answer(outcome)


def _input_schema(tool: Any) -> Any:
    return getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None)


def _answer(outcome: Outcome) -> Any:
    from mcp.types import CallToolResult, TextContent

    content = [TextContent(type="text", text=outcome.text)]
    return CallToolResult.model_validate({"content": content, "isError": outcome.failed})
