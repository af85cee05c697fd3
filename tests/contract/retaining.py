"""Rows that are over, and those that are not; and the deletion of what is."""

from __future__ import annotations

from typing import Any

from django.db import connection

from alkstore_django.models import Attempt, Metadata, Notification, ScheduledJob, StreamEvent
from alkstore_django.pruning import Pass, count
from alkstore_django.retention import chosen
from tests import factories
from tests.factories import at

IS_SHARED = connection.vendor == "sqlite"
"""Whether rows without a sign of ours may be another program's."""

DAY = 86_400


def prune(*only: str, using: str = "default", most: int = 500, **ages: object) -> dict[str, int]:
    """What was deleted, by kind, where it was anything; a dry run says the same beforehand."""
    rules = chosen(using, only, ages)
    told = {rule.kind: count(using, rule, rules) for rule in rules}
    steps = Pass(using, rules, most)
    while steps.step():
        pass
    assert steps.deleted == told
    return {kind: number for kind, number in steps.deleted.items() if number}


def attempt(job_id: int, kind: str = Attempt.FAILED, **columns: Any) -> int:
    return int(Attempt.objects.create(job_id=job_id, kind=kind, ended_at=at(-5), **columns).pk)


def dead(job_id: int, age: int = 0, *, is_ours: bool = True, **columns: Any) -> int:
    """A dead letter that died so many seconds ago; ours has a history."""
    factories.dead(job_id, died_at=at(-age), **columns)
    if is_ours:
        attempt(job_id)
    return job_id


def notification(age: int, payload: str = "1") -> int:
    return int(Notification.objects.create(channel="c", payload=payload, created_at=at(-age)).pk)


def event(age: int, payload: str = "1") -> int:
    return int(StreamEvent.objects.create(topic="t", payload=payload, created_at=at(-age)).pk)


def metadata(job_id: int) -> int:
    Metadata.objects.create(job_id=job_id, value="{}")
    return job_id


def scheduled(job_id: int) -> int:
    ScheduledJob.objects.create(job_id=job_id, schedule="s")
    return job_id


def ids(model: Any) -> set[int]:
    return set(model.objects.values_list("pk", flat=True))
