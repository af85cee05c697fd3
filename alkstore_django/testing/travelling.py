"""Let time pass for the jobs of a test: their times are moved, since no test moves the database's clock."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F

from alkstore_django import served
from alkstore_django.models import Job, UniqueKey, WorkerProcess
from alkstore_django.models.outbox import PARKED
from alkstore_django.values import instant, seconds


def travel(by: int | float | timedelta, *, using: str | None = None) -> None:
    """Make everything that waits or runs due that much sooner: seconds or a ``timedelta``.

    ``run_at``, ``expires`` and the ends of claims of all queues, and of the keys of unique tasks; results
    and dead letters stay as they are.
    ``using``: one database; by default each that holds jobs of ours. Raises ``TypeError``, ``ValueError``.
    """
    shift = seconds("by", by)
    for alias in served.databases() if using is None else [using]:
        jobs = Job.objects.using(alias)
        jobs.exclude(run_at=PARKED).update(run_at=F("run_at") - shift)  # events wait in line, for no time
        jobs.update(
            expires_at=F("expires_at") - shift,
            claim_expires_at=F("claim_expires_at") - shift,
        )
        UniqueKey.objects.using(alias).update(holds_until=F("holds_until") - shift)


def now(using: str) -> int:
    """Unix seconds by the database's clock."""
    return WorkerProcess.objects.db_manager(using).clock()


def seconds_until(until: datetime | timedelta | int | float, using: str) -> int:
    """How far that is from now; a second more, since times of jobs are rounded up."""
    if isinstance(until, datetime):
        return max(0, instant("until", until) - now(using)) + 1
    return seconds("until", until) + 1


def next_due(using: str, queues: list[str]) -> int | None:
    """Seconds until the next job of these queues can be claimed; ``None`` if there is none."""
    jobs = Job.objects.db_manager(using)
    moments = [moment for queue in queues if (moment := jobs.next_claim_at(queue))]
    return max(0, min(moments) - now(using)) if moments else None
