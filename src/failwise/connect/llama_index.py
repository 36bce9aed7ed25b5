"""LlamaIndex: the tools of an agent, called through a runtime (extra: ``llama-index``).

    from failwise.connect.llama_index import tools

    agent = FunctionAgent(tools=tools(rt, [search, order]), llm=llm)

Source: llama-index-core 0.14, "Tools" (`FunctionTool`, `ToolOutput`), "Agents" (human in the loop), "Workflows" (`Context`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, Outcome, answered
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from llama_index.core.tools import BaseTool

    from failwise.runtime.runtime import Runtime

__all__ = ["tools"]

_CONTEXT: Final = "failwise_context"
"""The parameter by which an agent's workflow gives its context to a tool that asks for one."""
_JOB: Final = "failwise_job"
"""Where in the workflow's store the id of its job is: it is stored, and restored, with it."""


def tools(
    runtime: "Runtime | Run",
    given: "Iterable[BaseTool | Callable[..., Any]]",
    *,
    lang: Language = "en",
) -> "list[BaseTool]":
    """For ``FunctionAgent(tools=tools(rt, [...]))``, `ReActAgent`, `AgentWorkflow`: tools of all kinds, and functions.

    A failed call gives a `ToolOutput` with ``is_error`` and the text that a model can use, in place of the
    exception's; a success is handed on untouched. Wrong arguments are repaired or answered. Waiting for an
    event (a person's answer) passes, as do handoffs and cancellation. The job of a call is its workflow's
    `Context`, and one run in it. `lang` is the language of what models read. Raises `ConfigurationError`
    where llama-index-core is not installed.
    """
    try:
        made = _tool_class()
        bridge = Bridge(runtime, lang=lang, passthrough=_control(), judged=_judged)
    except ImportError as error:
        raise required("llama-index-core", "failwise[llama-index]", error) from error
    return [made(_tool(one), bridge) for one in given]


def _tool(given: Any) -> Any:
    from llama_index.core.tools import BaseTool, FunctionTool
    from llama_index.core.tools.types import adapt_to_async_tool

    if not isinstance(given, BaseTool):
        return FunctionTool.from_defaults(given)
    return adapt_to_async_tool(given)


def _control() -> tuple[type[BaseException], ...]:
    """What a workflow raises in a step that waits for an event, and will be run again."""
    try:
        from workflows.runtime.types.results import WaitingForEvent
    except ImportError:
        return ()
    return (WaitingForEvent,)


def _judged(output: Any) -> Any:
    """What of an output is evidence: what the function gave, or the text of a failure."""
    if getattr(output, "is_error", False):
        return answered(output.content, failed=True)
    raw = getattr(output, "raw_output", output)
    if isinstance(raw, str):
        return answered(raw)
    return raw if isinstance(raw, dict | list) else None


async def _run(bridge: Bridge, context: Any, lone: Any) -> Run:
    """The run of a call: of the workflow that makes it, or of the tool where none does."""
    if context is None:
        return bridge.run(lone)
    job = await context.store.get(_JOB, default=None)
    if job is None:
        async with context.store.edit_state() as state:
            job = state.get(_JOB) or bridge.runtime._new_id("run")
            state[_JOB] = job
    from llama_index.core.instrumentation.dispatcher import active_instrument_tags

    chain = str(active_instrument_tags.get().get("llamaindex.run_id") or "")
    return bridge.run((job, chain), job)


@cache
def _tool_class() -> Any:
    from llama_index.core.tools import FunctionTool, ToolOutput

    class FailwiseTool(FunctionTool):
        """A tool, called through a runtime."""

        def __init__(self, inner: Any, bridge: Bridge) -> None:
            super().__init__(fn=_stands_for(inner), metadata=inner.metadata)
            self._inner, self._bridge = inner, bridge
            self.requires_context, self.ctx_param_name = True, _CONTEXT

        def call(self, *args: Any, **kwargs: Any) -> Any:
            kwargs.pop(_CONTEXT, None)
            plan, raw = self._plan(), _named(self._inner, args, kwargs)
            outcome = self._bridge.call_sync(
                plan,
                raw,
                lambda name, given, _: self._checked(name).call(**given),
                lambda: self._inner.call(*args, **kwargs),
                run=self._bridge.run(self),
                call_id=None,
            )
            return self._output(outcome, raw)

        __call__ = call

        async def acall(self, *args: Any, **kwargs: Any) -> Any:
            context = kwargs.pop(_CONTEXT, None)
            plan, raw = self._plan(), _named(self._inner, args, kwargs)
            wanted = getattr(self._inner, "ctx_param_name", None)
            extra = {wanted: context} if wanted and context is not None else {}

            async def attempt(name: str, given: Arguments, _: CallContext) -> Any:
                return await self._checked(name).acall(**given, **extra)

            outcome = await self._bridge.call(
                plan,
                raw,
                attempt,
                lambda: self._inner.acall(*args, **kwargs, **extra),
                run=await _run(self._bridge, context, self),
                call_id=None,
            )
            return self._output(outcome, raw)

        def _checked(self, name: str) -> Any:
            if name != self._inner.metadata.get_name():
                raise not_reachable(name)
            return self._inner

        def _plan(self) -> Plan:
            inner = self._inner
            name = inner.metadata.get_name()

            def looked_at() -> Mapping[str, Any]:
                warn_of_retries(getattr(inner, "real_fn", None), name)
                schema: Mapping[str, Any] = inner.metadata.get_parameters_dict()
                return schema

            return self._bridge.tool(
                name, looked_at, source=inner, description=inner.metadata.description or ""
            )

        def _output(self, outcome: Outcome, raw: Mapping[str, Any]) -> Any:
            if outcome.as_it_is:
                return outcome.given
            return ToolOutput(
                tool_name=self._inner.metadata.get_name(),
                content=outcome.text,
                raw_input=dict(raw),
                raw_output=outcome.record,
                is_error=outcome.failed,
            )

    return FailwiseTool


def _stands_for(inner: Any) -> Callable[..., Any]:
    """The function that the framework looks at: it takes what there is."""

    def function(**arguments: Any) -> Any:
        return inner.call(**arguments)

    return function


def _named(inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name: some agents give a single one without."""
    if not args:
        return kwargs
    names = inner.metadata.get_parameters_dict().get("properties") or {}
    return {**dict(zip(names, args, strict=False)), **kwargs}
