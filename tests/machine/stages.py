"""One scripted tool, three drivers: asyncio, sync, and the simulator, behind the same few words.

Whatever holds on one stage must hold on all of them: drivers perform, and never decide.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from failwise.runtime.execution import Execution
from failwise.runtime.run import Run
from failwise.runtime.runtime import Runtime
from failwise.simulation import Simulator
from failwise.testing import SteppingClock
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.spec import Arguments, ToolSpec
from failwise.vocabulary.steps import (
    Admit,
    Admitted,
    Answer,
    Ask,
    Call,
    Delegate,
    Invoke,
    Machine,
    Refresh,
    Release,
    Reply,
)


@dataclass
class After:
    """An answer that takes its time, in seconds."""

    seconds: float
    answer: Any


@dataclass
class Script:
    """A tool whose answers are given in order; the last one repeats."""

    name: str
    answers: Sequence[Any]
    declarations: dict[str, Any]
    times: list[float] = field(default_factory=list)
    limits: list[float | None] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    sent: list[Arguments] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return len(self.times)

    def next(
        self, now: float, limit: float | None, key: str | None, arguments: Arguments
    ) -> tuple[Any, float]:
        """The next answer, and how long it takes."""
        answer = self.answers[min(len(self.times), len(self.answers) - 1)]
        self.times.append(round(now, 9))
        self.limits.append(None if limit is None else round(limit, 9))
        self.keys.append(key)
        self.sent.append(dict(arguments))
        return (answer.answer, answer.seconds) if isinstance(answer, After) else (answer, 0.0)


class OpenGuards:
    """Guards that let everything through, and count."""

    def __init__(self) -> None:
        self.held = 0
        self.released: list[Release] = []

    def admit(self, step: Admit) -> Admitted:
        self.held += 1
        return Admitted()

    def release(self, step: Release) -> None:
        self.held -= 1
        self.released.append(step)


class Stage:
    """A runtime with scripted tools, and one way of driving it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.scripts: dict[str, Script] = {}
        self.results: list[ToolResult[Any]] = []
        self.clock: Any = SteppingClock()
        self.guards = OpenGuards()

    def open(self, policy: Any = None, *, jitter: float | None = 0.0, **options: Any) -> "Stage":
        """Begin, with exact delays unless `jitter` is None (the preset's own)."""
        self.runtime = Runtime(
            self.directory / "journal.db",
            policy=policy,
            jitter=jitter,
            clock=self.clock,
            guards=self.guards,
            **options,
        )
        self.runtime.on_result(self.results.append)
        return self

    def tool(self, name: str, *answers: Any, **declarations: Any) -> Script:
        """Register a scripted tool."""
        script = self.scripts[name] = Script(name, answers, declarations)
        self.runtime.add(self._spec(script))
        return script

    def _spec(self, script: Script) -> ToolSpec:
        raise NotImplementedError

    def call(self, name: str, arguments: Any = None, **options: Any) -> ToolResult[Any]:
        """One call, in no run."""
        return self.call_in(None, name, arguments, **options)

    def call_in(
        self, run: Run | None, name: str, arguments: Any = None, **options: Any
    ) -> ToolResult[Any]:
        raise NotImplementedError

    def close(self) -> None:
        self.runtime.close()


class SyncStage(Stage):
    """`Runtime.call_sync`."""

    def _spec(self, script: Script) -> ToolSpec:
        def call(arguments: Arguments, context: Any) -> Any:
            return _perform(self.clock, script, arguments, context)

        return ToolSpec(script.name, call=call, thread=False, **script.declarations)

    def call_in(
        self, run: Run | None, name: str, arguments: Any = None, **options: Any
    ) -> ToolResult[Any]:
        return (run or self.runtime).call_sync(name, arguments or {}, **options)


class AsyncStage(Stage):
    """`Runtime.call`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.runner = asyncio.Runner()

    def _spec(self, script: Script) -> ToolSpec:
        async def call(arguments: Arguments, context: Any) -> Any:
            return _perform(self.clock, script, arguments, context)

        return ToolSpec(script.name, call_async=call, **script.declarations)

    def call_in(
        self, run: Run | None, name: str, arguments: Any = None, **options: Any
    ) -> ToolResult[Any]:
        return self.runner.run((run or self.runtime).call(name, arguments or {}, **options))

    def close(self) -> None:
        self.runner.close()
        super().close()


def _perform(clock: SteppingClock, script: Script, arguments: Arguments, context: Any) -> Any:
    answer, seconds = script.next(
        clock.monotonic(), context.remaining, context.idempotency_key, arguments
    )
    if seconds:
        clock.advance(seconds)
    if isinstance(answer, BaseException):
        raise answer
    return answer


class SimulatedStage(Stage):
    """`Simulator`: the same machine, on a virtual clock. The stage is its world and its guards."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.simulator = Simulator(self, guards=lambda clock: self)
        self.clock = self.simulator.clock
        self.under_way: dict[str, Execution] = {}

    def _spec(self, script: Script) -> ToolSpec:
        def never(arguments: Arguments, context: Any) -> Any:
            raise AssertionError("the simulator asks its world")

        return ToolSpec(script.name, call=never, **script.declarations)

    def call_in(
        self, run: Run | None, name: str, arguments: Any = None, **options: Any
    ) -> ToolResult[Any]:
        execution = self.runtime._begin(name, (arguments or {},), options, run)
        self.simulator.add(*self._begin(execution), at=self.clock.now)
        before = len(self.simulator.results)
        self.simulator.run()
        finished = self.simulator.results[before:]
        for result in finished:
            self.runtime._finish(self.under_way[result.call_id], result)
        return finished[-1]

    def _begin(self, execution: Execution) -> tuple[Machine, Call]:
        self.current = self.under_way[execution.call.call_id] = execution
        return execution.machine(), execution.call

    # The world

    def invoke(self, call: Call, step: Invoke, now: float) -> tuple[Answer, float]:
        execution = self.under_way[call.call_id]
        missing = execution.missing_credential()
        if missing is not None:
            return Answer(error=missing), 0.0
        answer, seconds = self.scripts[call.tool.name].next(
            now, step.timeout, step.key, step.arguments
        )
        if isinstance(answer, BaseException):
            return Answer(error=answer), seconds
        return Answer(answer), seconds

    def ask(self, call: Call, step: Ask, now: float) -> Reply:
        execution = self.under_way[call.call_id]
        try:
            if step.who == "confirm":
                assert self.runtime.confirm is not None
                return Reply(self.runtime.confirm(call.tool.name, step.repairs) is True)
            if step.who == "fixer":
                assert execution.fixer is not None
                return execution.fixed(execution.fixer(*execution.fixer_arguments(step)))
            verify, _ = execution.verify_arguments()
            return Reply(*execution.verdict(verify(dict(step.arguments))))
        except Exception:
            return Reply(None)

    def refresh(self, call: Call, step: Refresh, now: float) -> bool:
        credential = self.under_way[call.call_id].credential
        assert credential is not None
        assert credential.refresh is not None
        _, lead = credential.begin_refresh(step.seen)
        if lead:
            credential.finish_refresh(credential.refresh(), succeeded=True)
        return credential.generation > step.seen

    def delegate(self, call: Call, step: Delegate, now: float) -> tuple[Machine, Call]:
        return self._begin(self.runtime._child(self.under_way[call.call_id], step))

    # The guards

    def admit(self, step: Admit) -> Any:
        execution = next(
            e for e in reversed(self.under_way.values()) if e.call.tool.name == step.tool
        )
        return execution.admit(step)

    def release(self, step: Release) -> None:
        self.guards.release(step)


STAGES: Mapping[str, Callable[[Path], Stage]] = {
    "asyncio": AsyncStage,
    "sync": SyncStage,
    "simulated": SimulatedStage,
}

Open: TypeAlias = Callable[..., Stage]
"""Opens a stage with a policy."""
