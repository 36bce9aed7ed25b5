"""A job that was read: its own failure is what the answer tells, not how the reading ended."""

from typing import Any, Final

from failwise.vocabulary.records import MAPPING

_READS: Final = frozenset({"GET", "HEAD"})
_STATES: Final = ("status", "state", "job_state", "jobState", "phase")
_FAILED: Final = frozenset({"failed", "failure", "errored", "timed_out"})
_NAMES: Final = frozenset(
    {"id", "uuid", "name", "job_id", "jobId", "run_id", "runId", "task_id", "taskId"}
)
_TIMES: Final = frozenset(
    {
        "created", "created_at", "createdAt", "create_time", "createTime", "submitted_at", "submittedAt", "queued_at",
        "started_at", "startedAt", "start_time", "startTime", "finished_at", "finishedAt", "completed_at", "completedAt",
        "ended_at", "endedAt", "end_time", "endTime", "failed_at", "failedAt",
    }
)  # fmt: skip


def reads_a_job(body: Any, method: str | None) -> bool:
    """Is this the answer to a GET that looked at a job, a run, a build that has failed?

    Such a record has a name, a state and times of its own. What another method gives is what this
    very call brought about, and what a tool returned may be: both are judged as they stand. So is a
    model's response, which is nothing but the answer, whenever it is fetched.
    """
    return (
        method in _READS
        and isinstance(body, MAPPING)
        and any(str(body.get(name)).lower() in _FAILED for name in _STATES)
        and not _NAMES.isdisjoint(body)
        and not _TIMES.isdisjoint(body)
        and body.get("object") != "response"
    )
