"""``django.tasks`` results, put together from what the tables know about a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from types import FunctionType
from typing import Any

from . import alterations, keys, metadata, metadata_values
from .alterations import unvalidated
from .answers import AlkTaskResult
from .compat import DEFAULT_TASK_BACKEND_ALIAS, Task, TaskError, TaskResultStatus, task_backends
from .envelopes import Envelope, unseal
from .exceptions import JobFailed, TaskCancelled, UnknownTask
from .failures import class_path
from .inspection import JobInfo, get_job
from .models import Attempt, Claim, Result, Run
from .payloads import decode
from .registry import find
from .tasks import AlkTask
from .unique import Placed
from .values import as_datetime

_STATUS = {
    "pending": TaskResultStatus.READY,
    "processing": TaskResultStatus.RUNNING,
    "dead": TaskResultStatus.FAILED,
    Run.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    Run.FAILED: TaskResultStatus.FAILED,
    Run.CANCELLED: TaskResultStatus.FAILED,
}


LOOKS = 3
"""How often a result is read at most, while its job goes on between the reads that it is made of."""


def find_one(using: str, job_id: int, backend: str) -> AlkTaskResult | None:
    """The result of a job as it is at one moment, though it takes several reads; ``None`` if there is no job
    any more. Raises ``UndecodablePayload`` if it is no task's."""
    result = before = None
    for _ in range(LOOKS):
        job = get_job(using, job_id)
        if job is None:
            return None
        if job == before:
            break
        result, before = from_job(using, job, backend), job
        if not _may_be_torn(result):
            break
    return result


def _may_be_torn(result: AlkTaskResult) -> bool:
    """Whether the job may have gone on between the look for it and those for its value and its history: if
    it is as it was before, it has not. Its time may have been over in between, or its attempt."""
    if result.status == TaskResultStatus.SUCCESSFUL:
        return result.return_value is None
    if result.status == TaskResultStatus.FAILED:
        return not result.errors
    return bool(result.errors or result.worker_ids[:-1])


def from_job(using: str, job: JobInfo, backend: str | None = None) -> AlkTaskResult:
    """The result of a stored job, in any state. Raises ``UndecodablePayload`` if it is no task's.

    ``backend`` is the alias of the one that was asked.
    """
    return from_jobs(using, [job], backend)[0]


def from_jobs(using: str, jobs: Sequence[JobInfo], backend: str | None = None) -> list[AlkTaskResult]:
    """The same for many, in their order."""
    histories = Attempt.objects.db_manager(using).of_jobs([job.id for job in jobs])
    done = [job.id for job in jobs if job.state == Run.SUCCEEDED]
    values = Result.objects.db_manager(using).values_of(done) if done else {}
    saved = metadata.saved(using, [job.id for job in jobs])
    results = []
    for job in jobs:
        envelope = unseal(job.raw_payload)
        if backend is not None and not _is_at(using, _alias(envelope)):
            # Its own has gone, or looks into another database by now, where the id is another job's.
            envelope.extra["backend"] = backend
        told = metadata_values.read(saved.get(job.id), envelope)
        results.append(_from_job(job, envelope, told, histories.get(job.id, []), values.get(job.id)))
    return results


def _from_job(
    job: JobInfo,
    envelope: Envelope,
    told: dict[str, Any],
    history: Sequence[Attempt],
    value: str | bytes | None,
) -> AlkTaskResult:
    starts = [row.started_at for row in history if row.started_at]
    running_or_done = job.worker_id and job.state != Run.FAILED
    starts += [job.claimed_at] if running_or_done and job.claimed_at else []
    result = _result(
        task=restored(envelope, job.queue, job.priority, job.max_attempts),
        job_id=job.id,
        status=_STATUS.get(job.state, TaskResultStatus.READY),
        enqueued_at=job.created_at,
        started_at=min(starts, default=None),
        last_attempted_at=max(starts, default=None),
        finished_at=job.finished_at,
        envelope=envelope,
        errors=errors(history),
        worker_ids=worker_ids(history) + ([job.worker_id] if running_or_done and job.worker_id else []),
        raw_metadata=told,
    )
    if job.state == "dead" and not result.errors:  # another program buried it
        path = class_path(JobFailed)
        result.errors.append(TaskError(exception_class_path=path, traceback=job.last_error or ""))
    if job.state == Run.CANCELLED:
        result.errors.append(TaskError(exception_class_path=class_path(TaskCancelled), traceback="cancelled"))
    if job.state == Run.SUCCEEDED:
        object.__setattr__(result, "_return_value", None if value is None else decode(value))
    return result


def running(claim: Claim, task: Any, envelope: Envelope, history: Sequence[Attempt]) -> AlkTaskResult:
    """The result that a task sees while it runs; ``history`` is that of the job's present life.

    Its instants are those that ``get_result`` tells: the database's, of the claims.
    """
    starts = [row.started_at for row in history if row.started_at] + [claim.claimed_at]
    return _result(
        task=restored(envelope, claim.queue, claim.priority, claim.max_attempts, task),
        job_id=claim.id,
        status=TaskResultStatus.RUNNING,
        enqueued_at=claim.created_at,
        started_at=min(starts),
        last_attempted_at=claim.claimed_at,
        finished_at=None,
        envelope=envelope,
        errors=errors(history),
        worker_ids=[*worker_ids(history), claim.worker_id],
        raw_metadata=metadata_values.read(None, envelope),
    )


def enqueued(job_id: int, created_at: int, task: Any, envelope: Envelope) -> AlkTaskResult:
    """The result that ``enqueue`` answers with: the same as ``get_result`` would find."""
    return AlkTaskResult(
        task=task,
        id=str(job_id),
        status=TaskResultStatus.READY,
        enqueued_at=as_datetime(created_at),
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=envelope.args,
        kwargs=envelope.kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
        raw_metadata=metadata_values.read(None, envelope),
    )


def placed(using: str, task: Any, found: Sequence[Placed]) -> list[AlkTaskResult]:
    """The results that the enqueue of a unique task answers with."""
    others = iter(from_jobs(using, [each.holder for each in found if each.holder], task.backend))
    results = [
        next(others) if each.holder else enqueued(*each.arrival, task, unseal(each.text)) for each in found
    ]
    for each, result in zip(found, results, strict=True):
        object.__setattr__(result, "created", each.created)
    return results


def _result(*, job_id: int, envelope: Envelope, task: Any, **values: Any) -> AlkTaskResult:
    times = ("enqueued_at", "started_at", "last_attempted_at", "finished_at")
    values |= {name: as_datetime(values[name]) for name in times}
    return AlkTaskResult(
        task=task,
        id=str(job_id),
        args=envelope.args,
        kwargs=envelope.kwargs,
        backend=task.backend,
        **values,
    )


def errors(history: Sequence[Attempt]) -> list[TaskError]:
    """One error for each attempt that failed, and for an expiry."""
    return [
        TaskError(exception_class_path=row.error_class, traceback=row.traceback or row.error)
        for row in history
        if row.error_class
    ]


def worker_ids(history: Sequence[Attempt]) -> list[str]:
    return [row.worker_id for row in history if row.kind in Attempt.SPENT]


def restored(envelope: Envelope, queue: str, priority: int, max_attempts: int, task: Any = None) -> Any:
    """The task as it was enqueued, without validating it again: settings may have changed since."""
    if task is None:
        try:
            task = find(envelope.task)
        except UnknownTask:
            task = _missing(envelope.task)
    changes = {
        "queue_name": queue,
        "priority": priority,
        "backend": _alias(envelope),
        "run_after": _moment(_given(envelope, "run_after", str)),
    }
    if isinstance(task, AlkTask):
        changes["max_attempts"] = max_attempts
        expires = _given(envelope, "expires", int)
        changes["expires"] = task.expires if expires is None else expires
        changes |= alterations.read(envelope.extra) | keys.options(envelope)
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    return unvalidated(type(task), {each.name: getattr(task, each.name) for each in fields(task)} | changes)


def _alias(envelope: Envelope) -> str:
    """The backend with which a task was enqueued."""
    return _given(envelope, "backend", str) or DEFAULT_TASK_BACKEND_ALIAS


def _is_at(using: str, backend: str) -> bool:
    """Whether the jobs of a backend are in that database."""
    try:
        return getattr(task_backends[backend], "using", None) == using
    except task_backends.exception_class:
        return False


def _given(envelope: Envelope, key: str, kind: type[Any]) -> Any:
    """One of our keys; ``None`` for what another program may have put there."""
    value = envelope.extra.get(key)
    return value if type(value) is kind else None


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _missing(name: str) -> Any:
    """A stand-in for a task that is not in the code any more: it has its path, and cannot be called."""

    def missing(*args: Any, **kwargs: Any) -> None:
        raise UnknownTask(f"no task {name!r} is in the code any more")

    module, _, qualname = name.rpartition(".")
    func = FunctionType(missing.__code__, globals(), qualname, closure=missing.__closure__)
    func.__module__, func.__qualname__ = module, qualname
    values = {"func": func, "priority": 0, "queue_name": "", "backend": "", "run_after": None}
    return unvalidated(Task, values | {"takes_context": False})
