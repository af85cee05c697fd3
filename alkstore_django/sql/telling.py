"""Statements about what tasks tell of their own runs."""

from __future__ import annotations

from .clauses import Clauses
from .tables import DEAD, LIVE, METADATA, RUNS


class Telling(Clauses):
    """``fence`` is ``held``, or ``mine`` on a locked row."""

    def save_metadata_if(self, fence: str) -> str:
        source = f"SELECT id, %(value)s FROM {LIVE} WHERE id = %(id)s AND {fence}"
        return self.upsert_from(METADATA, ("job_id", "value"), source)

    def is_claimed(self, fence: str) -> str:
        return f"SELECT 1 FROM {LIVE} WHERE id = %(id)s AND {fence}"

    @property
    def save_metadata(self) -> str:
        return self.upsert(METADATA, ("job_id", "value"), "(%(id)s, %(value)s)")

    def metadata(self, ids: str) -> str:
        return f"SELECT job_id, {self.text('value')} FROM {METADATA} WHERE job_id IN ({ids})"

    @property
    def metadata_orphans(self) -> str:
        """Rows by job id, each with whether nobody knows the job: in one statement, so that none is on
        its way from one table to another meanwhile. Such a job never comes back."""
        known = [f"EXISTS (SELECT 1 FROM {table} job WHERE job.id = told.job_id)" for table in (LIVE, DEAD)]
        known.append(
            f"EXISTS (SELECT 1 FROM {RUNS} run WHERE run.job_id = told.job_id "
            f"AND (run.expires_at IS NULL OR run.expires_at > {self.now}))"
        )
        return (
            f"SELECT told.job_id, NOT ({' OR '.join(known)}) FROM (SELECT job_id FROM {METADATA} "
            "WHERE job_id > %(after)s ORDER BY job_id LIMIT %(n)s) told ORDER BY told.job_id"
        )

    def forget_metadata(self, ids: str) -> str:
        return f"DELETE FROM {METADATA} WHERE job_id IN ({ids})"
