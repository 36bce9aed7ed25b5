"""MCP's words in the runtime's, and back: what annotations declare, what of a tool's answer is evidence, and
how a call's result goes to a client. For servers and clients alike; needs no MCP package itself.

Source: MCP 2026-07-28, "Tools" (tool results, error handling, `ToolAnnotations`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from failwise.connect.proxy import words
from failwise.vocabulary.result import Language, ToolResult

RECORD: Final = "dev.failwise/result"
"""The key in a result's ``_meta`` that holds the record: failure, attempts, repairs, declarations."""
DECLARED: Final = "failwise"
"""The key in a tool's ``_meta`` under which it may say itself what it declares."""

_BARRED: Final = re.compile(r"[^\w.\-]")
_LONGEST_NAME: Final = 128
_HINTS: Final = {
    "read_only": ("read_only_hint", "readOnlyHint"),
    "idempotent": ("idempotent_hint", "idempotentHint"),
    "destructive": ("destructive_hint", "destructiveHint"),
}


def declared(annotations: Any, *, trusted: bool) -> dict[str, bool]:
    """What a tool's annotations declare. Where they are not `trusted`, only what narrows: that it writes,
    that repeating it adds something, that it destroys (MCP: "clients must consider tool annotations to be
    untrusted unless they come from trusted servers")."""
    said: dict[str, bool] = {}
    for option, spellings in _HINTS.items():
        hint = field(annotations, *spellings)
        if isinstance(hint, bool):
            said[option] = hint
    if said.get("read_only"):
        if said.get("destructive") and not trusted:
            del said["read_only"]  # it contradicts itself
        else:
            said.pop("destructive", None)  # means something only where a tool writes
    if not trusted:
        widening = {"read_only": True, "idempotent": True, "destructive": False}
        said = {option: hint for option, hint in said.items() if hint is not widening[option]}
    return said


def field(thing: Any, *spellings: str) -> Any:
    """A field of an SDK's object under the first of its spellings there is, else None. Not all of them are
    asked: where there are two, the second is deprecated."""
    for spelling in spellings:
        if hasattr(thing, spelling):
            return getattr(thing, spelling)
    return None


def judged(answer: Any) -> Any:
    """`evidence` of a tool's result, an SDK's or FastMCP's object."""
    structured = field(answer, "structured_content", "structuredContent")
    flag = field(answer, "is_error", "isError")
    return evidence(getattr(answer, "content", None) or (), structured, flag is True)


def tool_name(name: str) -> str:
    """A tool's name as a runtime can have it: MCP allows more than a runtime."""
    return _BARRED.sub("_", name)[:_LONGEST_NAME] or "_"


def evidence(content: Sequence[Any], structured: Any, is_error: bool) -> Any:
    """What of a tool's answer is evidence: its structured content, else its text, as data where it is JSON.

    What SDKs put under one key ``result``, because only objects are allowed, is taken out again.
    """
    texts = [text for item in content if isinstance(text := getattr(item, "text", None), str)]
    if is_error:
        return {
            "isError": True,
            "content": [{"type": "text", "text": text} for text in texts],
            "structuredContent": structured,
        }
    if structured is not None:
        if isinstance(structured, Mapping) and structured.keys() == {"result"}:
            return structured["result"]
        return structured
    if len(texts) == 1 and len(content) == 1:
        if texts[0][:1] in ("{", "["):
            try:
                return json.loads(texts[0])
            except (ValueError, RecursionError):
                return texts[0]
        return texts[0]
    return texts if texts and len(texts) == len(content) else None


def structured_for(
    value: Any, schema: Mapping[str, Any] | None
) -> tuple[dict[str, Any] | None, bool]:
    """Structured content for a value that came by another way (a fallback, `verify`), and whether it is
    what `schema`, the tool's output schema, promises."""
    if schema is None:
        return None, True
    from failwise.vocabulary.plain import as_json

    try:
        plain = json.loads(as_json(value))
    except (TypeError, ValueError, RecursionError):
        return None, False
    import jsonschema_rs

    for form in (plain, {"result": plain}):
        try:
            if isinstance(form, dict) and jsonschema_rs.is_valid(dict(schema), form):
                return form, True
        except (ValueError, jsonschema_rs.ReferencingError):
            return None, False
    return None, False


def noteworthy(result: ToolResult[Any]) -> bool:
    """There is more to say of a success than "first try, fine"."""
    return bool(result.attempts or result.repairs or result.degraded_to)


def note(result: ToolResult[Any], lang: Language) -> str:
    """What a success owes the model to know: a correction of its arguments, a substitute; else empty."""
    return words.note(result, lang)


def record(result: ToolResult[Any]) -> dict[str, Any]:
    """The record for programs: without the value, attempts in short."""
    data = result.to_dict()
    for name in ("value", "raw_response", "schema"):
        del data[name]
    data["attempts"] = [
        {
            "number": attempt.number,
            "started": attempt.started,
            "duration_ms": attempt.duration_ms,
            "code": attempt.failure.code if attempt.failure else None,
            "http_status": attempt.failure.http_status if attempt.failure else None,
            "effect": attempt.failure.effect.value if attempt.failure else None,
            "action": attempt.decision.action.value if attempt.decision else None,
            "delay": attempt.decision.delay if attempt.decision else None,
        }
        for attempt in result.attempts
    ]
    return {name: value for name, value in data.items() if value not in (None, [], {}, "")}


class Passed(Exception):
    """A signal of the framework's, on its way through the runtime: what a tool raised (`error`), or gave
    (`value`), that is no outcome of its work."""

    def __init__(self, *, error: BaseException | None = None, value: Any = None) -> None:
        super().__init__("control flow of the framework")
        self.error, self.value = error, value

    def out(self) -> Any:
        """Go on with it: raise it, or give it."""
        if self.error is not None:
            raise self.error
        return self.value
