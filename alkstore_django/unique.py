"""Jobs of unique tasks: the job that holds the key is the answer, or a new one that takes it.

A key is looked at without a lock, and taken by one write, which goes by what was seen (``sql/holding.py``).
So nobody waits for a key that is held, those who find it free wait for each other, and one has it, at any
isolation level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from . import endings, holders
from .inspection import JobInfo
from .keys import REPLACE, Key
from .models import Arrival, Job, Seen, Take, UniqueKey
from .models.base import in_transaction, is_in_transaction

T = TypeVar("T")


class Call(NamedTuple):
    """A payload that is to be the job of a key."""

    key: Key
    text: str


class Placed(NamedTuple):
    """The job that has the key of a call: a new one (``created``), that of an earlier call in the same
    enqueue, whose payload is ``text``, or one that was there, the ``holder``."""

    arrival: Arrival
    text: str
    created: bool = True
    holder: JobInfo | None = None


def add(
    using: str,
    queue: str,
    calls: Sequence[Call],
    on_conflict: str,
    row: dict[str, int | None],
    answer: Callable[[Sequence[Placed]], list[T]],
) -> list[T]:
    """Enqueue each call whose key is free, all or none; of what has the key of each, in their order, what
    ``answer`` makes. It may read: it does so before the commit, after which nothing can fail any more.

    All keys last equally long. Inside a transaction of the caller's, a waiting job that holds a key is
    not claimed before that transaction ends: it will see what was done in it.
    """
    if not calls:
        return []
    placing = Placing(using, queue, on_conflict, row)
    if placing.is_inside:
        placing.keys.begin()
    elif found := placing.look(calls):
        return answer(found)
    return in_transaction(using, lambda: answer(placing.place(calls)))


def take_again(using: str, job_id: int, key: Key, lasts: int | None) -> bool:
    """Let a job that comes back have its key again, for ``lasts`` seconds from now at most; ``False`` if
    another one has it by now. In a transaction."""
    table = UniqueKey.objects.db_manager(using)
    before: int | None = None
    while True:
        seen = table.look([key.digest])
        stamp = _stamp(seen, key.digest)
        if holders.held(using, seen) or stamp == before:
            return False
        if table.take([Take(key.digest, job_id, stamp)], lasts):
            return True
        before = stamp


class Placing:
    """One enqueue of unique jobs."""

    def __init__(self, using: str, queue: str, on_conflict: str, row: dict[str, int | None]) -> None:
        self.using = using
        self.queue = queue
        self.replaces = on_conflict == REPLACE
        self.row = row
        self.is_inside = is_in_transaction(using)
        """Whether the caller goes on in the same transaction."""
        self.jobs = Job.objects.db_manager(using)
        self.keys = UniqueKey.objects.db_manager(using)
        self._seen: dict[str, Seen] | None = None
        """What ``look`` saw: if a key is not as it was, the taking tells."""

    def look(self, calls: Sequence[Call]) -> list[Placed]:
        """The answers, if there is nothing to write: every key is held by a job that stays."""
        self._seen = self.keys.look({call.key.digest for call in calls})
        held = holders.held(self.using, self._seen)
        jobs = [held.get(call.key.digest) for call in calls]
        stay = [job for job in jobs if job and not (self.replaces and job.state == Job.PENDING)]
        return [_existing(job) for job in stay] if len(stay) == len(calls) else []

    def place(self, calls: Sequence[Call]) -> list[Placed]:
        """The answers, in a transaction. Of one key all calls but the first find it held, or replace."""
        positions: dict[str, list[int]] = {}
        for index, call in enumerate(calls):
            positions.setdefault(call.key.digest, []).append(index)
        waves = [[index for index in wave if index is not None] for wave in zip_longest(*positions.values())]
        answers: dict[int, Placed] = {}
        for wave in waves if self.replaces else waves[:1]:
            found = self._place([calls[index] for index in wave])
            answers |= {index: found[calls[index].key.digest] for index in wave}
        for first, *others in positions.values():
            for index in others:
                answers.setdefault(index, answers[first]._replace(created=False))
        return [answers[index] for index in range(len(calls))]

    def _place(self, calls: Sequence[Call]) -> dict[str, Placed]:
        """The jobs that have these keys, which are different ones, by digest."""
        found: dict[str, Placed] = {}
        lost: dict[str, Lost] = {}
        while left := [call for call in calls if call.key.digest not in found]:
            seen = self._look_again([call.key.digest for call in left])
            found |= {digest: _existing(job) for digest, job in self._holders(seen).items()}
            found |= self._unseen([each for digest, each in lost.items() if digest not in found], seen)
            free = [call for call in left if call.key.digest not in found]
            taken, lost = self._take(free, seen)
            found |= taken
        return found

    def _look_again(self, digests: Sequence[str]) -> dict[str, Seen]:
        if self.replaces:  # who waits for a job has its key, so that nobody waits for the two crosswise
            self.keys.lock(digests)
        elif self._seen is not None:
            seen, self._seen = self._seen, None
            return seen
        return self.keys.look(digests)

    def _holders(self, seen: dict[str, Seen]) -> dict[str, JobInfo]:
        """The jobs that hold keys and go on doing so: waiting ones are kept from being claimed, or
        cancelled."""
        held = holders.held(self.using, seen)
        waiting = {digest: job for digest, job in held.items() if job.state == Job.PENDING}
        if waiting and self.replaces:
            gone = self._cancel(waiting, seen)
        elif waiting and self.is_inside:
            kept = self.keys.keep_waiting([job.id for job in waiting.values()])
            gone = {digest for digest, job in waiting.items() if job.id not in kept}
            seen |= self.keys.look(gone)
        else:
            return held
        held = {digest: job for digest, job in held.items() if digest not in gone}
        return held | holders.held(self.using, {digest: seen[digest] for digest in gone if digest in seen})

    def _cancel(self, waiting: Mapping[str, JobInfo], seen: dict[str, Seen]) -> set[str]:
        """Cancel waiting jobs; the keys that were theirs. What is in ``seen`` of them is what is so now."""
        claims = {claim.id: claim for claim in self.keys.lock_jobs([job.id for job in waiting.values()])}
        ended = []
        for digest, job in waiting.items():
            claim = claims.get(job.id)
            if claim and claim.worker_id:  # it was claimed meanwhile
                seen[digest] = seen[digest]._replace(job=claim, is_running=True, has_future=True)
                continue
            seen[digest] = seen[digest]._replace(job=None, in_time=False)
            ended += [claim] if claim else []
        endings.cancelled(self.using, ended)
        return set(waiting)

    def _take(
        self, calls: Sequence[Call], seen: Mapping[str, Seen]
    ) -> tuple[dict[str, Placed], dict[str, Lost]]:
        """Put jobs in that take these keys; those that did, and the others, which are not there any more."""
        if not calls:
            return {}, {}
        arrivals = self.jobs.enqueue_many(self.queue, [call.text for call in calls], **self.row)
        new = {
            call.key.digest: Placed(arrival, call.text) for call, arrival in zip(calls, arrivals, strict=True)
        }
        wanted = [Take(digest, each.arrival.id, _stamp(seen, digest)) for digest, each in new.items()]
        taken = self.keys.take(wanted, calls[0].key.seconds)
        lost = {take.digest: Lost(take, new[take.digest]) for take in wanted if take.digest not in taken}
        self.jobs.delete_locked([each.take.job_id for each in lost.values()])
        return {digest: new[digest] for digest in taken}, lost

    def _unseen(self, lost: Sequence[Lost], seen: Mapping[str, Seen]) -> dict[str, Placed]:
        """Jobs that have taken keys which look as they did before: this transaction reads the tables as
        they were once (REPEATABLE READ, where the database does not end it for that). Known by id alone."""
        found = {}
        for take, placed in lost:
            if take.seen == _stamp(seen, take.digest):
                newest = self.keys.newest_holder(take.digest)
                if newest is not None:
                    arrival = placed.arrival._replace(id=newest)
                    found[take.digest] = placed._replace(arrival=arrival, created=False)
        return found


class Lost(NamedTuple):
    """A taking that came too late, and the job that it was for."""

    take: Take
    placed: Placed


def _stamp(seen: Mapping[str, Seen], digest: str) -> int:
    return seen[digest].stamp if digest in seen else 0


def _existing(job: JobInfo) -> Placed:
    return Placed(Arrival(job.id, job.created_at), job.raw_payload, created=False, holder=job)
