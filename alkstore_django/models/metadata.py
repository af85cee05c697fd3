"""``Metadata``: what a task tells of its own run. A job whose task tells nothing has no row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from alkstore_django.sql import tables

from .base import SQLManager, chunks, placeholders, retrying
from .fields import LenientTextField


class MetadataManager(SQLManager):
    def save(self, claim: Any, text: str, *, locked: bool = False) -> bool:
        """Write it if the claim is still held; ``locked``: this transaction has locked the job's row."""
        dialect = self.dialect
        fence = dialect.mine if locked else dialect.held
        row = {"id": claim.id, "worker_id": claim.worker_id, "attempts": claim.attempts, "value": text}

        def write() -> bool:
            if dialect.reads_lock_in_writes:
                if not self.fetch(dialect.is_claimed(fence), row):
                    return False
                return self.execute(dialect.save_metadata, row) > 0
            return self.execute(dialect.save_metadata_if(fence), row) > 0

        return retrying(self.database, write)

    def value(self, job_id: int) -> str | bytes | None:
        return self.values_of([job_id]).get(job_id)

    def values_of(self, job_ids: Sequence[int]) -> dict[int, str | bytes]:
        found: dict[int, str | bytes] = {}
        for chunk in chunks(job_ids):
            names, ids = placeholders(chunk)
            found |= {int(row[0]): row[1] for row in self.fetch(self.dialect.metadata(names), ids)}
        return found


class Metadata(models.Model):
    """JSON text of a ``dict``, by the id of the job, in whatever state that is."""

    job_id = models.BigIntegerField(primary_key=True)
    value = LenientTextField()

    objects = MetadataManager()

    class Meta:
        db_table = tables.METADATA

    def __str__(self) -> str:
        return f"metadata of job {self.job_id}"
