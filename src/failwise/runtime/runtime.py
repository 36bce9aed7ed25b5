"""`Runtime`: where calls begin and end, and what the drivers draw on."""

import itertools
import logging
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from failwise.runtime import lines
from failwise.runtime.answering import Answering
from failwise.runtime.beginning import begin, child_of
from failwise.runtime.clock import Clock, SystemClock
from failwise.runtime.credentials import credential
from failwise.runtime.discretion import discreet_repairs
from failwise.runtime.execution import Execution, Plan
from failwise.runtime.flights import Flight, shared_async, shared_sync
from failwise.runtime.intake import one_of_many
from failwise.runtime.judgement import Judgement
from failwise.runtime.registry import Registry
from failwise.runtime.run import LooseRun, Run, checked_deadline, surroundings
from failwise.runtime.trouble import Memory
from failwise.vocabulary.errors import UsageError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.ports import Guards, Observer
from failwise.vocabulary.result import Attempt, ToolResult
from failwise.vocabulary.spec import ToolSpec
from failwise.vocabulary.steps import Answer, Call, Delegate

if TYPE_CHECKING:
    from types import TracebackType

    from failwise.classify.advisor import Advisor
    from failwise.journal.journal import Journal
    from failwise.tools.declared import Declarations

logger = logging.getLogger("failwise")

P = ParamSpec("P")
T = TypeVar("T")
Mode = Literal["act", "observe", "off"]
Repairs = Literal["confirm", "auto", "off"]


class Runtime(Registry, Answering):
    """Runs tools so that every call comes back as a `ToolResult`.

    `journal`: a path, a URL, a `Journal`, or ``":memory:"``; by default ``FAILWISE_JOURNAL``, else
    ``.failwise/journal.db``. `policy`: ``"default"``, ``"interactive"``, ``"batch"``, a TOML file,
    or parsed tables. `mode`: ``"act"``; ``"observe"`` classifies and records and changes nothing;
    ``"off"`` (also the environment's ``FAILWISE=off``) only calls the tool. `passthrough`:
    exception types that are control flow and leave unharmed. `confirm`: asked whether a guessed
    repair may be applied, with (tool name, repairs); only True is a yes. `repair`: for tools that say
    nothing, whether guessed repairs ask (``"confirm"``), run (``"auto"``; the default where the
    environment says ``FAILWISE_ENV=development``), or no repair is made at all (``"off"``). `fixer`:
    asked once, with (tool name, arguments, failure), where an upstream refused the arguments and no
    fix follows from the refusal; it gives corrected arguments, or None. `advisor`: asked once per
    fingerprint about failures that no rule knows, beside the calls; the code it gives (or None)
    labels later ones, in later processes of the journal too, and makes no effect safe (an `Advisor`
    sets its bounds). `rules`: files of text rules of one's own, which win over the package's.
    `guards`: where the guards count: ``"memory"``, the URL of a Redis or Valkey server for a fleet (``redis://``,
    ``rediss://``, ``valkey://``, ``unix://``; by default ``FAILWISE_GUARDS``), or another
    implementation of the `Guards` port. `lease`: seconds after which a claim without news counts as unknown.
    `jitter` overrides the policy's (0: exact delays). `clock` injects time. `tls_probe`: after a
    certificate fault of which a tool's own client kept nothing, connect once beside the call (at most
    2 s, nothing is sent, nothing repeated) to see the certificate. `declarations`: what you know of tools
    made elsewhere, by name or glob (``{"pay_*": {"read_only": False, "timeout": 20}}``); they win over
    what the tools say of themselves.

    Nothing is opened before the first call. One runtime serves threads, several loops and forks.
    Raises `UsageError` for options that cannot work.
    """

    def __init__(
        self,
        journal: "str | os.PathLike[str] | Journal | None" = None,
        *,
        policy: "str | Path | Mapping[str, Any] | None" = None,
        mode: Mode | None = None,
        passthrough: Sequence[type[BaseException]] = (),
        confirm: Callable[..., Any] | None = None,
        repair: Repairs | None = None,
        fixer: Callable[..., Any] | None = None,
        advisor: "Callable[[Failure], Any] | Advisor | None" = None,
        rules: Sequence["str | os.PathLike[str]"] = (),
        guards: "str | Guards | None" = None,
        profiles: Sequence["str | os.PathLike[str]"] = (),
        jitter: float | None = None,
        lease: float = 120.0,
        callback_timeout: float = 30.0,
        clock: Clock | None = None,
        on_progress: Callable[[float, str], None] | None = None,
        tls_probe: bool = False,
        declarations: "Mapping[str, Mapping[str, Any]] | Declarations | None" = None,
    ) -> None:
        super().__init__()
        if declarations is not None:
            self.declare(declarations)
        self._tls_probe = tls_probe
        if mode not in (None, "act", "observe", "off"):
            raise UsageError(f"mode={mode!r}: say 'act', 'observe' or 'off'")
        self.mode: Mode = mode or "act"
        if os.environ.get("FAILWISE", "").lower() in ("off", "0", "false"):
            self.mode = "off"
        elif mode is None and os.environ.get("FAILWISE", "").lower() == "observe":
            self.mode = "observe"
        self.clock: Clock = clock or SystemClock()
        self.confirm = confirm
        self.repair = _repair_mode(repair)
        if fixer is not None and not callable(fixer):
            raise UsageError(f"fixer={fixer!r}: give a function of tool name, arguments, failure")
        self.fixer = fixer
        self.lease = lease
        self.passthrough = tuple(passthrough)
        self._callback_timeout = callback_timeout
        self._journal_option = journal
        self._journal: Journal | None = None
        self._guards_option = guards
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self._tasks: set[Any] = set()
        self._prefix = os.urandom(6).hex()
        self._counter = itertools.count(1)
        self._loose = LooseRun(self, f"session-{self._prefix}", None, {})
        self._judgement = Judgement(self, policy, profiles, jitter, advisor, rules)
        self._judgement.logic.heard = self._heard
        self._guards_made: Guards | None = self._guards_given(guards)
        self._plans: dict[str, Plan] = {}
        self._drive: Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]] | None = None
        self._drive_sync: Callable[[Execution], ToolResult[Any]] | None = None
        self._observers: list[Observer] = []
        self._memory = Memory()
        _living.add(self)

    def _equipped(self, spec: ToolSpec) -> ToolSpec:
        if not self._tls_probe or self.mode == "off":
            return spec
        from failwise.runtime.probing import probing

        return probing(spec, self._judgement.classifier)

    def _profiled(self, profile: Mapping[str, Any]) -> None:
        self._judgement.learn(profile)

    # Calling

    def run(
        self,
        id: str | None = None,
        *,
        deadline: Any = None,
        credentials: Mapping[str, Any] | None = None,
        confirm: Callable[..., Any] | None = None,
        model: str | None = None,
    ) -> Run:
        """Begin a chain of calls. `id`: the job's own name, the same after a restart.

        `deadline` in seconds from now (or a timedelta). `credentials` of this run only: a value, a
        function, or ``{"get": ..., "refresh": ...}`` by name; tenants are kept apart. `confirm` is
        asked in this run instead of the runtime's: where each run has a user of its own. `model`
        names the chat model that asks for the calls, for the records.
        """
        if confirm is not None and not callable(confirm):
            raise UsageError(f"confirm={confirm!r}: give a function of tool name, repairs")
        seconds = checked_deadline(deadline)
        outer = surroundings.get()
        until = None if seconds is None else self.clock.monotonic() + seconds
        if outer is not None and outer.call.deadline is not None:
            until = outer.call.deadline if until is None else min(until, outer.call.deadline)
        own = {}
        for name, given in (credentials or {}).items():
            own[name] = credential(name, given, None, own=True)
            if not callable(given) and not isinstance(given, Mapping):
                self._hide(given)
        run = Run(self, id or self._new_id("run"), until, own, confirm)
        run.model = model
        return run

    @overload
    def call(
        self, tool: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, ToolResult[T]]: ...
    @overload
    def call(
        self, tool: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, ToolResult[T]]: ...
    @overload
    def call(
        self,
        tool: "str | Callable[..., Any]",
        raw: "str | bytes | Mapping[str, Any] | None" = None,
        /,
        **options: Any,
    ) -> Coroutine[Any, Any, ToolResult[Any]]: ...
    def call(self, tool: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, ToolResult[Any]]:
        """Call a tool; a failed call comes back as data, never as an exception.

        By name with what the model wrote: ``call("search", '{"query": "shoes"}', call_id="call_7")``;
        from code with the function's own arguments: ``call(search, query="shoes")``. Options:
        `call_id`, `deadline` (seconds), `truncated` (the model's stop reason was the length),
        `policy` (rows for this call), `extra` (kept on the result), `raw` (model text for a
        function given by reference). Cancellation passes through, after the record is closed.
        """
        execution = self._begin(tool, args, kwargs, None)
        if execution.run.chain and execution.shares:
            return shared_async(self, execution)
        return (self._drive or self._async_driver())(execution)

    @overload
    def call_sync(
        self, tool: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> ToolResult[T]: ...
    @overload
    def call_sync(
        self, tool: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> ToolResult[T]: ...
    @overload
    def call_sync(
        self,
        tool: "str | Callable[..., Any]",
        raw: "str | bytes | Mapping[str, Any] | None" = None,
        /,
        **options: Any,
    ) -> ToolResult[Any]: ...
    def call_sync(self, tool: Any, /, *args: Any, **kwargs: Any) -> ToolResult[Any]:
        """`call` without a loop of one's own; an async tool runs on one background loop."""
        return self._call_sync(tool, args, kwargs, None)

    async def call_many(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """Several calls at once; results keep the order, one failing never loses the others.

        Each is ``(tool, raw)``, ``(tool, raw, call_id)``, or a mapping with `tool`, `arguments` and
        the options of `call`.
        """
        return await self._call_many(calls, None)

    def call_many_sync(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """`call_many` without a loop of one's own: each call in a thread."""
        return self._call_many_sync(calls, None)

    def _call(
        self, tool: Any, args: tuple[Any, ...], options: dict[str, Any], run: Run | None
    ) -> Coroutine[Any, Any, ToolResult[Any]]:
        return self._driven(self._begin(tool, args, options, run))

    def _where(self) -> tuple["Runtime", Run | None]:
        return self, None

    def _driven(self, execution: Execution) -> Coroutine[Any, Any, ToolResult[Any]]:
        if execution.run.chain and execution.shares:
            return shared_async(self, execution)
        return (self._drive or self._async_driver())(execution)

    def _async_driver(self) -> "Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]]":
        """The asyncio driver, imported by the first async call, after its advice and under its
        observers' eyes."""
        from failwise.runtime.drive_async import drive

        made: Callable[[Execution], Coroutine[Any, Any, ToolResult[Any]]] = drive
        loading = self._judgement.recall()
        if loading is not None and not loading.done():
            from failwise.runtime.recalling import recalled_async

            made = recalled_async(made, loading)
        for observer in self._observers:
            from failwise.runtime.observed import observed_async

            made = observed_async(made, observer)
        self._drive = made
        return made

    def _sync_driver(self) -> "Callable[[Execution], ToolResult[Any]]":
        """`_async_driver`, for the caller's thread."""
        from failwise.runtime.drive_sync import drive_sync

        made: Callable[[Execution], ToolResult[Any]] = drive_sync
        loading = self._judgement.recall()
        if loading is not None and not loading.done():
            from failwise.runtime.recalling import recalled_sync

            made = recalled_sync(made, loading)
        for observer in self._observers:
            from failwise.runtime.observed import observed_sync

            made = observed_sync(made, observer)
        self._drive_sync = made
        return made

    def replace(self, spec: ToolSpec) -> None:
        """Register a tool in the place of one that may be there: its server changed it."""
        self.discard(spec.name)
        self.add(spec)

    def discard(self, name: str) -> None:
        """Forget a tool. Calls of it that are under way go on."""
        self._tools.pop(name, None)
        self._declared.pop(name, None)
        self._plans.pop(name, None)
        self._judgement.forget(name)

    def observe(self, observer: Observer) -> Observer:
        """Let an `Observer` (tracing, for instance) see each call begin and end, where it runs."""
        self._observers.append(observer)
        self._drive = self._drive_sync = None
        return observer

    def _call_sync(
        self, tool: Any, args: tuple[Any, ...], options: dict[str, Any], run: Run | None
    ) -> ToolResult[Any]:
        return self._driven_sync(self._begin(tool, args, options, run))

    def _driven_sync(self, execution: Execution) -> ToolResult[Any]:
        if execution.run.chain and execution.shares:
            return shared_sync(self, execution)
        return (self._drive_sync or self._sync_driver())(execution)

    async def _call_many(self, calls: Sequence[Any], run: Run | None) -> list[ToolResult[Any]]:
        import asyncio

        begun = self._begin_many(calls, run)
        tasks = [asyncio.ensure_future(self._driven(execution)) for execution in begun]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _call_many_sync(self, calls: Sequence[Any], run: Run | None) -> list[ToolResult[Any]]:
        return self._drive_many_sync(self._begin_many(calls, run))

    def _drive_many_sync(self, begun: Sequence[Execution]) -> list[ToolResult[Any]]:
        import contextvars
        from concurrent.futures import ThreadPoolExecutor

        if len(begun) < 2:
            return [self._driven_sync(execution) for execution in begun]
        # Threads of their own: in the tools' pool, calls could wait for the very threads they hold.
        with ThreadPoolExecutor(min(len(begun), 64), "failwise-call") as threads:
            futures = [
                threads.submit(contextvars.copy_context().run, self._driven_sync, execution)
                for execution in begun
            ]
            return [future.result() for future in futures]

    def _begin_many(self, calls: Sequence[Any], run: Run | None) -> list[Execution]:
        """All of them, before any is sent: where one is misuse, none is."""
        prepared = [one_of_many(item) for item in calls]
        return [self._begin(tool, args, options, run) for tool, args, options in prepared]

    _begin = begin

    def _new_id(self, kind: str) -> str:
        return f"{kind}-{self._prefix}-{next(self._counter)}"

    # What the drivers need

    @property
    def journal(self) -> "Journal":
        """The journal, opened on first use."""
        journal = self._journal
        if journal is None:
            with self._lock:
                journal = self._journal
                if journal is None:
                    from failwise.journal.journal import Journal

                    option = self._journal_option
                    journal = option if isinstance(option, Journal) else Journal(option)
                    self._journal = journal
        return journal

    def _plan(self, tool: ToolSpec) -> Plan:
        """What is alike for every call of a tool, made at its first call."""
        read = self._judgement.reader(tool).read
        plan = Plan(tool, read, self._loose.id, tool.repair or self.repair)
        if self._tools.get(tool.name) is tool:
            self._plans[tool.name] = plan
        return plan

    @property
    def owner(self) -> str:
        """This process in claims."""
        return f"{self._prefix}-{os.getpid()}"

    def _guards_given(self, given: "str | Guards | None") -> Guards | None:
        place = os.environ.get("FAILWISE_GUARDS") or None if given is None else given
        if not isinstance(place, str):
            return place
        from failwise.guards import guards_at

        return guards_at(place, self.clock, server_time=isinstance(self.clock, SystemClock))

    @property
    def _guards(self) -> Guards:
        guards = self._guards_made
        if guards is None:
            with self._lock:
                if self._guards_made is None:
                    from failwise.guards import MemoryGuards

                    self._guards_made = MemoryGuards(self.clock)
                guards = self._guards_made
        return guards

    def upstreams(self) -> list[dict[str, Any]]:
        """For people: what the guards know of each upstream and credential now, trouble first.

        Rows with ``upstream``, ``credential``, ``circuit``, ``opens_in`` (seconds), ``quota``,
        ``cool_down`` (seconds left), ``in_flight``, ``waiting`` and more; empty where guards of
        one's own do not tell. With a server for the guards it is the fleet's state, and asking
        blocks for a few round trips.
        """
        statistics = getattr(self._guards, "statistics", None)
        rows: list[dict[str, Any]] = statistics() if callable(statistics) else []
        return rows

    async def _delegate(self, execution: Execution, step: Delegate) -> ToolResult[Any]:
        return await (self._drive or self._async_driver())(self._child(execution, step))

    def _delegate_sync(self, execution: Execution, step: Delegate) -> ToolResult[Any]:
        return (self._drive_sync or self._sync_driver())(self._child(execution, step))

    _child = child_of

    def _finish(self, execution: Execution, result: ToolResult[Any]) -> ToolResult[Any]:
        """Record a finished call and tell whoever listens."""
        run = execution.run
        if result.repairs:
            result.repairs = discreet_repairs(result.repairs)
        if result.failure is not None or execution.credential is not None or run.refusals:
            run.note(result, execution.call.tool.upstream_name, execution.identity)
        execution.result = result
        return self._keep(result)

    def _keep(self, result: ToolResult[Any]) -> ToolResult[Any]:
        """Record a result, also one that stands for a call that was never made."""
        if self.mode != "off":
            journal = self._journal
            (journal if journal is not None else self.journal).put(result)
        if self._callbacks or lines.calls.isEnabledFor(lines.INFO):
            self._tell(result)
        return result

    def _tell(self, result: ToolResult[Any]) -> None:
        """Log a finished call where somebody listens, and call back with it."""
        if lines.calls.isEnabledFor(lines.INFO):
            lines.write(result)
        for callback in self._callbacks:
            try:
                callback(result)
            except Exception:
                logger.exception("on_result callback %r failed", callback)

    def _heard(self, call: Call, attempt: Attempt) -> None:
        """Tell whoever listens of a failed attempt."""
        for callback in self._attempt_callbacks:
            try:
                callback(call, attempt)
            except Exception:
                logger.exception("on_attempt callback %r failed", callback)

    def _classify_late(self, answer: Answer, call: Call) -> Failure | None:
        return self._judgement.classify_late(answer, call)

    def callback_timeout(self, call: Call) -> float:
        """Seconds that a user's callback may take, within the deadline."""
        if call.deadline is None:
            return self._callback_timeout
        return max(0.001, min(self._callback_timeout, call.deadline - call.now))

    def _refresh_failed(self, name: str, error: BaseException) -> None:
        logger.warning("refreshing credential %r failed: %s", name, type(error).__name__)

    def _callback_failed(self, who: str, tool: str, error: BaseException) -> None:
        logger.warning(
            '%s of %s failed and counts as "don\'t know": %s', who, tool, type(error).__name__
        )

    def _spawn(self, coroutine: Any) -> None:
        import asyncio

        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Ending

    def flush(self, timeout: float = 5.0) -> None:
        """Wait until what was recorded so far is written (at most `timeout` seconds)."""
        if self._journal is not None:
            self._journal.flush(timeout)

    async def flush_async(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109 - hands it on
        """`flush` without blocking the loop."""
        if self._journal is not None:
            import asyncio

            await asyncio.get_running_loop().run_in_executor(None, self._journal.flush, timeout)

    def close(self) -> None:
        """Flush and close the journal, and a connection to shared guards. A later call opens them."""
        if self._guards_option is not self._guards_made:
            getattr(self._guards_made, "close", lambda: None)()
        journal, self._journal = self._journal, None
        if journal is not None and not hasattr(self._journal_option, "claim"):
            journal.close()

    async def aclose(self) -> None:
        """`close` without blocking the loop."""
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> "Runtime":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        self.close()

    async def __aenter__(self) -> "Runtime":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        await self.aclose()


def _repair_mode(given: str | None) -> Repairs:
    """What happens to guessed repairs of tools that say nothing."""
    if given is None:
        development = os.environ.get("FAILWISE_ENV", "").lower() == "development"
        return "auto" if development else "confirm"
    if given not in ("confirm", "auto", "off"):
        raise UsageError(f"repair={given!r}: say 'confirm', 'auto' or 'off'")
    return given  # type: ignore[return-value]


_living: "weakref.WeakSet[Runtime]" = weakref.WeakSet()


def _after_fork() -> None:
    """The child forgets the calls that are under way in the parent."""
    for runtime in list(_living):
        runtime._lock = threading.Lock()
        runtime._flights = {}
        runtime._tasks = set()
        runtime._prefix = os.urandom(6).hex()
        runtime._drive = runtime._drive_sync = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
