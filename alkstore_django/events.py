"""``Event``: what the delivery function of an outbox gets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .contexts import JobContext
from .selection import OUTBOXES


def event_id(outbox: str, job_id: int, created_at: int) -> str:
    """What an event of an outbox is called; ``created_at`` in Unix seconds."""
    return f"{outbox}-{job_id}-{created_at}"


@dataclass(frozen=True, slots=True)
class Event(JobContext):
    """What a delivery function gets. ``key`` is ``None`` for an event without one."""

    payload: Any
    key: str | None

    @property
    def id(self) -> str:
        """The same in every attempt, and another one for every event of this database: what a receiver tells
        a repetition by. It is made of the outbox, the id of the job and the second of the enqueue."""
        return event_id(self.outbox, self.job_id, self.claim.created_at)

    @property
    def outbox(self) -> str:
        return self.queue.removeprefix(OUTBOXES)

    @property
    def created_at(self) -> datetime:
        """When it was enqueued, by the clock of the database, in UTC."""
        return datetime.fromtimestamp(self.claim.created_at, UTC)
