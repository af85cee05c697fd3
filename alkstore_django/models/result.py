"""``Result``: the return value of a finished job, as JSON text, in honker's table."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DataError, models

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import HEAVY, SQLManager, chunks, light_chunks, placeholders, retrying
from .fields import LenientTextField


class ResultManager(SQLManager):
    def save(self, values: Sequence[tuple[int, str, int | None]]) -> None:
        """Keep ``(job id, JSON text, ttl in seconds or None)``; older values are replaced.

        Raises ``DataError`` for one that the server would not take: it hangs up in the middle of it.
        """
        for chunk in light_chunks(values, 100, lambda row: len(row[1])):
            self._refuse_too_long(chunk[0][1])
            self.execute(self.dialect.save_results(len(chunk)), [item for row in chunk for item in row])

    def put(self, job_id: int, text: str, ttl: int | None) -> None:
        """The same for one, whose job may not have ended: who waits for its result is told."""
        self._refuse_too_long(text)
        row = {"id": job_id, "value": text, "ttl": ttl}
        retrying(self.database, lambda: self.execute(self.dialect.save_result, row))

    def _refuse_too_long(self, text: str) -> None:
        if self.dialect.largest_packet and len(text) > HEAVY:
            ((most,),) = self.fetch(self.dialect.largest_packet)
            if len(text) >= most:
                raise DataError(f"A result of {len(text)} characters: a packet has {most} bytes.")

    def value(self, job_id: int) -> str | bytes | None:
        """The JSON text, or ``None`` when there is none or its time is over (at its very second)."""
        return self.values_of([job_id]).get(job_id)

    def values_of(self, job_ids: Sequence[int]) -> dict[int, str | bytes]:
        """The JSON texts that there are, by the ids of the jobs."""
        found: dict[int, str | bytes] = {}
        for chunk in chunks(job_ids):
            names, params = placeholders(chunk)
            found |= dict(self.fetch(self.dialect.result_values(names), params))
        return found

    def saved(self, job_ids: Sequence[int]) -> set[int]:
        """Those of the jobs that have a value."""
        found: set[int] = set()
        for chunk in chunks(job_ids):
            names, params = placeholders(chunk)
            found |= {int(row[0]) for row in self.fetch(self.dialect.saved_results(names), params)}
        return found


class Result(models.Model):
    """A return value; ``expires_at`` NULL keeps it. The row need not belong to a job of ours."""

    job_id = models.BigIntegerField(primary_key=True)
    value = LenientTextField(null=True)
    created_at = models.BigIntegerField(db_default=EpochNow())
    expires_at = models.BigIntegerField(null=True)

    objects = ResultManager()

    class Meta:
        db_table = tables.RESULTS

    def __str__(self) -> str:
        return f"result of job {self.job_id}"
