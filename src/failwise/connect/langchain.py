"""LangChain and LangGraph: the tools of an agent, called through a runtime (extra: ``langchain``).

    from failwise.connect.langchain import middleware

    agent = create_agent(model, tools, middleware=[middleware(rt)])

In a graph made by hand ``ToolNode(tools, **tool_node(rt))``; the other way round `add_tools` makes LangChain's
tools those of a runtime. Source: langchain 1.5, "Custom middleware" (`wrap_tool_call`); langgraph 1.2, `ToolNode`.
"""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from failwise.connect.attempts import not_reachable
from failwise.connect.bridge import Bridge, Outcome
from failwise.connect.remarks import required, warn_of_retries, warn_once, was_said
from failwise.runtime.execution import Plan
from failwise.runtime.run import Run
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext, ToolSpec

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware

    from failwise.runtime.runtime import Runtime

__all__ = ["add_tools", "middleware", "tool_node"]

_TEXTS: Final = 1_000
"""Unreadable arguments that are kept until their call comes."""
_DEEPEST: Final = 12


def middleware(runtime: "Runtime | Run", *, lang: Language = "en") -> "AgentMiddleware[Any, Any]":
    """For ``create_agent(..., middleware=[middleware(rt), ...])``: give it the first place.

    A failed call becomes a `ToolMessage` with ``status="error"``, the text that a model can use, and the
    whole result as its `artifact`, which no model reads; a success is handed on untouched. Arguments that
    are no JSON, of which LangChain makes no call, are repaired or answered. Interrupts and `Command`s
    pass. The job of a call is its thread (``thread_id``), and one question of a person in it. `lang` is
    the language of what models read. Raises `ConfigurationError` where langchain is not installed.
    """
    try:
        return _middleware_class()(_Adapter(runtime, lang))
    except ImportError as error:
        raise required("langchain", "failwise[langchain]", error) from error


def tool_node(runtime: "Runtime | Run", *, lang: Language = "en") -> dict[str, Any]:
    """The options of a `ToolNode`: ``ToolNode(tools, **tool_node(rt))``. As for `middleware`."""
    try:
        adapter = _Adapter(runtime, lang)
    except ImportError as error:
        raise required("langgraph", "failwise[langchain]", error) from error
    return {
        "wrap_tool_call": adapter.call_sync,
        "awrap_tool_call": adapter.call,
        "handle_tool_errors": False,  # what failed is to be seen as it is, not as a text
    }


def add_tools(runtime: "Runtime", tools: Sequence[Any]) -> list[ToolSpec]:
    """Register LangChain's tools in a runtime: ``rt.call("search", {"query": "shoes"})`` then calls them.

    What you know of them is declared by name or glob, before: ``rt.declare({"search*": {"read_only": True}})``.
    Raises `UsageError` where a name is taken.
    """
    return [runtime.add(_spec(tool)) for tool in tools]


def _spec(tool: Any) -> ToolSpec:
    def call(arguments: Arguments, _: CallContext) -> Any:
        return tool.invoke(arguments)

    async def call_async(arguments: Arguments, _: CallContext) -> Any:
        return await tool.ainvoke(arguments)

    only_async = getattr(tool, "coroutine", None) is not None and tool.func is None
    warn_of_retries(_function(tool), tool.name)
    return ToolSpec(
        tool.name,
        tool.description,
        _schema(tool),
        call=None if only_async else call,
        call_async=call_async,
    )


class _Adapter:
    """The calls of any number of agents through one bridge."""

    def __init__(self, runtime: "Runtime | Run", lang: Language) -> None:
        from langgraph.errors import GraphBubbleUp

        self._bridge = Bridge(runtime, lang=lang, passthrough=(GraphBubbleUp,), judged=_judged)
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._known: dict[str, Any] = {}
        """The tools that models were told of, by name."""

    # Tool calls

    async def call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`awrap_tool_call`."""
        plan, raw, run = self._prepared(request, handler)
        call = _Call(request, plan, handler, self._named)
        outcome = await self._bridge.call(
            plan,
            raw,
            call.attempt,
            lambda: handler(request),
            run=run,
            call_id=request.tool_call["id"],
        )
        return outcome.given if outcome.as_it_is else _message(request, outcome)

    def call_sync(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """`wrap_tool_call`."""
        plan, raw, run = self._prepared(request, handler)
        call = _Call(request, plan, handler, self._named)
        outcome = self._bridge.call_sync(
            plan,
            raw,
            call.attempt,
            lambda: handler(request),
            run=run,
            call_id=request.tool_call["id"],
        )
        return outcome.given if outcome.as_it_is else _message(request, outcome)

    def _prepared(self, request: Any, handler: Any) -> tuple[Plan, Any, Run]:
        call, tool = request.tool_call, request.tool
        raw = self._texts.pop(call["id"] or "", call["args"])
        if tool is None:
            for known in getattr(request.runtime, "tools", None) or ():
                self._plan(known)
            plan = self._bridge.unknown(call["name"])
        else:
            plan = self._plan(tool)
            for name in plan.tool.fallback:
                other = self._named(request, name)
                if other is not None:
                    self._plan(other)
        _warn_of_retries(handler)
        thread, question = _job(request)
        return plan, raw, self._bridge.run((thread, question), thread or question)

    def _plan(self, tool: Any) -> Plan:
        return self._bridge.tool(
            tool.name,
            lambda: _looked_at(tool),
            source=tool,
            description=tool.description,
            said=(tool.metadata or {}).get("failwise"),
        )

    def _named(self, request: Any, name: str) -> Any:
        """Another tool of the same agent, or None."""
        tools = getattr(request.runtime, "tools", None) or ()
        return next((tool for tool in tools if tool.name == name), None) or self._known.get(name)

    # Arguments that are no JSON

    def with_readable_calls(self, request: Any, response: Any) -> Any:
        """A model's response in which every tool call is one: LangChain sets those apart whose
        arguments are no JSON, and calls nothing. Their text is kept until the call comes."""
        messages = getattr(response, "result", None)
        if not isinstance(messages, list) or self._bridge.runtime.mode != "act":
            return response
        tools = {tool.name: tool for tool in request.tools if hasattr(tool, "tool_call_schema")}
        self._known.update(tools)
        plans = {name: self._plan(tool) for name, tool in tools.items()}
        for place, message in enumerate(messages):
            apart = getattr(message, "invalid_tool_calls", None)
            if apart:
                messages[place] = self._readable(message, apart, plans)
        return response

    def _readable(
        self, message: Any, apart: Sequence[Mapping[str, Any]], plans: Mapping[str, Plan]
    ) -> Any:
        calls, left = list(message.tool_calls), []
        for call in apart:
            name, call_id, text = call.get("name"), call.get("id"), call.get("args") or ""
            if not name or not call_id:
                left.append(call)
                continue
            self._texts[call_id] = text
            if len(self._texts) > _TEXTS:
                self._texts.popitem(last=False)
            read = plans[name].read(text).arguments if name in plans else None
            calls.append({"name": name, "args": read or {}, "id": call_id, "type": "tool_call"})
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": left})


class _Call:
    """How LangChain runs the tool of one call once."""

    __slots__ = ("_handler", "_named", "_plan", "_request")

    def __init__(
        self,
        request: Any,
        plan: Plan,
        handler: Callable[[Any], Any],
        named: Callable[[Any, str], Any],
    ) -> None:
        self._request, self._plan, self._handler, self._named = request, plan, handler, named

    def attempt(self, name: str, arguments: Arguments, _: CallContext) -> Any:
        request = self._request
        changes: dict[str, Any] = {}
        if name != self._plan.tool.name:
            changes["tool"] = self._named(request, name)
            if changes["tool"] is None:
                raise not_reachable(name)
        if changes or arguments != request.tool_call["args"]:
            changes["tool_call"] = {**request.tool_call, "name": name, "args": arguments}
            request = request.override(**changes)
        return self._handler(request)


def _message(request: Any, outcome: Outcome) -> Any:
    from langchain_core.messages import ToolMessage

    return ToolMessage(
        content=outcome.text,
        name=request.tool_call["name"],
        tool_call_id=request.tool_call["id"],
        status="error" if outcome.failed else "success",
        artifact=outcome.record,
    )


def _judged(given: Any) -> Any:
    """What of an answer is evidence: a tool message's content, as data where it is JSON."""
    content = getattr(given, "content", None)
    if getattr(given, "status", None) == "error":
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        return {"isError": True, "content": [{"type": "text", "text": text}]}
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            return content
    return content if isinstance(content, str) else None


def _job(request: Any) -> tuple[str | None, str | None]:
    """The thread of a call, and the message of a person that it works on: both are the same after a
    restart, as the graph keeps them."""
    config = getattr(request.runtime, "config", None) or {}
    thread = (config.get("configurable") or {}).get("thread_id")
    state = request.state
    messages = state if isinstance(state, list) else None
    if messages is None:
        mapping = isinstance(state, Mapping)
        messages = state.get("messages") if mapping else getattr(state, "messages", None)
    question = None
    if isinstance(messages, list):
        for message in reversed(messages):
            if getattr(message, "type", None) == "human":
                question = message.id
                break
    return None if thread is None else str(thread), question


def _schema(tool: Any) -> Mapping[str, Any] | None:
    """The arguments that the model is told of; injected ones are not among them."""
    schema = tool.tool_call_schema
    if isinstance(schema, Mapping):
        return schema
    made: Mapping[str, Any] = schema.model_json_schema()
    return made


def _looked_at(tool: Any) -> Mapping[str, Any] | None:
    warn_of_retries(_function(tool), tool.name)
    return _schema(tool)


def _function(tool: Any) -> Any:
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None)


def _warn_of_retries(handler: Any) -> None:
    """Once: a middleware within repeats calls by itself, so that its retries and the runtime's multiply."""
    if was_said("langchain.tool_retry") or "ToolNode" in getattr(handler, "__qualname__", ""):
        return
    for function in _within(handler, _DEEPEST):
        if getattr(function, "__module__", "") == "langchain.agents.middleware.tool_retry":
            warn_once(
                "langchain.tool_retry",
                "ToolRetryMiddleware repeats tool calls blindly, writes too, and once more for each of "
                "the runtime's attempts: take it out of middleware=[...]; the policy says what is repeated",
            )
            return


def _within(function: Any, depth: int) -> Iterator[Any]:
    """The functions that a composed handler calls."""
    yield function
    if depth:
        for cell in getattr(function, "__closure__", None) or ():
            try:
                inner = cell.cell_contents
            except ValueError:
                continue
            if callable(inner):
                yield from _within(getattr(inner, "__func__", inner), depth - 1)


@cache
def _middleware_class() -> Any:
    from langchain.agents.middleware import AgentMiddleware

    class FailwiseMiddleware(AgentMiddleware[Any, Any]):
        """Calls the tools of an agent through a runtime."""

        def __init__(self, adapter: _Adapter) -> None:
            super().__init__()
            self._adapter = adapter

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return self._adapter.call_sync(request, handler)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await self._adapter.call(request, handler)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return self._adapter.with_readable_calls(request, handler(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return self._adapter.with_readable_calls(request, await handler(request))

    return FailwiseMiddleware
