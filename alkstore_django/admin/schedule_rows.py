"""What the pages show of schedules: their rows, with the options from the table beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from alkstore_django.models import ScheduledTask, ScheduleOptions, ScheduleRow

if TYPE_CHECKING:
    from alkstore_django.schedules import Schedule

COLUMNS = [field.attname for field in ScheduledTask._meta.concrete_fields]
OPTIONS = [field.attname for field in ScheduleOptions._meta.concrete_fields][1:]


def attach(rows: Sequence[Any], using: str) -> Sequence[Any]:
    """Give each row its ``schedule``, and its ``stored`` form, by one query for all of them."""
    from alkstore_django.schedules import Schedule  # the backport may be missing, and a check has to say so

    beside = ScheduleOptions.objects.using(using).in_bulk([row.pk for row in rows])
    for row in rows:
        options = beside.get(row.pk)
        values = [None] * len(OPTIONS) if options is None else [getattr(options, name) for name in OPTIONS]
        row.stored = ScheduleRow.from_row([*(getattr(row, name) for name in COLUMNS), *values])
        row.schedule = Schedule.of(row.stored)
    return rows


def described(schedule: Schedule) -> str:
    """``0 3 * * * (Europe/Berlin)``."""
    return f"{schedule.expression} ({schedule.timezone})"


def words(schedule: Schedule) -> str:
    cron = schedule.cron
    return _("it cannot be read") if cron is None else cron.describe()


def state(schedule: Schedule) -> str:
    if schedule.withdrawn:
        return _("withdrawn")
    if not schedule.enabled:
        return _("paused")
    return _("on") if schedule.problem is None else _("stands still")
