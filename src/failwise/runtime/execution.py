"""One call under way: what both drivers share. Steps that do not block are performed here."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

from failwise.runtime.call import Logic, run_call
from failwise.runtime.credentials import Credential
from failwise.runtime.off import bare
from failwise.runtime.run import Run
from failwise.vocabulary.errors import ToolError
from failwise.vocabulary.failure import Failure
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import CallContext, ToolSpec
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Answer,
    Ask,
    Call,
    Cancelled,
    Claim,
    Claimed,
    Machine,
    Refused,
    Release,
    Reply,
    Settle,
)

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

logger = logging.getLogger("failwise")

PLAIN = Admitted()
"""Leave for a tool without a credential: shared, never changed."""


class LiveContext(CallContext):
    """The context of a call under way: read from it only when the tool asks."""

    __slots__ = ("_execution", "_given")

    def __init__(
        self,
        execution: "Execution",
        credential: Any,
        attempt: int,
        timeout: float | None,
        key: str | None,
    ) -> None:
        self._execution, self._given = execution, (attempt, timeout, key)
        self.credential = credential

    def note(self, **facts: Any) -> None:
        call = self._execution.call
        call.extra = {**(call.extra or {}), **facts}

    @property
    def headers(self) -> Mapping[str, str]:
        observers = self._execution.runtime._observers
        if not observers:
            return {}
        from failwise.runtime.observed import headers_of

        return headers_of(observers)

    def __getattr__(self, name: str) -> Any:
        """Fill in everything at the first question."""
        execution, (attempt, timeout, key) = self._execution, self._given
        call, runtime, credential = execution.call, execution.runtime, execution.credential
        super().__init__(
            attempt=attempt,
            idempotency_key=key,
            credential=self.credential,
            generation=credential.generation if credential else 0,
            call_id=call.call_id,
            run_id=call.run_id,
            until=None if timeout is None else call.now + timeout,
            clock=runtime.clock.monotonic,
            on_progress=runtime._on_progress,
            patience=_patience(call.tool, timeout),
        )
        return object.__getattribute__(self, name)


def _patience(tool: ToolSpec, timeout: float | None) -> float:
    """By how much this attempt's limit has grown over the tool's own."""
    if tool.timeout is None or timeout is None:
        return 1.0
    return max(1.0, timeout / tool.timeout)


class Plan:
    """What is alike for every call of a tool: how its arguments are read, how leave is asked."""

    __slots__ = ("_steps", "parameters", "read", "straight", "tool", "upstream")

    def __init__(self, tool: ToolSpec, read: Callable[..., Any], run_id: str, repair: str) -> None:
        self.tool, self.read = tool, read
        self.parameters = tool.parameter_count
        self.upstream = tool.upstream_name
        self._steps = self._made(run_id)
        self.straight = (
            tool.read_only is True
            and tool.credential is None
            and tool.success is None
            and tool.profile is None
            and repair != "off"
            and (tool.call_async is not None or tool.call is not None)
        )

    def steps(self, run_id: str) -> tuple[Admit, Release]:
        """How leave is asked for a first attempt, and given back after a success. Shared by the calls
        of a run, never changed; the calls of a tool mostly follow each other in one run."""
        steps = self._steps
        if steps[0].run_id != run_id:
            steps = self._steps = self._made(run_id)
        return steps

    def _made(self, run_id: str) -> tuple[Admit, Release]:
        upstream = self.upstream
        return (
            Admit(upstream, None, run_id, 1, None, None, self.tool.name),
            Release(upstream, None, run_id, 1, None),
        )


class Execution:
    """A call, the run it belongs to, and what it holds: its credential, work that ends late.

    `performer`: who runs the tool of this very call, where the tool itself cannot (a framework's).
    """

    __slots__ = ("call", "credential", "late", "performer", "plan", "result", "run", "runtime")

    def __init__(self, runtime: "Runtime", call: Call, run: Run, plan: "Plan") -> None:
        self.runtime, self.call, self.run, self.plan = runtime, call, run, plan
        name = call.tool.credential
        self.credential: Credential | None = None
        if name is not None:
            self.credential = run.credentials.get(name) or runtime._credentials.get(name)
        self.late: Future[Any] | None = None
        self.result: ToolResult[Any] | None = None
        self.performer: Any = None

    @property
    def shares(self) -> bool:
        """Identical calls at once share one result: those that may have an effect."""
        return self.call.tool.read_only is not True

    @property
    def straight(self) -> bool:
        """A read without a credential, a deadline or a test of its own: it may go the good way."""
        return (
            self.plan.straight
            and self.call.deadline is None
            and self.run.interrupted_by is None
            and not self.run.refusals
            and self.runtime.mode == "act"
            and not self.call.truncated
            and self.call.written_name is None
        )

    def machine(self) -> Machine:
        """A fresh machine for this call, which is told first what it may ask for."""
        call, runtime = self.call, self.runtime
        if runtime.mode == "off":
            return bare(call)
        call.can_refresh = self.credential is not None and self.credential.refresh is not None
        call.can_confirm = self.confirm is not None
        call.repair_default = runtime.repair
        call.can_fix = (call.tool.fixer or runtime.fixer) is not None and call.repair != "off"
        return run_call(call, self.logic)

    @property
    def logic(self) -> Logic:
        """What the machine consults."""
        return self.runtime._judgement.logic

    @property
    def confirm(self) -> Callable[..., Any] | None:
        """Whom to ask about a guess: the run's own user, else the runtime's."""
        own = self.run.confirm
        return self.runtime.confirm if own is None else own

    def close(self, machine: Machine, signal: BaseException) -> None:
        """Tell the machine that the call is over; keep its record. Nothing here blocks."""
        passes = isinstance(signal, self.runtime.passthrough + self.call.tool.passthrough)
        try:
            step = machine.throw(Cancelled(control_flow=passes))
            while True:
                if isinstance(step, Settle):
                    self.settle(step)
                elif isinstance(step, Release):
                    self.release(step)
                step = machine.send(None)
        except StopIteration as stop:
            self.runtime._finish(self, stop.value)
        except Cancelled:
            pass  # cancelled before its first step

    @property
    def identity(self) -> str | None:
        """The credential as guards count it: tenants apart."""
        return self.credential.identity if self.credential is not None else None

    def admit(self, step: Admit) -> "Admitted | Refused | Future[Admitted | Refused]":
        """The run's leave, then the guards'. A future is passed through `leave` by the driver."""
        if self.run.interrupted_by is not None:
            refusal = self.run.refusal(step.upstream, self.identity)
            if refusal is not None:
                return refusal
        if self.credential is not None:
            step.credential = self.credential.identity
        elif not self.run.refusals:
            return self.runtime._guards.admit(step)
        answer = self.runtime._guards.admit(step)
        return answer if isinstance(answer, Future) else self.leave(answer)

    def give_back(self, step: Admit, done: "Future[Admitted | Refused]") -> None:
        """Leave that came when the caller had given up waiting for it."""
        if not done.cancelled() and isinstance(done.result(), Admitted):
            self.runtime._guards.release(
                Release(step.upstream, step.credential, step.run_id, step.attempt, None, sent=False)
            )

    def leave(self, answer: "Admitted | Refused") -> "Admitted | Refused":
        """The guards' leave, with the credential's generation and what the run remembers."""
        if isinstance(answer, Refused):
            return answer
        credential, name = self.credential, self.call.tool.name
        refusals = self.run.refusals.get(name, 0)
        if credential is None:
            return Admitted(refusals=refusals) if refusals else answer
        worked = self.run.worked(name, credential.identity)
        return Admitted(credential.generation, worked, refusals)

    def claim(self, step: Claim) -> "Future[Claimed]":
        return self.runtime.journal.claim(step, self.runtime.owner, self.runtime.lease)

    def unclaimed(self, error: BaseException) -> Claimed:
        """The journal could not write the claim: nothing may be sent."""
        logger.error(
            "%s is not sent: its claim could not be written: %s", self.call.tool.name, error
        )
        return Claimed("unavailable")

    def settle(self, step: Settle) -> None:
        """Note what became of the effect; where work still runs, again when it ends."""
        journal = self.runtime.journal
        late = self.late
        if step.state != "unknown" or late is None:
            journal.settle(step.key, step.state, step.result)
            return
        if not late.done():
            journal.settle(step.key, step.state, step.result)

        def settle_late(work: "Future[Any]") -> None:
            state = self._late_state(work)
            if state is not None:
                logger.info("%s ended after its time limit: %s", self.call.tool.name, state)
                journal.settle(step.key, state, None)

        late.add_done_callback(settle_late)

    def _late_state(self, work: "Future[Any]") -> str | None:
        """What became of the effect of work that ended after its time limit."""
        try:
            answer = Answer(work.result(0))
        except (CancelledError, TimeoutError):
            return None
        except BaseException as error:
            answer = Answer(error=error)
        failure = self.runtime._classify_late(answer, self.call)
        if failure is None:
            return "done"
        return "not_done" if failure.effect.safe else None

    def release(self, step: Release) -> None:
        """Give the slot back; work past its time limit keeps it until it ends."""
        if self.credential is not None:
            step.credential = self.credential.identity
        guards, late = self.runtime._guards, self.late
        if late is None or late.done():
            guards.release(step)
        else:
            late.add_done_callback(lambda _: guards.release(step))

    def raised(self, error: Exception) -> Answer:
        """What the tool raised, as its answer; signals that pass are raised on."""
        if isinstance(error, self.call.tool.passthrough + self.runtime.passthrough):
            raise error
        return Answer(error=error)

    def never_began(self, limit: float | None) -> Answer:
        """No thread became free for a sync tool within its time limit: certainly nothing was sent."""
        return Answer(
            error=ToolError(
                f"no thread became free within {limit:g} s: tools past their time limit hold them",
                code="network.pool_timeout",
                effect="not_sent",
                transient=True,
            )
        )

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline, None without one."""
        deadline = self.call.deadline
        return None if deadline is None else max(0.0, deadline - self.runtime.clock.monotonic())

    def no_slot(self, step: Admit, future: "Future[Admitted | Refused]") -> Refused:
        """The deadline came before a slot did."""
        self.give_up(step, future)
        return Refused("runtime.concurrency", reason="no slot became free before the deadline")

    def give_up(self, step: Admit, future: "Future[Admitted | Refused]") -> None:
        """Wait no longer; leave that is given at this very moment goes back."""
        if not future.cancel():
            future.add_done_callback(lambda done: self.give_back(step, done))

    def missing_credential(self) -> ToolError | None:
        """A tool names a credential that nobody registered."""
        name = self.call.tool.credential
        if name is None or self.credential is not None:
            return None
        return ToolError(
            f"credential {name!r} is not registered; call runtime.credential({name!r}, get=...)",
            code="auth.invalid_credential",
            effect="not_sent",
            transient=False,
        )

    def credential_failed(self, error: BaseException) -> ToolError:
        """Getting the credential failed: nothing was sent."""
        name = self.credential.name if self.credential else ""
        failed = ToolError(
            f"credential {name!r} could not be obtained: {type(error).__name__}",
            code="auth.invalid_credential",
            effect="not_sent",
            transient=False,
        )
        failed.__cause__ = error
        return failed

    def keep_credential(self, value: Any) -> Any:
        """Keep a value that was just got, and never show it."""
        assert self.credential is not None
        self.credential.value = value
        self.runtime._hide(value)
        return value

    def verdict(self, answer: Any) -> "tuple[bool | None, Any]":
        """A verify callback's answer: True or a value means yes, False no, None don't know."""
        if answer is None:
            return None, None
        if isinstance(answer, bool):
            return answer, None
        if isinstance(answer, ToolResult):
            return (
                (True, answer.value)
                if answer.success and answer.value is not None
                else (None, None)
            )
        return True, answer

    @property
    def fixer(self) -> "Callable[..., Any] | None":
        """Who corrects arguments that the upstream refused: the tool's own fixer, else the runtime's."""
        return self.call.tool.fixer or self.runtime.fixer

    def fixer_arguments(self, step: Ask) -> "tuple[str, dict[str, Any], Failure | None]":
        """What a fixer is given: the tool's name, a copy of the arguments, the refusal."""
        import copy

        return self.call.tool.name, copy.deepcopy(step.arguments), step.failure

    def fixed(self, answer: Any) -> Reply:
        """A fixer's answer: corrected arguments, or None for "don't know"."""
        if answer is None:
            return Reply(None)
        if not isinstance(answer, Mapping):
            raise TypeError(f"a fixer gives a mapping of arguments or None, not {type(answer)}")
        return Reply(True, arguments=dict(answer))

    def verify_arguments(self) -> "tuple[Callable[..., Any], bool]":
        """The verify callback, and whether it takes the call's context as second argument."""
        verify = self.call.tool.verify
        assert verify is not None
        return verify, _takes_two(verify)


def _takes_two(function: Callable[..., Any]) -> bool:
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
