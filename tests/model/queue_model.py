"""The queue in plain Python, as the documents describe it: what the tables are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

BROKEN = "not json"


@dataclass(frozen=True)
class Row:
    """A live job. Times are Unix seconds."""

    id: int
    queue: str
    payload: str
    priority: int
    run_at: int
    max_attempts: int
    expires_at: int | None
    attempts: int = 0
    state: str = "pending"
    worker: str | None = None
    claim_until: int | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        return (-self.priority, self.run_at, self.id)


class Dead(NamedTuple):
    queue: str
    payload: str
    priority: int
    run_at: int
    attempts: int
    max_attempts: int


class QueueModel:
    """Live jobs, dead letters, ended runs and history by job id; ``now`` is the clock."""

    def __init__(self) -> None:
        self.now = 0
        self.live: dict[int, Row] = {}
        self.dead: dict[int, Dead] = {}
        self.runs: dict[int, tuple[str, int]] = {}
        self.history: list[tuple[int, str, int | None, int]] = []

    # -- what a row is by now -----------------------------------------------------------------------

    def expired(self, row: Row) -> bool:
        return row.expires_at is not None and row.expires_at <= self.now

    def lapsed(self, row: Row) -> bool:
        return row.state == "processing" and row.claim_until is not None and row.claim_until < self.now

    def held(self, job_id: int, worker: str, attempts: int) -> bool:
        row = self.live.get(job_id)
        return (
            row is not None
            and (row.state, row.worker, row.attempts) == ("processing", worker, attempts)
            and not self.lapsed(row)
        )

    def claimable(self, row: Row) -> bool:
        due = row.state == "pending" and row.run_at <= self.now
        return due and row.attempts < row.max_attempts and not self.expired(row)

    def known(self) -> set[int]:
        return {*self.live, *self.dead, *self.runs, *(job_id for job_id, *_ in self.history)}

    def next_claim_at(self, queue: str) -> int:
        moments = []
        for row in self.live.values():
            if row.queue == queue and row.attempts < row.max_attempts and not self.expired(row):
                if row.state == "pending" and row.run_at > self.now:
                    moments.append(row.run_at)
                if row.state == "processing" and not self.lapsed(row):
                    moments.append((row.claim_until or 0) + 1)
        return min(moments, default=0)

    # -- moves --------------------------------------------------------------------------------------

    def note(self, job_id: int, kind: str, attempt: int | None) -> None:
        life = 1 + sum(1 for known, what, *_ in self.history if (known, what) == (job_id, "requeued"))
        self.history.append((job_id, kind, attempt, life + (kind == "requeued")))

    def bury(self, job_id: int, kind: str) -> Dead | None:
        """Move to the dead letters; what had to go elsewhere, because its id is taken there."""
        row = self.live.pop(job_id)
        letter = Dead(row.queue, row.payload, row.priority, row.run_at, row.attempts, row.max_attempts)
        if job_id in self.dead:
            self.note(job_id, "renumbered", None)
            return letter
        self.dead[job_id] = letter
        self.note(job_id, kind, row.attempts)
        return None

    def finish(self, job_id: int, status: str) -> None:
        """End with a record of the run."""
        self.runs[job_id] = (status, self.live.pop(job_id).attempts)

    def interrupt(self, job_id: int) -> None:
        row = self.live[job_id]
        self.note(job_id, "interrupted", row.attempts)
        self.put_back(job_id, run_at=self.now, attempts=min(row.attempts, row.max_attempts - 1))

    def change(self, job_id: int, **columns: object) -> None:
        self.live[job_id] = replace(self.live[job_id], **columns)  # type: ignore[arg-type]

    def put_back(self, job_id: int, **columns: object) -> None:
        self.change(job_id, state="pending", worker=None, claim_until=None, **columns)
