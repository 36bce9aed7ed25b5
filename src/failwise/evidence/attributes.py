"""The plain facts on one exception: errno, codes, positions; read from any class, never executed."""

import errno as errno_names
from collections.abc import Mapping
from typing import Any, Final

from failwise.evidence.bounds import bounded
from failwise.evidence.classes import class_table
from failwise.evidence.responses import attribute
from failwise.vocabulary.records import record

TEXT_OF_ONE: Final = 2_048
"""Characters kept of one exception's text."""
VALUE_LIMIT: Final = 300
"""Characters kept of one attribute."""

_NAMES: Final = (
    "errno",
    "winerror",
    "strerror",
    "filename",
    "library",
    "reason",
    "verify_code",
    "verify_message",
    "status_code",
    "status",
    "http_status",
    "code",
    "error_code",
    "errcode",
    "type",
    "param",
    "message",
    "msg",
    "sqlstate",
    "pgcode",
    "sqlite_errorcode",
    "sqlite_errorname",
    "smtp_code",
    "smtp_error",
    "returncode",
    "exit_code",
    "name",
    "timeout",
    "retry_after",
    "request_id",
    "pos",
    "lineno",
    "colno",
    "encoding",
    "start",
    "end",
    "port",
)
_NAMED: Final = frozenset(_NAMES)
_GRPC: Final = frozenset({"grpc.RpcError", "grpc.aio._call.AioRpcError"})
_SPECIAL: Final = frozenset({"error", "rcvd", "sent", "doc"})
"""Attributes that hold more than a plain value."""


@record
class ClassFacts:
    """What is the same for all exceptions of one class: its name, its other classes along the MRO
    (nearest first, without the ones everybody has), and the attributes that all its objects have."""

    name: str
    bases: tuple[str, ...]
    shared: frozenset[str]
    plain: tuple[str, ...]
    made_up: bool
    special: bool


def class_facts(cls: type) -> ClassFacts:
    """The facts of a class, worked out once; the first 1,024 are remembered."""
    known = _KNOWN.get(cls)
    if known is None:
        made_up = hasattr(cls, "__getattr__")
        shared = frozenset(dir(cls)) - _EVERYBODYS
        plain = tuple(name for name in _NAMES if made_up or name in shared)
        name, bases = qualified_name(cls), base_names(cls)
        special = made_up or not _SPECIAL.isdisjoint(shared) or not _GRPC.isdisjoint((name, *bases))
        known = ClassFacts(name, bases, shared, plain, made_up, special)
        if len(_KNOWN) < _CLASSES_LIMIT:
            _KNOWN[cls] = known
    return known


_KNOWN: Final[dict[type, ClassFacts]] = {}
_CLASSES_LIMIT: Final = 1_024
_EVERYBODYS: Final = frozenset(dir(Exception))


def may_have(error: BaseException, names: frozenset[str]) -> bool:
    """Can this exception have any of these attributes at all?"""
    facts = class_facts(type(error))
    own = getattr(error, "__dict__", None)
    return facts.made_up or not names.isdisjoint(facts.shared) or not names.isdisjoint(own or ())


def qualified_name(cls: type) -> str:
    """``httpx.ConnectTimeout``; builtins bare."""
    module = getattr(cls, "__module__", "") or ""
    name = getattr(cls, "__qualname__", cls.__name__)
    return name if module in ("builtins", "") else f"{module}.{name}"


def base_names(cls: type) -> tuple[str, ...]:
    """The other classes along the MRO, nearest first, without the ones everybody has."""
    return tuple(
        qualified_name(base)
        for base in cls.__mro__[1:24]
        if base not in (Exception, BaseException, object)
    )


def attributes_of(error: BaseException, names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of `error` that are plain values; `names` are its class and its bases."""
    facts = class_facts(type(error))
    found: dict[str, Any] = {}
    own = getattr(error, "__dict__", None) or {}
    asked = facts.plain
    if own and not _NAMED.isdisjoint(own):
        asked = tuple(name for name in _NAMES if name in own or name in asked)
    for name in asked:
        value = attribute(error, name)
        if value is not None:
            value = _plain(value)
            if value is not None and value != "":
                found[name] = value
    if isinstance(error, OSError):
        symbol = _symbol(error, names)
        if symbol:
            found["symbol"] = symbol
    if facts.special or (own and not _SPECIAL.isdisjoint(own)):
        _add_special(found, error, names)
    if isinstance(error, UnicodeDecodeError):
        found["length"] = len(error.object)
    return found


def _add_special(found: dict[str, Any], error: BaseException, names: tuple[str, ...]) -> None:
    if not _GRPC.isdisjoint(names):
        found.update(_grpc(error))
    inner = attribute(error, "error")
    code = attribute(inner, "code") if inner is not None else None
    if isinstance(code, int) and "code" not in found:  # JSON-RPC errors: MCPError.error.code
        found["code"] = code
    if any(name.startswith("websockets.") for name in names):
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
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else None
    if isinstance(value, float):
        return value if abs(value) < 1e18 else None  # neither NaN nor infinite
    if isinstance(value, bytes):
        return bounded(value[: VALUE_LIMIT * 2].decode("utf-8", "replace"), VALUE_LIMIT)
    if isinstance(value, str):
        return bounded(str(value), VALUE_LIMIT)
    return None


def _symbol(error: OSError, names: tuple[str, ...]) -> str | None:
    """The errno's name, the same on every platform."""
    number = error.errno
    windows = getattr(error, "winerror", None)
    table = class_table()
    if isinstance(windows, int) and windows in table.by_number:
        return table.by_number[windows].name
    if not isinstance(number, int):
        return None
    if "socket.gaierror" in names:
        import socket

        for name in ("EAI_NONAME", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA"):
            if getattr(socket, name, None) == number:
                return name
        symbol = table.by_number.get(number)
        return symbol.name if symbol and symbol.name.startswith("EAI_") else "EAI_FAIL"
    if any(name.startswith("ssl.") for name in names):
        return None
    return errno_names.errorcode.get(number)


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


def text_of(error: BaseException) -> str:
    """What an exception says, bounded; a class whose text raises says nothing."""
    try:
        return bounded(_mail_reply(error) or str(error), TEXT_OF_ONE)
    except Exception:
        return ""


def _mail_reply(error: BaseException) -> str | None:
    """The server's line (``550 5.1.1 User unknown``), which smtplib hides in tuples and bytes."""
    if not type(error).__module__.startswith(("smtplib", "aiosmtplib")):
        return None
    number, reply = attribute(error, "smtp_code", "code"), attribute(error, "smtp_error", "message")
    refused = attribute(error, "recipients")
    if number is None and isinstance(refused, Mapping) and refused:
        number, reply = next(iter(refused.values()))
    if isinstance(reply, bytes):
        reply = reply.decode("utf-8", "replace")
    return f"{number} {reply}" if isinstance(number, int) else None
