"""The tools of a module, whichever framework they are of: where agents and servers keep them."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from failwise.cli.linting.foreign import LIBRARIES, foreign, home_of, steers
from failwise.cli.linting.tool import Found, attribute, innermost, placed
from failwise.runtime.runtime import Runtime
from failwise.vocabulary.records import UNSET
from failwise.vocabulary.spec import ToolSpec

_DEPTH: Final = 8
_MOST: Final = 5_000
_MOST_SEEN: Final = 100_000

_HOLDERS: Final = (
    "tools",
    "_function_toolset",
    "_tool_manager",
    "_tools",
    "toolsets",
    "tools_by_name",
    "nodes", "bound",  # a compiled graph of LangGraph: its nodes, and what they run
    "providers", "_components",  # a server of FastMCP: where its tools come from
    "handoffs", "sub_agents",  # other agents of OpenAI Agents, of ADK
    "tool_registry", "registry", "dynamic_tools",  # an agent of Strands
    "executor", "_agent",  # a node of Strands' swarms and graphs, an agent as a tool
    "managed_agents",  # other agents of smolagents
    "agents",  # a workflow of LlamaIndex
    "default_options",  # an agent of Microsoft Agent Framework
    "executors",  # a workflow of it
)  # fmt: skip
"""Attributes in which agents, toolsets and servers keep their tools."""

_HOLDING_CALLABLES: Final = ("tools", "tool_registry", "nodes")
"""What tells an agent, a swarm, a graph that can be called from a function."""


def tools_in(thing: Any, module: ModuleType) -> list[Found]:
    """The tools of a module or of one of its objects: runtimes, agents, servers, lists of tools.

    Frameworks are recognised by their objects' attributes; none is imported. What the module's runtimes
    declare by name or glob counts as said of the frameworks' tools.
    """
    found: list[Found] = []
    # Kept, so that no other object takes the identity of one that was made for the asking.
    seen: dict[int, Any] = {}
    known: dict[tuple[str, str, int], Found] = {}
    things = list(vars(thing).values()) if isinstance(thing, ModuleType) else [thing]
    runtimes = [one for one in vars(module).values() if isinstance(one, Runtime)]
    for one in things:
        for tool in _walk(one, seen, _DEPTH):
            if steers(tool) or _again(tool, known):
                continue
            found.append(placed(_declared(tool, runtimes), module, LIBRARIES))
            if len(found) >= _MOST:
                return found
    return found


def _again(tool: Found, known: dict[tuple[str, str, int], Found]) -> bool:
    """One function that several agents were given, each with a tool of its own around it."""
    if tool.function is None:
        return False
    # A function that is in `known` is kept by it, so that no other takes its identity.
    key = tool.name, tool.framework, id(innermost(tool.function))
    return known.setdefault(key, tool) is not tool and known[key].declared == tool.declared


def _declared(tool: Found, runtimes: Sequence[Runtime]) -> Found:
    """A framework's tool with what runtimes declare of it: their own tools have it already."""
    said: dict[str, Any] = {}
    for runtime in runtimes:
        if tool.framework != "failwise" and runtime._declarations is not None:
            said.update(runtime._declarations.of(tool.name))
    return replace(tool, declared={**tool.declared, **said}) if said else tool


def _walk(thing: Any, seen: dict[int, Any], depth: int) -> Iterator[Found]:
    if thing is None or isinstance(thing, str | bytes | int | float | type | ModuleType):
        return
    if depth <= 0 or id(thing) in seen or len(seen) > _MOST_SEEN:
        return
    seen[id(thing)] = thing
    if isinstance(thing, Runtime):
        yield from _of_runtime(thing)
        return
    if isinstance(thing, ToolSpec):
        yield _of_spec(thing, None)
        return
    tool = foreign(thing)
    if tool is not None:
        yield tool
        return
    for function in _bare(thing):
        if id(function) not in seen:
            seen[id(function)] = function
            yield Found(function.__name__, home_of(thing), function, {})
    for inner in _held(thing):
        yield from _walk(inner, seen, depth - 1)


def _of_runtime(runtime: Runtime) -> Iterator[Found]:
    functions = {name: key for key, name in runtime._functions.items() if inspect.isroutine(key)}
    for name, spec in runtime.tools.items():
        yield _of_spec(spec, functions.get(name))


def _of_spec(spec: ToolSpec, function: Callable[..., Any] | None) -> Found:
    declared = {
        key: getattr(spec, key)
        for key in (
            "read_only", "idempotent", "destructive", "timeout", "idempotency_key", "verify",
            "fallback",
        )
    }  # fmt: skip
    if spec.fallback_value is not UNSET:
        declared["fallback_value"] = True
    return Found(
        spec.name, "failwise", function or _function_of(spec.call or spec.call_async), declared
    )


def _function_of(call: Any) -> Callable[..., Any] | None:
    """The user's function inside of a tool's own call, where that is a closure over it."""
    for cell in getattr(call, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if inspect.isfunction(held) and not str(held.__module__).startswith("failwise."):
            return held
    return None


def _held(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        yield from list(thing.values())[:_MOST]
    elif isinstance(thing, Sequence | set | frozenset):
        yield from list(thing)[:_MOST]
    elif not callable(thing) or _holds(thing):
        for name in _HOLDERS:
            inner = attribute(thing, name)
            if inner is not None and (not callable(inner) or _holds(inner)):
                yield inner


def _holds(thing: Any) -> bool:
    return any(attribute(thing, name) is not None for name in _HOLDING_CALLABLES)


def _bare(thing: Any) -> Iterator[Callable[..., Any]]:
    """The functions that an agent takes as tools as they are."""
    tools = None if isinstance(thing, Mapping | Sequence) else attribute(thing, "tools")
    if isinstance(tools, list | tuple):
        yield from (tool for tool in tools[:_MOST] if inspect.isfunction(tool))
