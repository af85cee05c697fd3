"""Give dead letters a new life, a bounded number in each transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from . import unique
from .inspection import is_id
from .keys import Key, of_payload
from .letters import LetterFilter
from .logs import get_logger
from .models import DeadJob, Job, Letter, UniqueKey, Wanted, WorkerProcess
from .models.base import in_transaction

logger = get_logger("alkstore_django.dead_letters")

BATCH = 100
"""Dead letters that one transaction requeues: short enough for others to get their turn."""

ANY = LetterFilter()


@dataclass(frozen=True, slots=True)
class Batch:
    """What became of some dead letters, committed: the live ids of those that were requeued by the old ones;
    and those that stay since another job has their key. The others were not there any more."""

    revived: dict[int, int] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)


def of_queue(queue: str | None) -> LetterFilter:
    return ANY if queue is None else LetterFilter(Wanted((queue,)))


def requeue(using: str, ids: Iterable[int], queue: str | None = None) -> dict[int, int]:
    """Requeue dead letters (of that queue); the live id of each that was there.

    The dead letter of a unique task takes its key again. If another job has it by now, it stays what it
    is, with a warning in the log.
    """
    found = batches(using, ids, of_queue(queue))
    return {old: new for batch in found for old, new in batch.revived.items()}


def batches(using: str, ids: Iterable[int], wanted: LetterFilter = ANY) -> Iterator[Batch]:
    """The same of those that are ``wanted``, ``BATCH`` to a transaction; ``ids`` are read as far as they are
    needed."""
    found = filter(is_id, ids)
    while batch := list(islice(found, BATCH)):
        yield revive(using, batch, wanted)


def revive(using: str, ids: Sequence[int], wanted: LetterFilter = ANY) -> Batch:
    """The same in one transaction; each is judged again when its row is locked."""
    return in_transaction(using, partial(_revive, using, ids, wanted))


def _revive(using: str, ids: Sequence[int], wanted: LetterFilter) -> Batch:
    dead = DeadJob.objects.db_manager(using)
    letters = [letter for letter in dead.lock(sorted(set(ids)), wanted.wanted) if wanted.is_meant(letter)]
    keys, held = _take_keys(using, letters)
    revived = dead.revive([letter.id for letter in letters if letter.id not in held])
    for job_id, new_id in revived.items():
        if job_id in keys and new_id != job_id:
            UniqueKey.objects.db_manager(using).rename(keys[job_id].digest, job_id, new_id)
    if revived:
        Job.objects.db_manager(using).announce()
    return Batch(revived, held)


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
