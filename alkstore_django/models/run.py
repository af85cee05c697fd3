"""``Run``: what is left of a finished job, for those who ask for its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import models

from alkstore_django.failures import storable
from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager, light_chunks
from .claim import Claim
from .fields import LenientTextField, NameField, readable

MAX_NAME = 1_000
"""Characters kept of a task's name."""


class End(NamedTuple):
    """How a claim ended. ``duration_ms`` is by the worker's monotonic clock, ``ttl`` in seconds."""

    claim: Claim
    status: str
    task: str = ""
    duration_ms: int | None = None
    ttl: int | None = None


class RunManager(SQLManager):
    def kept(self) -> models.QuerySet[Run]:
        """Runs whose time is not over; at its very second it is."""
        return self.exclude(expires_at__lte=EpochNow())

    def record(self, ends: Sequence[End]) -> None:
        """Write finished jobs, over an older row of the same id if another program reused it."""
        for chunk in light_chunks(ends, 100, lambda end: len(end.claim.payload)):
            values: list[Any] = []
            for claim, status, task, duration_ms, ttl in chunk:
                name = storable(task, MAX_NAME)  # whatever stands in the payload of another program
                values += (claim.id, claim.queue, name, readable(claim.payload), status, claim.priority)
                values += (claim.attempts, claim.max_attempts, claim.worker_id)
                values += (claim.created_at, claim.claimed_at, duration_ms, ttl)
            self.execute(self.dialect.record_runs(len(chunk)), values)


class Run(models.Model):
    """A job that ended: succeeded, failed without a dead letter, or cancelled."""

    SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"

    job_id = models.BigIntegerField(primary_key=True)
    queue = NameField()
    task = LenientTextField(default="")
    payload = LenientTextField()
    status = models.CharField(max_length=16)
    priority = models.BigIntegerField()
    attempts = models.BigIntegerField()
    max_attempts = models.BigIntegerField()
    worker_id = NameField(default="")
    enqueued_at = models.BigIntegerField()
    started_at = models.BigIntegerField(null=True)
    finished_at = models.BigIntegerField()
    duration_ms = models.BigIntegerField(null=True)
    expires_at = models.BigIntegerField(null=True)

    objects = RunManager()

    class Meta:
        db_table = tables.RUNS
        indexes = [models.Index(fields=["expires_at"], name="alkstore_runs_expiry")]

    def __str__(self) -> str:
        return f"{self.status} run of job {self.job_id}"
