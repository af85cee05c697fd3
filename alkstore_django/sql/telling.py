"""Statements about what tasks tell of their own runs."""

from __future__ import annotations

from .clauses import Clauses
from .tables import LIVE, METADATA


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
