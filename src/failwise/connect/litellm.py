"""LiteLLM: requests to chat models, sent through a runtime (extra: ``litellm``).

    from failwise.connect.litellm import client

    llm = client(rt)                  # or client(rt, router)
    llm.completion(model="openai/gpt-5", messages=[...])

The layer of what fails is *transport*; for tools see the adapter of the framework that calls them.
Source: litellm 1.110, "completion()", "Router" (retries, fallbacks, cooldowns), "Exception mapping".
"""

import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from failwise.connect.remarks import required, warn_once
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run, surroundings
from failwise.vocabulary.errors import ToolCallFailed, ToolError, UsageError
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution
    from failwise.runtime.runtime import Runtime

__all__ = ["client", "result_of"]

_SYNC: Final = frozenset({"completion", "text_completion", "embedding", "responses"})
_ASYNC: Final = frozenset({"acompletion", "atext_completion", "aembedding", "aresponses"})
_PLACE: Final = "failwise"
"""Where a response's and an exception's result is, and what each attempt says of itself in LiteLLM's metadata."""
_PLANS: Final = 1_024


def client(runtime: "Runtime | Run", router: Any = None) -> Any:
    """LiteLLM itself, or a `Router`, whose requests to models go through a runtime.

    It has all that ``litellm`` (or the router) has. `completion`, `acompletion`, `text_completion`,
    `embedding`, `responses` and their like are calls of the runtime: judged, repeated where that helps,
    guarded for each upstream, recorded as ``model:NAME``. Each gives the response, or raises the
    exception, that LiteLLM always gave, with the `ToolResult` on it (`result_of`). What the runtime declines
    to send is raised as an `APIConnectionError` of LiteLLM's. A stream is handed on when it has begun: what breaks later is the caller's.
    LiteLLM's own retries are left out (``num_retries`` and ``max_retries`` are 0 in each attempt). Inside of a
    tool's call a request is sent once: that call decides. Raises `UsageError` for what cannot work,
    `ConfigurationError` where litellm is not installed.
    """
    if not hasattr(runtime, "_where"):
        raise UsageError(f"runtime={runtime!r}: give a Runtime or a Run")
    try:
        import litellm
    except ImportError as error:
        raise required("litellm", "failwise[litellm]", error) from error
    if router is not None and not hasattr(router, "acompletion"):
        raise UsageError(f"router={router!r}: give a litellm.Router")
    return _Client(runtime, router if router is not None else litellm, router is not None)


def result_of(response_or_error: Any) -> "ToolResult[Any] | None":
    """The `ToolResult` of a request, from LiteLLM's response or exception. None where it did not go
    through a runtime."""
    found = getattr(response_or_error, _PLACE, None)
    if found is None:
        hidden = getattr(response_or_error, "_hidden_params", None)
        found = hidden.get(_PLACE) if isinstance(hidden, dict) else None
    return found if isinstance(found, ToolResult) else None


class _Request:
    """One request under way, and what came of its last attempt."""

    __slots__ = ("error", "options", "perform", "response")

    def __init__(self, perform: Callable[..., Any], options: dict[str, Any]) -> None:
        self.perform, self.options = perform, options
        self.response: Any = None
        self.error: Exception | None = None

    def _attempt(self, context: CallContext) -> dict[str, Any]:
        self.response = self.error = None
        said = {"call_id": context.call_id, "attempt": context.attempt}
        metadata = {**(self.options.get("metadata") or {}), _PLACE: said}
        return {**self.options, "metadata": metadata}

    def send(self, context: CallContext) -> Any:
        try:
            self.response = self.perform(**self._attempt(context))
        except Exception as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from error
        return self.response

    async def send_async(self, context: CallContext) -> Any:
        try:
            self.response = await self.perform(**self._attempt(context))
        except Exception as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from error
        return self.response

    def _told(self, error: Exception) -> ToolError | None:
        """What a router means whose deployments all cool down: nothing was sent, and it says for how
        many seconds. None for other failures, which say themselves what they are."""
        self.error = error
        wait = getattr(error, "cooldown_time", None)
        if not isinstance(wait, int | float):
            return None
        text = (
            f"no deployment of {getattr(error, 'model', 'the model')} is available: all cool down"
        )
        return ToolError(
            text,
            code="rate_limit.requests",
            effect="not_sent",
            transient=True,
            retry_after=float(wait),
        )


_current: ContextVar[_Request] = ContextVar("failwise_litellm")
"""The request under way here: a spec is shared by many."""


def _call(_: Arguments, context: CallContext) -> Any:
    return _current.get().send(context)


def _call_async(_: Arguments, context: CallContext) -> Awaitable[Any]:
    return _current.get().send_async(context)


class _Client:
    """LiteLLM, or a router, with its requests made through a runtime."""

    def __init__(self, runtime: "Runtime | Run", inner: Any, routed: bool) -> None:
        self._given, self._inner, self._routed = runtime, inner, routed
        self._plans: dict[tuple[str, str], Plan] = {}
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _SYNC and name not in _ASYNC:
            return found
        made = self._sync(found) if name in _SYNC else self._async(found)
        made.__name__ = made.__qualname__ = name
        self.__dict__[name] = made
        return made

    def __repr__(self) -> str:
        return f"failwise.connect.litellm.client({self._inner!r})"

    def _sync(self, perform: Callable[..., Any]) -> Callable[..., Any]:
        def call(model: str, *args: Any, **options: Any) -> Any:
            options = _named(perform, model, args, options)
            if not self._acts():
                return perform(**options)
            options = self._alone(options)
            if surroundings.get() is not None:
                return perform(**options)
            request = _Request(perform, options)
            execution = self._execution(model, options)
            token = _current.set(request)
            try:
                result = execution.runtime._driven_sync(execution)
            finally:
                _current.reset(token)
            return _handed_on(request, result)

        return call

    def _async(self, perform: Callable[..., Any]) -> Callable[..., Any]:
        async def call(model: str, *args: Any, **options: Any) -> Any:
            options = _named(perform, model, args, options)
            if not self._acts():
                return await perform(**options)
            options = self._alone(options)
            if surroundings.get() is not None:
                return await perform(**options)
            request = _Request(perform, options)
            execution = self._execution(model, options)
            token = _current.set(request)
            try:
                result = await execution.runtime._driven(execution)
            finally:
                _current.reset(token)
            return _handed_on(request, result)

        return call

    def _acts(self) -> bool:
        return self._given._where()[0].mode != "off"

    def _alone(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of one attempt: without retries of LiteLLM's, which would multiply."""
        if self._given._where()[0].mode == "observe":
            return options
        for name in ("num_retries", "max_retries"):
            if options.get(name):
                warn_once(
                    ("litellm", name),
                    "%s=%s is left out: LiteLLM would repeat each of the runtime's attempts; the policy says "
                    "what is repeated",
                    name,
                    options[name],
                )
        self._warn()
        return {**options, "num_retries": 0, "max_retries": 0}

    def _warn(self) -> None:
        import litellm

        if litellm.num_retries:
            warn_once(
                ("litellm", "global"),
                "litellm.num_retries=%s repeats each of the runtime's attempts, and no option of a request "
                "turns it off: set litellm.num_retries = None; the policy says what is repeated",
                litellm.num_retries,
            )
        if self._routed and getattr(self._inner, "fallbacks", None):
            warn_once(
                ("litellm", "fallbacks"),
                "the router tries its fallbacks in each of the runtime's attempts: give "
                "Router(fallbacks=[]), or policy={'network': {'retries': 0}, 'server': {'retries': 0}} to a "
                "runtime of its own, so that they do not multiply",
            )

    def _execution(self, model: str, options: dict[str, Any]) -> "Execution":
        runtime, run = self._given._where()
        plan = self._plan(runtime, model, str(options.get("api_base") or ""))
        return runtime._begin(plan.tool, ({},), {}, run, plan=plan)

    def _plan(self, runtime: "Runtime", model: str, base: str) -> Plan:
        plan = self._plans.get((model, base))
        if plan is None:
            spec = ToolSpec(
                f"model:{model}",
                call=_call,
                call_async=_call_async,
                read_only=True,  # asking again changes nothing in the world
                upstream=self._upstream(model, base),
                success=lambda _: True,
                thread=False,
                self_timed=True,
                kind="model",
            )
            with self._lock:
                if len(self._plans) >= _PLANS:
                    self._plans.clear()
                plan = self._plans[model, base] = runtime._plan(spec)
        return plan

    def _upstream(self, model: str, base: str) -> str:
        """Whom the guards count: a host, a provider, or a router's group of deployments."""
        host = urlsplit(base).netloc.rpartition("@")[2]
        if host:
            return host
        if self._routed:
            return f"router:{model}"
        import litellm

        try:
            return str(litellm.get_llm_provider(model)[1])
        except Exception:  # a model that LiteLLM does not know, which its own call will say
            return f"model:{model}"


def _named(
    perform: Callable[..., Any], model: str, args: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """All options by name: a second one without is the messages or the input."""
    if not args:
        return {"model": model, **options}
    import inspect

    names = [
        name for name in inspect.signature(perform).parameters if name not in ("self", "model")
    ]
    return {"model": model, **dict(zip(names, args, strict=False)), **options}


def _handed_on(request: _Request, result: ToolResult[Any]) -> Any:
    """The response, or the exception, of the last attempt; with the result on it."""
    if request.response is not None:
        return _marked(request.response, result)
    error = request.error
    if error is None:
        failure = result.failure
        text = f"{failure.code}: {failure.message}" if failure is not None else "not sent"
        error = _not_sent_type()(text, result.tool_name)
        error.__cause__ = ToolCallFailed(result)
    raise _marked(error, result)


def _marked(carrier: Any, result: ToolResult[Any]) -> Any:
    hidden = getattr(carrier, "_hidden_params", None)
    if isinstance(hidden, dict):  # a response is data: what is no field of it has its place here
        hidden[_PLACE] = result
    else:
        setattr(carrier, _PLACE, result)
    return carrier


@cache
def _not_sent_type() -> Any:
    from litellm.exceptions import APIConnectionError

    class NotSent(APIConnectionError):
        """The runtime declined to send; nothing has left. `result_of(error)` tells why."""

        def __init__(self, text: str, model: str) -> None:
            super().__init__(message=f"not sent: {text}", llm_provider="", model=model)

    NotSent.__module__, NotSent.__qualname__ = __name__, "NotSent"
    return NotSent
