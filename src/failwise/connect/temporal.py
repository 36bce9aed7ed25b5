"""A runtime's tools as Temporal activities, and results as Temporal's errors.

    from failwise.connect.temporal import retry_policy, tool_activity

    order = tool_activity(runtime, "order")          # for Worker(activities=[order])

    # in the workflow
    result = await workflow.execute_activity(
        "failwise.order", {"sku": "A-1"}, retry_policy=retry_policy(),
        start_to_close_timeout=timedelta(minutes=2),
    )

The runtime decides: a wait becomes an `ApplicationError` with `next_retry_delay`, what is known of the call
goes along as heartbeat details. The run id is workflow and run, the call id the activity's: stable over its
attempts and over crashes of its worker.
Source: temporalio 1.35, `temporalio.exceptions.ApplicationError`, `temporalio.activity.Info`.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from failwise.runtime.durable import LaidDown, go_on_async
from failwise.runtime.run import checked_deadline
from failwise.vocabulary.errors import ConfigurationError, UsageError
from failwise.vocabulary.plain import as_json
from failwise.vocabulary.result import ToolResult
from failwise.vocabulary.steps import Durable

if TYPE_CHECKING:
    from temporalio.common import RetryPolicy
    from temporalio.exceptions import ApplicationError

    from failwise.runtime.runtime import Runtime

__all__ = ["as_application_error", "retry_policy", "tool_activity"]

logger = logging.getLogger("failwise")

_EARLY = 0.05
"""Seconds by which an attempt may come before its time."""


def as_application_error(result: ToolResult[Any]) -> "ApplicationError":
    """A failed result as Temporal's error: its type is the failure's code, its detail the result's data.

    Retryable only where the result says when (`retriable` with `retry_at`): then `next_retry_delay` is
    the time from now. Anything else was decided: `non_retryable`.

    Raises `UsageError` for a success, `ConfigurationError` where temporalio is not installed.
    """
    failure = result.failure
    if failure is None:
        raise UsageError("as_application_error(result): the result is a success")
    delay = None
    if result.retriable and result.retry_at is not None:
        delay = timedelta(seconds=max(0.0, result.retry_at - time.time()))
    error: ApplicationError = _errors().ApplicationError(
        f"{result.tool_name}: {failure.message or failure.code}",
        json.loads(as_json(result.to_dict())),
        type=failure.code,
        non_retryable=delay is None,
        next_retry_delay=delay,
    )
    return error


def retry_policy(*, maximum_attempts: int = 0) -> "RetryPolicy":
    """Temporal's retries under the runtime's decisions: each of our errors names its delay or is final.

    What is left to the engine is an attempt whose worker died: it is made again after 1 s, each time,
    and finds in the journal what was sent. `maximum_attempts` bounds all attempts together (0: none).
    """
    try:
        from temporalio.common import RetryPolicy
    except ImportError as error:
        raise _missing() from error
    return RetryPolicy(
        initial_interval=timedelta(seconds=1),
        backoff_coefficient=1.0,
        maximum_attempts=maximum_attempts,
    )


def tool_activity(
    runtime: "Runtime",
    tool: str | Callable[..., Any],
    *,
    name: str | None = None,
    raises: bool = False,
    deadline: Any = None,
    credentials: Mapping[str, Any] | None = None,
    longest_wait: float = 86_400.0,
    times: int = 3,
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """A tool of `runtime` as an (async) activity of one argument: a mapping of the tool's arguments.

    It gives `ToolResult.to_dict()`, of failures too; with `raises` a failure is raised as
    `as_application_error` makes it. `name` is the activity's (``failwise.TOOL``). `deadline` in
    seconds from the first attempt; `credentials` as for `Runtime.run`. A wait that is handed back
    otherwise (`retry_at`) is left to the engine, at most `longest_wait` seconds and `times` times
    a call. Local activities, and those whose policy allows one attempt, wait in memory.

    Raises `UsageError` for an unknown tool, `ConfigurationError` where temporalio is not installed.
    """
    activity, errors = _activity(), _errors()
    known = tool if isinstance(tool, str) else runtime._name_of(tool)
    if known is None or known not in runtime._tools:
        raise UsageError(
            f"tool_activity(tool={tool!r}): register it first: rt.add(...) or @rt.tool"
        )
    checked_deadline(deadline)
    durable = Durable(longest_wait, times)

    async def perform(arguments: dict[str, Any]) -> dict[str, Any]:
        info = activity.info()
        run_id = (
            f"{info.workflow_id or info.activity_id}/{info.workflow_run_id or info.activity_run_id}"
        )
        run = runtime.run(id=run_id, deadline=deadline, credentials=credentials)
        call = {"call_id": str(info.activity_id)}
        most = info.retry_policy.maximum_attempts if info.retry_policy else 0
        if info.is_local or most == 1:
            outcome: ToolResult[Any] | LaidDown = await run.call(known, arguments, **call)
        else:
            _warn_of_maximum(most)
            kept = _kept(info.heartbeat_details)
            if kept is not None:
                left = kept["until"] - runtime.clock.time()
                if left > _EARLY:
                    raise _later(activity, errors, kept, left)
            earlier = info.attempt - 1 if kept is None else 0
            text = None if kept is None else str(kept["kept"])
            outcome = await go_on_async(run, known, (arguments,), call, durable, text, earlier)
        if isinstance(outcome, LaidDown):
            raise _later(activity, errors, outcome.to_dict(), outcome.seconds)
        if raises and not outcome.success:
            raise as_application_error(outcome)
        told: dict[str, Any] = json.loads(as_json(outcome.to_dict()))
        return told

    perform.__name__ = perform.__qualname__ = known
    made: Callable[..., Awaitable[dict[str, Any]]] = activity.defn(
        name=name or f"failwise.{known}"
    )(perform)
    return made


def _kept(details: Any) -> dict[str, Any] | None:
    """What the attempt before this one knew of the call."""
    last = details[-1] if details else None
    return last if isinstance(last, dict) and "kept" in last and "until" in last else None


def _later(activity: Any, errors: Any, kept: Mapping[str, Any], seconds: float) -> BaseException:
    """The engine's next attempt, after this many seconds, knowing what is known."""
    activity.heartbeat(dict(kept))
    error: BaseException = errors.ApplicationError(
        f"the runtime waits {seconds:.1f} s",
        type=kept["code"] or "runtime.in_flight",
        next_retry_delay=timedelta(seconds=max(0.001, seconds)),
        category=errors.ApplicationErrorCategory.BENIGN,
    )
    return error


@cache
def _warn_of_maximum(most: int) -> None:
    """Once: the engine may give up between two attempts of ours."""
    if most:
        logger.warning(
            "this activity's retry policy allows %d attempts: it may end before the runtime's own policy "
            "does; use failwise.connect.temporal.retry_policy()",
            most,
        )


def _activity() -> Any:
    try:
        from temporalio import activity
    except ImportError as error:
        raise _missing() from error
    return activity


def _errors() -> Any:
    try:
        from temporalio import exceptions
    except ImportError as error:
        raise _missing() from error
    return exceptions


def _missing() -> ConfigurationError:
    return ConfigurationError(
        "failwise.connect.temporal needs the package temporalio: pip install 'failwise[temporal]'"
    )
