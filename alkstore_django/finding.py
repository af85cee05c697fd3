"""Find live jobs by what they are: their queue, their task, whether they wait or run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .envelopes import task_name
from .models import Claim, Job
from .models.base import chunks

WAITING, RUNNING = "waiting", "running"

BATCH = 200
"""Jobs per read: each comes with its payload."""


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that waits or runs; ``task`` is the stored name, empty for what is no task."""

    id: int
    queue: str
    task: str
    state: str

    @classmethod
    def of(cls, claim: Claim) -> LiveJob:
        state = RUNNING if claim.worker_id else WAITING
        return cls(claim.id, claim.queue, task_name(claim.payload), state)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What must hold of a job: all that is given. Queues and tasks are names as stored, any of which."""

    queues: Sequence[str] = ()
    tasks: Sequence[str] = ()
    state: str | None = None

    def __bool__(self) -> bool:
        """Whether it asks for anything: an empty one matches every job."""
        return bool(self.queues or self.tasks or self.state)

    def matches(self, claim: Claim) -> bool:
        job = LiveJob.of(claim)
        return (
            (not self.queues or job.queue in self.queues)
            and (not self.tasks or job.task in self.tasks)
            and self.state in (None, job.state)
        )


def find(using: str, wanted: JobFilter, ids: Sequence[int] = ()) -> Iterator[LiveJob]:
    """The live jobs (of these ids, if any are given) that match, by id. Locks none.

    Without ids it reads every job of those queues.
    """
    for claim in _with_ids(using, ids) if ids else _all(using, wanted.queues):
        if wanted.matches(claim):
            yield LiveJob.of(claim)


def _with_ids(using: str, ids: Sequence[int]) -> Iterator[Claim]:
    jobs = Job.objects.db_manager(using)
    for chunk in chunks(sorted(set(ids)), BATCH):
        yield from jobs.with_ids(chunk)


def _all(using: str, queues: Sequence[str]) -> Iterator[Claim]:
    jobs = Job.objects.db_manager(using)
    claims = jobs.walk(queues, -(2**63), BATCH)
    while claims:
        yield from claims
        claims = jobs.walk(queues, claims[-1].id, BATCH)
