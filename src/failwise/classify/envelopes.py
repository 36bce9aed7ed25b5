"""Shapes of one object: an error object, a false flag, a code that is no success (S1 to S8, S17)."""

import re
from collections.abc import Mapping
from typing import Final

from failwise.classify.shape import (
    CODE_NAMES,
    MESSAGE_NAMES,
    Body,
    Shape,
    as_status,
    empty,
    first_text,
    good_code,
    good_message,
    is_bad,
    message_of,
    only_echoes,
    only_envelope,
    plain,
)
from failwise.vocabulary.records import MAPPING

FAILED_STATUS: Final = frozenset(
    {"error", "fail", "failed", "failure", "err", "false", "exception", "ng", "失败", "異常", "异常", "错误", "出错", "失敗", "エラー",
     "ko", "nok", "erreur", "échec", "echec", "errore", "fallito", "실패", "오류", "fallido", "falla", "falha", "falhou", "erro", "fehler", "fehlgeschlagen", "ошибка", "неуспешно"}
)  # fmt: skip


_CALL_FAILED: Final = frozenset(
    {"error", "err", "exception", "错误", "出错", "erro", "erreur", "errore", "ko", "nok", "エラー", "오류"}
)  # fmt: skip
"""Of these no job that was read is in such a state: it is the call itself that failed."""
_ERROR_CODES: Final = (
    "code", "Code", "error_code", "errorCode", "err_code", "errCode", "errcode", "error_no", "errno",
)  # fmt: skip


def error_object(root: Body, status: int | None) -> Shape | None:
    """S1, S2, S17: ``error`` is an object."""
    error = root.get("error", root.get("Error"))
    if not error or not isinstance(error, MAPPING):
        return None
    message, details = (
        first_text(error, ("message", "Message", "msg", "reason", "description", "detail"))
        or first_text(error, MESSAGE_NAMES),
        error.get("details"),
    )
    code = first_text(error, _ERROR_CODES)
    if message is None and "traceback" in error:  # what a cell of a notebook raised
        message = first_text(error, ("value", "evalue"))
        code = first_text(error, ("name", "ename"))
    kind = plain(error.get("type")) or plain(error.get("status"))
    name = "S1"
    if "jsonrpc" in root:
        name = "S17"
    elif isinstance(error.get("status"), str) or isinstance(details, list):
        name = "S2"
        reasons = [
            item["reason"]
            for item in details or ()
            if isinstance(item, MAPPING) and plain(item.get("reason"))
        ]
        inner = error.get("errors")
        if not reasons and isinstance(inner, list) and inner and isinstance(inner[0], MAPPING):
            reasons = [inner[0]["reason"]] if plain(inner[0].get("reason")) else []
        code = plain(reasons[0]) if reasons else kind or code
    elif code is None or code.isdigit():
        code = kind or code
    if message is None and code is None:
        return None
    detail = _first_detail(details)
    if message is not None and detail is not None and detail not in message:
        message = f"{message}: {detail}"
    told = error.get("code")
    if told is not None and good_code(told) and (message is None or good_message(message)):
        return None  # an error of code 0: none
    number = error.get("code")
    own = number if isinstance(number, int) and 400 <= number <= 599 else None
    parameter = first_text(error, ("param", "parameter", "field"))
    if kind and code and kind != code and not code.lstrip("-").isdigit():
        message_kind = kind
        return Shape(name, True, code, message or message_kind, parameter, status=own)
    return Shape(name, True, code, message, parameter, status=own)


def _first_detail(details: object) -> str | None:
    """What the first of the details says, as OData has them: the message above is general."""
    if isinstance(details, list) and details and isinstance(details[0], MAPPING):
        return first_text(details[0], ("message",)) if "@type" not in details[0] else None
    return None


_NO: Final = frozenset({"false", "f", "n", "no", "fail", "failed", "否"})


def not_ok(root: Body, status: int | None) -> Shape | None:
    """S4, S7: ``ok`` or ``success`` is false."""
    if root.get("error") is True and message_of(root) is not None:
        return Shape("S7", True, first_text(root, CODE_NAMES), message_of(root))
    for name in ("ok", "success", "Success", "isSuccess", "succeeded", "is_success"):
        if name not in root:
            continue
        value = root[name]
        if (
            value is False
            or (name != "success" and value == 0)
            or (isinstance(value, str) and value.lower() in _NO)
        ):
            error = root.get("error")
            if isinstance(error, MAPPING):
                inner = error_object(root, status)
                if inner is not None:
                    inner.name, inner.failed = "S7", True
                    return inner
            first = root.get("errors")
            source: Body = root
            if isinstance(first, list) and first and isinstance(first[0], MAPPING):
                source = first[0]
            text = plain(error) or plain(root.get("error_code"))
            code = first_text(source, CODE_NAMES) or text
            return Shape(
                "S4" if name == "ok" else "S7",
                True,
                code,
                message_of(source) or message_of(root) or text,
            )
        return (
            None
            if not is_bad(status)
            else Shape("S7", None, first_text(root, CODE_NAMES), message_of(root))
        )
    return None


def errcode(root: Body, status: int | None) -> Shape | None:
    """S5: ``errcode`` and its like are not 0."""
    for name in (
        "errcode",
        "error_code",
        "err_no",
        "errno",
        "retcode",
        "ret_code",
        "ret",
        "errorCode",
        "ErrorCode",
        "err_code",
        "errCode",
    ):
        if name in root and not isinstance(root[name], (dict, list, Mapping)):
            if good_code(root[name]) and str(root[name]) != "1":
                if is_bad(status):
                    return Shape("S5", None, plain(root[name]), message_of(root))
                return _state_failed(root)
            message = message_of(root) or plain(root.get("error"))
            if good_message(message) or (message is None and not only_envelope(root)):
                return None
            return Shape(
                "S5",
                True,
                plain(root.get("sub_code")) or plain(root[name]),
                message,
                status=as_status(root[name]),
            )
    return None


def _state_failed(root: Body) -> Shape | None:
    """S5: the call went well, and its object did not (``"refundStatus": "FAIL"``), with the reason beside it."""
    reason = first_text(root, _ERROR_MESSAGES)
    if reason is None or good_message(reason):
        return None
    for name, value in root.items():
        if (
            isinstance(value, str)
            and str(name).endswith(("Status", "_status"))
            and value.lower() in FAILED_STATUS
        ):
            return Shape("S5", True, None, reason)
    return None


_CODE_FIELDS: Final = (
    "code", "Code", "sub_code", "statusCode", "status_code", "cod", "respCode", "resultCode", "returnCode", "bizCode", "__type",
)  # fmt: skip


_RESULT_CODES: Final = frozenset({"respCode", "resultCode", "returnCode", "bizCode"})
"""Names that no data has: what the caller sent may stand beside them."""


def code_and_message(root: Body, status: int | None) -> Shape | None:
    """S6: ``code`` is not a success value, with a message beside it."""
    for name in _CODE_FIELDS:
        if name not in root:
            continue
        value = root[name]
        if value is None or isinstance(value, (dict, list, bool, Mapping)):
            continue
        code, message = plain(value), message_of(root)
        if message is None and is_bad(status):
            message = plain(root.get("error"))
        if name == "__type" and code:
            code = code.rpartition("#")[2].partition(":")[0]
            return Shape("S15", True, code, message)
        if plain(root.get("sub_code")):
            code = plain(root.get("sub_code"))
        own = as_status(value) or as_status(root.get("status"))
        if is_bad(status):
            return Shape(
                "S6",
                None,
                code,
                message,
                first_text(root, ("param", "parameter", "field")),
                status=own,
            )
        if (
            message is None
            or good_message(message)
            or (good_code(value) and "sub_code" not in root)
        ):
            odd = message is not None and not good_message(message) and code in _OTHER_SUCCESSES
            return Shape("S6", None, code, message) if odd and only_echoes(root) else None
        numeric = isinstance(value, int | float) or (code or "").lstrip("-").isdigit()
        if not numeric and not empty(root.get("data")):
            return None
        if not only_envelope(root):
            if own is not None and _without_answer(root):
                return Shape("S6", True, code, message, status=own)
            if plain(root.get("sub_code")) and not good_code(value) and _only_scalars(root):
                return Shape("S6", True, code, message, status=own)
            if not only_echoes(root):
                return None
            return Shape("S6", True if name in _RESULT_CODES else None, code, message, status=own)
        return Shape("S6", True if numeric or len(root) <= 6 else None, code, message, status=own)
    return None


_OTHER_SUCCESSES: Final = frozenset(str(number) for number in (1, *range(201, 300)))
"""Codes of successes, with which some services number their refusals too: the words decide."""
_HELD: Final = ("data", "result", "Data", "Result")


def _without_answer(root: Body) -> bool:
    """Does an object say that it holds no answer, or say what went wrong, with nothing but scalars beside it?"""
    told = (
        any(name in root and empty(root[name]) for name in _HELD)
        or bool(plain(root.get("error")))
        or root.get("type") in ("error", "fail")
    )
    return told and not any(
        isinstance(value, (list, *MAPPING)) and value for value in root.values()
    )


_ERROR_MESSAGES: Final = (
    "error_msg", "errorMsg", "error_message", "errorMessage", "errmsg", "errMsg", "err_msg",
)  # fmt: skip


def _only_scalars(root: Body) -> bool:
    """Is nothing in it a list or an object with something inside?"""
    return not any(value and isinstance(value, (dict, list, Mapping)) for value in root.values())


def status_field(root: Body, status: int | None) -> Shape | None:
    """S8, S20: a status in the body says that it failed."""
    for name in ("status", "Status", "s", "state", "result", "Result"):
        value = root.get(name)
        if value is None or isinstance(value, (dict, list, Mapping)):
            continue
        message = message_of(root) or plain(root.get("error"))
        code = first_text(
            root, ("infocode", "code", "errorType", "category", "error_code")
        ) or plain(value)
        if isinstance(value, str) and value.lower() in FAILED_STATUS:
            called = value.lower() in _CALL_FAILED
            alone = only_envelope(root) or (
                called and (only_echoes(root) or plain(root.get("error")) == message)
            )
            if message is not None and not good_message(message) and alone:
                return Shape(
                    "S8",
                    True,
                    code if code != value else None,
                    message,
                    status=as_status(root.get("code")),
                )
            if message is not None and called and next(iter(root)) == name and _only_scalars(root):
                return Shape("S8", None, code if code != value else None, message)
            continue
        if isinstance(value, str) and value.lower() in _REFUSED_STATUS:
            told = message or plain(root.get("reason"))
            alone = len(root) <= _FEW and only_envelope({**root, "reason": None})
            if told is not None and alone:
                return Shape("S8", None, value, f"{value}: {told}")
            continue
        if isinstance(value, str) and value.lower() in _MODERATED:
            return Shape(
                "S8",
                True,
                None,
                f"the request was flagged by content moderation: {message or value}",
            )
        if value is False and message is not None and only_envelope(root):
            return Shape("S8", True, first_text(root, CODE_NAMES), message)
        if (
            name == "result"
            and isinstance(value, int)
            and not good_code(value)
            and any(plain(root.get(one)) for one in _ERROR_MESSAGES)
            and only_echoes(root)
        ):
            return Shape("S8", True, plain(value), message)
        if name not in ("status", "Status"):
            continue
        if is_bad(status):
            continue
        if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z]+(_[A-Z]+)+", value):
            wrong = only_envelope(root) and not _empty_results_are_fine(value)
            return Shape("S8", True, value, message or value) if wrong else None
        if isinstance(value, str) and _REFUSAL.fullmatch(value) and not good_message(message):
            alone = message is not None and only_echoes({**root, "Result": None})
            return Shape("S8", None, value, message) if alone else None
        own = as_status(value)
        if own is not None and message is not None and only_envelope(root):
            return Shape(
                "S8",
                True,
                first_text(root, ("code", "error_code", "errorCode")) or str(own),
                message,
                status=own,
            )
        if value in ("0", 0) and "info" in root and not good_message(plain(root.get("info"))):
            return Shape("S8", True, code, plain(root.get("info")))
        if (
            isinstance(value, int)
            and value not in (0, 1)
            and not 200 <= value < 300
            and message is not None
            and not good_message(message)
            and only_envelope(root)
        ):
            return Shape("S8", True, code, message)
    return None


_REFUSED_STATUS: Final = frozenset({"declined", "refused", "rejected", "denied"})
"""Also states of what was only read, as that of an application: the words of the reason decide."""
_FEW: Final = 4
_MODERATED: Final = frozenset({"request moderated", "content moderated"})
_REFUSAL: Final = re.compile(r"[A-Z]{2,6}\d{3,6}")
"""A status that is a code of the service's own, as payment services have: the words decide."""


def _empty_results_are_fine(value: str) -> bool:
    return value in (
        "ZERO_RESULTS",
        "IN_PROGRESS",
        "NOT_STARTED",
        "NO_CONTENT",
        "NO_RESULTS",
        "PARTIAL_SUCCESS",
    )


FIELDS: Final = frozenset((*_CODE_FIELDS, *_ERROR_MESSAGES, *_ERROR_CODES, "errorMessages"))
"""Fields of the root, beside `KNOWN_NAMES`, that one of these shapes asks for."""
