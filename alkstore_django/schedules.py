"""Schedules: when to enqueue what, by cron expressions. Workers and schedulers fire them.

``@schedule("0 3 * * *")`` above ``@task`` declares one in the code, ``ALKSTORE["SCHEDULES"]`` in the
settings, ``register`` makes one at run time. ``using`` is everywhere the alias of a database, by default
the router's answer for jobs. Moments that are returned are aware datetimes in UTC.

What is wrong with a field raises ``ValueError``, which begins with its name, before any SQL.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async

from . import firing, schedule_changes, schedule_sync, schedule_updates
from .declarations import schedule
from .firing import Firing
from .models import alias
from .schedule_changes import NameTaken
from .schedule_rows import ADMIN, Schedule, rows
from .schedule_sync import SyncReport
from .schedule_values import CATCH_UPS, LATEST, UNSET, Duration, database_of, define
from .values import instant, moment

__all__ = [
    "CATCH_UPS",
    "Firing",
    "NameTaken",
    "Schedule",
    "SyncReport",
    "due_in",
    "get",
    "heal",
    "list",
    "pause",
    "register",
    "resume",
    "run_now",
    "schedule",
    "soonest",
    "sync",
    "tick",
    "unregister",
    "update",
]


def register(
    name: str,
    expression: str,
    task: Any = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    payload: Any = UNSET,
    timezone: str | None = None,
    catch_up: str = LATEST,
    overlap: bool = True,
    priority: int | None = None,
    expires: Duration | None = None,
    max_attempts: int | None = None,
    enabled: bool = True,
    using: str | None = None,
) -> Schedule:
    """Make a schedule, or bring the one of that name up to date; what is stored now.

    ``task``
        A task or the dotted path of one, called with ``args`` and ``kwargs``. Or else ``payload``, JSON for
        the handler of ``queue``.
    ``timezone``
        The zone whose clocks the expression speaks of; default: ``TIME_ZONE``.
    ``catch_up``
        What to do about boundaries that nobody was there to fire: ``"latest"`` fires the newest, ``"all"``
        each, up to 64, ``"none"`` the newest if it is at most ``ALKSTORE["CATCH_UP_GRACE"]`` old.
    ``overlap``
        ``False`` skips a boundary while the schedule's last job is queued or running.
    ``queue``, ``priority``, ``expires``, ``max_attempts``
        Of its jobs; default: those of the task, or 0, none and 3.
    ``enabled``
        ``False`` begins paused. The same value again leaves alone what ``pause`` and ``resume`` did.

    The next boundary is kept unless the expression, the zone or its meaning has changed. It belongs to the
    ``admin``: ``sync`` never touches it. Raises ``NameTaken``, a ``ValueError``, if the code, the settings or
    another program has one of that name.
    """
    definition = define(
        name,
        expression,
        task,
        args=args,
        kwargs=kwargs,
        queue=queue,
        payload=payload,
        timezone=timezone,
        catch_up=catch_up,
        overlap=overlap,
        priority=priority,
        expires=expires,
        max_attempts=max_attempts,
        enabled=enabled,
    )
    database = _database(definition.task, using)
    return Schedule.of(schedule_changes.put(database, definition, ADMIN).row)


def update(
    name: str,
    *,
    expression: str = UNSET,
    task: Any = UNSET,
    args: Sequence[Any] = UNSET,
    kwargs: Mapping[str, Any] | None = UNSET,
    queue: str = UNSET,
    payload: Any = UNSET,
    timezone: str | None = UNSET,
    catch_up: str = UNSET,
    overlap: bool = UNSET,
    priority: int = UNSET,
    expires: Duration | None = UNSET,
    max_attempts: int = UNSET,
    using: str | None = None,
) -> Schedule:
    """Change the given fields, all or none; what is stored now. The fields are those of ``register``.

    Only another expression or zone moves the next boundary, counted from now. Raises ``ValueError`` for a
    name that is not there, and ``NameTaken`` for one that the code, the settings or another program owns.
    """
    fields = {
        "expression": expression,
        "task": task,
        "args": args,
        "kwargs": kwargs,
        "queue": queue,
        "payload": payload,
        "timezone": timezone,
        "catch_up": catch_up,
        "overlap": overlap,
        "priority": priority,
        "expires": expires,
        "max_attempts": max_attempts,
    }
    given = {key: value for key, value in fields.items() if value is not UNSET}
    return Schedule.of(schedule_updates.amend(alias(using), name, given))


def unregister(name: str, *, using: str | None = None) -> bool:
    """Delete a schedule, whoever owns it; ``False`` if there is none. Its jobs stay. What the code or the
    settings still declare comes back with the next ``sync``."""
    return schedule_changes.delete(alias(using), name)


def pause(name: str, *, using: str | None = None) -> bool:
    """Let a schedule fire no more; ``False`` if it is not there, or paused already. No ``sync`` and no
    ``register`` ends a pause."""
    return schedule_changes.pause(alias(using), name)


def resume(name: str, *, using: str | None = None) -> bool:
    """Let a paused schedule fire again, from the next boundary after now on: what was missed is no boundary
    of it. ``False`` if it is not there, or not paused. Raises ``ValueError`` if it cannot be due."""
    return schedule_changes.resume(alias(using), name)


def run_now(name: str, *, using: str | None = None) -> int | None:
    """Put one job in at once, whether the schedule is paused or not; its id. The next boundary stays.

    ``None``, and there is no new job, if the last one lives and the schedule does not overlap, or another job
    has the key of its unique task. Raises ``ValueError`` for a name that is not there.
    """
    return firing.run_now(alias(using), name)


def list(*, using: str | None = None) -> builtins.list[Schedule]:
    """All schedules, those of other programs too, by name."""
    return sorted(map(Schedule.of, rows(alias(using)).rows()), key=lambda each: each.name)


def get(name: str, *, using: str | None = None) -> Schedule | None:
    """The schedule of that name, or ``None``."""
    row = rows(alias(using)).row(name)
    return None if row is None else Schedule.of(row)


def soonest(*, using: str | None = None) -> datetime | None:
    """The next boundary of all schedules that are enabled and have no problem; ``None`` without one."""
    return moment(rows(alias(using)).soonest()[0])


def tick(now: datetime | int | float | None = None, *, using: str | None = None) -> builtins.list[Firing]:
    """Fire everything that is due; what was put in. Schedulers do this all the time.

    Each schedule is a transaction: its next boundary and its jobs are written together or not at all, and
    of any number of callers one fires a boundary. ``now``, an aware datetime or Unix seconds, is for tests;
    by default it is the time of the database.
    """
    database = alias(using)
    at = None if now is None else instant("now", now)
    fired: builtins.list[Firing] = []
    while True:
        result = firing.fire_due(database, at)
        fired += result.firings
        if result.is_last or not result.moved:
            return fired


def sync(*, using: str | None = None) -> SyncReport:
    """Write what the modules imported so far and the settings declare. Workers and schedulers do it when they
    start, after they have imported the modules of the project.

    What is unchanged keeps its next boundary, a paused schedule stays paused. What nothing declares any more
    is disabled until it is declared again. A name that somebody else owns is left as it is, as is a
    declaration that is wrong: the report and the log say so.
    """
    return schedule_sync.sync(alias(using))


def heal(*, using: str | None = None) -> builtins.list[str]:
    """Let schedules with a problem that is gone, such as a zone that was not known, go on from now; their
    names. Schedulers do it when they begin to lead."""
    database = alias(using)
    broken = rows(database).broken()
    return [row.name for row in broken if schedule_changes.heal(database, row)]


def due_in(*, using: str | None = None) -> float | None:
    """Seconds until ``soonest``, by the database's clock; not above 0 if it is due, ``None`` without one."""
    found, clock = rows(alias(using)).soonest()
    return None if found is None else found - clock


def _database(task: Any, using: str | None) -> str:
    if task is None:
        return alias(using)
    found = database_of(task)
    if using not in (None, found):
        raise ValueError(f"using: the jobs of this task are in database {found!r}, not in {using!r}.")
    return found


aregister = sync_to_async(register)
aupdate = sync_to_async(update)
aunregister = sync_to_async(unregister)
apause = sync_to_async(pause)
aresume = sync_to_async(resume)
arun_now = sync_to_async(run_now)
alist = sync_to_async(list)
aget = sync_to_async(get)
asoonest = sync_to_async(soonest)
