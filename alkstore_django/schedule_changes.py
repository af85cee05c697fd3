"""Write schedules: each change is one transaction, in which nobody fires what is changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from .cron import Cron, CronError
from .models import FOREIGN, ScheduleManager, ScheduleRow
from .models.base import in_transaction
from .schedule_rows import DECLARED, cron_for, rows
from .schedule_values import Definition
from .values import utc

ADDED, CHANGED, UNCHANGED = "added", "changed", "unchanged"


class NameTaken(ValueError):
    """A schedule of that name is not ours to change."""


class Put(NamedTuple):
    """What became of a definition: ``done`` is ``ADDED``, ``CHANGED`` or ``UNCHANGED``. ``row`` was read by
    the transaction that has written it: a moment later it may be gone."""

    done: str
    row: ScheduleRow


def put(using: str, definition: Definition, owner: str) -> Put:
    """Make the stored schedule what ``definition`` says.

    The next boundary is counted from now, by the database's clock, if the schedule is new, comes back, or is
    due at other instants; else it stays as it was. A paused one stays paused, unless ``enabled`` of the
    definition is another than it was before. Raises ``NameTaken``.
    """
    table = rows(using)
    seen = table.row(definition.name)
    if seen is not None:
        check_owner(seen, owner)
        if not _differences(seen, definition, owner):
            return Put(UNCHANGED, seen)

    def write() -> Put:
        row = table.lock(definition.name)
        if row is None:
            if _add(table, definition, owner):
                return Put(ADDED, table.written(definition.name))
            row = table.lock(definition.name)  # somebody has added it just now
        if row is None:
            raise NameTaken(f"name: {definition.name!r} is being registered by somebody else.")
        check_owner(row, owner)
        done = change(table, row, definition, owner)
        return Put(done, table.written(definition.name))

    return in_transaction(using, write)


def add(using: str, definition: Definition, owner: str) -> ScheduleRow:
    """Make a new schedule; what is stored then. Raises ``NameTaken`` if there is one of that name, whoever
    owns it."""
    table = rows(using)

    def write() -> ScheduleRow:
        if not _add(table, definition, owner):
            raise NameTaken(f"name: there is a schedule {definition.name!r} already.")
        return table.written(definition.name)

    return in_transaction(using, write)


def change(table: ScheduleManager, row: ScheduleRow, definition: Definition, owner: str) -> str:
    """Make a schedule that is locked what ``definition`` says; what was done."""
    different = _differences(row, definition, owner)
    if not different:
        return UNCHANGED
    columns = _row(definition)
    enabled = row.enabled
    if row.withdrawn or definition.enabled != row.declared_enabled:
        enabled = definition.enabled
        columns["enabled"] = int(enabled)
    if "cron" in different or (enabled and not row.enabled):
        columns["next_fire_at"] = _next(definition.cron, table.clock())
    table.change(row.name, **columns)
    table.change_options(row.name, **_options(definition, owner), withdrawn=False, problem="", broken=None)
    if definition.overlap:
        table.forget_runs(row.name)
    return CHANGED


def delete(using: str, name: str) -> bool:
    return in_transaction(using, lambda: rows(using).lock(name) is not None and rows(using).delete(name))


def pause(using: str, name: str) -> bool:
    """Disable it; ``False`` if it is not there, or paused already. What was withdrawn is paused when it comes
    back."""
    table = rows(using)

    def write() -> bool:
        row = table.lock(name)
        if row is None or not (row.enabled or row.withdrawn):
            return False
        table.change(name, enabled=0)
        if row.withdrawn:
            table.change_options(name, withdrawn=False)
        return True

    return in_transaction(using, write)


def resume(using: str, name: str) -> bool:
    """Enable it, from now on; ``False`` if it is not there, or enabled already. Raises ``ValueError`` if it
    cannot be due."""
    table = rows(using)

    def write() -> bool:
        row = table.lock(name)
        if row is None or row.enabled:
            return False
        table.change(name, enabled=1, next_fire_at=_next(_readable(row), table.clock()))
        if row.owner is not None:
            table.change_options(name, withdrawn=False, problem="", broken=None)
        return True

    return in_transaction(using, write)


def withdraw(using: str, row: ScheduleRow) -> bool:
    """Disable what the code does not declare any more, until it does again; whether it was enabled."""
    table = rows(using)

    def write() -> bool:
        found = table.lock(row.name)
        if found is None or not found.enabled or found.owner not in DECLARED:
            return False
        table.change(row.name, enabled=0)
        table.change_options(row.name, withdrawn=True)
        return True

    return in_transaction(using, write)


def heal(using: str, row: ScheduleRow) -> bool:
    """Let a schedule with a problem go on from now, if it has none any more."""
    try:
        cron = cron_for(row)
    except CronError:
        return False
    table = rows(using)

    def write() -> bool:
        found = table.lock(row.name)
        if found is None or not found.is_broken or found.cron_expr != row.cron_expr:
            return False
        following = cron.next_after(utc(table.clock()))
        if following is None:
            return False
        table.change(row.name, next_fire_at=int(following.timestamp()))
        table.change_options(row.name, problem="", broken=None)
        return True

    return in_transaction(using, write)


def restart(using: str, row: ScheduleRow) -> None:
    """Count the next boundary from the later of the last fire and now: what is stored is another's."""
    table = rows(using)
    try:
        cron = cron_for(row)
        following = cron.next_after(utc(max(row.last_fire_at or 0, table.clock())))
    except (ValueError, OverflowError):  # CronError is a ValueError
        return  # the next tick will say so
    if following is not None:
        in_transaction(using, lambda: table.advance(row, int(following.timestamp())))


def check_owner(row: ScheduleRow, owner: str) -> None:
    if row.owner in (None, FOREIGN):
        raise NameTaken(f"name: {row.name!r} is a schedule of another program; take another name.")
    if (row.owner in DECLARED) != (owner in DECLARED):
        where = {"code": "by @schedule in the code", "settings": 'in ALKSTORE["SCHEDULES"]'}
        known = where.get(str(row.owner), "with register() or in the admin")
        raise NameTaken(f"name: the schedule {row.name!r} exists already, made {known}; take another name.")


def _add(table: ScheduleManager, definition: Definition, owner: str) -> bool:
    following = _next(definition.cron, table.clock())
    name = definition.name
    row = {"name": name, **_row(definition), "enabled": int(definition.enabled), "next_fire_at": following}
    options = {"name": name, **_options(definition, owner), "last_fire_at": None, "skipped": 0}
    options |= {"problem": "", "broken": None, "withdrawn": False}
    return table.add(row, options)


def _differences(row: ScheduleRow, definition: Definition, owner: str) -> set[str]:
    """What is not as ``definition`` says; ``cron`` if it is due at other instants, or was not at all."""
    wanted = {**_row(definition), **_options(definition, owner)}
    stored: dict[str, Any] = {**row._asdict(), "payload": row.payload}
    found = {name for name, value in wanted.items() if stored[name] != value}
    if row.withdrawn:
        found.add("withdrawn")
    if row.is_broken or not _is_due_alike(row, definition.cron):
        found.add("cron")
    return found


def _is_due_alike(row: ScheduleRow, cron: Cron) -> bool:
    try:
        return cron_for(row).is_like(cron)
    except CronError:
        return False


def _row(definition: Definition) -> dict[str, Any]:
    return {
        "queue": definition.queue,
        "cron_expr": definition.cron.canonical,
        "payload": definition.payload,
        "priority": definition.priority,
        "expires_s": definition.expires,
        "max_attempts": definition.max_attempts,
    }


def _options(definition: Definition, owner: str) -> dict[str, Any]:
    return {
        "timezone": definition.cron.timezone,
        "catch_up": definition.catch_up,
        "owner": owner,
        "expression": definition.cron.expression,
        "canonical": definition.cron.canonical,
        "overlap": definition.overlap,
        "declared_enabled": definition.enabled,
    }


def _readable(row: ScheduleRow) -> Cron:
    try:
        return cron_for(row)
    except CronError as error:
        raise ValueError(f"The schedule {row.name!r} cannot be due: {error}") from error


def _next(cron: Cron, clock: int) -> int:
    found = cron.next_after(utc(clock))
    if found is None:
        raise ValueError(f"expression: {cron.expression!r} is never due: there is no such date.")
    return int(found.timestamp())
