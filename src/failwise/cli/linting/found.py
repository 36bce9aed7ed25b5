"""The tools of an agent, whichever framework they are of: told by what they look like."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from failwise.runtime.runtime import Runtime
from failwise.vocabulary.records import UNSET, record
from failwise.vocabulary.spec import ToolSpec

_DEPTH: Final = 8
_MOST: Final = 5_000
_MOST_SEEN: Final = 100_000


@record
class Found:
    """One tool: what it declares, and where its function is written.

    `framework` is whose object it is. `declared` holds what is said of it, by the names of `ToolSpec`'s
    options; what its framework has no word for is missing. `function` is as it is called, with all
    decorators around it.
    """

    name: str
    framework: str
    function: Callable[..., Any] | None
    declared: Mapping[str, Any]
    file: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else self.file


def tools_in(thing: Any, module: ModuleType) -> list[Found]:
    """The tools of a module or of one of its objects: runtimes, agents, servers, lists of tools.

    Frameworks are recognised by their objects' attributes; none is imported.
    """
    found: list[Found] = []
    # Kept, so that no other object takes the identity of one that was made for the asking.
    seen: dict[int, Any] = {}
    things = list(vars(thing).values()) if isinstance(thing, ModuleType) else [thing]
    for one in things:
        for tool in _walk(one, seen, _DEPTH):
            found.append(_placed(tool, module))
            if len(found) >= _MOST:
                return found
    return found


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
    tool = _foreign(thing)
    if tool is not None:
        yield tool
        return
    for function in _bare(thing):
        if id(function) not in seen:
            seen[id(function)] = function
            yield Found(function.__name__, _home(thing), function, {})
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


# Other frameworks' tools, by their attributes


def _foreign(thing: Any) -> Found | None:
    """A tool of LangChain, OpenAI Agents, pydantic-ai, ADK, MCP servers, or one that looks like these."""
    kind = type(thing)
    names = {name for base in kind.__mro__ for name in vars(base)} | _own_names(thing)
    if "name" not in names:
        return None
    name = _get(thing, "name")
    if not isinstance(name, str) or not name:
        return None
    home = _home(thing)
    if "on_invoke_tool" in names:
        function = _within(thing.on_invoke_tool, name)
        return _tool(name, "openai-agents", function, thing, timeout="timeout_seconds")
    if "args_schema" in names and {"func", "coroutine", "_run"} & names:
        function = _get(thing, "func") or _get(thing, "coroutine") or _get(thing, "_run")
        return _tool(name, "langchain" if home.startswith("lang") else home, function, thing)
    if (
        "fn" in names
        and {"annotations", "parameters"} & names
        and not {"uri", "uri_template"} & names
    ):
        return _tool(name, "mcp", _get(thing, "fn"), thing, timeout="timeout")
    if "function" in names and {"takes_ctx", "function_schema"} & names:
        return _tool(name, "pydantic-ai", _get(thing, "function"), thing, timeout="timeout")
    if home == "google-adk" and "func" in names:
        return _tool(name, home, _get(thing, "func"), thing)
    return None


def _home(thing: Any) -> str:
    """The framework whose object it is, by the name people know."""
    module = type(thing).__module__
    return "google-adk" if module.startswith("google.adk.") else module.partition(".")[0]


def _tool(name: str, framework: str, function: Any, thing: Any, timeout: str = "") -> Found:
    declared: dict[str, Any] = {}
    hints = _get(thing, "annotations")
    for option, spellings in _HINTS.items():
        hint = _hint(hints, spellings)
        if isinstance(hint, bool):
            declared[option] = hint
    for place in _SAID:
        held = _get(thing, place)
        own = held.get("failwise") if isinstance(held, Mapping) else None
        if isinstance(own, Mapping):
            declared.update(own)
    if timeout and isinstance(_get(thing, timeout), int | float):
        declared["timeout"] = _get(thing, timeout)
    return Found(name, framework, function if callable(function) else None, declared)


_HINTS: Final = {
    "read_only": ("read_only_hint", "readOnlyHint"),
    "idempotent": ("idempotent_hint", "idempotentHint"),
    "destructive": ("destructive_hint", "destructiveHint"),
}


_SAID: Final = ("metadata", "meta", "custom_metadata")
"""Where a tool of a framework can say what it declares, under ``failwise``."""


def _hint(hints: Any, spellings: Sequence[str]) -> Any:
    """An annotation under the first of its spellings there is: where there are two, the second is deprecated."""
    for spelling in spellings:
        if isinstance(hints, Mapping):
            if spelling in hints:
                return hints[spelling]
        elif hasattr(hints, spelling):
            return _get(hints, spelling)
    return None


def _within(thing: Any, name: str, depth: int = 4) -> Callable[..., Any] | None:
    """A function of this name inside of a framework's wrapper."""
    if thing is None or depth <= 0:
        return None
    if inspect.isfunction(thing) and thing.__name__ == name:
        return thing
    held: list[Any] = []
    for cell in getattr(thing, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            continue
    held += list(getattr(thing, "__dict__", {}).values())
    for inner in held:
        if callable(inner):
            found = _within(inner, name, depth - 1)
            if found is not None:
                return found
    return None


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
)  # fmt: skip
"""Attributes in which agents, toolsets and servers keep their tools."""


def _held(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        yield from list(thing.values())[:_MOST]
    elif isinstance(thing, Sequence | set | frozenset):
        yield from list(thing)[:_MOST]
    elif not callable(thing) or hasattr(thing, "tools"):
        for name in _HOLDERS:
            inner = _get(thing, name)
            if inner is not None and not callable(inner):
                yield inner


def _bare(thing: Any) -> Iterator[Callable[..., Any]]:
    """The functions that an agent takes as tools as they are."""
    tools = None if isinstance(thing, Mapping | Sequence) else _get(thing, "tools")
    if isinstance(tools, list | tuple):
        yield from (tool for tool in tools[:_MOST] if inspect.isfunction(tool))


def _own_names(thing: Any) -> set[str]:
    own = getattr(thing, "__dict__", None)
    return {str(name) for name in own} if isinstance(own, dict) else set()


def _get(thing: Any, name: str) -> Any:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of somebody's that cannot be read now
        return None


# Where it is written


def layers(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A function from the outermost decorator to the function itself."""
    seen: set[int] = set()
    layer: Any = function
    while layer is not None and id(layer) not in seen and len(seen) < 50:
        seen.add(id(layer))
        yield layer
        layer = _get(layer, "__wrapped__") or _get(layer, "func")


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written, below its decorators."""
    *_, last = layers(function)
    return last


def _placed(tool: Found, module: ModuleType) -> Found:
    from dataclasses import replace

    file, line = "", None
    if tool.function is not None:
        code = getattr(innermost(tool.function), "__code__", None)
        if code is not None:
            file, line = code.co_filename, code.co_firstlineno
    if not file:
        file = getattr(module, "__file__", None) or module.__name__
        line = _line_of_name(file, tool.name)
    return replace(tool, file=file, line=line)


def _line_of_name(file: str, name: str) -> int | None:
    """The line of the module that names a tool, for one that has no function."""
    try:
        with open(file, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                if f'"{name}"' in line or f"'{name}'" in line:
                    return number
    except (OSError, UnicodeDecodeError):
        return None
    return None
