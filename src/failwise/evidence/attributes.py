"""The plain facts on one exception: errno, codes, positions; read from any class, never executed."""

import errno as errno_names
from collections.abc import Mapping
from typing import Any, Final

from failwise.evidence.bounds import bounded
from failwise.evidence.classes import class_table
from failwise.evidence.exception_forms import ExceptionForm
from failwise.evidence.responses import attribute

TEXT_OF_ONE: Final = 2_048
"""Characters kept of one exception's text."""
VALUE_LIMIT: Final = 300
"""Characters kept of one attribute."""


def attributes_of(error: BaseException, form: ExceptionForm) -> dict[str, Any]:
    """The attributes of `error` that are plain values."""
    found: dict[str, Any] = {}
    for name in form.plain:
        try:
            value = getattr(error, name, None)
        except Exception:  # a property of a foreign class
            value = None
        if value is not None:
            value = _plain(value)
            if value is not None and value != "":
                found[name] = value
    if form.system:
        symbol = _symbol(error, form)
        if symbol:
            found["symbol"] = symbol
    if form.special:
        _add_special(found, error, form)
    if form.undecodable:
        found["length"] = len(error.object)  # type: ignore[attr-defined]
    return found


def _add_special(found: dict[str, Any], error: BaseException, form: ExceptionForm) -> None:
    if form.grpc:
        found.update(_grpc(error))
    inner = attribute(error, "error")
    code = attribute(inner, "code") if inner is not None else None
    if isinstance(code, int) and "code" not in found:  # JSON-RPC errors: MCPError.error.code
        found["code"] = code
    if form.websockets:
        closing = attribute(error, "rcvd", "sent")
        number = attribute(closing, "code") if closing is not None else None
        if isinstance(number, int):
            found["close_code"] = int(number)
    document = attribute(error, "doc")
    if isinstance(document, str):
        position = found.get("pos", 0) if isinstance(found.get("pos"), int) else 0
        found["length"] = len(document)
        found["excerpt"] = bounded(document[max(0, position - 40) : position + 40])


def _plain(value: object) -> Any:
    if isinstance(value, str):
        return bounded(str(value), VALUE_LIMIT)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else None
    if isinstance(value, float):
        return value if abs(value) < 1e18 else None  # neither NaN nor infinite
    if isinstance(value, bytes):
        return bounded(value[: VALUE_LIMIT * 2].decode("utf-8", "replace"), VALUE_LIMIT)
    return None


def _symbol(error: BaseException, form: ExceptionForm) -> str | None:
    """The errno's name, the same on every platform."""
    number: object = getattr(error, "errno", None)
    windows = getattr(error, "winerror", None)
    table = class_table()
    if isinstance(windows, int) and windows in table.by_number:
        return table.by_number[windows].name
    if not isinstance(number, int):
        return None
    if form.resolver:
        import socket

        for name in ("EAI_NONAME", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA"):
            if getattr(socket, name, None) == number:
                return name
        symbol = table.by_number.get(number)
        return symbol.name if symbol and symbol.name.startswith("EAI_") else "EAI_FAIL"
    return None if form.tls else errno_names.errorcode.get(number)


def _grpc(error: BaseException) -> dict[str, Any]:
    """Status and details of a gRPC error: these are methods there."""
    found: dict[str, Any] = {}
    for name in ("code", "details"):
        method = attribute(error, name)
        if callable(method):
            try:
                value = method()
            except Exception:
                value = None
            status = getattr(value, "name", None)
            if name == "code" and isinstance(status, str):
                found["grpc_status"] = status
            elif isinstance(value, str):
                found[name] = bounded(value, VALUE_LIMIT)
    return found


def text_of(error: BaseException, form: ExceptionForm) -> str:
    """What an exception says, bounded; a class whose text raises says nothing, and one that only prints
    the object around the exception behind it neither."""
    if form.retried:
        return ""
    try:
        said = _mail_reply(error) if form.hides_reply else None
        return bounded(said or str(error), TEXT_OF_ONE)
    except Exception:
        return ""


def _mail_reply(error: BaseException) -> str | None:
    """The server's line (``550 5.1.1 User unknown``), which smtplib hides in tuples and bytes."""
    number, reply = attribute(error, "smtp_code", "code"), attribute(error, "smtp_error", "message")
    refused = attribute(error, "recipients")
    if number is None and isinstance(refused, Mapping) and refused:
        number, reply = next(iter(refused.values()))
    if isinstance(reply, bytes):
        reply = reply.decode("utf-8", "replace")
    return f"{number} {reply}" if isinstance(number, int) else None
