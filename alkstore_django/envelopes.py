"""The payload of a task: honker's envelope, and our own keys beside it (honker-spec 3.2).

``{"__honker_task__": {"task": name, "args": [...], "kwargs": {...}}, "alkstore": {...}}``. honker
ignores what stands beside its envelope; ours is left out while there is nothing to say in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .exceptions import UndecodablePayload
from .payloads import decode, encode, normalised, written
from .values import LAST_SECOND

ENVELOPE = "__honker_task__"
OURS = "alkstore"

BEGINNING = f'{{"{ENVELOPE}"'
"""What the statements that claim tasks look for."""


@dataclass(slots=True)  # a frozen one takes three times as long to make
class Envelope:
    """A call of a task by name; ``args`` and ``kwargs`` are ``arguments``. ``extra`` holds our keys:
    ``backend`` (alias), ``run_after`` (ISO 8601), ``expires`` (seconds), ``schedule`` (a name) and
    ``scheduled_for`` (Unix seconds), and those of ``alterations`` and ``origins``."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def scheduled_for(self) -> datetime | None:
        """The boundary of a schedule that the job stands for, in UTC; ``None`` if it stands for none."""
        seconds = self.extra.get("scheduled_for")
        if type(seconds) is not int or not 0 <= seconds <= LAST_SECOND:  # another program made it up
            return None
        return datetime.fromtimestamp(seconds, tz=UTC)

    def seal(self) -> str:
        """The JSON text; the envelope must come first, claims look for it there."""
        body: dict[str, Any] = {ENVELOPE: {"task": self.task, "args": self.args, "kwargs": self.kwargs}}
        if not self.extra:
            return written(body)
        body[OURS] = self.extra
        return encode(body)


def arguments(
    args: Iterable[Any], kwargs: Mapping[str, Any], path: str = ""
) -> tuple[list[Any], dict[str, Any]]:
    """A copy of what a task is called with, in JSON's own types. Raises ``TypeError`` and ``ValueError``,
    naming the path; ``path`` is what stands before it."""
    depth = 2  # in an envelope
    return normalised(list(args), f"{path}args", depth), normalised(dict(kwargs), f"{path}kwargs", depth)


def unseal(payload: str | bytes) -> Envelope:
    """The envelope in a payload. Raises ``UndecodablePayload`` when it is not a well-formed one."""
    body = decode(payload)
    inner = body.get(ENVELOPE) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        raise UndecodablePayload("the payload is not a task: it has no envelope")
    name, args, kwargs = inner.get("task"), inner.get("args", []), inner.get("kwargs", {})
    extra = body.get(OURS, {})
    if not isinstance(name, str) or not isinstance(args, list) or not isinstance(kwargs, dict):
        raise UndecodablePayload("the task's envelope has a name, args or kwargs of the wrong type")
    return Envelope(task=name, args=args, kwargs=kwargs, extra=extra if isinstance(extra, dict) else {})


def is_sealed(payload: str | bytes) -> bool:
    """Whether a payload is, or means to be, the envelope of a task."""
    try:
        body = decode(payload)
    except UndecodablePayload:
        return payload[: len(BEGINNING)] in (BEGINNING, BEGINNING.encode())
    return isinstance(body, dict) and ENVELOPE in body


def task_name(payload: str | bytes) -> str:
    """The name of the task in a payload; an empty string if it is none."""
    try:
        return unseal(payload).task
    except UndecodablePayload:
        return ""
