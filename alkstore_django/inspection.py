"""What is known about a job, wherever it is by now: waiting, running, dead or finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .exceptions import TaskInterrupted, UndecodablePayload
from .failures import of
from .models import Claim, DeadJob, Job, Run
from .models.fields import number, readable
from .payloads import decode

INTERRUPTED = of(TaskInterrupted, "interrupted: the worker was stopped while the task ran")


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job as stored. Times are Unix seconds; what a state does not know is ``None``.

    ``state`` is ``pending``, ``processing``, ``dead``, ``succeeded``, ``failed`` or ``cancelled``.
    ``payload`` is decoded, or the raw text where that is not JSON; ``raw_payload`` is always the text.
    """

    id: int
    queue: str
    state: str
    raw_payload: str
    priority: int
    run_at: int | None
    attempts: int
    max_attempts: int
    created_at: int
    worker_id: str | None = None
    claim_expires_at: int | None = None
    claimed_at: int | None = None
    expires_at: int | None = None
    finished_at: int | None = None
    last_error: str | None = None

    @property
    def payload(self) -> Any:
        try:
            return decode(self.raw_payload)
        except UndecodablePayload:
            return self.raw_payload


def is_id(value: object) -> bool:
    """Whether a value can be the id of a stored job: what cannot is not found, without any SQL."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def get_job(using: str, job_id: int, queue: str | None = None) -> JobInfo | None:
    """The job with that id (of that queue), looked for among live, dead and finished ones."""
    if not is_id(job_id):
        return None
    wanted = {"pk": job_id} | ({} if queue is None else {"queue": queue})
    # Twice: a job that moves from the dead letters to the queue between two looks is in neither.
    for _ in range(2):
        if job := Job.objects.using(using).filter(**wanted).first():
            return _live(job)
        if dead := DeadJob.objects.using(using).filter(**wanted).first():
            return _dead(dead)
        if run := Run.objects.db_manager(using).kept().filter(**wanted).first():
            return of_run(run)
    return None


def _live(job: Job) -> JobInfo:
    return JobInfo(
        **_common(job),
        state=job.state,
        run_at=job.run_at,
        created_at=job.created_at,
        worker_id=job.worker_id,
        claim_expires_at=job.claim_expires_at,
        claimed_at=job.claimed_at,
        expires_at=job.expires_at,
    )


def _dead(dead: DeadJob) -> JobInfo:
    return JobInfo(
        **_common(dead),
        state="dead",
        run_at=dead.run_at,
        created_at=dead.created_at,
        finished_at=dead.died_at,
        last_error=dead.last_error,
    )


def of_claim(claim: Claim, *, is_running: bool) -> JobInfo:
    """A live row that was read for another purpose."""
    return JobInfo(
        id=claim.id,
        queue=claim.queue,
        state=Job.PROCESSING if is_running else Job.PENDING,
        raw_payload=readable(claim.payload) or "",
        priority=claim.priority,
        run_at=claim.run_at,
        attempts=claim.attempts,
        max_attempts=claim.max_attempts,
        created_at=claim.created_at,
        worker_id=claim.worker_id or None,
        claim_expires_at=claim.claim_expires_at,
        claimed_at=claim.claimed_at,
        expires_at=claim.expires_at,
    )


def of_run(run: Run) -> JobInfo:
    """A finished job."""
    return JobInfo(
        **_common(run),
        state=run.status,
        run_at=None,
        created_at=run.enqueued_at,
        worker_id=run.worker_id or None,
        claimed_at=run.started_at,
        finished_at=run.finished_at,
    )


def _common(row: Job | DeadJob | Run) -> dict[str, Any]:
    return {
        "id": row.pk,
        "queue": row.queue,
        "raw_payload": row.payload,
        "priority": number(row.priority),
        "attempts": number(row.attempts),
        "max_attempts": number(row.max_attempts),
    }
