"""Schedules of a test's own, with boundaries where it wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from alkstore_django import schedules
from alkstore_django.models import Job, ScheduledTask
from alkstore_django.schedules import Schedule
from alkstore_django.signals import boundaries_skipped
from tests import factories
from tests.app import tasks

BASE = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""A boundary of everything that is due in whole hours."""


def made(
    name: str = "s",
    expression: str = "* * * * *",
    task: Any = tasks.nothing,
    *,
    due: datetime = BASE,
    **fields: Any,
) -> Schedule:
    """A schedule whose next boundary is ``due``."""
    schedules.register(name, expression, task, **{"timezone": "UTC", **fields})
    set_next(name, due)
    return at(name)


def foreign(name: str = "theirs", cron_expr: str = "* * * * *", due: datetime = BASE, **columns: Any) -> None:
    """A row as honker writes it."""
    row = {"queue": "emails", "payload": '{"to": 1}', "next_fire_at": int(due.timestamp())}
    ScheduledTask.objects.create(name=name, cron_expr=cron_expr, **{**row, **columns})


def set_next(name: str, moment: datetime) -> None:
    assert ScheduledTask.objects.filter(pk=name).update(next_fire_at=int(moment.timestamp())) == 1


def at(name: str = "s") -> Schedule:
    found = schedules.get(name)
    assert found is not None
    return found


def db_now() -> datetime:
    return datetime.fromtimestamp(factories.now(), tz=UTC)


def jobs() -> int:
    return Job.objects.count()


def unregister_before(monkeypatch: pytest.MonkeyPatch, operation: str, gone: str) -> None:
    """Let somebody delete the schedule ``gone`` just before its turn in an operation on many."""
    act = getattr(schedules, operation)

    def too_late(name: str, **options: Any) -> Any:
        if name == gone:
            schedules.unregister(name)
        return act(name, **options)

    monkeypatch.setattr(schedules, operation, too_late)


@contextmanager
def told_of_skipped() -> Iterator[list[tuple[str, int]]]:
    """Schedule and count of every signal."""
    told: list[tuple[str, int]] = []

    def receive(schedule: str, count: int, **kwargs: Any) -> None:
        told.append((schedule, count))

    boundaries_skipped.connect(receive)
    try:
        yield told
    finally:
        boundaries_skipped.disconnect(receive)
