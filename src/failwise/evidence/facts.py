"""`Evidence`: what was seen of a call's end. Facts only, no verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from failwise.vocabulary.errors import ToolError
from failwise.vocabulary.records import UNSET, Deferred, Unset
from failwise.vocabulary.result import ToolResult

Phase: TypeAlias = Literal[
    "config",
    "pool",
    "dns",
    "proxy",
    "connect",
    "tls",
    "write",
    "read",
    "body",
    "decode",
    "cancel",
    "any",
]

BodyProblem: TypeAlias = Literal[
    "html", "truncated", "encoding", "empty", "invalid_json", "too_large", "not_json"
]


@dataclass(slots=True)
class ExceptionFact:
    """One exception of a chain, read by qualified name: its library need not be installed.

    `name` is the qualified class name (``httpx.ConnectTimeout``; builtins bare), `bases` those of
    its other classes, nearest first. `attributes` holds the plain values a reader may rest on:
    ``errno``, ``symbol`` (the errno's name, alike on every platform: ``ECONNREFUSED``),
    ``status_code``, ``code``, ``sqlstate``, ``grpc_status``, ``verify_code``, ... `kind` and `phase`
    are what the table of known classes (`classes.toml`) says of it; None: not a known class. Read
    from a text, `name` is what stood there, and `bases` is empty.
    """

    name: str
    bases: tuple[str, ...]
    text: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    phase: Phase | None = None


@dataclass(slots=True)
class ToldWait:
    """A wait that the upstream named: `seconds` from its answer, and where it stood."""

    seconds: float
    source: str


@dataclass(slots=True)
class Evidence(Deferred):
    """Everything known about how one invocation ended.

    `exceptions` run from the outermost to the deepest cause. `headers` have lower-case names.
    `body` is the parsed body (UNSET: none, or it could not be parsed), `text` the bounded text of
    the body, of the exception, or the free text itself. `length_told` and `length_got` in bytes.
    `problem` says why a body could not be read, `position` where (characters). `tls` holds the
    certificate facts (see `failwise.evidence.tls`). `limit` is the time limit that passed, seconds.
    `is_error` is MCP's flag. `parts` are the pieces a pasted text was taken apart into:
    ``context``, ``wrapper``, ``message``, ``remnant``. `expects_json`: the tool promised JSON.
    `unread`: there is a body, but nobody has read it from the wire. `asked`: what the caller wanted, a
    page or something else (see `asked_for`; None: nothing tells); `sent_to_login`: redirects led from there to a login.
    `same` stands for all that a verdict can rest on: evidence of one `same` gets one verdict, whatever
    its request id, date or address. None: nothing stands for it.
    """

    source: Literal["exception", "response", "value", "text", "expired"]
    exceptions: tuple[ExceptionFact, ...] = ()
    exception: BaseException | None = None
    status: int | None = None
    reason: str | None = None
    method: str | None = None
    url: str | None = None
    host: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = None
    length_told: int | None = None
    length_got: int | None = None
    body: Any | Unset = UNSET
    text: str | None = None
    title: str | None = None
    problem: BodyProblem | None = None
    position: int | None = None
    phase: Phase | None = None
    limit: float | None = None
    tls: Mapping[str, Any] | None = None
    waits: tuple[ToldWait, ...] = ()
    is_error: bool = False
    tool_error: ToolError | None = None
    inner: ToolResult[Any] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    expects_json: bool = False
    profile: str | None = None
    unread: bool = False
    asked: Literal["page", "data", "api"] | None = None
    sent_to_login: bool = False
    same: bytes | None = None
