"""``Attempt``: the history of jobs that did not simply succeed. The happy path writes no row here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import models

from alkstore_django.failures import Failure
from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager, chunks
from .claim import Claim
from .fields import LenientTextField, NameField


class AttemptManager(SQLManager):
    """Writes history in the transaction of the move that it tells of."""

    def record(
        self, claims: Sequence[Claim], kind: str, failure: Failure, *, duration_ms: int | None = None
    ) -> None:
        """One row for each claim, all of one kind and with one failure."""
        self.record_each([(claim, kind, failure, duration_ms) for claim in claims])

    def record_each(self, rows: Sequence[tuple[Claim, str, Failure, int | None]]) -> None:
        """Rows of ``(claim, kind, failure, duration in milliseconds)``."""
        lives = self.lives(claim.id for claim, *_ in rows)
        now = EpochNow()
        self.bulk_create(
            [
                Attempt(
                    job_id=claim.id,
                    queue=claim.queue,
                    kind=kind,
                    attempt=claim.attempts,
                    life=lives.get(claim.id, 1),
                    worker_id=claim.worker_id,
                    started_at=claim.claimed_at if kind in Attempt.SPENT else None,
                    ended_at=now,
                    duration_ms=duration_ms,
                    error_class=failure.class_path,
                    error=failure.error,
                    traceback=failure.traceback,
                )
                for claim, kind, failure, duration_ms in rows
            ],
            batch_size=100,
        )

    def record_event(self, job_id: int, kind: str, *, other_id: int | None = None) -> None:
        """Something that happened to a job outside of an attempt."""
        life = self.lives([job_id]).get(job_id, 1)
        self.create(job_id=job_id, kind=kind, life=life, other_id=other_id, ended_at=EpochNow())

    def record_requeues(self, job_ids: Sequence[int]) -> None:
        """Each of these jobs begins a new life."""
        lives = self.lives(job_ids)
        rows = [
            Attempt(job_id=job_id, kind=Attempt.REQUEUED, life=lives.get(job_id, 1) + 1, ended_at=EpochNow())
            for job_id in job_ids
        ]
        self.bulk_create(rows, batch_size=100)

    def lives(self, job_ids: Iterable[int]) -> dict[int, int]:
        """Which life each job is in: a requeue starts a new one. Jobs in their first are left out."""
        lives: dict[int, int] = {}
        for chunk in chunks(sorted(set(job_ids))):
            requeued = self.filter(job_id__in=chunk, kind=Attempt.REQUEUED)
            counted = requeued.values_list("job_id").annotate(models.Count("id"))
            lives |= {job_id: count + 1 for job_id, count in counted}
        return lives

    def present_life(self, job_ids: Sequence[int]) -> dict[int, list[Attempt]]:
        """What happened to jobs since they were last requeued, oldest first."""
        found: dict[int, list[Attempt]] = {}
        for row in self.filter(job_id__in=job_ids).order_by("id"):
            found.setdefault(row.job_id, []).append(row)
        return {
            job_id: [row for row in rows if row.life == rows[-1].life and row.kind in Attempt.SPENT]
            for job_id, rows in found.items()
        }

    def of_jobs(self, job_ids: Sequence[int]) -> dict[int, list[Attempt]]:
        """The whole history of jobs that have one, oldest first."""
        found: dict[int, list[Attempt]] = {}
        for chunk in chunks(job_ids):
            for row in self.filter(job_id__in=chunk).order_by("id"):
                found.setdefault(row.job_id, []).append(row)
        return found

    def of_job(self, job_id: int) -> models.QuerySet[Attempt]:
        """The whole history of a job, oldest first."""
        return self.filter(job_id=job_id).order_by("id")


class Attempt(models.Model):
    """One line of a job's history. ``failed``, ``lost`` and ``interrupted`` are attempts that were spent."""

    FAILED, LOST, INTERRUPTED = "failed", "lost", "interrupted"
    EXPIRED, REQUEUED, RENUMBERED = "expired", "requeued", "renumbered"
    SPENT = (FAILED, LOST, INTERRUPTED)

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField()
    queue = NameField(default="")
    kind = models.CharField(max_length=16)
    attempt = models.BigIntegerField(null=True)
    life = models.IntegerField(default=1)
    worker_id = NameField(default="")
    started_at = models.BigIntegerField(null=True)
    ended_at = models.BigIntegerField()
    duration_ms = models.BigIntegerField(null=True)
    error_class = NameField(max_length=255, default="")
    error = LenientTextField(default="")
    traceback = LenientTextField(default="")
    other_id = models.BigIntegerField(null=True)

    objects = AttemptManager()

    class Meta:
        db_table = tables.ATTEMPTS
        indexes = [models.Index(fields=["job_id"], name="alkstore_attempts_job")]

    def __str__(self) -> str:
        return f"{self.kind} attempt {self.attempt} of job {self.job_id}"
