"""What the runner of a tool puts around its answer, opened: the answer inside is what is judged.

Runs of agents keep the results of tools as somebody's client printed them (``meta=None
content=[TextContent(...)] isError=False``), behind a status (``Status Code: 200. Response: ...``), beside
an ``error`` that is always there (``{"error": "", "response": ...}``), or as blocks of content.
"""

import re
from typing import Any, Final

from failwise.classify.shape import only_envelope, parsed
from failwise.evidence.literals import printed_string, printed_value
from failwise.vocabulary.records import MAPPING, record

_LOOKED_AT: Final = 65_536
_BLOCKS: Final = 20
_PRINTED: Final = re.compile(
    r"\s{0,8}(?:meta=|content=\[|CallToolResult\(|ToolResult\(|\[?TextContent\()", re.ASCII
)
_TEXT: Final = re.compile(r"TextContent\((?:type='text', )?text=(?=[\"'])")
_CUT: Final = re.compile(
    r"\s{0,8}\{\s{0,8}(?:\"_?meta\": (?:null|\{\}),\s{0,8})?\"content\":\s{0,8}\[\s{0,12}\{\s{0,12}\"type\":\s{0,4}\"text\",\s{0,12}\"text\":\s{0,4}(?=\")"
)
_LISTED: Final = 600
_FLAG: Final = re.compile(r"is_?[eE]rror=(True|False)")
_INTRODUCED: Final = re.compile(
    r"\s{0,8}(?:\[[\w ]{1,40} for '[^'\n]{1,200}'\] Result:|(?:Command|Tool|Function) [\w.-]{1,60} returned:|(?:The )?(?:output|result) of the (?:OS|command|tool):|#{1,4} Result(?=\n)|Observation:(?=\s)|(?:Tool|Function) (?:result|output|response):(?=\s)|(?:HTTP )?(?:Response )?Status(?:[ _]?Code)?[:= ]{1,2}2\d\d[.,;]?\s{1,2}(?:Response|Body|Content|Text|Data)(?: body)?[:=])\s{0,8}",
    re.IGNORECASE,
)
_RECORD: Final = re.compile(
    r"\s{0,8}\[?(?:McpSchema\.)?TextContent[\[(](?:type=\w{1,12}, )?audience=[^,\n]{1,40}, priority=[^,\n]{1,12}, text=",
    re.ASCII,
)
"""A block of content as Java prints a record."""
_RECORD_END: Final = re.compile(r"(?:, meta=[^\n]{0,40})?[\])]{1,3}\s{0,4}\Z")
_MESSAGE: Final = re.compile(r"\s{0,8}(?:ToolMessage\()?content=(?=[\"'])")
_MESSAGE_REST: Final = re.compile(
    r",?\s(?:name|tool_call_id|status|additional_kwargs|response_metadata|id|artifact)="
)
_WRAPPED: Final = re.compile(
    "|".join(f"(?:{either.pattern})" for either in (_PRINTED, _MESSAGE, _INTRODUCED, _RECORD)),
    re.IGNORECASE,
)
_CARRIERS: Final = ("result", "response", "output", "observation", "tool_output", "tool_result", "return_value")  # fmt: skip
_BLOCK: Final = frozenset({"type", "text", "annotations", "_meta", "meta", "id", "index"})
_RESULT: Final = frozenset({"content", "_meta", "meta", "structuredContent"})
_TOOL_MESSAGE: Final = frozenset({"role", "name", "tool", "tool_name", "tool_call_id", "tool_use_id", "call_id", "id", "content"})  # fmt: skip
_FLAGGED_MESSAGE: Final = _TOOL_MESSAGE | {"error", "requestor", "timestamp", "turn_idx"}
_CALL: Final = frozenset({"params", "arguments", "args", "input", "tool", "toolName", "server", "name", "id", *_CARRIERS})  # fmt: skip
_GENERAL: Final = re.compile(r"\s{0,4}(?:message )?error[.… ]{0,6}", re.IGNORECASE)
"""Errors that say only that there may be one: the answer beside them knows better."""


@record
class Opened:
    """The answer of the tool itself, and what its runner said beside it.

    `error`: the runner's own word that it failed, which counts unless the answer is a good one. `strict`:
    the answer may be any text, and has failed only where it has the form of a failure.
    """

    value: Any
    error: str | None = None
    strict: bool = False


def opened_text(text: str) -> Opened | None:
    """The answer inside a printed one; None where nothing is put around it."""
    if _PRINTED.match(text):
        return _printed(text[:_LOOKED_AT])
    if _CUT.match(text):
        return _cut_off(text[:_LOOKED_AT])
    record = _RECORD.match(text)
    if record is not None:
        return Opened(_RECORD_END.sub("", text[record.end() :][:_LOOKED_AT]))
    if text.startswith("[") and len(text) <= _LISTED:
        return _listed(text)
    if _MESSAGE.match(text):
        return _message(text[:_LOOKED_AT])
    introduced = _INTRODUCED.match(text)
    if introduced is None or introduced.end() == len(text):
        return None
    return Opened(text[introduced.end() :])


def _message(text: str) -> Opened | None:
    """A tool's message as LangChain prints it."""
    found = _MESSAGE.match(text)
    assert found is not None
    content, place = printed_string(text, found.end())
    if not _MESSAGE_REST.match(text, place):
        return None
    failed = "status='error'" in text[place : place + 2_000]
    return Opened({"content": [{"type": "text", "text": content}], "isError": failed})


def _cut_off(text: str) -> Opened | None:
    """The result of an MCP tool of which the end is missing: its first block, as far as it goes."""
    if parsed(text) is not None:
        return None
    found = _CUT.match(text)
    assert found is not None
    return Opened(printed_string(text, found.end())[0])


def _listed(text: str) -> Opened | None:
    """A short printed list of nothing but texts: errors, if it begins with one."""
    items = printed_value(text.strip())
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        return None
    return Opened("\n".join(items), strict=True)


def is_wrapped(text: str) -> bool:
    """May somebody have put something around the answer in a text?"""
    return text[:1] in ("[", "{") or _WRAPPED.match(text) is not None


def opened_body(body: Any) -> Opened | None:
    """The answer inside an object or a list; None where it is the answer itself."""
    if isinstance(body, MAPPING):
        if len(body) == 2 and "response" in body and "error" in body:
            return _beside_error(body["error"], body["response"])
        if len(body) == 2 and body.get("success") is True:
            told = _flagged_within(body)
            if told is not None:
                return Opened(told)
        if len(body) == 1:
            name, held = next(iter(body.items()))
            if name in _CARRIERS and held and isinstance(held, (str, *MAPPING)):
                inner = parsed(held) if isinstance(held, str) else None
                return Opened(
                    held if inner is None else inner, strict=isinstance(held, str) and inner is None
                )
        if (
            body.get("type") == "text"
            and isinstance(body.get("text"), str)
            and body.keys() <= _BLOCK
        ):
            return Opened(body["text"])
        if isinstance(body.get("content"), str) and len(body) > 1:
            if body.keys() <= _TOOL_MESSAGE:
                return Opened(body["content"], strict=True)
            if body.keys() <= _FLAGGED_MESSAGE and isinstance(body.get("error"), bool):
                block = {"type": "text", "text": body["content"]}
                return Opened({"content": [block], "isError": body["error"]})
        if isinstance(body.get("content"), list) and isinstance(_flag(body), bool):
            return Opened(dict(body))
        kept = _kept_call(body)
        if kept is not None:
            return Opened(kept)
        held = body.get("content")
        if (
            isinstance(held, list)
            and body.keys() <= _RESULT
            and 0 < len(held) <= _BLOCKS
            and all(map(_is_block, held))
        ):
            return Opened("\n".join(block["text"] for block in held))
    elif isinstance(body, list) and len(body) == 1 and _is_outcome(body[0]):
        return Opened(dict(body[0]))
    elif isinstance(body, list) and 0 < len(body) <= _BLOCKS and all(map(_is_block, body)):
        return Opened("\n".join(block["text"] for block in body))
    elif isinstance(body, list) and len(body) == 1 and isinstance(body[0], MAPPING):
        inner = body[0].get("result") if len(body[0]) == 1 else None
        if isinstance(inner, MAPPING) and isinstance(_flag(inner), bool):
            return Opened(dict(inner))
    return None


def _flag(body: Any) -> Any:
    return body.get("isError", body.get("is_error"))


def _flagged_within(body: Any) -> dict[str, Any] | None:
    """The result of an MCP tool that failed, in a field of a runner that calls its own part a success."""
    for name in _CARRIERS:
        held = body.get(name)
        inner = parsed(held) if isinstance(held, str) else held
        if (
            isinstance(inner, MAPPING)
            and _flag(inner) is True
            and isinstance(inner.get("content"), list)
        ):
            return dict(inner)
    return None


def _kept_call(body: Any) -> dict[str, Any] | None:
    """The result of an MCP tool that a client keeps beside the arguments it sent."""
    if len(body) < 2 or not body.keys() <= _CALL:
        return None
    for name in _CARRIERS:
        held = body.get(name)
        if isinstance(held, MAPPING) and isinstance(held.get("content"), list):
            return dict(held)
    return None


def _is_outcome(item: Any) -> bool:
    """Does the only element of a list say how the call ended, and nothing else?"""
    return (
        isinstance(item, MAPPING)
        and len(item) > 1
        and (
            any(isinstance(item.get(name), bool) for name in ("status", "success", "ok"))
            or (isinstance(item.get("errcode"), int) and isinstance(item.get("errmsg"), str))
        )
        and only_envelope(item)
    )


def _is_block(item: Any) -> bool:
    return (
        isinstance(item, MAPPING)
        and item.get("type") == "text"
        and isinstance(item.get("text"), str)
        and item.keys() <= _BLOCK
    )


def _printed(text: str) -> Opened | None:
    """The result of an MCP tool as a client prints it; one that was cut off is read as far as it goes."""
    blocks: list[dict[str, str]] = []
    place = 0
    while len(blocks) < _BLOCKS:
        found = _TEXT.search(text, place)
        if found is None:
            break
        block, place = printed_string(text, found.end())
        blocks.append({"type": "text", "text": block})
    flags = _FLAG.findall(text, place)
    if not blocks and not flags:
        return None
    return Opened({"content": blocks, "isError": flags[-1:] == ["True"]})


def _beside_error(error: Any, response: Any) -> Opened | None:
    """``{"error": ..., "response": ...}``: the error is empty where the answer is one."""
    text = error.strip() if isinstance(error, str) else None
    if isinstance(response, str):
        if not response.strip():
            return None
        inner = parsed(response)
        if inner is None and response.startswith('"') and response.endswith('"'):
            inner = _unquoted(response)
        response = response if inner is None else inner
    if not response or not isinstance(response, (str, list, *MAPPING)):
        return None
    return Opened(response, text or None)


def _unquoted(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError:
        return None


def is_good_beside(error: str, value: Any) -> bool:
    """Is an answer that shows no failure a good one, although its runner said `error` beside it?

    Where that says nothing in particular, any answer of substance is; a message alone is none.
    """
    if isinstance(value, str):
        cut = value.lstrip()[:1] in ("{", "[") and value.rstrip().endswith("...")
        return cut and len(value) > _SUBSTANCE and _GENERAL.fullmatch(error) is not None
    if isinstance(value, MAPPING):
        return any(held not in (None, "", [], {}, 0, False) for held in value.values()) and not (
            len(value) <= 2 and _MESSAGES.issuperset(map(str, value))
        )
    return bool(value)


_SUBSTANCE: Final = 200
_MESSAGES: Final = frozenset(
    {"message", "msg", "detail", "error", "errors", "info", "messages", "description", "status", "code", "statusCode", "title"}
)  # fmt: skip
FIELDS: Final = frozenset({*_CARRIERS, "content"})
"""Fields of the root that may hold an answer."""
