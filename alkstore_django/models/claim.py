"""``Claim``: a live row in the hands of its claimer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .fields import number, readable

_NUMBERS = {int, type(None)}


class Claim(NamedTuple):
    """A live row as its claimer sees it, times in Unix seconds; the payload is raw (bytes on SQLite)."""

    id: int
    queue: str
    payload: str | bytes
    priority: int
    run_at: int
    attempts: int
    max_attempts: int
    worker_id: str
    claim_expires_at: int
    created_at: int
    claimed_at: int
    expires_at: int | None

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Claim:
        job_id, queue, payload, *numbers, worker_id, ends, created_at, claimed_at, expires_at = row
        numbers += (ends, created_at, claimed_at, expires_at)
        if not _NUMBERS.issuperset(map(type, numbers)):
            numbers = [number(value) for value in numbers]
        queue, worker_id = readable(queue) or "", readable(worker_id) or ""
        return cls._make((job_id, queue, payload, *numbers[:4], worker_id, *numbers[4:]))

    def taken_by(self, worker_id: str, now: int, visibility: int) -> Claim:
        """What a waiting row is once it was claimed."""
        return self._replace(
            worker_id=worker_id,
            claimed_at=now,
            claim_expires_at=now + visibility,
            attempts=self.attempts + 1,
        )

    @property
    def key(self) -> tuple[int, int]:
        """What tells a claim from an earlier or later one of the same job."""
        return (self.id, self.attempts)

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order of claim: RETURNING has none of its own."""
        return (-self.priority, self.run_at, self.id)
