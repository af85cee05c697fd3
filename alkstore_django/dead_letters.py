"""Dead letters: how to give those that are meant a new life, and what happened to a job before.

Filters are names of queues, and of tasks (as stored, ``*`` for anything): one, or several any of which will
do; a text that the last error says, in its message or in the path of its class; and when they died, from
``since`` on and before ``until``: aware datetimes, Unix seconds, or a ``timedelta`` for so long ago. All that
are given must hold. Bad ones raise ``TypeError`` and ``ValueError`` before any SQL. Times are the database's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from asgiref.sync import sync_to_async

from . import reviving
from .letters import LetterFilter, Moment, asked, find
from .models import Attempt, alias
from .values import whole

Names = str | Iterable[str] | None


def requeue(
    *,
    queue: Names = None,
    task: Names = None,
    error: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int | None = None,
    everything: bool = False,
    using: str | None = None,
) -> int:
    """Give the dead letters that are meant a new life, by id, at most ``limit``; how many were moved.

    Each batch (``reviving.BATCH``) is a transaction of its own, or a savepoint of the caller's. What somebody
    else requeues or deletes meanwhile is not counted, nor is what stays since another job has the key of its
    unique task. Without any filter, ``everything=True`` must say that all are meant.
    """
    most = None if limit is None else whole("limit", limit, 1)
    database = alias(using)
    wanted = _sure(asked(database, queue, task, error, since, until), everything)
    found = (letter.id for letter in find(database, wanted))
    done = 0
    while ids := list(islice(found, reviving.BATCH if most is None else min(reviving.BATCH, most - done))):
        done += len(reviving.revive(database, ids, wanted).revived)
    return done


def count(
    *,
    queue: Names = None,
    task: Names = None,
    error: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    using: str | None = None,
) -> int:
    """How many dead letters are meant; without any filter, how many there are."""
    database = alias(using)
    return sum(1 for _ in find(database, asked(database, queue, task, error, since, until)))


def history(using: str, job_id: int, n: int = 100) -> list[Attempt]:
    """The last ``n`` lines of a job's history, oldest first; under all ids that it has had."""
    attempts, ids, found = Attempt.objects.using(using), set[int](), {job_id}
    while found:
        ids |= found
        renumbered = attempts.filter(job_id__in=found, kind=Attempt.RENUMBERED, other_id__isnull=False)
        found = set(renumbered.values_list("other_id", flat=True)) - ids
    return list(attempts.filter(job_id__in=ids).order_by("-id")[:n])[::-1]


def _sure(wanted: LetterFilter, everything: bool) -> LetterFilter:
    if not wanted and not everything:
        raise ValueError("Say which dead letters: by a filter, or with everything=True.")
    return wanted


arequeue = sync_to_async(requeue)
acount = sync_to_async(count)
