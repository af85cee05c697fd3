"""Change some fields of a stored schedule: what is not given stays as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .envelopes import unseal
from .exceptions import UndecodablePayload
from .models import ScheduleRow
from .schedule_values import Definition, define

_CALL = ("task", "args", "kwargs")


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
