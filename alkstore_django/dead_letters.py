"""Dead letters: what happened to them, and how to give them a new life."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from logging import getLogger

from . import unique
from .inspection import is_id
from .keys import Key, of_payload
from .models import Attempt, DeadJob, Job, Letter, UniqueKey, WorkerProcess
from .models.base import in_transaction

logger = getLogger(__name__)

BATCH = 100
"""Dead letters that one transaction requeues: short enough for others to get their turn."""


def requeue(using: str, ids: Iterable[int], queue: str | None = None) -> dict[int, int]:
    """Requeue dead letters (of that queue); the live id of each that was there.

    The dead letter of a unique task takes its key again. If another job has it by now, it stays what it
    is, with a warning in the log.
    """
    return {old: new for batch in batches(using, ids, queue) for old, new in batch.items()}


def batches(using: str, ids: Iterable[int], queue: str | None = None) -> Iterator[dict[int, int]]:
    """The same, ``BATCH`` to a transaction; ``ids`` are read as far as they are needed."""
    wanted = filter(is_id, ids)
    # By id: two that requeue the same letters lock them in one order.
    while batch := sorted(islice(wanted, BATCH)):
        yield in_transaction(using, partial(_requeue, using, batch, queue))


def _requeue(using: str, ids: list[int], queue: str | None) -> dict[int, int]:
    dead = DeadJob.objects.db_manager(using)
    letters = [letter for job_id in ids if (letter := dead.lock(job_id, queue))]
    keys, refused = _take_keys(using, letters)
    revived = {letter.id: dead.revive(letter.id) for letter in letters if letter.id not in refused}
    for job_id, new_id in revived.items():
        if job_id in keys and new_id != job_id:
            UniqueKey.objects.db_manager(using).rename(keys[job_id].digest, job_id, new_id)
    if revived:
        Job.objects.db_manager(using).announce()
    return revived


def _take_keys(using: str, letters: Sequence[Letter]) -> tuple[dict[int, Key], set[int]]:
    """The keys that unique jobs among these want and have again; and the ids of those that cannot."""
    wanted = {letter.id: key for letter in letters if (key := of_payload(letter.payload))}
    if not wanted:
        return {}, set()
    now = WorkerProcess.objects.db_manager(using).clock()
    taken: dict[int, Key] = {}
    refused: set[int] = set()
    # By digest: those who take several keys wait for each other in one order.
    for letter in sorted(letters, key=lambda each: wanted[each.id].digest if each.id in wanted else ""):
        key = wanted.get(letter.id)
        if key is None:
            continue
        lasts = None if key.seconds is None else letter.created_at + key.seconds - now
        if lasts is not None and lasts <= 0:
            continue  # its time is over: it wants the key no more
        is_taken = key.digest in {each.digest for each in taken.values()}
        if not is_taken and unique.take_again(using, letter.id, key, lasts):
            taken[letter.id] = key
        else:
            refused.add(letter.id)
            logger.warning("Dead letter id=%s stays one: another job has its key.", letter.id)
    return taken, refused


def history(using: str, job_id: int, n: int = 100) -> list[Attempt]:
    """The last ``n`` lines of a job's history, oldest first; under all ids that it has had."""
    attempts, ids, found = Attempt.objects.using(using), set[int](), {job_id}
    while found:
        ids |= found
        renumbered = attempts.filter(job_id__in=found, kind=Attempt.RENUMBERED, other_id__isnull=False)
        found = set(renumbered.values_list("other_id", flat=True)) - ids
    return list(attempts.filter(job_id__in=ids).order_by("-id")[:n])[::-1]
