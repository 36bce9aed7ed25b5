"""How chat providers write tools, tool calls and their answers. Pure shapes, no calls.

OpenAI chat completions, OpenAI responses, Anthropic messages, and MCP for the descriptions.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.records import record
from failwise.vocabulary.spec import ToolSpec

Dialect = Literal["openai", "openai_responses", "anthropic", "mcp"]
Described = Callable[[ToolSpec], str]
"""What a model is told of a tool."""

_EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}}
_LONGEST_NAME = 64
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


@record
class Asked:
    """One tool call as a model asked for it. `id` as the provider gave it ("" where it gave none);
    `raw` the text of the arguments, or their object; `custom`: free text, not JSON."""

    id: str
    name: str
    raw: str | Mapping[str, Any]
    custom: bool = False


def wire_name(name: str) -> str:
    """A tool's name as every provider takes it: letters, digits, ``_`` and ``-``, at most 64.

    Most names are left as they are; what has to be changed gets a digest of the whole name, so that
    two tools never meet.
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    plain = _OTHER.sub("_", name).strip("_")[: _LONGEST_NAME - len(digest) - 1] or "tool"
    return f"{plain}_{digest}"


def descriptions(
    tools: Sequence[ToolSpec], dialect: str, described: Described
) -> list[dict[str, Any]]:
    """The tools as the model is told of them. Raises `UsageError` for an unknown dialect."""
    write = _DESCRIPTIONS.get(dialect)
    if write is None:
        raise UsageError(f"schemas({dialect!r}): say one of {', '.join(_DESCRIPTIONS)}")
    return [write(tool, described(tool)) for tool in tools]


def _parameters(tool: ToolSpec) -> dict[str, Any]:
    return dict(tool.schema if tool.schema is not None else _EMPTY)


def _openai(tool: ToolSpec, description: str) -> dict[str, Any]:
    function = {
        "name": wire_name(tool.name),
        "description": description,
        "parameters": _parameters(tool),
    }
    return {"type": "function", "function": function}


def _openai_responses(tool: ToolSpec, description: str) -> dict[str, Any]:
    return {
        "type": "function",
        "name": wire_name(tool.name),
        "description": description,
        "parameters": _parameters(tool),
        "strict": False,  # undeclared means strict there, which forbids optional parameters
    }


def _anthropic(tool: ToolSpec, description: str) -> dict[str, Any]:
    return {
        "name": wire_name(tool.name),
        "description": description,
        "input_schema": _parameters(tool),
    }


def _mcp(tool: ToolSpec, description: str) -> dict[str, Any]:
    hints = {
        "readOnlyHint": tool.read_only,
        "idempotentHint": tool.idempotent,
        "destructiveHint": tool.destructive,
    }
    said = {name: value for name, value in hints.items() if isinstance(value, bool)}
    shown: dict[str, Any] = {
        "name": tool.name,
        "description": description,
        "inputSchema": _parameters(tool),
    }
    return {**shown, "annotations": said} if said else shown


_DESCRIPTIONS: Mapping[str, Callable[[ToolSpec, str], dict[str, Any]]] = {
    "openai": _openai,
    "openai_responses": _openai_responses,
    "anthropic": _anthropic,
    "mcp": _mcp,
}


# What the model asks for


def openai_calls(given: Any) -> list[Asked]:
    """The calls of ``message.tool_calls`` (or of the message, or None), in order."""
    return [_openai_call(item) for item in _items(given, "tool_calls")]


def _openai_call(item: Any) -> Asked:
    call_id = text_of(item, "id")
    custom = part(item, "custom")
    if custom is not None and part(item, "function") is None:
        return Asked(call_id, text_of(custom, "name"), text_of(custom, "input"), True)
    function = part(item, "function")
    return Asked(call_id, text_of(function, "name"), _raw(part(function, "arguments")))


def responses_calls(given: Any) -> list[Asked]:
    """The function calls among ``response.output`` (or of the response); what the provider runs
    itself (web search and the like) is none of ours."""
    found = []
    for item in _items(given, "output"):
        kind = part(item, "type")
        if kind == "function_call":
            raw = _raw(part(item, "arguments"))
            found.append(Asked(text_of(item, "call_id"), text_of(item, "name"), raw))
        elif kind == "custom_tool_call":
            raw = text_of(item, "input")
            found.append(Asked(text_of(item, "call_id"), text_of(item, "name"), raw, True))
    return found


def anthropic_calls(given: Any) -> list[Asked]:
    """The ``tool_use`` blocks of ``message.content`` (or of the message)."""
    return [
        Asked(text_of(block, "id"), text_of(block, "name"), _raw(part(block, "input")))
        for block in _items(given, "content")
        if part(block, "type") == "tool_use"
    ]


def _items(given: Any, name: str) -> Iterator[Any]:
    """The list itself, or the one that a message holds under `name`."""
    if given is None or isinstance(given, str):
        return
    if isinstance(given, Mapping) or not isinstance(given, Sequence):
        given = part(given, name)
        if given is None or isinstance(given, str):
            return
        if not isinstance(given, Sequence):
            raise UsageError(f"give the list of {name}, or what holds it, not {type(given)}")
    yield from given


def part(item: Any, name: str) -> Any:
    """A member of plain data, or an attribute of an SDK's object; None where there is none."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def text_of(item: Any, name: str) -> str:
    """`part` as text: "" for None."""
    value = part(item, name)
    return "" if value is None else str(value)


def _raw(arguments: Any) -> str | Mapping[str, Any]:
    """Text or object as it came; nothing at all means no arguments."""
    if isinstance(arguments, Mapping):
        return arguments
    return str(arguments) if arguments else "{}"


# What it is answered


@record
class Reply:
    """The answer to one tool call: the text for the model, and whether it failed."""

    asked: Asked
    text: str
    failed: bool


def openai_replies(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """One ``tool`` message for each call. There is no flag for failure: the text says it first."""
    return [
        {"role": "tool", "tool_call_id": reply.asked.id, "content": reply.text} for reply in replies
    ]


def responses_replies(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """One output item for each call, to be appended to the next request's ``input``."""
    return [
        {
            "type": "custom_tool_call_output" if reply.asked.custom else "function_call_output",
            "call_id": reply.asked.id,
            "output": reply.text,
        }
        for reply in replies
    ]


def anthropic_replies(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """One ``user`` message with a result block for each call: none may be missing, nor stand in a
    second message."""
    blocks = []
    for reply in replies:
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": reply.asked.id,
            "content": reply.text or "-",
        }
        if reply.failed:
            block["is_error"] = True
        blocks.append(block)
    return [{"role": "user", "content": blocks}] if blocks else []
