"""Change some fields of a stored schedule: what is not given stays as it is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from . import schedule_changes
from .envelopes import unseal
from .exceptions import UndecodablePayload
from .models import ScheduleRow
from .models.base import in_transaction
from .schedule_rows import ADMIN, rows
from .schedule_values import Definition, define

_CALL = ("task", "args", "kwargs")
_WHEN = ("expression", "timezone")
_COLUMNS = {"expires": ("expires_s",), **dict.fromkeys(_WHEN, _WHEN)}
_COLUMNS |= dict.fromkeys((*_CALL, "payload"), ("payload",))
"""What is stored of a field, where it is not under its name, and what only makes sense beside it."""


class Overtaken(ValueError):
    """Somebody has changed what was to be changed."""


def amend(using: str, name: str, given: Mapping[str, Any], seen: ScheduleRow | None = None) -> ScheduleRow:
    """Change these fields, all or none; what is stored then. What somebody does to others meanwhile is kept.
    Raises ``ValueError`` for a wrong value and an unknown name, ``NameTaken`` for a schedule that is not the
    admin's, ``Overtaken`` if one of these fields is not as it was ``seen``."""
    table = rows(using)

    def write() -> ScheduleRow:
        row = table.lock(name)
        if row is None:
            raise ValueError(f"There is no schedule {name!r}.")
        schedule_changes.check_owner(row, ADMIN)
        if seen is not None and (overtaken := _overtaken(row, seen, given)):
            raise Overtaken(f"{overtaken[0]}: somebody has changed it meanwhile.")
        schedule_changes.change(table, row, amended(row, given), ADMIN)
        return table.written(name)

    return in_transaction(using, write)


def remove(using: str, name: str) -> bool:
    """Delete a schedule of the admin's; ``False`` if it is not there. Raises ``NameTaken`` for another's."""
    table = rows(using)

    def write() -> bool:
        row = table.lock(name)
        if row is None:
            return False
        schedule_changes.check_owner(row, ADMIN)
        return table.delete(name)

    return in_transaction(using, write)


def amended(row: ScheduleRow, given: Mapping[str, Any]) -> Definition:
    """The definition of a schedule of ours with other values. Raises ``ValueError``."""
    stored = {
        "queue": row.queue,
        "expression": row.expression,
        "timezone": row.timezone,
        "catch_up": row.catch_up,
        "overlap": row.overlap,
        "priority": row.priority,
        "expires": row.expires_s,
        "max_attempts": row.max_attempts,
    }
    fields = {**stored, **given, "enabled": row.declared_enabled}
    if keeps_payload := not ({*_CALL, "payload"} & given.keys()):
        fields["payload"] = None
    elif "payload" not in given and "task" not in given:
        fields = {**_call(row), **fields}
    definition = define(row.name, **fields)
    return replace(definition, payload=row.payload) if keeps_payload else definition


def _call(row: ScheduleRow) -> dict[str, Any]:
    try:
        envelope = unseal(row.payload)
    except UndecodablePayload as error:
        raise ValueError(f"args: the payload of {row.name!r} is no task: {error}") from error
    return {"task": envelope.task, "args": envelope.args, "kwargs": envelope.kwargs}


def _overtaken(row: ScheduleRow, seen: ScheduleRow, given: Collection[str]) -> list[str]:
    """Those of the fields that are stored otherwise than they were."""
    columns = {name: _COLUMNS.get(name, (name,)) for name in given}
    return [
        name
        for name, stored in columns.items()
        if any(getattr(row, column) != getattr(seen, column) for column in stored)
    ]
