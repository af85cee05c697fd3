"""Queues: put JSON payloads in, claim them, and say what became of them.

``Queue("emails").enqueue({"to": 1})`` is one INSERT in the caller's transaction: committed means
queued, rolled back means never queued. Whoever claims a job holds it until ``claim_expires_at`` and
then acks, retries, fails or releases it; a claim that was lost meanwhile changes nothing and is
answered with ``False``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async

from . import arrivals, cancellation, claims, inspection, reviving
from .claims import ClaimedJob
from .handlers import handler as handler
from .inspection import JobInfo
from .models import DeadJob, DeadJobManager, Job, JobManager, alias
from .models.base import in_transaction
from .names import checked
from .pauses import Pausable
from .payloads import encode
from .values import seconds, whole

Duration = int | float | timedelta


class Queue(Pausable):
    """A named queue in one database.

    ``using`` is a database alias (default: the router's answer). ``visibility_timeout``, seconds or
    ``timedelta`` of at least one second, is how long a claim holds; ``max_attempts`` how often a job
    may be claimed before it is a dead letter. Raises ``TypeError`` and ``ValueError`` for bad values.
    """

    def __init__(
        self,
        name: str,
        *,
        using: str | None = None,
        visibility_timeout: Duration = 300,
        max_attempts: int = 3,
    ) -> None:
        self.name = checked("queue", name)
        self._using = using
        self.visibility_timeout = seconds("visibility_timeout", visibility_timeout, low=1)
        self.max_attempts = whole("max_attempts", max_attempts, 1)

    def __repr__(self) -> str:
        return f"Queue({self.name!r}, using={self.using!r})"

    @property
    def using(self) -> str:
        """The alias of the queue's database."""
        return alias(self._using)

    # -- in ---------------------------------------------------------------------------------------

    def enqueue(
        self,
        payload: Any,
        *,
        run_at: datetime | int | float | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        expires: Duration | None = None,
        max_attempts: int | None = None,
    ) -> int:
        """Add a job in the caller's transaction; its id.

        ``run_at`` is an aware ``datetime`` or Unix seconds, ``delay`` seconds or a ``timedelta`` from
        now; one of the two. A job that was not claimed ``expires`` after now is a dead letter. Higher
        ``priority`` goes first. Raises ``TypeError`` or ``ValueError`` before any SQL for what cannot
        be stored; the message names the argument and the path in the payload.
        """
        return self.enqueue_text(
            encode(payload),
            run_at=run_at,
            delay=delay,
            priority=priority,
            expires=expires,
            max_attempts=max_attempts,
        )

    def enqueue_text(self, text: str, **options: Any) -> int:
        """``enqueue`` for a payload that is JSON text already; the caller answers for that."""
        return arrivals.add(self.using, self.name, text, self._options(**options)).id

    def enqueue_many(
        self,
        payloads: Iterable[Any],
        *,
        run_at: datetime | int | float | None = None,
        delay: Duration | None = None,
        priority: int = 0,
        expires: Duration | None = None,
        max_attempts: int | None = None,
    ) -> list[int]:
        """Add many jobs, all or none, in few statements; their ids in the order of the payloads.

        What has a length is checked as a whole before any SQL. An iterator is read while it is written,
        never as a whole in memory; a payload that cannot be stored then undoes those before it.
        """
        texts = (encode(payload, f"payloads[{index}]") for index, payload in enumerate(payloads))
        return self.enqueue_texts(
            list(texts) if isinstance(payloads, Sized) else texts,
            run_at=run_at,
            delay=delay,
            priority=priority,
            expires=expires,
            max_attempts=max_attempts,
        )

    def enqueue_texts(self, texts: Iterable[str], **options: Any) -> list[int]:
        """``enqueue_many`` for payloads that are JSON text already; the caller answers for that."""
        row = self._options(**options)
        return [arrival.id for arrival in arrivals.add_many(self.using, self.name, texts, row)]

    def _options(self, max_attempts: Any = None, **options: Any) -> dict[str, int | None]:
        return arrivals.row(self.max_attempts if max_attempts is None else max_attempts, **options)

    # -- claim ------------------------------------------------------------------------------------

    def claim_one(self, worker_id: str) -> ClaimedJob | None:
        """Claim the next job, or ``None``."""
        return next(iter(self.claim_batch(worker_id, 1)), None)

    def claim_batch(self, worker_id: str, n: int) -> list[ClaimedJob]:
        """Claim up to ``n`` jobs, by priority (highest first), ``run_at`` and id.

        Every claim spends an attempt. Jobs whose claim lapsed are claimed again, or are dead letters
        if they have no attempt left; so are jobs whose payload is not JSON, whose text is kept.
        What is claimed is returned, also if the database fails then: outside of a transaction.
        """
        checked("worker", worker_id)
        n = whole("n", n, 0)
        return claims.batch(self.using, self.name, worker_id, n, self.visibility_timeout)

    # -- what became of it ------------------------------------------------------------------------

    def ack(self, job: ClaimedJob) -> bool:
        """The job is done: delete it. ``False`` if the claim was lost."""
        return self._owns(job) and self._jobs().ack(job.claim)

    def ack_batch(self, jobs: Iterable[ClaimedJob]) -> int:
        """Ack many jobs in one transaction; how many of their claims were still held."""
        return claims.ack_all(self.using, [job.claim for job in jobs if self._owns(job)])

    def retry(self, job: ClaimedJob, delay: Duration = 0, error: str | BaseException = "") -> bool:
        """Put the job back for ``delay`` from now, or among the dead letters if no attempt is left."""
        wait = seconds("delay", delay)
        return self._owns(job) and claims.retry(self.using, job.claim, wait, claims.as_failure(error))

    def fail(self, job: ClaimedJob, error: str | BaseException = "") -> bool:
        """Move the job to the dead letters, whatever its budget. ``False`` if the claim was lost."""
        return self._owns(job) and claims.bury(self.using, job.claim, claims.as_failure(error))

    def heartbeat(self, job: ClaimedJob, extend: Duration | None = None) -> bool:
        """Hold the claim for ``extend`` from now (default: the queue's visibility timeout)."""
        until = seconds("extend", self.visibility_timeout if extend is None else extend, low=1)
        return self._owns(job) and self._jobs().heartbeat(job.claim, until)

    def release(self, job: ClaimedJob, *, started: bool = False) -> bool:
        """Put the job back at once.

        What had not started gets its attempt back. What had (``started``) keeps it spent, but never
        its last one, so that a stop kills no job; the interruption goes into its history.
        """
        if not self._owns(job):
            return False
        put_back = claims.interrupt if started else claims.give_back
        return put_back(self.using, job.claim)

    def _owns(self, job: ClaimedJob) -> bool:
        return job.queue == self.name

    # -- looking and tidying ----------------------------------------------------------------------

    def cancel(self, job_id: int) -> bool:
        """Delete a waiting or running job of this queue; ``False`` if there is none of that id."""
        return cancellation.cancel(self.using, job_id, self.name)

    def get_job(self, job_id: int) -> JobInfo | None:
        """The job of this queue with that id: live, dead or finished; ``None`` if nothing is known."""
        return inspection.get_job(self.using, job_id, self.name)

    def sweep_expired(self) -> int:
        """Move every job past its ``expires`` to the dead letters, in bounded batches; how many."""
        return self._swept(self._dead().sweep_expired)

    def sweep_exhausted(self) -> int:
        """Move every due job that has no attempt left to the dead letters, in bounded batches; how many.

        No claim takes such a job. Only another program leaves one waiting: here the last attempt of a
        job ends it.
        """
        return self._swept(self._dead().sweep_exhausted)

    def _swept(self, sweep: Callable[[str, int], int]) -> int:
        moved = 0
        while True:
            batch = in_transaction(self.using, lambda: sweep(self.name, claims.SWEEP))
            moved += batch
            if batch < claims.SWEEP:
                return moved

    def next_claim_at(self) -> int:
        """Unix seconds at which the next job becomes claimable that is not so now; 0 for none."""
        return self._jobs().next_claim_at(self.name)

    def requeue(self, ids: Iterable[int]) -> int:
        """Give dead letters of this queue a new life; how many were there. See ``queues.requeue``."""
        found = reviving.batches(self.using, ids, reviving.of_queue(self.name))
        return sum(len(batch.revived) for batch in found)

    def _jobs(self) -> JobManager:
        return Job.objects.db_manager(self.using)

    def _dead(self) -> DeadJobManager:
        return DeadJob.objects.db_manager(self.using)

    # -- the same, awaited ------------------------------------------------------------------------

    aenqueue = sync_to_async(enqueue)
    aenqueue_many = sync_to_async(enqueue_many)
    aclaim_one = sync_to_async(claim_one)
    aclaim_batch = sync_to_async(claim_batch)
    aack = sync_to_async(ack)
    aack_batch = sync_to_async(ack_batch)
    aretry = sync_to_async(retry)
    afail = sync_to_async(fail)
    aheartbeat = sync_to_async(heartbeat)
    arelease = sync_to_async(release)
    acancel = sync_to_async(cancel)
    aget_job = sync_to_async(get_job)
    asweep_expired = sync_to_async(sweep_expired)
    asweep_exhausted = sync_to_async(sweep_exhausted)
    anext_claim_at = sync_to_async(next_claim_at)
    arequeue = sync_to_async(requeue)


def cancel(job_id: int, using: str | None = None) -> bool:
    """Delete a waiting or running job of any queue; ``False`` if there is none of that id."""
    return cancellation.cancel(alias(using), job_id)


def get_job(job_id: int, using: str | None = None) -> JobInfo | None:
    """The job of any queue with that id: live, dead or finished; ``None`` if nothing is known."""
    return inspection.get_job(alias(using), job_id)


def requeue(ids: Iterable[int], using: str | None = None) -> dict[int, int]:
    """Give dead letters of any queue a new life: attempts from zero, due now, the history kept.

    Returns the live id of each that was there: its own, or a fresh one if a live job has it by now.
    """
    return reviving.requeue(alias(using), ids)


acancel = sync_to_async(cancel)
aget_job = sync_to_async(get_job)
arequeue = sync_to_async(requeue)
