"""What a tool declares: `ToolSpec`, and the `CallContext` that a tool function may ask for."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from failwise.vocabulary.records import UNSET, Unset, record

Arguments: TypeAlias = dict[str, Any]
Flag: TypeAlias = "bool | Callable[[Arguments], bool | None] | None"


class CallContext:
    """What a tool function can know of its own call: take a parameter annotated with it.

    `attempt` counts from 1. `idempotency_key` is the same for every attempt of a call. `remaining`
    is the time left for this attempt, in seconds (None: no limit). `credential` is the value of the
    credential the tool declares. `patience` is by how much a limit of the tool's own may grow: above 1
    after a read timeout. `call_id` and `run_id` name the call.
    """

    __slots__ = (
        "_clock",
        "_until",
        "attempt",
        "call_id",
        "credential",
        "generation",
        "idempotency_key",
        "notes",
        "on_progress",
        "patience",
        "run_id",
    )

    def __init__(
        self,
        *,
        attempt: int = 1,
        idempotency_key: str | None = None,
        credential: Any = None,
        generation: int = 0,
        call_id: str = "",
        run_id: str = "",
        until: float | None = None,
        clock: Callable[[], float] | None = None,
        on_progress: Callable[[float, str], None] | None = None,
        patience: float = 1.0,
    ) -> None:
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.credential = credential
        self.generation = generation
        self.call_id = call_id
        self.run_id = run_id
        self.on_progress = on_progress
        self.patience = patience
        self.notes: dict[str, Any] = {}
        self._until = until
        self._clock = clock

    @property
    def headers(self) -> Mapping[str, str]:
        """What a request of this call should carry for tracing, such as ``traceparent``."""
        return {}

    @property
    def remaining(self) -> float | None:
        """Seconds left for this attempt; None when there is no limit."""
        if self._until is None or self._clock is None:
            return None
        return max(0.0, self._until - self._clock())

    def note(self, **facts: Any) -> None:
        """Say something about the answer; it is kept in the result's `extra`.

        ``note(age_s=7200)`` tells the model that what a cache gives is two hours old.
        """
        self.notes.update(facts)

    def progress(self, share: float, message: str = "") -> None:
        """Report progress, 0 to 1; forwarded to whoever listens."""
        if self.on_progress is not None:
            self.on_progress(share, message)


@record
class ToolSpec:
    """A tool as the runtime knows it: how to call it and what it declares.

    Undeclared means: never repeat once it may have been sent. `read_only` and `idempotent` may be
    functions of the arguments; one that raises counts as undeclared. `call` runs the tool in the
    calling thread, `call_async` on the loop; at least one is there. `thread`: whether `call` gets a
    thread of its own under asyncio. `self_timed`: it keeps `context.remaining` itself. `timeout` in seconds for one attempt. `fallback` names other
    tools, tried in order; `fallback_value` is the last resort. `verify` answers "did it happen?"
    (True or a value: yes; False: not yet; None: don't know), and `verify_final_after` (seconds) says
    after how long a "no" is final. `idempotency_key` names the header or parameter with which the
    upstream honours one. `errors` maps exception types to `ToolError`-like failures. `policy` holds
    this tool's own rows, as in a policy file. `repair` governs guesses only
    (a repair with one reading runs anyway): ``confirm`` asks (no answer is a no), ``auto`` applies,
    ``off`` refuses every repair; None: as the runtime says. `fixer` corrects arguments that the
    upstream refused, as `Runtime(fixer=)`. `kind` ``model``: a chat model; what fails in calling it
    is of the layer *transport*. ``client``: the requests that an HTTP client sends to one host.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    call: Callable[[Arguments, CallContext], Any] | None = None
    call_async: Callable[[Arguments, CallContext], Awaitable[Any]] | None = None
    read_only: Flag = None
    idempotent: Flag = None
    destructive: bool | None = None
    timeout: float | None = None
    fallback: tuple[str, ...] = ()
    fallback_value: Any | Unset = UNSET
    verify: Callable[..., Any] | None = None
    verify_final_after: float | None = None
    idempotency_key: str | None = None
    credential: str | None = None
    profile: str | None = None
    upstream: str | None = None
    success: Callable[[Any], bool] | None = None
    errors: Mapping[type[BaseException], Any] | None = None
    passthrough: tuple[type[BaseException], ...] = ()
    policy: Mapping[str, Any] | None = None
    repair: str | None = None
    fixer: Callable[..., Any] | None = None
    thread: bool = True
    self_timed: bool = False
    expects_json: bool = False
    kind: Literal["tool", "model", "client"] = "tool"

    @property
    def upstream_name(self) -> str:
        """Whom the guards count: the declared upstream, else the tool itself."""
        return self.upstream or self.name

    @property
    def parameter_count(self) -> int | None:
        """How many parameters the schema names; None where there is no schema."""
        if self.schema is None:
            return None
        properties = self.schema.get("properties")
        return len(properties) if isinstance(properties, Mapping) else 0


def resolve_flag(flag: Flag, arguments: Arguments) -> bool | None:
    """A declaration for these arguments; a function that raises means "undeclared"."""
    if flag is None or isinstance(flag, bool):
        return flag
    try:
        answer = flag(arguments)
    except Exception:
        return None
    return answer if isinstance(answer, bool) else None
