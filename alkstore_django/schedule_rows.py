"""``Schedule``: what there is to know of a stored schedule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from .cron import Cron, CronError
from .envelopes import task_name
from .models import FOREIGN, ScheduledTask, ScheduleManager, ScheduleRow
from .schedule_values import ALL, cron_of
from .values import moment

CODE, SETTINGS, ADMIN = "code", "settings", "admin"
OWNERS = (CODE, SETTINGS, ADMIN, FOREIGN)
DECLARED = (CODE, SETTINGS)
"""The owners that ``sync`` speaks for."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as stored. Moments are aware datetimes in UTC, whatever ``USE_TZ`` says."""

    name: str
    queue: str
    task: str | None
    """The stored name of the task, most often its dotted path; ``None`` for a payload that is no task."""
    payload: str
    """JSON text, as its jobs will have it."""
    expression: str
    """As it was written."""
    canonical: str
    """In honker's grammar, as it is stored for every program."""
    timezone: str
    catch_up: str
    """``latest``, ``all`` or ``none``."""
    overlap: bool
    """Whether it may fire while its last job is queued or running."""
    owner: str
    """``code`` (``@schedule``), ``settings`` (``ALKSTORE["SCHEDULES"]``), ``admin`` (``register``, or the
    admin), or ``foreign``: another program, by whose rules it is read."""
    priority: int
    expires: int | None
    """Seconds after which a job that was not started is a dead letter."""
    max_attempts: int
    enabled: bool
    """``False`` while it is paused, or withdrawn."""
    withdrawn: bool
    """Whether it is disabled since the code does not declare it any more."""
    next_fire_at: datetime | None
    """The next boundary; ``None`` while there is none: it is disabled or has a problem."""
    last_fire_at: datetime | None
    """The last boundary for which we have put a job in."""
    skipped: int
    """How many boundaries were left out so far."""
    problem: str | None
    """Why it stands still, though it is enabled."""

    @classmethod
    def of(cls, row: ScheduleRow) -> Schedule:
        foreign = row.is_foreign
        stands_still = row.is_broken or not row.enabled
        return cls(
            name=row.name,
            queue=row.queue,
            task=task_name(row.payload) or None,
            payload=row.payload,
            expression=row.cron_expr if foreign else row.expression or "",
            canonical=row.cron_expr,
            timezone=settings.TIME_ZONE if foreign else row.timezone or "",
            catch_up=ALL if foreign else row.catch_up or "",
            overlap=foreign or row.overlap,
            owner=FOREIGN if foreign else row.owner or "",
            priority=row.priority,
            expires=row.expires_s,
            max_attempts=row.max_attempts,
            enabled=row.enabled,
            withdrawn=row.withdrawn and not row.enabled,
            next_fire_at=None if stands_still else moment(row.next_fire_at),
            last_fire_at=moment(row.last_fire_at),
            skipped=row.skipped,
            problem=row.problem if row.is_broken else None,
        )

    @property
    def is_declared(self) -> bool:
        """Whether the code or the settings decide about it; only they can change it."""
        return self.owner in DECLARED

    @property
    def cron(self) -> Cron | None:
        """The expression in its zone; ``None`` if it cannot be read."""
        try:
            return cron_of(self.expression, self.timezone, is_foreign=self.owner == FOREIGN)
        except CronError:
            return None

    @property
    def portable(self) -> bool:
        """Whether another program that reads ``canonical`` in the same zone fires at the same instants."""
        return self.why_not_portable is None

    @property
    def why_not_portable(self) -> str | None:
        """Where it would not, in words."""
        cron = self.cron
        return "it cannot be read" if cron is None else cron.why_not_portable()

    def upcoming(self, n: int = 5, *, after: datetime | None = None) -> list[datetime]:
        """The next ``n`` instants later than ``after``; by default the next boundary and those after it."""
        cron, first = self.cron, self.next_fire_at
        if cron is None or n < 1:
            return []
        if after is not None:
            return cron.upcoming(n, after=after)
        return [] if first is None else [first, *cron.upcoming(n - 1, after=first)]


def cron_for(row: ScheduleRow) -> Cron:
    """The expression of a row in its zone, by the rules of whoever owns it. Raises ``CronError``."""
    if row.is_foreign:
        return cron_of(row.cron_expr, settings.TIME_ZONE, is_foreign=True)
    return cron_of(row.expression or "", row.timezone or "")


def rows(using: str) -> ScheduleManager:
    return ScheduledTask.objects.db_manager(using)
