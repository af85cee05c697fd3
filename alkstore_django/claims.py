"""``ClaimedJob``: what a claimer holds, and the writes on a claim that take more than one statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connections

from .exceptions import JobFailed, UndecodablePayload
from .failures import Failure, from_exception, of
from .inspection import INTERRUPTED
from .logs import get_logger
from .models import Attempt, Claim, DeadJob, Job
from .models.base import in_transaction
from .payloads import decode

logger = get_logger("alkstore_django.queues")

SWEEP = 500
"""Lapsed claims that one claim looks at, and rows that one transaction of a sweep moves."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that the caller holds until ``claim_expires_at`` (Unix seconds, that second included)."""

    id: int
    queue: str
    payload: Any
    priority: int
    run_at: int
    attempts: int
    max_attempts: int
    worker_id: str
    claim_expires_at: int
    claim: Claim

    @classmethod
    def of(cls, claim: Claim) -> ClaimedJob:
        """Raises ``UndecodablePayload``."""
        return cls(
            id=claim.id,
            queue=claim.queue,
            payload=decode(claim.payload),
            priority=claim.priority,
            run_at=claim.run_at,
            attempts=claim.attempts,
            max_attempts=claim.max_attempts,
            worker_id=claim.worker_id,
            claim_expires_at=claim.claim_expires_at,
            claim=claim,
        )


def take(using: str, queue: str, worker_id: str, n: int, visibility: int) -> list[Claim]:
    """Claim up to ``n`` jobs in one transaction, lapsed claims among them."""
    jobs, dead = Job.objects.db_manager(using), DeadJob.objects.db_manager(using)

    def claim() -> list[Claim]:
        if jobs.any_lapsed(queue):
            # Reopened, they take their place among the waiting ones, so the order of claim is one.
            lapsed = jobs.lapsed_claims(queue, max(n, SWEEP))
            jobs.reopen(dead.bury_lapsed(lapsed))
        return jobs.claim_pending(queue, worker_id, n, visibility)

    return in_transaction(using, claim)


def batch(using: str, queue: str, worker_id: str, n: int, visibility: int) -> list[ClaimedJob]:
    """See ``Queue.claim_batch``."""
    jobs: list[ClaimedJob] = []
    is_more = True
    while is_more and n > len(jobs):
        try:
            is_more = _add(using, take(using, queue, worker_id, n - len(jobs), visibility), jobs)
        except DatabaseError as error:
            if not jobs or connections[using].in_atomic_block:
                raise
            logger.warning("Queue %r: fewer jobs are claimed than there may be: %s", queue, error)
            break
    return jobs


def _add(using: str, claims: list[Claim], jobs: list[ClaimedJob]) -> bool:
    """Add what was claimed to ``jobs``, and bury what can be none; whether there was such."""
    broken: list[tuple[Claim, str]] = []
    for claim in claims:
        try:
            jobs.append(ClaimedJob.of(claim))
        except UndecodablePayload as error:
            broken.append((claim, str(error)))
    for claim, why in broken:
        bury(using, claim, of(UndecodablePayload, why))
    return bool(broken)


def ack_all(using: str, claims: list[Claim]) -> int:
    """Delete the jobs of those claims that are still held; how many."""
    jobs = Job.objects.db_manager(using)

    def ack() -> int:
        acked = 0
        for worker_id in sorted({claim.worker_id for claim in claims}):
            mine = {claim.key for claim in claims if claim.worker_id == worker_id}
            acked += jobs.ack_many(worker_id, sorted(mine))
        return acked

    return in_transaction(using, ack)


def retry(using: str, claim: Claim, delay: int, failure: Failure) -> bool:
    """Put a job back for ``delay`` seconds, or bury it if no attempt is left."""
    if claim.attempts >= claim.max_attempts:
        return bury(using, claim, failure)

    def put_back() -> bool:
        jobs = Job.objects.db_manager(using)
        held = jobs.retry(claim, delay)
        if held and not delay:
            jobs.announce()
        return held and _recorded(using, claim, Attempt.FAILED, failure)

    return in_transaction(using, put_back)


def give_back(using: str, claim: Claim) -> bool:
    """Put a job back at once that has not started; its attempt is not spent."""

    def put_back() -> bool:
        jobs = Job.objects.db_manager(using)
        held = jobs.give_back(claim)
        if held:
            jobs.announce()
        return held

    return in_transaction(using, put_back)


def interrupt(using: str, claim: Claim) -> bool:
    """Put a started job back at once; its attempt is spent, but never its last."""

    def put_back() -> bool:
        jobs = Job.objects.db_manager(using)
        held = jobs.interrupt(claim)
        if held:
            jobs.announce()
        return held and _recorded(using, claim, Attempt.INTERRUPTED, INTERRUPTED)

    return in_transaction(using, put_back)


def bury(using: str, claim: Claim, failure: Failure) -> bool:
    """Move a job to the dead letters."""

    def move() -> bool:
        if not Job.objects.db_manager(using).lock_held(claim.worker_id, [claim.key]):
            return False
        DeadJob.objects.db_manager(using).bury([claim], failure, Attempt.FAILED)
        return True

    return in_transaction(using, move)


def as_failure(error: str | BaseException) -> Failure:
    return from_exception(error) if isinstance(error, BaseException) else of(JobFailed, str(error))


def _recorded(using: str, claim: Claim, kind: str, failure: Failure) -> bool:
    Attempt.objects.db_manager(using).record([claim], kind, failure)
    return True
