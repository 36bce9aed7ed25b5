"""A runtime's tools as Celery tasks: the runtime decides, the broker waits, nothing is done twice.

    from failwise.connect.celery import tool_task

    order = tool_task(app, runtime, "order")
    order.delay(sku="A-1")

One task is one call. Its run id is the id of the task that began the job (`root_id`), its call id the task's
own: the key of its effect is the same after every redelivery. A retry is `Task.retry` with the decided
countdown. What the task gives is `ToolResult.to_dict()`, of failures too.
Source: Celery 5.7, "Tasks" (retrying, acks_late, autoretry), "Using Redis" (visibility timeout).
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from failwise.runtime.durable import LaidDown, go_on
from failwise.runtime.run import checked_deadline
from failwise.vocabulary.errors import ConfigurationError, FailwiseError, UsageError
from failwise.vocabulary.plain import as_json
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Durable

if TYPE_CHECKING:
    from failwise.runtime.runtime import Runtime

__all__ = ["ToolTaskFailed", "tool_task"]

logger = logging.getLogger("failwise")

_KEPT = "failwise_kept"
"""The argument under which a task's message carries what is known of its call."""
_LONGEST_HOP = 900.0
"""Seconds that one message waits at most: RabbitMQ takes an unacknowledged one for lost after 1,800."""
_EARLY = 0.05
"""Seconds by which a message may come before its time."""


class ToolTaskFailed(FailwiseError):
    """A tool's task ended with a failure (`tool_task(raises=True)`); the whole result is on `.result`.

    Its only argument is the result's JSON, so that every result backend gives it back as it was.
    """

    def __init__(self, text: str) -> None:
        self.result: ToolResult[Any] = ToolResult.from_json(text)
        super().__init__(text)

    def __str__(self) -> str:
        failure = self.result.failure
        said = f"{failure.code}: {failure.message}" if failure else "failed"
        return f"{self.result.tool_name}: {said}"


def tool_task(
    app: Any,
    runtime: "Runtime",
    tool: str | Callable[..., Any],
    *,
    name: str | None = None,
    raises: bool = False,
    deadline: Any = None,
    credentials: Mapping[str, Any] | None = None,
    longest_wait: float = 86_400.0,
    times: int = 3,
    **options: Any,
) -> Any:
    """Register a tool of `runtime` as a task of the Celery `app`; gives the task.

    Its arguments are the tool's, by name, or one mapping. `name` is the task's (``failwise.TOOL``).
    `raises`: a failure becomes `ToolTaskFailed`, so that a chain stops there; else it is given like a
    success. `deadline` in seconds from the task's first attempt, kept over retries and restarts;
    `credentials` as for `Runtime.run`. A wait that is handed back otherwise (`retry_at`) becomes a
    countdown, at most `longest_wait` seconds and `times` times a call. `options` are Celery's own;
    `acks_late` and `reject_on_worker_lost` are on unless they say otherwise, so that a
    task whose worker died is delivered again.

    Raises `UsageError` where the options switch on Celery's own retries (they would multiply with the
    runtime's) or the tool is unknown, `ConfigurationError` where Celery is not installed.
    """
    _require()
    known = tool if isinstance(tool, str) else runtime._name_of(tool)
    if known is None or known not in runtime._tools:
        raise UsageError(f"tool_task(tool={tool!r}): register it first: rt.add(...) or @rt.tool")
    checked_deadline(deadline)
    _refuse_retries(app, options)
    durable = Durable(longest_wait, times)

    def perform(self: Any, arguments: Any = None, /, **named: Any) -> dict[str, Any]:
        kept = named.pop(_KEPT, None)
        raw = named if arguments is None else arguments
        job = _Job(self, kept)
        run = runtime.run(id=job.run_id, deadline=deadline, credentials=credentials)
        call: dict[str, Any] = {"call_id": job.call_id}
        if job.in_memory:
            outcome: ToolResult[Any] | LaidDown = run.call_sync(known, raw, **call)
        else:
            job.wait_for_its_time(runtime.clock.time(), raw)
            outcome = go_on(run, known, (raw,), call, durable, job.kept, job.earlier)
        if isinstance(outcome, LaidDown):
            raise job.later(outcome.to_dict(), outcome.seconds, raw)
        text = as_json(outcome.to_dict())
        if raises and not outcome.success:
            raise ToolTaskFailed(text)
        import json

        told: dict[str, Any] = json.loads(text)
        return told

    perform.__name__ = perform.__qualname__ = known
    options = {
        "acks_late": True,
        "reject_on_worker_lost": True,
        "throws": (ToolTaskFailed,),
        **options,
        "bind": True,
        "name": name or f"failwise.{known}",
        "max_retries": None,
        "autoretry_for": (),
    }
    return app.task(**options)(perform)


class _Job:
    """One delivery of a task's message."""

    def __init__(self, task: Any, kept: Mapping[str, Any] | None) -> None:
        self._task, self._carried = task, kept
        request = task.request
        self.call_id = str(request.id) if request.id else "direct"
        self.run_id = str(request.root_id or request.id) if request.id else None
        self.in_memory = bool(request.called_directly or request.is_eager)
        """No broker is there to wait: the call runs to its end where it is."""
        self.kept = None if kept is None else str(kept["kept"])
        self.earlier = int(request.retries or 0) if kept is None else 0

    def wait_for_its_time(self, now: float, raw: Any) -> None:
        """A long wait goes in hops; a message that comes early goes back."""
        if self._carried is not None:
            left = float(self._carried["until"]) - now
            if left > _EARLY:
                raise self.later(self._carried, left, raw)

    def later(self, kept: Mapping[str, Any], seconds: float, raw: Any) -> BaseException:
        """The same task again after this many seconds, knowing what is known: an exception to raise."""
        from celery.exceptions import Reject

        try:
            retry: BaseException = self._task.retry(
                args=(raw,),
                kwargs={_KEPT: dict(kept)},
                countdown=min(seconds, self._hop),
                throw=False,
            )
        except Reject as refused:
            # The broker did not take the next message: Celery would drop this one with it.
            again: BaseException = Reject(refused.reason, requeue=True)
            return again
        return retry

    @property
    def _hop(self) -> float:
        """A message that waits for longer than the broker's visibility timeout is delivered twice."""
        transport = self._task.app.conf.broker_transport_options or {}
        visible = float(transport.get("visibility_timeout") or 2 * _LONGEST_HOP)
        return min(_LONGEST_HOP, visible / 2)


def _refuse_retries(app: Any, options: Mapping[str, Any]) -> None:
    """Celery's own retries stay off: the options may not ask for them, a base class is overruled."""
    for asked in ("autoretry_for", "max_retries", "retry_backoff"):
        if options.get(asked):
            raise UsageError(
                f"tool_task({asked}=...): leave it out; the runtime's policy decides about retries, "
                "and Celery's would multiply them"
            )
    base = options.get("base") or getattr(app, "Task", None)
    if getattr(base, "autoretry_for", ()):
        logger.warning(
            "autoretry_for of the task class %s is off for tools: the runtime decides about retries",
            getattr(base, "__name__", base),
        )


def _require() -> None:
    try:
        import celery  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "failwise.connect.celery needs the package celery: pip install 'failwise[celery]'"
        ) from error
