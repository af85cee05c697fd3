"""Cancel a job: its row is deleted, the fact is kept, and whoever runs it finds the claim lost.

An atomic run cannot lose its claim any more: it has locked the row, and commits or fails as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import endings
from .envelopes import task_name
from .exceptions import UnknownTask
from .inspection import is_id
from .models import Claim, Job
from .models.base import chunks, in_transaction
from .registry import find
from .tasks import option

BATCH = 100
"""Jobs that are cancelled in one transaction."""


def cancel(using: str, job_id: int, queue: str | None = None) -> bool:
    """Delete a waiting or running job (of that queue); ``False`` if there is none, or in an atomic run."""

    def is_wanted(claim: Claim) -> bool:
        return queue in (None, claim.queue)

    return is_id(job_id) and _cancel_one(using, job_id, is_wanted) is not None


def cancel_many(using: str, ids: Sequence[int], is_wanted: Callable[[Claim], bool]) -> list[Claim]:
    """Cancel the jobs of these ids; they are returned as they were.

    ``is_wanted`` is asked once the row of a job is locked. Each batch is a transaction of its own, or a
    savepoint of the caller's.
    """
    cancelled: list[Claim] = []
    for chunk in chunks([job_id for job_id in ids if is_id(job_id)], BATCH):
        free = _cancel_free(using, chunk, is_wanted)
        seen = {claim.id for claim in free}
        cancelled += [claim for claim in free if is_wanted(claim)]
        others = (_cancel_one(using, job_id, is_wanted) for job_id in chunk if job_id not in seen)
        cancelled += [claim for claim in others if claim is not None]
    return cancelled


def _cancel_free(using: str, ids: Sequence[int], is_wanted: Callable[[Claim], bool]) -> list[Claim]:
    """Cancel those that nobody has locked, as far as they are wanted; all that nobody had locked."""
    jobs = Job.objects.db_manager(using)

    def delete() -> list[Claim]:
        free = jobs.lock_many_at_once(ids)
        endings.cancelled(using, [claim for claim in free if is_wanted(claim)])
        return free

    return in_transaction(using, delete)


def _cancel_one(using: str, job_id: int, is_wanted: Callable[[Claim], bool]) -> Claim | None:
    """Wait for whoever has locked the row, if it is not an atomic run."""
    jobs = Job.objects.db_manager(using)

    def delete() -> Claim | None:
        claim: Claim | None = next(iter(jobs.lock_many_at_once([job_id])), None)
        if claim is None and not _runs_atomically(jobs.claimed_payload(job_id)):
            claim = jobs.lock(job_id)
        if claim is None or not is_wanted(claim):
            return None
        endings.cancelled(using, [claim])
        return claim

    return in_transaction(using, delete)


def _runs_atomically(payload: str | bytes | None) -> bool:
    """Whether a locked row with that payload may be locked for as long as its task runs."""
    if payload is None:
        return False
    try:
        return bool(option(find(task_name(payload)), "atomic"))
    except UnknownTask:
        return False  # then it does not run here, and hardly anywhere
