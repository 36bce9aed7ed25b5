"""Recurring shapes of error bodies, recognised without a profile.

The numbers are those of the shape list (S1 to S24). A shape says where code, message and parameter
stand, and whether it is a failure by itself: under a 2xx only what has two marks is one, since
`error: null`, ``errcode 0`` and data that is *about* errors are successes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from failwise.classify.batches import batch, errors_list, list_shape
from failwise.classify.calls import call_record
from failwise.classify.envelopes import (
    code_and_message,
    errcode,
    error_object,
    not_ok,
    status_field,
)
from failwise.classify.names import renamed
from failwise.classify.shape import (
    REQUEST_ID_NAMES,
    Body,
    Shape,
    as_status,
    empty,
    first_text,
    good_code,
    good_message,
    has_answer,
    is_bad,
    message_of,
    only_echoes,
    only_envelope,
    parsed,
    plain,
)
from failwise.vocabulary.records import MAPPING

_WRAPPERS: Final = (
    "Response",
    "ResponseMetadata",
    "fault",
    "Fault",
    "ErrorResponse",
    "errorResponse",
    "error_response",
    "base_resp",
    "baseResp",
    "BaseResp",
    "respHeader",
)
_WRAPPER_NAMES: Final = frozenset(_WRAPPERS)
_AROUND: Final = ("response", "rsp", "msgheader")
"""How the name of the one field ends that is put around a whole answer."""
_DEPTH: Final = 4


def recognise(body: Any, status: int | None) -> Shape | None:
    """The first shape that fits, wrappers taken off; None where the body says nothing of failing."""
    root = given = unwrap(body)
    if not isinstance(root, MAPPING):
        return list_shape(root, status)
    found = _shape_of(root, status)
    if found is None or found.message is None:
        named = renamed(root)
        if named is not None:
            root = named
            found = _shape_of(root, status) or found
    if found is not None and found.failed and found.message is None:
        found.message = _message_within(root)
    return (
        found or _carried(root, status) or (_carried(given, status) if root is not given else None)
    )


def _message_within(root: Body) -> str | None:
    """What a head, or the data, says where the root only says that it failed."""
    for name in (*_HEADS, *_CARRIERS):
        inner = root.get(name)
        if not isinstance(inner, MAPPING):
            continue
        error = inner.get("error")
        inner = error if isinstance(error, MAPPING) else inner
        if told := message_of(renamed(inner) or inner):
            return told
    return None


def _shape_of(root: Body, status: int | None) -> Shape | None:
    for shape in _SHAPES:
        found = shape(root, status)
        if found is not None:
            if found.request_id is None:
                found.request_id = first_text(root, REQUEST_ID_NAMES)
            return found
    return None


_OUTCOMES: Final = frozenset({"S4", "S5", "S6", "S7"})
_CARRIERS: Final = ("data", "result", "response", "body", "Data", "Result")
_HEADS: Final = (
    "header", "head", "Header", "Head", "meta", "status", "responseStatus", "responseHeader", "status_info", "statusInfo", "error_info", "errorInfo",
)  # fmt: skip


def _carried(root: Body, status: int | None) -> Shape | None:
    """S14: an envelope around what tells how it ended: a head beside the data, an answer as JSON
    text, or data that is nothing but an error code. Any other object is data."""
    for name in _HEADS:
        inner = root.get(name)
        if inner and isinstance(inner, MAPPING) and only_echoes(renamed(inner) or inner):
            found = _ended(inner, sure=False)
            if found is not None:
                return found
            found = _numbered(root, name, inner)
            if found is not None:
                return found
    own = as_status(root.get("status")) or as_status(root.get("code"))
    for name in _CARRIERS:
        held = root.get(name)
        if not held:
            continue
        if isinstance(held, str) and held.startswith("{"):
            inner, names = parsed(held), _OUTCOMES
        elif _succeeded(root):
            continue
        else:
            inner, names = held, _EXPLICIT
        if (
            isinstance(inner, MAPPING)
            and only_echoes({**root, name: None, "extra": None})
            and (own is not None or only_echoes(inner))
        ):
            alone = len(root) == 1 and inner.keys() <= _NUMBERED
            found = _ended(inner, _OUTCOMES if alone else names) if only_echoes(inner) else None
            if found is not None:
                return found
            told = message_of(renamed(inner) or inner) if own is not None else None
            if told is not None:
                return Shape("S8", True, str(own), told, status=own)
    return None


def _numbered(root: Body, name: str, head: Body) -> Shape | None:
    """S6: the number stands at the root, and what it means in the head beside it."""
    number, told = root.get("status", root.get("code")), message_of(renamed(head) or head)
    if not isinstance(number, int) or isinstance(number, bool) or told is None:
        return None
    if good_code(number) or good_message(told) or not only_echoes({**root, name: None}):
        return None
    return Shape("S6", True, str(number), told, status=as_status(number))


_EXPLICIT: Final = frozenset({"S5"})
_NUMBERED: Final = frozenset({"code", "message", "msg", "data"})
"""An object of these, alone under its root, is the whole answer."""


def _succeeded(root: Body) -> bool:
    """Does an object say outright that it is a success?"""
    return (
        any(root.get(name) in (0, 200) and root.get(name) is not False for name in _ENDS)
        or any(root.get(name) is True for name in ("success", "ok", "Success"))
        or any(root.get(name) is False for name in ("error", "isError"))
    )


_ENDS: Final = ("code", "errcode", "ret", "retcode", "err_no", "error_code", "errorCode", "errno")


def _ended(inner: Body, names: frozenset[str] = _OUTCOMES, *, sure: bool = True) -> Shape | None:
    """What an object says of how it ended; in a head (not `sure`) a code that is no success is enough."""
    found = _shape_of(inner, None) or _shape_of(renamed(inner) or {}, None)
    if found is None or found.name not in names:
        return None
    if not sure and found.failed is None and found.code and found.message:
        found.failed = True
    return found if found.failed is True else None


def _coded_texts(root: Body, status: int | None) -> Shape | None:
    """S5: ``ret`` is a list of texts ``CODE::message``."""
    listed = root.get("ret")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, str) or "::" not in first:
        return None
    code, _, message = first.partition("::")
    return (
        None
        if code.upper().startswith(("SUCCESS", "OK"))
        else Shape("S5", True, code[:120], message[:2_000])
    )


_CALLED: Final = re.compile(r"\w{2,40}(?:[.:]\w{1,40}){0,3}:fail(?![a-z])", re.ASCII)


def _called(root: Body, status: int | None) -> Shape | None:
    """S5, as mini programs have it: ``errMsg`` is ``request:fail timeout``; it is ``request:ok`` else."""
    told = root.get("errMsg")
    if isinstance(told, str) and _CALLED.match(told):
        return Shape("S5", True, first_text(root, ("errCode", "errno")), told[:2_000])
    return None


def unwrap(body: Any, depth: int = 0) -> Any:
    """S14: the known wrappers off: one key, a one-element list, text that is JSON itself."""
    if depth >= _DEPTH:
        return body
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], MAPPING):
        marks = body[0].keys() & {"error", "errorCode", "Error"}
        return unwrap(body[0], depth + 1) if marks else body
    if isinstance(body, str):
        inner = parsed(body)
        return unwrap(inner, depth + 1) if inner is not None else body
    if not isinstance(body, MAPPING):
        return body
    for name in () if _WRAPPER_NAMES.isdisjoint(body) else _WRAPPERS:
        inner = body.get(name)
        if isinstance(inner, MAPPING):
            error = inner.get("Error", inner.get("error"))
            if isinstance(error, list) and error:
                error = error[0]
            return error if isinstance(error, MAPPING) else unwrap(inner, depth + 1)
    if len(body) == 1 and isinstance(body.get("json"), MAPPING):
        return unwrap(body["json"], depth + 1)
    for name, inner in body.items():
        if not isinstance(name, str) or not isinstance(inner, MAPPING):
            continue
        if name.endswith("_response") or (len(body) == 1 and name.lower().endswith(_AROUND)):
            return unwrap(inner, depth + 1)
    if len(body) == 2 and "error" in body and body.get("response"):
        inner = parsed(body["response"]) if isinstance(body["response"], str) else body["response"]
        return unwrap(inner, depth + 1) if isinstance(inner, (dict, list, Mapping)) else body
    return body


def _oauth(root: Body, status: int | None) -> Shape | None:
    """S3: ``error`` is a word, with a description."""
    error = root.get("error")
    if (
        isinstance(error, str)
        and re.fullmatch(r"[A-Za-z][\w.]{2,60}", error)
        and ("error_description" in root or "error_uri" in root)
    ):
        return Shape("S3", True, error, first_text(root, ("error_description",)) or error)
    return None


def _problem(root: Body, status: int | None) -> Shape | None:
    """S9: RFC 9457 problem details."""
    if (
        "title" in root
        and isinstance(root.get("status"), int)
        and ({"type", "detail", "instance"} & root.keys())
    ):
        if not is_bad(root["status"]):
            return None
        kind = plain(root.get("type"))
        code = plain(root.get("code")) or (kind if kind != "about:blank" else None)
        return Shape("S9", True, code, first_text(root, ("detail", "title")), status=root["status"])
    return None


_PROXY: Final = frozenset(
    {"statusCode", "headers", "body", "isBase64Encoded", "multiValueHeaders", "cookies"}
)


def _proxied(root: Body, status: int | None) -> Shape | None:
    """S14: an answer kept whole, as proxy functions hand it on: its own status decides."""
    own = as_status(root.get("statusCode")) if "body" in root else None
    if own is None or not root.keys() <= _PROXY:
        return None
    body = root["body"]
    inner = parsed(body) if isinstance(body, str) else body
    found = recognise(inner, own) if isinstance(inner, (dict, list, Mapping)) else None
    if found is None:
        return Shape("S14", True, None, plain(body), status=own)
    return Shape("S14", True, found.code, found.message, found.parameter, status=own)


def _tool_result(root: Body, status: int | None) -> Shape | None:
    """S18: a tool result inside JSON-RPC that says of itself that it is an error."""
    result = root.get("result")
    if (
        "jsonrpc" not in root
        or not isinstance(result, MAPPING)
        or result.get("isError") is not True
    ):
        return None
    content = result.get("content")
    items = content[:8] if isinstance(content, list) else []
    texts = [plain(item.get("text")) for item in items if isinstance(item, MAPPING)]
    return Shape("S18", True, None, "\n".join(text for text in texts if text) or None)


def _kubernetes(root: Body, status: int | None) -> Shape | None:
    """S19: a Kubernetes Status object."""
    if root.get("kind") == "Status" and root.get("status") == "Failure":
        own = root.get("code")
        return Shape(
            "S19",
            True,
            plain(root.get("reason")),
            plain(root.get("message")),
            status=own if isinstance(own, int) else None,
        )
    return None


def _pay_levels(root: Body, status: int | None) -> Shape | None:
    """S16: two levels, of which either may fail."""
    if "return_code" in root and _STREAMS.isdisjoint(root):
        levels = (root.get("return_code"), root.get("result_code", "SUCCESS"))
        if any(str(level) != "SUCCESS" for level in levels):
            return Shape(
                "S16",
                True,
                first_text(root, ("err_code",)),
                first_text(root, ("err_code_des", "return_msg")),
            )
    return None


_STREAMS: Final = frozenset({"stdout", "stderr"})
"""Beside these a `return_code` is a program's own."""


def _holds(value: Any) -> bool:
    return isinstance(value, (list, *MAPPING)) and bool(value)


def _named_error(root: Body, status: int | None) -> Shape | None:
    """S7: the object calls itself an error (``"object": "error"``), and says which; or it is the
    exception of a function in a cloud (``errorType``, ``errorMessage`` and a trace)."""
    message = message_of(root)
    held = root.get("content")
    if isinstance(held, MAPPING) and "error_code" in held and _is_result(root.get("type")):
        code = plain(held["error_code"])
        return Shape("S7", True, code, message_of(held) or f"service {code}")
    if message is not None and root.keys() <= _FUNCTION_FAILED and "errorType" in root:
        return Shape("S7", True, plain(root["errorType"]), message)
    if message is None or root.get("object") != "error":
        return None
    own = as_status(root.get("status")) or as_status(root.get("code"))
    return Shape("S7", True, first_text(root, ("code", "error_code")), message, status=own)


def _is_result(kind: Any) -> bool:
    """The result of a tool that a model's server runs, by its type."""
    return isinstance(kind, str) and kind.endswith("_tool_result")


_MODEL_OBJECTS: Final = frozenset({"response", "thread.run"})
_NOT_ENDED: Final = frozenset({"failed", "incomplete", "expired"})


def _model_ended(root: Body, status: int | None) -> Shape | None:
    """S7: a model's response, or its run, that came to no good end: why stands in `last_error`,
    `error` or `incomplete_details`."""
    kind, state = root.get("object"), root.get("status")
    if not isinstance(kind, str) or kind not in _MODEL_OBJECTS or state not in _NOT_ENDED:
        return None
    why = root.get("last_error") or root.get("error") or root.get("incomplete_details")
    if not isinstance(why, MAPPING):
        return None
    message = message_of(why)
    if state == "incomplete" and message is not None:
        message = f"the output is incomplete due to {message}"
    return Shape("S7", True, first_text(why, ("code",)), message)


_FUNCTION_FAILED: Final = frozenset(
    {"errorMessage", "errorType", "stackTrace", "trace", "requestId", "cause"}
)
_ERROR_TEXTS: Final = ("error", "Error", "Error Message", "errorMessage", "sandbox_error")


def _error_text(root: Body, status: int | None) -> Shape | None:
    """S13: a bare text, and a bare number, under ``error``, ``message`` or ``detail``."""
    error: Any = next((root[name] for name in _ERROR_TEXTS if name in root), None)
    if error is None and "exit_code" in root:
        error = root.get("stderr")
    text = plain(error)
    if text is None and isinstance(error, list) and error:
        text = plain(error[0])
    own = None if isinstance(error, str) else as_status(error)
    if is_bad(status):
        message = message_of(root)
        code = first_text(root, ("code", "errorCode", "type", "reason"))
        if text and (message is None or len(text) > len(message) or message == text):
            message, code = text, code or message
        elif text:
            code = code or text
        if message is None and code is None:
            return None
        return Shape("S13", None, code, message, status=own)
    if text and not good_message(text) and text.lower() not in ("none", "null", "false", "0", "no"):
        beside = {
            name: value
            for name, value in root.items()
            if name not in _ERROR_TEXTS and name != "exit_code" and not _is_machine_word(value)
        }
        told = as_status(root.get("code"))
        scalars = told is not None and not any(map(_holds, beside.values()))
        if (
            (only_envelope(beside) or scalars)
            and empty(root.get("data"))
            and empty(root.get("response"))
            and empty(root.get("result"))
        ):
            numbered = own is not None or text.lstrip("-").isdecimal()
            message = message_of(root) if numbered else None
            code = first_text(root, ("code", "type"))
            if own is None and message:
                code = code or text
            return Shape("S13", True, code, message or text, status=own or told)
    flags = [
        name for name, value in root.items() if value is False and str(name).endswith("_status")
    ]
    if flags and only_envelope(root):
        return Shape("S7", True, None, message_of(root) or f"{flags[0]}: false")
    code = root.get("exit_code", root.get("returncode", root.get("exitCode")))
    if code is None and not _STREAMS.isdisjoint(root):
        code = root.get("return_code")
    if isinstance(code, int) and not isinstance(code, bool) and code != 0:
        output = first_text(root, ("stderr", "sandbox_error", "error", "output", "stdout"))
        return Shape("S13", True, f"exit {code}", output or f"exit code {code}")
    return None


_MACHINE_WORD: Final = re.compile(r"[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,8}")


def _is_machine_word(value: Any) -> bool:
    """Is it a code by its form (``NO_MORE_CREDITS``), whatever its name?"""
    return isinstance(value, str) and _MACHINE_WORD.fullmatch(value) is not None


def _message_alone(root: Body, status: int | None) -> Shape | None:
    """S13 under a 2xx: nothing but a message; it fails only if its text says so. A list of the
    service's own, though empty, is an answer."""
    message = message_of(root)
    if message is None or _succeeded(root) or is_bad(status) or len(root) > 3:
        return None
    if not only_envelope(root, _MESSAGE_ONLY) or has_answer(root):
        return None
    return Shape("S13", None, None, message)


_MESSAGE_ONLY: Final = frozenset(
    {
        "message",
        "msg",
        "detail",
        "info",
        "status",
        "code",
        "timestamp",
        "request_id",
        "error",
        "error_message",
        "redirect",
        "redirect_url",
        "redirecturl",
        "login_url",
        "loginurl",
    }
)


_SHAPES: Final[tuple[Callable[[Body, int | None], Shape | None], ...]] = (
    _kubernetes,
    _proxied,
    _tool_result,
    batch,
    _problem,
    _oauth,
    not_ok,
    error_object,
    _named_error,
    _model_ended,
    errors_list,
    _coded_texts,
    _called,
    _pay_levels,
    errcode,
    status_field,
    code_and_message,
    _error_text,
    call_record,
    _message_alone,
)


FIELDS: Final = frozenset(
    (
        *_WRAPPERS,
        *_HEADS,
        *_CARRIERS,
        *_ENDS,
        *_ERROR_TEXTS,
        "json",
        "last_error",
        "incomplete_details",
    )
)
"""Fields of the root, beside `KNOWN_NAMES`, that one of these shapes asks for."""
