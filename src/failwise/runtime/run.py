"""`Run`: a chain of calls that share deadline, credentials and interruption."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from failwise.runtime.answering import Answering
from failwise.runtime.credentials import Credential
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Refused

if TYPE_CHECKING:
    from failwise.runtime.execution import Execution
    from failwise.runtime.runtime import Runtime


class Run(Answering):
    """A chain of tool calls: use it with ``with`` or ``async with``, or keep it and call on it.

    `id` is the user's own name of the job and makes effects of the same job recognisable over
    restarts. `deadline` is monotonic seconds. After an interruption, later calls come back as
    ``runtime.chain_aborted`` without being sent; `interrupted_by` tells the failed result. `model`
    names the chat model that asks for its calls; it may change on the way, and is kept on each result.
    """

    chain = True
    """Its calls belong together: a call id names one effect in it."""
    model: str | None = None

    def __init__(
        self,
        runtime: "Runtime",
        run_id: str,
        deadline: float | None,
        credentials: Mapping[str, Credential],
        confirm: Callable[..., Any] | None = None,
    ) -> None:
        self.runtime, self.id, self.deadline = runtime, run_id, deadline
        self.credentials = credentials
        self.confirm = confirm
        self.interrupted_by: ToolResult[Any] | None = None
        self._scope = ""
        self._upstream: tuple[str, str | None] = ("", None)
        self._worked: set[tuple[str, str | None]] = set()
        self.refusals: dict[str, int] = {}
        """Tool → how often its parameters were refused since it last succeeded."""

    async def call(self, tool: Any, *args: Any, **options: Any) -> ToolResult[Any]:
        """`Runtime.call` within this run."""
        return await self.runtime._call(tool, args, options, self)

    async def call_many(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """`Runtime.call_many` within this run."""
        return await self.runtime._call_many(calls, self)

    def call_sync(self, tool: Any, *args: Any, **options: Any) -> ToolResult[Any]:
        """`Runtime.call_sync` within this run."""
        return self.runtime._call_sync(tool, args, options, self)

    def call_many_sync(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """`Runtime.call_many_sync` within this run."""
        return self.runtime._call_many_sync(calls, self)

    async def plan(self, steps: Sequence[Any], *, limit: int = 8) -> list[ToolResult[Any]]:
        """Calls that need each other's results, each as soon as what it needs is there.

        A step is a mapping: ``id``, ``tool``, ``arguments``, and ``after`` (ids to wait for). In the
        arguments, ``{"$ref": "#/order/id"}`` stands for the value of ``id`` in what step ``order``
        gave (a JSON pointer, RFC 6901, into the values by step). A step that needs what failed is
        not sent: it comes back as ``runtime.step_skipped`` and says why; all others run. Results
        keep the order of the steps; a step's id is its call id. At most `limit` run at once.
        Raises `UsageError`, before anything is sent, for a step that cannot work.
        """
        from failwise.runtime.dependent import perform

        return await perform(self, steps, limit)

    def plan_sync(self, steps: Sequence[Any], *, limit: int = 8) -> list[ToolResult[Any]]:
        """`plan` without a loop of one's own: level by level, each level's calls at once."""
        from failwise.runtime.dependent import perform_sync

        return perform_sync(self, steps, limit)

    def _where(self) -> "tuple[Runtime, Run | None]":
        return self.runtime, self

    # What the drivers tell and ask

    def refusal(self, upstream: str, credential: str | None) -> Refused | None:
        """Why calls to this upstream are not sent any more, if so."""
        culprit = self.interrupted_by
        if culprit is None or culprit.failure is None:
            return None
        if self._scope == "credential" and self._upstream != (upstream, credential):
            return None
        return Refused(
            "runtime.chain_aborted",
            reason=(
                f"not sent: {culprit.tool_name} failed with {culprit.failure.code} and stopped "
                f"this run. {culprit.failure.remedy}"
            ),
            cause={"tool": culprit.tool_name, "code": culprit.failure.code},
        )

    def note(self, result: ToolResult[Any], upstream: str, credential: str | None) -> None:
        """Learn from a finished call."""
        self._count_refusals(result)
        if result.success:
            if credential is not None and result.degraded_to is None:
                self._worked.add((result.tool_name, credential))
        elif result.interrupts and self.interrupted_by is None:
            self.interrupted_by = result
            self._scope = result.interrupts
            self._upstream = (upstream, credential)

    def _count_refusals(self, result: ToolResult[Any]) -> None:
        """A refusal counts until the tool succeeds: then the correction was right."""
        name = result.tool_name
        if result.success:
            self.refusals.pop(name, None)
            return
        refused = [a for a in result.attempts if a.failure and a.failure.refuses_parameters]
        if refused:
            self.refusals[name] = self.refusals.get(name, 0) + len(refused)

    def worked(self, tool: str, credential: str | None) -> bool:
        """This credential has succeeded with this tool in this run."""
        return (tool, credential) in self._worked

    # Entering and leaving

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.runtime.flush()

    async def __aenter__(self) -> "Run":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.runtime.flush_async()


class LooseRun(Run):
    """Where calls outside of any run belong: nothing one of them does touches another."""

    chain = False

    def note(self, result: ToolResult[Any], upstream: str, credential: str | None) -> None:
        """A chain is what is interrupted; here is none."""

    def worked(self, tool: str, credential: str | None) -> bool:
        return False


surroundings: "ContextVar[Execution | None]" = ContextVar("failwise_call", default=None)
"""The call that is under way here: nested calls inherit its run and its time."""


def checked_deadline(seconds: Any) -> float | None:
    """A run's or call's deadline as given: seconds from now."""
    if seconds is None:
        return None
    if hasattr(seconds, "total_seconds"):
        seconds = seconds.total_seconds()
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise UsageError(f"deadline={seconds!r}: say a number of seconds from now, above 0")
    return float(seconds)
