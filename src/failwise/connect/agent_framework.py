"""Microsoft Agent Framework: the tools of an agent, called through a runtime (extra: ``agent-framework``).

    from failwise.connect.agent_framework import middleware

    agent = Agent(client, tools=[...], middleware=[middleware(rt)])

Source: agent-framework-core 1.23, "Middleware" (`FunctionMiddleware`), "Function tools", "Approvals".
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, answered, wrong_arguments
from failwise.connect.remarks import required, warn_of_retries
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from agent_framework import FunctionMiddleware

    from failwise.runtime.runtime import Runtime

__all__ = ["middleware"]

_CONTROL: Final = ("MiddlewareTermination", "MiddlewareFailure")
"""Names of what is no failure of a tool; not each is in every version."""


def middleware(runtime: "Runtime | Run", *, lang: Language = "en") -> "FunctionMiddleware":
    """For ``Agent(..., middleware=[middleware(rt), ...])``: give it the first place.

    A failed call becomes the text that a model can use; a success is handed on untouched. Wrong arguments
    are repaired or answered; those of a tool that people approve are not repaired. Approvals, requests for
    input, `MiddlewareTermination` and `MiddlewareFailure` pass. The job of a call is its session, and one
    run of the agent in it. `lang` is the language of what models read. Raises `ConfigurationError` where
    agent-framework-core is not installed.
    """
    try:
        return _middleware_class()(_Adapter(runtime, lang))
    except ImportError as error:
        raise required("agent-framework-core", "failwise[agent-framework]", error) from error


class _Adapter:
    """The calls of any number of agents through one bridge."""

    def __init__(self, runtime: "Runtime | Run", lang: Language) -> None:
        self._bridge = Bridge(runtime, lang=lang, passthrough=_control(), judged=_judged)

    async def call(self, context: Any, following: Callable[[], Awaitable[None]]) -> None:
        """Stands around the invocation of one function."""
        plan = self._plan(context.function)
        raw = _plain(context.arguments)

        async def original() -> Any:
            await following()
            return context.result

        async def attempt(name: str, arguments: Arguments, _: CallContext) -> Any:
            if name != plan.tool.name:
                raise not_reachable(name)
            if arguments != raw:
                context.arguments = dict(arguments)
            try:
                return await original()
            except Exception as error:
                if type(error).__name__ == "_FunctionArgumentValidationError":
                    raise wrong_arguments(error.__cause__ or error, name) from error
                raise

        outcome = await self._bridge.call(
            plan,
            raw,
            attempt,
            original,
            run=self._run(context),
            call_id=context.metadata.get("call_id"),
        )
        context.result = outcome.given if outcome.as_it_is else outcome.text

    def _plan(self, function: Any) -> Plan:
        said: Any = (getattr(function, "additional_properties", None) or {}).get("failwise")
        if getattr(function, "approval_mode", None) == "always_require":
            said = {"repair": "off", **(said or {})}

        def looked_at() -> Mapping[str, Any]:
            warn_of_retries(getattr(function, "func", None), function.name)
            schema: Mapping[str, Any] = function.parameters()
            return schema

        return self._bridge.tool(
            function.name,
            looked_at,
            source=function,
            description=function.description or "",
            said=said,
        )

    def _run(self, context: Any) -> Run:
        # The list of tools is one for each run of the agent: its model sees what tools change in it.
        session, tools = context.session, context.tools
        key = next((one for one in (tools, session) if one is not None), self)
        return self._bridge.run(key, getattr(session, "session_id", None))


def _control() -> tuple[type[BaseException], ...]:
    import agent_framework
    from agent_framework import exceptions

    found = [getattr(agent_framework, name, None) for name in _CONTROL]
    found.append(getattr(exceptions, "UserInputRequiredException", None))
    return tuple(one for one in found if one is not None)


def _plain(arguments: Any) -> Any:
    """Arguments as the JSON they came from."""
    dump = getattr(arguments, "model_dump", None)
    return dump(mode="json") if callable(dump) else dict(arguments)


def _judged(given: Any) -> Any:
    """What of a result is evidence: its text, as data where it is JSON."""
    if isinstance(given, list):
        texts = [getattr(one, "text", None) for one in given]
        return answered("\n".join(text for text in texts if text)) if any(texts) else None
    return answered(given) if isinstance(given, str) else given


@cache
def _middleware_class() -> Any:
    from agent_framework import FunctionMiddleware

    class FailwiseMiddleware(FunctionMiddleware):
        """Calls the tools of an agent through a runtime."""

        def __init__(self, adapter: _Adapter) -> None:
            self._adapter = adapter

        async def process(self, context: Any, call_next: Any) -> None:
            await self._adapter.call(context, call_next)

    return FailwiseMiddleware
