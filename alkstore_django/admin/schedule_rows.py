"""What the pages show of schedules: their rows, with the options from the table beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from alkstore_django.models import ScheduledTask

if TYPE_CHECKING:
    from alkstore_django.schedules import Schedule


def attach(rows: Sequence[Any], using: str) -> list[Any]:
    """Give each row its ``schedule``, and its ``stored`` form, by one query for all of them; without those
    that are gone by now.

    Nothing of it is what the row was read with: if somebody changes a schedule between two statements, its
    old expression beside its new options looks like that of another program.
    """
    from alkstore_django.schedules import Schedule  # the backport may be missing, and a check has to say so

    found = ScheduledTask.objects.db_manager(using).named([row.pk for row in rows])
    for row in rows:
        # A name that is no text, which SQLite may hold, finds nothing, and shows as it was read.
        row.stored = found.get(row.pk) or (row.alone if "\\x" in row.pk else None)
        row.schedule = None if row.stored is None else Schedule.of(row.stored)
    return [row for row in rows if row.stored is not None]


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
