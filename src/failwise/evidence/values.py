"""What a tool returned: a response, a tool result of MCP, a body, a text."""

from collections.abc import Mapping
from typing import Any

from failwise.evidence.bodies import read_body
from failwise.evidence.bounds import bounded
from failwise.evidence.facts import Evidence
from failwise.evidence.responses import attribute, from_response, is_response, use_body
from failwise.evidence.texts import from_text
from failwise.evidence.waits import told_waits
from failwise.vocabulary.records import MAPPING, UNSET, Unset
from failwise.vocabulary.result import ToolResult

_CONTENT_ITEMS = 64


def from_value(
    value: object, *, tool_expects_json: bool = False, now: float | None = None
) -> Evidence:
    """The facts of any returned value: never raises.

    Responses of HTTP clients are read as such; tool results of MCP (objects of its SDKs, and plain
    data with ``isError``/``is_error`` beside a list ``content``) give `is_error`, the joined text,
    and the body (structured content, else JSON found in the text). A mapping or list is the body
    itself. A text is kept as text, and parsed where it is JSON; it is not taken apart, for it may
    well speak of errors without being one: `from_text` does that when the caller wants it.
    """
    if isinstance(value, ToolResult):
        return Evidence(source="value", inner=value)
    if isinstance(value, MAPPING):
        found = _mcp_of_mapping(value)
        if found is not None:
            return _from_mcp(*found, now=now)
        return Evidence(
            source="value",
            body=value,
            waits=told_waits({}, value, None, now=now),
            expects_json=tool_expects_json,
        )
    if isinstance(value, (str, bytes, bytearray)):
        return _from_body(value, tool_expects_json, now)
    if value is None or isinstance(value, (int, float, list, tuple)):
        body = list(value) if isinstance(value, tuple) else value
        return Evidence(source="value", body=body, expects_json=tool_expects_json)
    if is_response(value):
        return from_response(value, now=now, expects_json=tool_expects_json)
    flag = attribute(value, "isError", "is_error")
    content = attribute(value, "content")
    if isinstance(flag, bool) and isinstance(content, list):
        structured = attribute(value, "structured_content", "structuredContent")
        return _from_mcp(flag, content, structured, now=now)
    dump = attribute(value, "model_dump")
    if callable(dump) and attribute(type(value), "model_fields") is not None:
        try:
            return Evidence(source="value", body=dump(), expects_json=tool_expects_json)
        except Exception:
            return Evidence(source="value", expects_json=tool_expects_json)
    return Evidence(source="value", expects_json=tool_expects_json)


def _from_body(value: str | bytes | bytearray, expects_json: bool, now: float | None) -> Evidence:
    content = value if isinstance(value, str) else bytes(value)
    evidence = Evidence(source="value", expects_json=expects_json, length_got=len(content))
    use_body(evidence, read_body(content, expects_json=expects_json))
    if isinstance(evidence.body, MAPPING):
        found = _mcp_of_mapping(evidence.body)
        if found is not None:
            return _from_mcp(*found, now=now)
        evidence.waits = told_waits({}, evidence.body, None, now=now)
    return evidence


def _mcp_of_mapping(value: Mapping[Any, Any]) -> tuple[bool, list[Any], Any] | None:
    """Flag, content and structured content of an MCP tool result, bare or inside JSON-RPC."""
    inner = value.get("result")
    if "jsonrpc" in value and isinstance(inner, MAPPING):
        value = inner
    content = value.get("content")
    flag = value.get("isError", value.get("is_error"))
    if not isinstance(flag, bool) or not isinstance(content, list):
        return None
    return flag, content, value.get("structuredContent", value.get("structured_content"))


def _from_mcp(flag: bool, content: list[Any], structured: Any, *, now: float | None) -> Evidence:
    texts = []
    for item in content[:_CONTENT_ITEMS]:
        text = item.get("text") if isinstance(item, MAPPING) else attribute(item, "text")
        if isinstance(text, str):
            texts.append(text)
    text = "\n".join(texts)
    if flag:
        evidence = from_text(text, now=now)
        evidence.source, evidence.is_error = "value", True
    else:
        evidence = Evidence(source="value", text=bounded(text) or None)
        reading = read_body(text)
        evidence.body, evidence.title = reading.value, reading.title
    if isinstance(structured, MAPPING) and structured:
        evidence.body = structured
    if isinstance(evidence.body, Unset) and not flag:
        evidence.body = UNSET
    return evidence
