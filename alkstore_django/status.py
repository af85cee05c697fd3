"""How each queue stands: what is ready, delayed, running and dead, and for how long the oldest waits."""

from __future__ import annotations

from dataclasses import dataclass

from .models import DeadJob, Job
from .pauses import Pause, paused
from .workers import workers


@dataclass(slots=True)
class QueueStatus:
    """Counts of one queue; ``oldest_due`` is the age in seconds of the job that is due the longest;
    ``paused`` is the pause, where the queue has one."""

    queue: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    dead: int = 0
    oldest_due: int | None = None
    paused: Pause | None = None


def queues(using: str) -> list[QueueStatus]:
    """Every queue that has a live or dead job, or is paused, by name."""
    found: dict[str, QueueStatus] = {}
    for name, ready, delayed, running, age in Job.objects.db_manager(using).counts():
        found[name] = QueueStatus(name, ready, delayed, running, oldest_due=age)
    for name, dead in DeadJob.objects.db_manager(using).counts():
        found.setdefault(name, QueueStatus(name)).dead = dead
    for pause in paused(using):
        found.setdefault(pause.queue, QueueStatus(pause.queue)).paused = pause
    return [found[name] for name in sorted(found)]


def is_known(using: str, queue: str) -> bool:
    """Whether a queue has a job, or a worker that serves it."""
    if Job.objects.db_manager(using).any_in(queue):
        return True
    return any(worker.serves(queue) for worker in workers(using) if not worker.is_stale)
