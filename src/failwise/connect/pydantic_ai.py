"""Pydantic AI: the tools of an agent, called through a runtime (extra: ``pydantic-ai``).

    from failwise.connect.pydantic_ai import capability

    agent = Agent(model, tools=[...], capabilities=[capability(rt)])

Or for one toolset, MCP servers too: ``Agent(model, toolsets=[toolset(rt, server)])``.
Source: pydantic-ai 2.68, "Capabilities", "Toolsets" (`WrapperToolset`), "Function tools" (retries).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, wrong_arguments
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import AbstractToolset

    from failwise.runtime.runtime import Runtime

__all__ = ["capability", "toolset"]

_CONTROL: Final = (
    "ModelRetry", "ToolFailed", "CallDeferred", "ApprovalRequired", "SkipToolExecution", "ToolRetryError",
    "ToolFailedError", "UsageLimitExceeded", "RunCancelled", "UserError",
)  # fmt: skip
"""Names in ``pydantic_ai.exceptions`` of what is no failure of a tool; not each is in every version."""
_TIMED_OUT: Final = re.compile(r"Timed out after [\d.]+ seconds\.")
_CHECKED_KINDS: Final = ("unapproved", "external")
"""Tools whose arguments a person sees, or that run elsewhere: these are checked by Pydantic AI first."""


def capability(runtime: "Runtime | Run", *, lang: Language = "en") -> "AbstractCapability[Any]":
    """For ``Agent(..., capabilities=[capability(rt)])``: all function tools and toolsets of the agent.

    A failed call becomes a failed tool return (`ToolFailed`; in versions without it, a return) with the
    text that a model can use: it costs no retry, and does not end the run. A success is handed on
    untouched. Wrong arguments are repaired or answered likewise. `ModelRetry`, deferred calls and
    approvals pass. The job of a call is its conversation, and one run of the agent in it. `lang` is the
    language of what models read. Raises `ConfigurationError` where pydantic-ai is not installed.
    """
    try:
        return _classes()[1](_bridge(runtime, lang))
    except ImportError as error:
        raise required("pydantic-ai", "failwise[pydantic-ai]", error) from error


def toolset(
    runtime: "Runtime | Run", wrapped: "AbstractToolset[Any]", *, lang: Language = "en"
) -> "AbstractToolset[Any]":
    """One toolset, called through a runtime. As for `capability`."""
    try:
        return _classes()[0](wrapped, _bridge(runtime, lang))
    except ImportError as error:
        raise required("pydantic-ai", "failwise[pydantic-ai]", error) from error


def _bridge(runtime: "Runtime | Run", lang: Language) -> Bridge:
    from pydantic_ai import exceptions

    control = tuple(getattr(exceptions, name) for name in _CONTROL if hasattr(exceptions, name))
    return Bridge(runtime, lang=lang, passthrough=control, judged=_judged)


def _judged(given: Any) -> Any:
    """What of an answer is evidence: the value, without what is only for the application."""
    return getattr(given, "return_value", given)


class _Given(dict[str, Any]):
    """Arguments as the model wrote them: `text`, and what it says, where it is a JSON object.

    `raw` is what the runtime reads: the text, or the object where that was read without a repair.
    """

    def __init__(self, text: str, value: Mapping[str, Any] | None, raw: Any) -> None:
        super().__init__(value or ())
        self.text, self.raw = text, raw


class _AsGiven:
    """Stands in for a tool's validator, until the call: then the runtime reads, repairs, or answers."""

    def __init__(self, tool: Any, plan: Plan) -> None:
        self.tool, self.plan = tool, plan

    def validate_json(self, given: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        text = given if isinstance(given, str) else bytes(given).decode("utf-8", "replace")
        read = self.plan.read(text)
        if read.failure is None and not read.repairs:
            return _Given(text, read.arguments, read.arguments)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        return _Given(text, value if isinstance(value, dict) else None, text)

    def validate_python(self, value: Any, **_: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        return _Given(str(value), None, str(value))


class _Call:
    """How Pydantic AI runs the tool of one call once."""

    __slots__ = ("_arguments", "_context", "_name", "_tool", "_validated", "_wrapped")

    def __init__(
        self, wrapped: Any, name: str, arguments: Any, context: Any, tool: Any, *, validated: bool
    ) -> None:
        self._wrapped, self._name, self._context, self._tool = wrapped, name, context, tool
        self._arguments, self._validated = arguments, validated

    async def attempt(self, name: str, arguments: Arguments, _: CallContext) -> Any:
        if name != self._name:
            raise not_reachable(name)
        checked: Any = self._arguments
        if not self._validated:
            checked = self._checked(arguments)
            if getattr(self._tool, "args_validator_func", None) is not None:
                await self._further(checked)
        return await self._perform(checked)

    async def original(self) -> Any:
        """The call as it would be without us."""
        arguments = self._arguments
        if self._validated:
            return await self._perform(arguments)
        return await self._perform(self._valid(_text_of(arguments)))

    def _checked(self, arguments: Arguments) -> Any:
        """The arguments as the function wants them, by the tool's own validator."""
        given = self._arguments
        try:
            return self._valid(_text_of(given if given == arguments else arguments))
        except _errors()[0] as error:
            raise wrong_arguments(error, self._name) from error

    async def _further(self, valid: Any) -> None:
        """Ask the tool's own check of valid arguments."""
        import inspect

        answer = self._tool.args_validator_func(self._context, **valid)
        if inspect.isawaitable(answer):
            await answer

    def _valid(self, text: str) -> Any:
        validation = getattr(self._context, "validation_context", None)
        return self._tool.args_validator.validate_json(text, context=validation)

    async def _perform(self, checked: Any) -> Any:
        try:
            return await self._wrapped.call_tool(self._name, checked, self._context, self._tool)
        except _errors()[1] as retry:
            cause = retry.__context__
            if isinstance(cause, TimeoutError) and _TIMED_OUT.fullmatch(retry.message):
                # Nobody asked the model to try again: the time was up, and what was done is not known.
                raise TimeoutError(retry.message) from cause
            raise


@cache
def _errors() -> Any:
    """What validation raises, and what asks the model to try again."""
    from pydantic import ValidationError
    from pydantic_ai.exceptions import ModelRetry

    return ValidationError, ModelRetry


def _plan(bridge: Bridge, name: str, tool: Any) -> Plan:
    definition = tool.tool_def
    schema = definition.parameters_json_schema

    def looked_at() -> Any:
        inner = getattr(tool, "source_tool", tool)
        call = getattr(inner, "call_func", None)
        function = getattr(getattr(call, "__self__", None), "function", call)
        warn_of_retries(function, name)
        return schema

    return bridge.tool(
        name,
        looked_at,
        source=schema,
        description=definition.description or "",
        said=(getattr(definition, "metadata", None) or {}).get("failwise"),
    )


@cache
def _classes() -> Any:
    from pydantic_ai import exceptions
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import WrapperToolset

    failed = getattr(exceptions, "ToolFailed", None)

    class FailwiseToolset(WrapperToolset[Any]):
        """Calls the tools of a toolset through a runtime."""

        def __init__(self, wrapped: Any, bridge: Bridge) -> None:
            self.wrapped, self.bridge = wrapped, bridge

        async def for_run(self, ctx: Any) -> Any:
            made = await self.wrapped.for_run(ctx)
            return self if made is self.wrapped else FailwiseToolset(made, self.bridge)

        async def for_run_step(self, ctx: Any) -> Any:
            made = await self.wrapped.for_run_step(ctx)
            return self if made is self.wrapped else FailwiseToolset(made, self.bridge)

        def visit_and_replace(self, visitor: Any) -> Any:
            return FailwiseToolset(self.wrapped.visit_and_replace(visitor), self.bridge)

        async def get_tools(self, ctx: Any) -> Any:
            tools = await self.wrapped.get_tools(ctx)
            return {name: self._open(name, tool) for name, tool in tools.items()}

        def _open(self, name: str, tool: Any) -> Any:
            plan = _plan(self.bridge, name, tool)
            if tool.tool_def.kind in _CHECKED_KINDS:
                return tool
            options: dict[str, Any] = {"args_validator": _AsGiven(tool, plan)}
            if getattr(tool, "args_validator_func", None) is not None:
                options["args_validator_func"] = None
            return replace(tool, **options)

        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            validator = tool.args_validator
            opened = isinstance(validator, _AsGiven)
            own = validator.tool if opened else tool
            plan = validator.plan if opened else _plan(self.bridge, name, own)
            call = _Call(self.wrapped, name, tool_args, ctx, own, validated=not opened)
            if isinstance(tool_args, _Given):
                raw: Any = tool_args.raw
            else:
                raw = tool_args if opened else _as_data(tool_args)
            run_id = getattr(ctx, "run_id", None) or id(ctx.usage)
            conversation = getattr(ctx, "conversation_id", None) or getattr(ctx, "run_id", None)
            outcome = await self.bridge.call(
                plan,
                raw,
                call.attempt,
                call.original,
                run=self.bridge.run(run_id, conversation),
                call_id=ctx.tool_call_id,
            )
            if outcome.as_it_is:
                return outcome.given
            if outcome.failed and failed is not None:
                raise failed(outcome.text)
            return outcome.text

    class FailwiseCapability(AbstractCapability[Any]):
        """Calls all tools of an agent through a runtime."""

        def __init__(self, bridge: Bridge) -> None:
            self.bridge = bridge

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return FailwiseToolset(toolset, self.bridge)

    return FailwiseToolset, FailwiseCapability


def _text_of(arguments: Any) -> str:
    return arguments.text if isinstance(arguments, _Given) else json.dumps(arguments)


def _as_data(arguments: Mapping[str, Any]) -> Any:
    """Validated arguments as the JSON they came from."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(dict(arguments), serialize_unknown=True)
