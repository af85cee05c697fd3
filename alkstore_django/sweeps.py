"""What keeps a queue clean: jobs that expired, ran out of attempts, or hold no JSON become dead letters."""

from __future__ import annotations

from functools import partial

from .exceptions import UndecodablePayload
from .failures import of
from .logs import get_logger
from .models import Attempt, Claim, DeadJob, Job, UniqueKey
from .models.base import in_transaction
from .payloads import decode

BATCH = 500
logger = get_logger(__name__)


def sweep(using: str, queue: str, *, tasks_only: bool = True) -> int:
    """Bury up to ``BATCH`` expired and as many exhausted jobs of a queue; how many. At ``BATCH`` and
    above there may be more: the caller has other things to do in between, such as to renew claims."""
    dead = DeadJob.objects.db_manager(using)
    return sum(
        in_transaction(using, partial(bury, queue, BATCH, tasks_only=tasks_only))
        for bury in (dead.sweep_expired, dead.sweep_exhausted)
    )


def sweep_undecodable(using: str, queue: str, after: int = 0, *, bury: bool = True) -> tuple[int, int]:
    """Look at due jobs that are no tasks, by id, from ``after`` on, ``BATCH`` of them.

    Those whose payload is not JSON are buried (``bury``), their text kept; the others belong to another
    program and are left as they are. Returns the last id that was looked at (0: the end was reached) and how
    many were left.
    """
    jobs = Job.objects.db_manager(using)
    rows = jobs.untasked(queue, after, BATCH)
    left = 0
    for claim in rows:
        try:
            decode(claim.payload)
            left += 1
        except UndecodablePayload as error:
            if bury:
                _bury_waiting(using, claim, error)
            else:
                left += 1
    return (rows[-1].id if len(rows) == BATCH else 0), left


def sweep_keys(using: str, after: str = "") -> tuple[str, int]:
    """Look at ``BATCH`` keys of unique tasks, from the one after ``after`` on, and delete those of jobs that
    are gone. The last one that was looked at (empty: the end was reached), and how many were deleted."""
    table = UniqueKey.objects.db_manager(using)
    last, orphans = table.orphans(after, BATCH)
    return last, in_transaction(using, lambda: table.forget(orphans)) if orphans else 0


def count_keys(using: str) -> int:
    """How many keys of unique tasks are of jobs that are gone."""
    return UniqueKey.objects.db_manager(using).count_orphans()


def _bury_waiting(using: str, seen: Claim, error: UndecodablePayload) -> None:
    jobs, dead = Job.objects.db_manager(using), DeadJob.objects.db_manager(using)

    def bury() -> None:
        claim = jobs.lock(seen.id)
        if claim is not None and claim == seen:  # nobody has claimed or changed it meanwhile
            dead.bury([claim], of(UndecodablePayload, str(error)), Attempt.EXPIRED)
            logger.warning("Job id=%s of queue=%s is a dead letter: %s", claim.id, claim.queue, error)

    in_transaction(using, bury)
