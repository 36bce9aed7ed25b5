"""`Shape`, and how its parts are found: names that codes, messages and ids go by, and success values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from failwise.vocabulary.records import MAPPING

Body: TypeAlias = Mapping[str, Any]


_SUCCESS_CODES: Final = frozenset(
    {"", "0", "00", "000", "0000", "00000", "1", "200", "20000", "10000", "success", "succeed", "succeeded",
     "ok", "true", "none", "null", "y", "s", "completed", "done"}
)  # fmt: skip


_SUCCESS_WORDS: Final = re.compile(
    r"\s{0,64}(ok|okay|success(ful(ly)?)?|succeeded|done|(?!部分)(?:(?![不未没非])[\u4e00-\u9fff]){0,12}成功([\[(（][\w:-]{1,24}[\])）])?|正常|完成"
    r"|成功しました|正常(終了|に完了しました)|성공|정상|éxito|sucesso|erfolg(reich)?|успе(х|шно))\s{0,64}[.!。！]?\s{0,64}",
    re.IGNORECASE,
)
_ZEROS: Final = re.compile(r"(?![ef])[a-z]{0,4}0{3,12}")
"""Codes of success in the manner of ``0000``, ``000000`` and ``S0000``."""


_ENVELOPE: Final = frozenset(
    {"code", "bizcode", "err_code", "msg", "message", "data", "result", "results", "success", "ok", "status", "error", "errors",
     "errcode", "errmsg", "errmessage", "err_message", "errordesc", "errdesc", "return_msg", "resultmessage", "error_code", "error_msg", "error_message", "errormessage", "errormsg", "errorcode",
     "description", "detail", "details", "info", "infocode", "reason", "type", "title", "cod", "respcode", "resultcode", "returncode", "status_msg", "retmsg", "resultmsg", "respmsg", "returnmsg", "errordescription", "state", "isok", "timestamp", "time",
     "ts", "ttl", "path", "trace", "trace_id", "traceid", "request_id", "requestid", "request-id", "log_id",
     "logid", "rid", "hostid", "documentation_url", "doc_url", "help", "link", "links", "retcode",
     "ret", "err_no", "statuscode", "status_code", "sub_code", "sub_msg", "ret_msg", "resultMsg", "respMsg", "returnMsg", "parameters", "s", "v", "p", "d",
     "meta", "version", "method", "instance", "charge", "count", "took", "id", "jsonrpc", "localizedmessage",
     "retry_after", "hint", "field", "param", "fields", "cause", "stack", "exception", "messages", "warnings",
     "errortype", "subcode", "returnauthmsg", "policyname", "refusalreason", "refusalreasoncode", "errorlink", "errorcauses", "ratelimit", "extensions", "category", "correlationid", "output", "response", "body"}
)  # fmt: skip


MESSAGE_NAMES: Final = (
    "message", "msg", "errmsg", "error_description", "error_message", "error_msg", "errorMessage", "errorMsg",
    "err_msg", "errMsg", "errMessage", "err_message", "errorDesc", "errDesc", "ErrorDescription", "errorDescription", "ErrorMessage", "Message", "Msg", "description", "detail", "info", "reason", "title", "text", "localizedMessage",
    "error_display", "error_text", "errorText", "userMessage", "user_message", "displayMessage", "display_message", "sub_msg", "status_msg", "retmsg", "ret_msg", "resultMsg", "respMsg", "returnMsg", "return_msg", "resultMessage", "retMsg", "v", "errors", "errorSummary", "refusalReason", "failureReason", "failure_reason", "declineReason", "decline_reason", "failureMessage", "failure_message",
)  # fmt: skip


_SPECIAL_MESSAGES: Final = (
    "sub_msg", "subMsg", "sub_message", "subMessage", "returnAuthMsg", "Detail",
)  # fmt: skip
CODE_NAMES: Final = (
    "code", "Code", "error_code", "errorCode", "ErrorCode", "err_code", "errCode", "sub_code", "infocode", "errcode", "type",
    "status", "retcode", "ret", "reason",
)  # fmt: skip


REQUEST_ID_NAMES: Final = (
    "request_id", "requestId", "RequestId", "requestID", "request-id", "log_id", "logid", "trace_id", "traceId",
    "rid", "correlationId",
)  # fmt: skip


KNOWN_NAMES: Final = frozenset(
    {*MESSAGE_NAMES, *CODE_NAMES, *REQUEST_ID_NAMES, "error", "Error", "errors", "success", "Success", "ok",
     "data", "result", "Result", "response", "Response", "body", "state", "s", "statusCode", "status_code", "Status", "cod", "respCode",
     "resultCode", "returnCode", "bizCode", "__type", "err_no", "errno", "ret_code", "return_code", "result_code", "err_code_des",
     "exit_code", "returncode", "exitCode"}
)  # fmt: skip
"""Names that some shape looks for as they stand."""


@dataclass(slots=True)
class Shape:
    """What a body's shape says. `failed`: it is a failure under any status; None: only under 4xx
    and 5xx. `parts`: some of these parts of a batch failed, others did not."""

    name: str
    failed: bool | None
    code: str | None = None
    message: str | None = None
    parameter: str | None = None
    request_id: str | None = None
    parts: list[Any] = field(default_factory=list)
    status: int | None = None


def parsed(text: str) -> Any:
    """JSON, or a value as Python prints it, in a text; None where it is neither."""
    import json

    start = text.lstrip()[:1]
    if start not in ("{", "[") or len(text) > 100_000:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        from failwise.evidence.literals import find_objects

        blank = len(text) - len(text.lstrip())
        return next((found.value for found in find_objects(text, 1) if found.start == blank), None)


def plain(value: Any) -> str | None:
    """A code or message as text; None for nothing, for objects and for lists."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return value.strip()[:2_000] or None
    if isinstance(value, int | float):
        return str(value)[:40]
    return None


_MESSAGE_RANKS: Final = {name: rank for rank, name in enumerate(MESSAGE_NAMES)}


def first_message(root: Body) -> str | None:
    """The first of `MESSAGE_NAMES` under which a text stands: few fields are there, and many are asked for."""
    ranks = sorted([_MESSAGE_RANKS[name] for name in root if name in _MESSAGE_RANKS])
    return first_text(root, tuple([MESSAGE_NAMES[rank] for rank in ranks])) if ranks else None


def first_text(root: Body, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = root.get(name)
        if value is not None:
            text = value.strip()[:2_000] or None if type(value) is str else plain(value)
            if text is not None:
                return text
    return None


def _cause(causes: object) -> str | None:
    """What the first of the causes says: the message beside them only says what failed."""
    if isinstance(causes, list) and causes and isinstance(causes[0], MAPPING):
        return first_message(causes[0])
    return None


def _issue(details: object) -> str | None:
    """What the first of the details calls its issue, with its words: the message beside it is general."""
    if not isinstance(details, list) or not details or not isinstance(details[0], MAPPING):
        return None
    issue = first_text(details[0], ("issue",))
    told = first_text(details[0], ("description",))
    return f"{issue}: {told}" if issue and told else issue


def message_of(root: Body) -> str | None:
    """The message; where a general and a special one are told, both."""
    found = first_message(root)
    if found is not None:
        special = (
            first_text(root, _SPECIAL_MESSAGES)
            or _issue(root.get("details"))
            or _cause(root.get("errorCauses"))
        )
        if special is None or special in found:
            return found
        return special if found in special else f"{found}: {special}"
    for name in ("errors", "detail", "details", "messages", "error_messages", "errorMessages"):
        items = root.get(name)
        if name == "detail" and isinstance(items, MAPPING):
            return first_text(items, MESSAGE_NAMES) or plain(items.get("error"))
        if isinstance(items, list) and items:
            item = items[0]
            return first_message(item) if isinstance(item, MAPPING) else plain(item)
    return None


def good_code(value: Any) -> bool:
    if (
        value is None
        or value is True
        or (isinstance(value, str) and value.lower() in _SUCCESS_CODES)
    ):
        return True
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return str(value) in _SUCCESS_CODES or 200 <= value < 300
    return isinstance(value, str) and (
        (value.isdecimal() and 200 <= int(value[:9]) < 300)
        or _ZEROS.fullmatch(value.lower()) is not None
    )


def good_message(text: str | None) -> bool:
    return text is not None and _SUCCESS_WORDS.fullmatch(text) is not None


def empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {}, 0, "null")


def is_bad(status: int | None) -> bool:
    return status is not None and status >= 400


def as_status(value: Any) -> int | None:
    """A number of a body that is an HTTP status by its range."""
    text = plain(value) or ""
    number = int(text.lstrip("-")) if text.lstrip("-").isdecimal() and len(text) <= 4 else 0
    return number if 400 <= number <= 599 else None


_ECHO: Final = re.compile(
    r".{0,30}(id|no|sn|num|number|seq|serial|time|timestamp|date|sign|signature|nonce|version|uuid|channel|reference|ref)",
    re.IGNORECASE,
)


def only_echoes(root: Body) -> bool:
    """Beside the fields that errors have there are only scalars that the caller had sent, or ids."""
    return all(
        empty(value)
        or str(name).lower() in _ENVELOPE
        or (isinstance(value, str | int | float) and _ECHO.fullmatch(str(name)) is not None)
        for name, value in root.items()
    )


def has_answer(root: Body) -> bool:
    """A list or an object under a name of the service's own: an answer, be it an empty one."""
    return any(
        isinstance(value, (list, *MAPPING)) and str(name).lower() not in _ENVELOPE
        for name, value in root.items()
    )


def only_envelope(root: Body, allowed: frozenset[str] = _ENVELOPE) -> bool:
    """Nothing of substance stands beside the fields that errors have."""
    return all(
        empty(value) or str(name).lower() in allowed or str(name).lower().endswith("_status")
        for name, value in root.items()
    )
