"""A tick over many schedules, a tenth of which is due, beside raw SQL that writes the same.

Raw SQL reads what is due once, and then, for each, in a transaction of its own: the guarded UPDATE of the
boundary, the INSERT of the job and the UPDATE of what is counted, with the next boundary known beforehand.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import connection, transaction

from alkstore_django import schedules
from alkstore_django.models import ScheduledTask, ScheduleOptions
from alkstore_django.sql import tables

from .database import clear
from .measure import medians, rate, show

START = 1_772_452_800
"""2026-03-02 12:00 UTC, a boundary of every schedule here."""

ADVANCE = (
    f"UPDATE {tables.SCHEDULES} SET next_fire_at = %s WHERE name = %s AND next_fire_at = %s AND enabled = 1"
)
INSERT = (
    f"INSERT INTO {tables.LIVE} (queue, payload, run_at, priority, max_attempts) VALUES (%s, %s, %s, %s, %s)"
)
COUNT = f"UPDATE {tables.SCHEDULE_OPTIONS} SET last_fire_at = %s, skipped = skipped + %s WHERE name = %s"


def run(quick: bool) -> None:
    many = 1_000 if quick else 10_000
    due = many // 10
    _register(many, due)
    cases = {"raw SQL": lambda: _measured(due, _raw), "tick": lambda: _measured(due, _tick)}
    title = f"A tick over {many:,} schedules, {due:,} of them due (schedules fired)"
    show(title, medians(cases), anchor="raw SQL")
    started = time.perf_counter()
    schedules.tick(START)
    print(f"  a tick with nothing due: {(time.perf_counter() - started) * 1000:.1f} ms")


def _register(many: int, due: int) -> None:
    payload = '{"__honker_task__":{"task":"benchmarks.tasks.nothing","args":[],"kwargs":{}}}'
    names = [f"schedule {number}" for number in range(many)]
    expressions = {name: f"{number % 60} * * * *" for number, name in enumerate(names)}
    ScheduledTask.objects.all().delete()
    ScheduleOptions.objects.all().delete()
    ScheduledTask.objects.bulk_create(
        [
            ScheduledTask(name=name, queue="q", cron_expr=expressions[name], payload=payload, next_fire_at=0)
            for name in names
        ],
        batch_size=500,
    )
    ScheduleOptions.objects.bulk_create(
        [
            ScheduleOptions(
                name=name,
                timezone="Europe/Berlin",
                catch_up="latest",
                owner="admin",
                expression=expressions[name],
                canonical=expressions[name],
            )
            for name in names
        ],
        batch_size=500,
    )
    _set_due(due)
    schedules.tick(START)  # it has read every expression that is due once


def _set_due(due: int) -> None:
    ScheduledTask.objects.update(next_fire_at=START + 3600)
    names = [f"schedule {number}" for number in range(due)]
    for start in range(0, due, 500):
        ScheduledTask.objects.filter(pk__in=names[start : start + 500]).update(next_fire_at=START)


def _measured(due: int, work: Any) -> float:
    clear()
    _set_due(due)
    return rate(due, work)


def _tick() -> None:
    schedules.tick(START)


def _raw() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT name, queue, payload, priority, max_attempts, next_fire_at FROM {tables.SCHEDULES} "
            "WHERE enabled = 1 AND next_fire_at <= %s ORDER BY next_fire_at",
            [START],
        )
        for name, queue, payload, priority, attempts, boundary in cursor.fetchall():
            with transaction.atomic():
                cursor.execute(ADVANCE, [boundary + 3600, name, boundary])
                cursor.execute(INSERT, [queue, payload, START, priority, attempts])
                cursor.execute(COUNT, [boundary, 0, name])
