"""A runtime's calls as steps of a DBOS workflow: what was done is never done again after a crash.

    from failwise.connect.dbos import WorkflowRun

    @DBOS.workflow()
    def order(sku: str) -> str:
        run = WorkflowRun(runtime, deadline=3600)
        stock = run.call_sync("stock", {"sku": sku})
        placed = run.call_sync("order", {"sku": sku})
        return placed.for_user()

Each attempt is a step, each wait a `DBOS.sleep`: the runtime decides, the engine keeps. The run's id is the
workflow's, call ids count up from ``call-1``: the keys of effects are the same after every restart.
Source: dbos 3.4, "Steps", "Workflow recovery".
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from failwise.runtime.durable import LaidDown, Outcome, go_on, go_on_async
from failwise.runtime.execution import Execution
from failwise.runtime.intake import one_of_many
from failwise.runtime.run import Run, checked_deadline
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.plain import as_json
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Durable

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

__all__ = ["WorkflowRun"]

logger = logging.getLogger("failwise")


class WorkflowRun(Run):
    """A `Run` inside a DBOS workflow, made anew by the workflow's own code each time it runs.

    `deadline` in seconds from the first call, kept over restarts; `credentials`, `confirm` and `model`
    as for `Runtime.run`. A wait that is handed back otherwise (`retry_at`) is slept, at most
    `longest_wait` seconds at a time and at most `times` times a call. Values come back as JSON
    gives them, the first time too. The calls of `call_many` and `plan` are made one after the other:
    what a workflow does must have an order (child workflows run side by side). Inside a `DBOS.step` the
    whole call is part of that step, and its waits are slept in memory.

    Raises `UsageError` outside of a workflow, `ConfigurationError` where dbos is not installed.
    """

    def __init__(
        self,
        runtime: "Runtime",
        *,
        deadline: Any = None,
        credentials: Mapping[str, Any] | None = None,
        confirm: Callable[..., Any] | None = None,
        model: str | None = None,
        longest_wait: float = 86_400.0,
        times: int = 3,
    ) -> None:
        self._dbos = _dbos()
        workflow = self._dbos.workflow_id
        if workflow is None:
            raise UsageError(
                "WorkflowRun: make it inside a function decorated with @DBOS.workflow()"
            )
        given = runtime.run(id=workflow, credentials=credentials, confirm=confirm)
        super().__init__(runtime, workflow, given.deadline, given.credentials, given.confirm)
        self.model = model
        self._durable = Durable(longest_wait, times)
        self._seconds = checked_deadline(deadline)
        self._calls = 0
        self._step: tuple[tuple[int, int], int] = ((-1, 0), 0)
        self._under_way = False

    def call_sync(self, tool: Any, *args: Any, **options: Any) -> ToolResult[Any]:
        """`Runtime.call_sync` as steps of the workflow."""
        if self._dbos.step_id is not None:
            return self.runtime._driven_sync(self._inside(tool, args, options))
        with self._piece(tool, args, options) as piece:
            return self._perform(piece)

    async def call(self, tool: Any, *args: Any, **options: Any) -> ToolResult[Any]:
        """`Runtime.call` as steps of the workflow."""
        if self._dbos.step_id is not None:
            return await self.runtime._driven(self._inside(tool, args, options))
        with self._piece(tool, args, options) as piece:
            return await self._perform_async(piece)

    def _perform(self, piece: "_Piece") -> ToolResult[Any]:
        if self._seconds is not None and self.deadline is None:
            self._begin_at(self._dbos.run_step({"name": "failwise.begin"}, self.runtime.clock.time))
        while True:
            text = self._dbos.run_step({"name": piece.name}, piece.perform)
            result = piece.taken(text)
            if result is not None:
                return result
            self._dbos.sleep(piece.pause)

    async def _perform_async(self, piece: "_Piece") -> ToolResult[Any]:
        if self._seconds is not None and self.deadline is None:
            began = await self._dbos.run_step_async(
                {"name": "failwise.begin"}, self.runtime.clock.time
            )
            self._begin_at(began)
        while True:
            text = await self._dbos.run_step_async({"name": piece.name}, piece.perform_async)
            result = piece.taken(text)
            if result is not None:
                return result
            await self._dbos.sleep_async(piece.pause)

    async def call_many(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """Several calls, one after the other."""
        prepared = [one_of_many(item) for item in calls]
        return [await self.call(tool, *args, **options) for tool, args, options in prepared]

    def call_many_sync(self, calls: Sequence[Any]) -> list[ToolResult[Any]]:
        """Several calls, one after the other."""
        prepared = [one_of_many(item) for item in calls]
        return [self.call_sync(tool, *args, **options) for tool, args, options in prepared]

    async def plan(self, steps: Sequence[Any], *, limit: int = 1) -> list[ToolResult[Any]]:
        """`Run.plan`, one step after the other in an order that is the same each time."""
        from failwise.runtime.dependent import perform

        return await perform(self, steps, 1)

    def _begin_at(self, began: float) -> None:
        """The deadline on this process's clock, from the epoch second of the first call."""
        clock = self.runtime.clock
        assert self._seconds is not None
        self.deadline = clock.monotonic() + began + self._seconds - clock.time()

    def _piece(self, tool: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> "_Piece":
        if self._dbos.workflow_id != self.id:
            raise UsageError(f"this WorkflowRun belongs to workflow {self.id!r}: make one in each")
        self._calls += 1
        return _Piece(self, tool, args, {"call_id": f"call-{self._calls}", **options})

    def _inside(self, tool: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Execution:
        """A call that is part of a step of the user's own: the step's attempt is the call's."""
        step, status = self._dbos.step_id, self._dbos.step_status
        earlier = status.current_attempt or 0
        _warn_of_retries(status.max_attempts or 1)
        place = (step, earlier)
        # Counted within one attempt of the step, so that the next one finds the same ids.
        number = self._step[1] + 1 if self._step[0] == place else 1
        self._step = (place, number)
        named = {"call_id": f"step-{step}-{number}", **options}
        execution = self.runtime._begin(tool, args, named, self)
        execution.call.earlier = earlier
        return execution


class _Piece:
    """One call of a workflow, from step to step."""

    def __init__(
        self, run: WorkflowRun, tool: Any, args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> None:
        self._run, self._tool, self._args = run, tool, args
        self._options = options
        known = tool if isinstance(tool, str) else run.runtime._name_of(tool)
        self.name = f"failwise.{known or getattr(tool, 'name', tool)}"
        self.pause = 0.0
        self._kept: str | None = None
        self._lived = False

    def __enter__(self) -> "_Piece":
        if self._run._under_way:
            raise UsageError(
                "the calls of a WorkflowRun go one after the other: a workflow's steps have an order; "
                "start child workflows for what should run side by side"
            )
        self._run._under_way = True
        return self

    def __exit__(self, *_: object) -> None:
        self._run._under_way = False

    def perform(self) -> str:
        """From one wait to the next, or to the end: what the engine records."""
        run = self._run
        return self._told(
            go_on(run, self._tool, self._args, self._options, run._durable, self._kept)
        )

    async def perform_async(self) -> str:
        run = self._run
        return self._told(
            await go_on_async(run, self._tool, self._args, self._options, run._durable, self._kept)
        )

    def _told(self, outcome: Outcome) -> str:
        if isinstance(outcome, LaidDown):
            return as_json({"laid_down": outcome.to_dict()})
        self._lived = True
        return as_json({"result": outcome.to_dict()})

    def taken(self, text: str) -> ToolResult[Any] | None:
        """The result, or None after a step that ended at a wait of `pause` seconds."""
        told = json.loads(text)
        down = told.get("laid_down")
        if down is not None:
            # Never 0: then DBOS would not count the sleep, and a restart find another order of steps.
            self.pause, self._kept = max(down["seconds"], 0.001), down["kept"]
            return None
        result = ToolResult.from_dict(told["result"])
        if not self._lived:
            self._remember(result)
        return result

    def _remember(self, result: ToolResult[Any]) -> None:
        """What an earlier process did: the run learns from it as it did then."""
        run = self._run
        spec = run.runtime._tools.get(result.tool_name)
        name = spec.credential if spec is not None else None
        credential = None
        if name is not None:
            credential = run.credentials.get(name) or run.runtime._credentials.get(name)
        run.note(result, result.upstream, credential.identity if credential else None)


@cache
def _warn_of_retries(attempts: int) -> None:
    """Once: the engine repeats this step by itself, so the two kinds of retries multiply."""
    if attempts > 1:
        logger.warning(
            "this step is repeated by DBOS up to %d times, and the runtime repeats what is safe to "
            "repeat: say retries_allowed=False, or call in the workflow itself, where each call is a step",
            attempts,
        )


def _dbos() -> Any:
    try:
        from dbos import DBOS
    except ImportError as error:
        raise ConfigurationError(
            "failwise.connect.dbos needs the package dbos: pip install 'failwise[dbos]'"
        ) from error
    return DBOS
