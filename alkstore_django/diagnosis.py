"""Whether the jobs of a database get done: what ``alkhealth`` looks at. Fast, whatever the tables hold."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from . import health, schedules, served
from .leadership import leader
from .models import DeadJob, Job, WorkerProcess
from .pauses import Pause, paused
from .schedule_rows import rows
from .workers import FORGET, WorkerInfo, workers

MAX_AGE = 300
"""Seconds that a job may be due before it is a problem."""

MAX_SKEW = 5
"""Seconds by which the clocks of this host and of the database may differ."""

LATELY = 3600
"""Seconds over which dead letters are counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth knowing. ``code`` is one of a few words that never change."""

    code: str
    message: str
    is_problem: bool = True
    queue: str | None = None
    worker_id: str | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """A queue that should have a worker, or has one. ``oldest_due`` is in seconds, ``workers`` a number."""

    queue: str
    oldest_due: int | None
    workers: int
    is_paused: bool


@dataclass(slots=True)
class Diagnosis:
    """What was found; ``checked_at`` is by the database's clock, ``None`` if it could not be asked."""

    database: str
    checked_at: int | None = None
    findings: list[Finding] = field(default_factory=list)
    queues: list[QueueHealth] = field(default_factory=list)
    workers: list[WorkerInfo] = field(default_factory=list)

    @property
    def is_healthy(self) -> bool:
        return not any(finding.is_problem for finding in self.findings)


def diagnose(using: str, max_age: int = MAX_AGE, also: Collection[str] = ()) -> Diagnosis:
    """Look at everything; ``also`` are queues that need a worker and all of whose jobs count, tasks or not.
    Raises what the database raises."""
    found = Diagnosis(using)
    skew = _skew(found)
    if missing := health.missing_tables(using):
        found.findings = [Finding("tables", f"There is no table {missing[0]}: run manage.py migrate.")]
        return found
    found.workers = workers(using)
    pauses = {pause.queue: pause for pause in paused(using)}
    found.queues = list(_queues(using, found.workers, pauses, also))
    found.findings = [
        *_migrations(using),
        *_lonely(found.queues),
        *_stale(found.workers),
        *_old(found.queues, max_age),
        *_skewed(skew),
        *_sequence(using),
        *_stopped(using),
        *_unfired(using, max_age),
        *_led_by_others(using),
        *_dead(using),
        *map(_pause, pauses.values()),
    ]
    return found


def _skew(found: Diagnosis) -> int:
    """How many seconds the database is ahead of this host, as far as whole seconds can tell."""
    before = time.time()
    found.checked_at = now = WorkerProcess.objects.db_manager(found.database).clock()
    after = time.time()
    if now > after:
        return int(now - after)
    return -int(before - now - 1) if now + 1 < before else 0


def _queues(
    using: str, known: Sequence[WorkerInfo], pauses: Collection[str], also: Collection[str]
) -> Iterator[QueueHealth]:
    """Those of ``TASKS``, and those with tasks to do; jobs of other programs are not looked at."""
    jobs = Job.objects.db_manager(using)
    alive = [worker for worker in known if not worker.is_stale]
    expected = {*served.queues(using), *also}
    whole = {*served.handled_queues(using), *also}
    for name in sorted(expected.union(jobs.queues())):
        age = jobs.oldest_due(name, tasks_only=name not in whole)
        if name in expected or age is not None:
            serving = sum(worker.serves(name) for worker in alive)
            yield QueueHealth(name, age, serving, name in pauses)


def _migrations(using: str) -> Iterator[Finding]:
    for name in health.pending_migrations(using):
        yield Finding("migrations", f"Migration {name} has not run: run manage.py migrate.")


def _lonely(queues: Sequence[QueueHealth]) -> Iterator[Finding]:
    for each in queues:
        if not each.workers and not each.is_paused:
            yield Finding("no-worker", f"No worker serves queue {each.queue}.", queue=each.queue)


def _stale(known: Sequence[WorkerInfo]) -> Iterator[Finding]:
    for worker in known:
        if worker.is_stale:
            yield Finding(
                "stale-worker",
                f"Worker {worker.worker_id} on {worker.host} has had no heartbeat for {worker.silent_for} s: "
                f"it was killed, hangs, or has lost the database. Others forget it after {FORGET} s.",
                worker_id=worker.worker_id,
                seconds=worker.silent_for,
            )


def _old(queues: Sequence[QueueHealth], max_age: int) -> Iterator[Finding]:
    for each in queues:
        if each.oldest_due is not None and each.oldest_due > max_age and not each.is_paused:
            yield Finding(
                "oldest-due",
                f"A job of queue {each.queue} has been due for {each.oldest_due} s, more than {max_age} s.",
                queue=each.queue,
                seconds=each.oldest_due,
            )


def _skewed(skew: int) -> Iterator[Finding]:
    if abs(skew) > MAX_SKEW:
        how = "ahead of" if skew > 0 else "behind"
        message = f"The clock of the database is {abs(skew)} s {how} that of this host."
        yield Finding("clock-skew", message, seconds=skew)


def _sequence(using: str) -> Iterator[Finding]:
    """The one thing that is put right."""
    if known := Job.objects.db_manager(using).unsafe_id():
        health.raise_sequence(using)
        yield Finding("sequence", f"New ids began below the highest known one, {known}; now above.", False)


def _stopped(using: str) -> Iterator[Finding]:
    for row in rows(using).broken():
        yield Finding("schedule", f"Schedule {row.name} stands still: {row.problem}")


def _unfired(using: str, max_age: int) -> Iterator[Finding]:
    soonest, clock = rows(using).soonest()
    if soonest is not None and clock - soonest > max_age:
        late = int(clock - soonest)
        yield Finding("scheduler", f"A schedule has been due for {late} s: no scheduler runs.", seconds=late)


def _led_by_others(using: str) -> Iterator[Finding]:
    """Another program counts by its rules, which are ours only where a schedule is portable."""
    found = leader(using)
    if found is None or found.is_ours:
        return
    stored = schedules.list(using=using)
    names = [each.name for each in stored if each.enabled and not each.problem and not each.portable]
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        message = f"Another program, {found.owner}, fires the schedules, and these at other times: {shown}."
        yield Finding("leader", message, False)


def _dead(using: str) -> Iterator[Finding]:
    if count := DeadJob.objects.db_manager(using).died_within(LATELY):
        yield Finding("dead-letters", f"Dead letters of the last hour: {count}.", False)


def _pause(pause: Pause) -> Finding:
    end = "until it is resumed" if pause.ends_in is None else f"for {pause.ends_in} s more"
    by = f", by {pause.by}" if pause.by else ""
    message = f"Queue {pause.queue} is paused {end}{by}."
    return Finding("paused", message, False, queue=pause.queue, seconds=pause.ends_in)
