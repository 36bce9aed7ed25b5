"""What the adapters of MCP servers share: a server's tool call through a runtime, whose call it is, and the
question to the user of the client where a repair is guessed.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from failwise.connect import mcp_results
from failwise.connect.attempts import Attempt
from failwise.connect.bridge import Bridge, Outcome
from failwise.connect.mcp_results import Passed
from failwise.connect.proxy.hosts import Hosts
from failwise.runtime.execution import Plan
from failwise.runtime.run import LooseRun, Run
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.result import Language
from failwise.vocabulary.spec import Arguments, CallContext

if TYPE_CHECKING:
    from failwise.connect.mcp import Confirmation
    from failwise.runtime.runtime import Runtime

Job = Callable[[Any], str | None]
"""Names the job that a request belongs to, from the context that the server's tools are given too."""

_MOST_JOBS: Final = 4_096


class Served:
    """The tool calls of any number of servers through one bridge.

    A server is not told which calls belong together: those of one client (connection, or token and
    program) share their open effects, and none of them is stopped by another's failure. `job` names
    it better: calls of one job share their open effects over restarts. With a `Run` in place of a
    `Runtime`, all calls belong to that.
    """

    def __init__(self, runtime: "Runtime | Run", lang: Language, job: Job | None) -> None:
        self.bridge = Bridge(runtime, lang=lang, passthrough=(Passed,), judged=mcp_results.judged)
        self.lang: Language = lang
        self.runtime = self.bridge.runtime
        if job is not None and not callable(job):
            raise UsageError(f"job={job!r}: give a function of the request's context")
        self._run = runtime._where()[1]
        self._job = job
        self._hosts = Hosts(self.runtime)
        self._jobs: OrderedDict[str, LooseRun] = OrderedDict()

    def plan(
        self,
        name: str,
        schema: Mapping[str, Any] | None,
        *,
        source: Any,
        description: str = "",
        annotations: Any = None,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        trusted: bool = True,
    ) -> Plan:
        """A tool of a server. Its author's annotations are the server's own word, so they are believed;
        what stands under ``failwise`` in the tool's ``meta`` wins over them. `trusted`: whether the
        annotations are the author's, and not those of another server that this one passes on."""
        said: dict[str, Any] = dict(mcp_results.declared(annotations, trusted=trusted))
        own = (meta or {}).get(mcp_results.DECLARED) if trusted else None
        if isinstance(own, Mapping):
            said.update(own)
            if said.get("read_only"):
                said.pop("destructive", None)
        return self.bridge.tool(
            mcp_results.tool_name(name),
            schema,
            source=source,
            description=description,
            said=said or None,
            timeout=timeout,
        )

    def run(self, context: Any, request: Any) -> Run:
        """The run of a call. `context` is what the server's tools are given, `request` the SDK's context of
        the request, None outside of one."""
        if self._run is not None:
            return self._run
        job = self._job(context) if self._job is not None else None
        if job is None and request is not None:
            return self._asked(self._hosts.of(request).run)
        job = "" if job is None else str(job)
        run = self._jobs.get(job)
        if run is None:
            run_id = job or self.runtime._new_id("mcp-server")
            run = self._jobs[job] = LooseRun(self.runtime, run_id, None, {})
            if len(self._jobs) > _MOST_JOBS:
                self._jobs.popitem(last=False)
        else:
            self._jobs.move_to_end(job)
        return self._asked(run)

    def _asked(self, run: LooseRun) -> LooseRun:
        if run.confirm is None and self.runtime.confirm is None:
            run.confirm = _confirmed
        return run

    async def call(
        self,
        plan: Plan,
        arguments: Mapping[str, Any],
        attempt: Attempt,
        original: Callable[[], Awaitable[Any]],
        run: Run,
    ) -> Outcome:
        """Make a call through the runtime; `Passed` comes out of it as it went in.

        Where this server stands in another one that is protected too, the outer one has begun it.
        """
        name = plan.tool.name
        outer = _under_way.get()
        if (
            outer is not None
            and outer[0] is self.runtime
            and outer[1].endswith(name)
            and outer[2] == arguments
        ):
            return Outcome(None, await original())

        async def marked(name: str, given: Arguments, context: CallContext) -> Any:
            token = _under_way.set((self.runtime, name, given))
            try:
                return await attempt(name, given, context)
            finally:
                _under_way.reset(token)

        return await self.bridge.call(
            plan, dict(arguments), marked, original, run=run, call_id=None
        )


_under_way: "ContextVar[tuple[Runtime, str, Mapping[str, Any]] | None]" = ContextVar(
    "failwise_mcp_call", default=None
)


# Asking the user of the client


class Asking:
    """One request, within which the client's user may be asked about a guessed repair: use it with ``with``.

    `context` and `params` as for `failwise.connect.mcp.confirm`.
    """

    __slots__ = ("_confirmation", "_context", "_params", "_token")

    def __init__(self, context: Any, params: Any = None) -> None:
        self._context, self._params = context, params
        self._confirmation: Confirmation | None = None

    @property
    def confirmation(self) -> "Confirmation":
        """How the user is asked."""
        if self._confirmation is None:
            from failwise.connect.mcp import confirm

            self._confirmation = confirm(self._context, self._params)
        return self._confirmation

    @property
    def question(self) -> Any:
        """What to return in place of a result, where the client can only be asked so; else None."""
        return None if self._confirmation is None else self._confirmation.question

    def __enter__(self) -> "Asking":
        self._token = _asking.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _asking.reset(self._token)


_asking: "ContextVar[Asking | None]" = ContextVar("failwise_mcp_asking", default=None)


async def _confirmed(tool: str, repairs: Any) -> bool:
    """Ask the user of the client whose call this is. Nobody there is a no."""
    asking = _asking.get()
    return asking is not None and await asking.confirmation(tool, repairs)
