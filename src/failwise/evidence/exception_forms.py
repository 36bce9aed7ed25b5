"""What is the same for all exceptions of one form: a class, and the names its objects hold of their own.

Exceptions come from few places and look alike. What their class tells, which of their attributes can
matter at all, and what the table of known classes says of them is worked out once for each form.
"""

from typing import Any, Final

from failwise.evidence.classes import Known, MessageRow, class_table
from failwise.evidence.responses import DEPRECATED
from failwise.vocabulary.errors import ToolCallFailed, ToolError
from failwise.vocabulary.records import record

NAMES: Final = (
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
"""Attributes kept where their value is a plain one."""
PROBED: Final = "failwise_tls"
"""The attribute under which a captured handshake is kept (see `failwise.evidence.tls`)."""

_GRPC: Final = frozenset({"grpc.RpcError", "grpc.aio._call.AioRpcError"})
_SPECIAL: Final = frozenset({"error", "rcvd", "sent", "doc"})
"""Attributes that hold more than a plain value."""
# Where libraries keep the exception behind theirs: urllib and urllib3 (`reason`), aiohttp
# (`os_error`, `certificate_error`), SQLAlchemy (`orig`), and the customs of many others.
_LINKS: Final = (
    "reason",
    "os_error",
    "certificate_error",
    "orig",
    "original_error",
    "original_exception",
    "inner_exception",
    "exception",
    "exc",
    "error",
    "cause",
)
LINKS_OF_CLASSES: Final = frozenset({"reason", "os_error", "certificate_error"})
"""Those that a class may have as properties, beside its objects' own."""
# Attributes without which an exception knows nothing of an answer, of a request, or of a limit.
_OF_ANSWERS: Final = (
    "response", "status_code", "status", "code", "http_status", "http_code", "body", "response_body",
    "content", "json_body",
)  # fmt: skip
_OF_REQUESTS: Final = frozenset({"request", "request_info", "url", "host", "pool", "conn"})
_OF_LIMITS: Final = frozenset({"timeout", "request"})
_HIDING_REPLIES: Final = ("smtplib", "aiosmtplib")

_REMEMBERED: Final = 1_024
_OWN_LIMIT: Final = 32
"""Forms that are remembered, of objects with at most so many attributes of their own."""
_EVERYBODYS: Final = frozenset(dir(Exception))
_NOBODYS: Final = (Exception, BaseException, object)


@record
class ExceptionForm:
    """What one form of exceptions has in common.

    `names` are the class and the others along the MRO (nearest first, without the ones everybody
    has), `bases` those others as facts have them; `known` and `messages` are what the table of classes
    says of them, by name and by what else the text holds. `plain`, `links` and
    `answers` are the attributes that may be there: with plain values, with an exception behind this
    one, with an answer or a part of one. `requests`, `limits`: it may know the request, a time limit.
    `special`: it has attributes that hold more than a plain value; `handshake`: it may tell of one.
    """

    names: tuple[str, ...]
    bases: tuple[str, ...]
    known: Known | None
    messages: tuple[MessageRow, ...]
    plain: tuple[str, ...]
    links: tuple[str, ...]
    answers: tuple[str, ...]
    requests: bool
    limits: bool
    special: bool
    grpc: bool
    websockets: bool
    system: bool
    resolver: bool
    tls: bool
    handshake: bool
    undecodable: bool
    group: bool
    ours: bool
    hides_reply: bool
    retried: bool
    names_itself: bool


_FORMS: Final[dict[Any, ExceptionForm]] = {}


def form_of(error: BaseException) -> ExceptionForm:
    """The form of an exception; 1,024 are remembered, then it begins anew."""
    cls = type(error)
    own = getattr(error, "__dict__", None)
    key: Any = (cls, *own) if own else cls
    form = _FORMS.get(key)
    if form is None:
        form = _form(cls, frozenset(own or ()))
        if len(own or ()) <= _OWN_LIMIT:
            if len(_FORMS) >= _REMEMBERED:
                _FORMS.clear()
            _FORMS[key] = form
    return form


def _form(cls: type, own: frozenset[str]) -> ExceptionForm:
    made_up = hasattr(cls, "__getattr__")  # whatever is asked for may be there
    there = own | (frozenset(dir(cls)) - _EVERYBODYS)
    name = qualified_name(cls)
    names = (name, *base_names(cls))
    module = getattr(cls, "__module__", "") or ""
    grpc = not _GRPC.isdisjoint(names)
    bases = names[1:] or ("Exception",)  # none at all is what texts have
    return ExceptionForm(
        names=names,
        bases=bases,
        known=class_table().of_class(name, bases, ""),
        messages=class_table().rows_of((name, *bases)),
        plain=_present(NAMES, there, made_up, module),
        links=tuple(
            one
            for one in _LINKS
            if one in own or (one in LINKS_OF_CLASSES and (made_up or one in there))
        ),
        answers=_present(_OF_ANSWERS, there, made_up, module),
        requests=made_up or not _OF_REQUESTS.isdisjoint(there),
        limits=made_up or not _OF_LIMITS.isdisjoint(there),
        special=made_up or grpc or not _SPECIAL.isdisjoint(there),
        grpc=grpc,
        websockets=any(one.startswith("websockets.") for one in names),
        system=issubclass(cls, OSError),
        resolver="socket.gaierror" in names,
        tls=any(one.startswith("ssl.") for one in names),
        handshake=PROBED in own or ("ssl.SSLError" in names and "Want" not in name),
        undecodable=issubclass(cls, UnicodeDecodeError),
        group=issubclass(cls, BaseExceptionGroup),
        ours=issubclass(cls, (ToolError, ToolCallFailed)),
        hides_reply=module.startswith(_HIDING_REPLIES),
        retried=cls.__qualname__ == "RetryError" and module.startswith("tenacity"),
        names_itself=cls.__name__ == "KafkaException",
    )


def _present(
    names: tuple[str, ...], there: frozenset[str], made_up: bool, module: str
) -> tuple[str, ...]:
    warns = DEPRECATED if module == "websockets.exceptions" else ()
    return tuple(name for name in names if (made_up or name in there) and name not in warns)


def qualified_name(cls: type) -> str:
    """``httpx.ConnectTimeout``; builtins bare."""
    module = getattr(cls, "__module__", "") or ""
    name = getattr(cls, "__qualname__", cls.__name__)
    return name if module in ("builtins", "") else f"{module}.{name}"


def base_names(cls: type) -> tuple[str, ...]:
    """The other classes along the MRO, nearest first, without the ones everybody has."""
    return tuple(qualified_name(base) for base in cls.__mro__[1:24] if base not in _NOBODYS)
