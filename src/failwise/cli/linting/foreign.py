"""The tools of other frameworks, told by their attributes and the names of their classes: none is imported."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from failwise.cli.linting.tool import Found, attribute, names_of

_HOMES: Final = {
    "agent_framework": "agent-framework",
    "agents": "openai-agents",
    "fastmcp": "mcp",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "llama_index": "llama-index",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "pydantic_ai": "pydantic-ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
"""Packages, and the names by which people know whose they are."""

LIBRARIES: Final = frozenset({*_HOMES, "failwise", "google"})
"""Packages whose functions stand for a tool that is written elsewhere, or that nobody here wrote."""

_STEERING: Final = {
    "smolagents": {"final_answer"},
    "strands": {"handoff_to_agent", "handoff_to_user", "stop"},
}
"""Tools of the frameworks' own that steer an agent and call nobody: our adapters leave them alone, too."""

_NO_CALLS: Final = frozenset({"StructuredOutputTool", "_AgentAsTool"})
"""Classes of Strands' tools that are none: a form for the answer, an agent in an agent."""

_SAID: Final = ("metadata", "meta", "custom_metadata", "additional_properties")
"""Where a tool of a framework can say what it declares, under ``failwise``."""

_HINTS: Final = {
    "read_only": ("read_only_hint", "readOnlyHint"),
    "idempotent": ("idempotent_hint", "idempotentHint"),
    "destructive": ("destructive_hint", "destructiveHint"),
}


def home_of(thing: Any) -> str:
    """The framework whose object it is, also of a class of the user's own that is made from one of theirs."""
    for kind in type(thing).__mro__:
        if kind.__module__.startswith("google.adk."):
            return "google-adk"
        home = _HOMES.get(kind.__module__.partition(".")[0])
        if home is not None:
            return home
    return type(thing).__module__.partition(".")[0]


def steers(tool: Found) -> bool:
    """It ends an agent's work or hands it on, and calls nobody."""
    return tool.name in _STEERING.get(tool.framework, ())


def foreign(thing: Any) -> Found | None:
    """A tool of LangChain, OpenAI Agents, pydantic-ai, ADK, Strands, smolagents, LlamaIndex, Microsoft
    Agent Framework, an MCP server, or one that looks like these; None for anything else."""
    names, home = names_of(thing), home_of(thing)
    if {"tool_name", "tool_spec", "stream"} <= names:
        return None if type(thing).__name__ in _NO_CALLS else _of_strands(thing)
    if home == "llama-index" and {"metadata", "call"} <= names:
        return _of_llama_index(thing)
    name = attribute(thing, "name") if "name" in names else None
    if not isinstance(name, str) or not name:
        return None
    if "on_invoke_tool" in names:
        function = _within(thing.on_invoke_tool, name)
        return _tool(name, "openai-agents", function, thing, timeout="timeout_seconds")
    if "args_schema" in names and {"func", "coroutine", "_run"} & names:
        function = (
            attribute(thing, "func") or attribute(thing, "coroutine") or attribute(thing, "_run")
        )
        return _tool(name, home, function, thing)
    if {"inputs", "output_type", "forward"} <= names:
        return _tool(name, "smolagents", attribute(thing, "forward"), thing)
    if {"func", "approval_mode"} <= names:
        return _tool(name, "agent-framework", attribute(thing, "func"), thing)
    if (
        "fn" in names
        and {"annotations", "parameters"} & names
        and not {"uri", "uri_template"} & names
    ):
        return _tool(name, "mcp", attribute(thing, "fn"), thing, timeout="timeout")
    if "annotations" in names and {"input_schema", "inputSchema"} & names and home == "mcp":
        return _tool(name, home, None, thing)  # what a low-level server lists
    if "function" in names and {"takes_ctx", "function_schema"} & names:
        return _tool(name, "pydantic-ai", attribute(thing, "function"), thing, timeout="timeout")
    if home == "google-adk" and "func" in names:
        return _tool(name, home, attribute(thing, "func"), thing)
    return None


def _of_strands(thing: Any) -> Found | None:
    name = attribute(thing, "tool_name")
    if not isinstance(name, str):
        return None
    function = attribute(thing, "_tool_func") or attribute(thing, "stream")
    return _tool(name, "strands", function, thing, timeout="timeout")


def _of_llama_index(thing: Any) -> Found | None:
    name = attribute(thing.metadata, "name")
    if not isinstance(name, str):
        return None
    # A tool of our own adapter stands for another.
    inner = attribute(thing, "_inner") or thing
    function = attribute(inner, "real_fn") or (
        None if inner is not thing else attribute(thing, "fn")
    )
    return _tool(name, "llama-index", function, thing)


def _tool(name: str, framework: str, function: Any, thing: Any, timeout: str = "") -> Found:
    declared: dict[str, Any] = {}
    hints = attribute(thing, "annotations")
    for option, spellings in _HINTS.items():
        hint = _hint(hints, spellings)
        if isinstance(hint, bool):
            declared[option] = hint
    for place in _SAID:
        held = attribute(thing, place)
        own = held.get("failwise") if isinstance(held, Mapping) else None
        if isinstance(own, Mapping):
            declared.update(own)
    limit = attribute(thing, timeout) if timeout else None
    if isinstance(limit, timedelta):
        limit = limit.total_seconds()
    if isinstance(limit, int | float):
        declared["timeout"] = limit
    return Found(name, framework, function if callable(function) else None, declared)


def _hint(hints: Any, spellings: Sequence[str]) -> Any:
    """An annotation under the first of its spellings there is: where there are two, the second is deprecated."""
    for spelling in spellings:
        if isinstance(hints, Mapping):
            if spelling in hints:
                return hints[spelling]
        elif hasattr(hints, spelling):
            return attribute(hints, spelling)
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
