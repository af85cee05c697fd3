"""``Event``: what the delivery function of an outbox gets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .contexts import Hold, Running
from .selection import OUTBOXES


@dataclass(frozen=True, slots=True)
class Event(Running):
    """What a delivery function gets. ``key`` is ``None`` for an event without one."""

    claim: Any
    hold: Hold
    payload: Any
    key: str | None

    @property
    def id(self) -> str:
        """The same in every attempt, and another one for every event of this database: what a receiver tells
        a repetition by. It is made of the outbox, the id of the job and the second of the enqueue."""
        return f"{self.outbox}-{self.claim.id}-{self.claim.created_at}"

    @property
    def outbox(self) -> str:
        return str(self.claim.queue).removeprefix(OUTBOXES)

    @property
    def attempt(self) -> int:
        """The number of this attempt; 1 is the first."""
        return int(self.claim.attempts)

    @property
    def max_attempts(self) -> int:
        return int(self.claim.max_attempts)

    @property
    def created_at(self) -> datetime:
        """When it was enqueued, by the clock of the database, in UTC."""
        return datetime.fromtimestamp(self.claim.created_at, UTC)
