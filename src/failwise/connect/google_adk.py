"""Google ADK: the tools of all agents of a runner, called through a runtime (extra: ``google-adk``).

    from failwise.connect.google_adk import plugin

    runner = InMemoryRunner(agent, plugins=[plugin(rt)])

Source: google-adk 2.13, "Plugins" (`before_tool_callback`), "Function tools", "Tool confirmation".
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from google.adk.plugins.base_plugin import BasePlugin

    from failwise.runtime.runtime import Runtime

__all__ = ["plugin"]

_LEFT_ALONE: Final = frozenset({"transfer_to_agent", "exit_loop", "adk_request_credential"})
"""Tools of ADK's own that steer the agents and call nobody."""
_MARK: Final = "_failwise_adopted"

Perform = Callable[..., Awaitable[Any]]


def plugin(
    runtime: "Runtime | Run", *, lang: Language = "en", name: str = "failwise"
) -> "BasePlugin":
    """For ``Runner(..., plugins=[plugin(rt)])`` and the ``plugins`` of an `App`.

    A failed call becomes ``{"error": text}`` with the text that a model can use, and does not end the
    invocation; a success is handed on untouched. Wrong arguments are repaired or answered; those of a
    tool that asks for confirmation are not repaired. Confirmations, requests for credentials,
    transfers and long-running tools pass, and all callbacks of agents and other plugins run as before.
    The job of a call is its session, and one invocation in it. `lang` is the language of what models
    read, `name` the plugin's. Raises `ConfigurationError` where google-adk is not installed.
    """
    try:
        return _plugin_class()(name, _Adapter(runtime, lang))
    except ImportError as error:
        raise required("google-adk", "failwise[google-adk]", error) from error


class _Passed(Exception):
    """A tool gave a value that only says it waits for a person."""

    def __init__(self, given: Any) -> None:
        self.given = given
        super().__init__()


class _Adapter:
    """The calls of any number of runners through one bridge."""

    def __init__(self, runtime: "Runtime | Run", lang: Language) -> None:
        self._bridge = Bridge(runtime, lang=lang, passthrough=(_Passed,))

    async def call(self, tool: Any, perform: Perform, arguments: Any, context: Any) -> Any:
        """Run a tool of ADK's through the runtime; `perform` is its own `run_async`."""
        plan = self._plan(tool)

        async def attempt(name: str, given: Arguments, _: CallContext) -> Any:
            if name != plan.tool.name:
                raise not_reachable(name)
            value = await perform(args=given, tool_context=context)
            if _waits(context):
                raise _Passed(value)
            return value

        try:
            outcome = await self._bridge.call(
                plan,
                arguments,
                attempt,
                lambda: perform(args=arguments, tool_context=context),
                run=self._run(context),
                call_id=context.function_call_id,
            )
        except _Passed as passed:
            return passed.given
        if outcome.as_it_is:
            return outcome.given
        return {"error" if outcome.failed else "result": outcome.text}

    def know(self, tools: Iterable[Any]) -> None:
        """The tools that an agent has, before its model asks for one."""
        for tool in tools:
            if tool.name not in _LEFT_ALONE:
                self._plan(tool)

    async def unknown(self, tool: Any, arguments: Any, context: Any) -> dict[str, Any] | None:
        """A call of a tool that the agent does not have."""

        async def original() -> Any:
            return None

        outcome = await self._bridge.call(
            self._bridge.unknown(tool.name),
            arguments,
            lambda name, given, context: None,
            original,
            run=self._run(context),
            call_id=context.function_call_id,
        )
        return {"error": outcome.text} if outcome.failed else None

    def _run(self, context: Any) -> Run:
        session = getattr(context, "session", None)
        session_id = getattr(session, "id", None)
        return self._bridge.run((session_id, context.invocation_id), session_id)

    def _plan(self, tool: Any) -> Plan:
        said: Any = (getattr(tool, "custom_metadata", None) or {}).get("failwise")
        if getattr(tool, "_require_confirmation", False):
            said = {"repair": "off", **(said or {})}

        def looked_at() -> Mapping[str, Any] | None:
            warn_of_retries(getattr(tool, "func", None), tool.name)
            return _schema(tool)

        return self._bridge.tool(
            tool.name,
            looked_at,
            source=_source(tool),
            description=tool.description or "",
            said=said,
        )


def _source(tool: Any) -> Any:
    """What tells a tool: ADK makes a new one of the same function for each turn of the model."""
    function = getattr(tool, "func", None)
    if function is None:
        return tool
    return {"kind": type(tool), "function": function, "said": getattr(tool, "custom_metadata", None),
            "confirmed": getattr(tool, "_require_confirmation", None)}  # fmt: skip


def _waits(context: Any) -> bool:
    """The tool has asked for a confirmation or for credentials, and will be called again."""
    actions = context.actions
    return bool(
        getattr(actions, "requested_tool_confirmations", None)
        or getattr(actions, "requested_auth_configs", None)
    )


def _schema(tool: Any) -> Mapping[str, Any] | None:
    """The arguments that the model is told of, as JSON Schema."""
    declaration = tool._get_declaration()
    if declaration is None:
        return None
    given = getattr(declaration, "parameters_json_schema", None)
    if isinstance(given, Mapping):
        return given
    parameters = declaration.parameters
    return {"type": "object"} if parameters is None else _json_schema(parameters)


def _json_schema(parameters: Any) -> Mapping[str, Any]:
    """A schema in Gemini's form as JSON Schema."""
    made = parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    plain: Mapping[str, Any] = _lower(made, 0)
    return plain


def _lower(schema: Any, depth: int) -> Any:
    if depth > 64 or not isinstance(schema, dict | list):
        return schema
    if isinstance(schema, list):
        return [_lower(item, depth + 1) for item in schema]
    return {
        key: value.lower()
        if key == "type" and isinstance(value, str)
        else [item.lower() for item in value]
        if key == "type" and isinstance(value, list)
        else _lower(value, depth + 1)
        for key, value in schema.items()
    }


_calling: ContextVar["tuple[_Adapter, Any, Any] | None"] = ContextVar("failwise_adk", default=None)
"""Whose call is under way here: the adapter, the tool, and the call's own context."""


def _adopt(tool: Any) -> None:
    """Let a tool's calls pass through the adapter that announced them just before, if one did.

    A plugin may answer a call or let it go on, but not stand around it; and one that answers takes
    their turn from the agent's own callbacks. So the tool itself is opened, once; without the plugin
    it runs as it did.
    """
    if getattr(tool, _MARK, False):
        return
    perform = tool.run_async

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        here = _calling.get()
        if here is None or here[2] is not tool_context:
            return await perform(args=args, tool_context=tool_context)
        _calling.set(None)
        return await here[0].call(here[1], perform, args, tool_context)

    tool.run_async = run_async
    setattr(tool, _MARK, True)


@cache
def _plugin_class() -> Any:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool

    class FailwisePlugin(BasePlugin):
        """Calls the tools of a runner's agents through a runtime."""

        def __init__(self, name: str, adapter: _Adapter) -> None:
            super().__init__(name=name)
            self._adapter = adapter

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            self._adapter.know(llm_request.tools_dict.values())

        async def before_tool_callback(
            self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
        ) -> dict[str, Any] | None:
            if tool.name not in _LEFT_ALONE:
                _adopt(tool)
                _calling.set((self._adapter, tool, tool_context))
            return None

        async def on_tool_error_callback(
            self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: BaseException
        ) -> dict[str, Any] | None:
            # A bare `BaseTool` stands for a tool that there is not.
            if type(tool) is BaseTool and isinstance(error, ValueError):
                return await self._adapter.unknown(tool, tool_args, tool_context)
            return None

    return FailwisePlugin
