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
from failwise.classify.standards import (
    STREAMS,
    called,
    coded_texts,
    kubernetes,
    model_ended,
    named_error,
    oauth,
    pay_levels,
    problem,
    tool_result,
)
from failwise.classify.wrappers import WRAPPERS, unwrap
from failwise.vocabulary.records import MAPPING


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
        elif _succeeded(root) and not (isinstance(held, MAPPING) and _only_told(held)):
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


_TOLD: Final = frozenset(
    {"errcode", "errno", "errorno", "errorcode", "errmsg", "errormsg", "errormessage", "errordesc", "requestid", "traceid"}
)  # fmt: skip


def _only_told(inner: Body) -> bool:
    """Is an object nothing but the number of an error and its words? Then it is no answer of a call that went well."""
    return (
        all(str(name).lower().replace("_", "") in _TOLD for name in inner)
        and message_of(inner) is not None
    )


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


def _holds(value: Any) -> bool:
    return isinstance(value, (list, *MAPPING)) and bool(value)


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
    if code is None and not STREAMS.isdisjoint(root):
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
    kubernetes,
    _proxied,
    tool_result,
    batch,
    problem,
    oauth,
    not_ok,
    error_object,
    named_error,
    model_ended,
    errors_list,
    coded_texts,
    called,
    pay_levels,
    errcode,
    status_field,
    code_and_message,
    _error_text,
    call_record,
    _message_alone,
)


FIELDS: Final = frozenset(
    (
        *WRAPPERS,
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
