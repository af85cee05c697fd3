"""Statements about rows that have been kept for long enough.

What is over is found by reading, in bounded ranges of the primary key, for there is no index on times in
honker's tables. Whether it still is, the DELETE asks again.
"""

from __future__ import annotations

from typing import NamedTuple

from .clauses import Clauses
from .tables import ATTEMPTS, DEAD, LIVE, METADATA, NOTIFICATIONS, RESULTS, RUNS, SCHEDULED_JOBS, STREAM


class Kind(NamedTuple):
    """``over`` is the condition by which a row goes, ``heavy`` the columns that can be long. ``by`` is a
    column with an index by which rows that are over come first; ``in_order``: so they do by their keys."""

    table: str
    key: str
    over: str
    heavy: tuple[str, ...] = ()
    by: str = ""
    in_order: bool = False


class Retaining(Clauses):
    """``age`` is in seconds. At the very second of its end a row is over."""

    offset = '"offset"'
    """The column of that name."""

    @property
    def kinds(self) -> dict[str, Kind]:
        """By name. A range of keys is looked at by ``reach`` and ``over_within``."""
        aged = f"created_at <= {self.now} - %(age)s"
        return {
            "results": Kind(RESULTS, "job_id", self._is_expired, ("value",)),
            "runs": Kind(RUNS, "job_id", self._is_expired, ("payload",), by="expires_at"),
            "dead": Kind(DEAD, "id", self._dead(DEAD, "age"), ("payload", "last_error")),
            "notifications": Kind(NOTIFICATIONS, "id", aged, ("payload",), in_order=True),
            "streams": Kind(STREAM, self.offset, aged, ("payload",), in_order=True),
            "history": Kind(ATTEMPTS, "id", self._history(), ("error", "traceback")),
            "metadata": Kind(METADATA, "job_id", self._unknown(f"{METADATA}.job_id"), ("value",)),
            "schedules": Kind(SCHEDULED_JOBS, "job_id", self._gone(f"{SCHEDULED_JOBS}.job_id")),
        }

    def reach(self, kind: str) -> str:
        """The last key of ``n`` rows after one, and how many rows there are of them."""
        table, key, *_ = self.kinds[kind]
        rows = f"SELECT {key} AS row_key FROM {table} WHERE {key} > %(after)s ORDER BY {key} LIMIT %(n)s"
        return f"SELECT MAX(row_key), COUNT(*) FROM ({rows}) AS looked"

    def over_within(self, kind: str) -> str:
        """Keys and bytes of what is over, after one key and up to another; or, by an index, of ``n`` rows."""
        found = self.kinds[kind]
        size = " + ".join([f"COALESCE({self.size(column)}, 0)" for column in found.heavy] or ["0"])
        rows = f"SELECT {found.key}, {size} FROM {found.table} WHERE {found.over}"
        if found.by:
            return f"{rows} ORDER BY {found.by} LIMIT %(n)s"
        return f"{rows} AND {found.key} > %(after)s AND {found.key} <= %(upto)s ORDER BY {found.key}"

    def delete_over(self, kind: str, keys: str) -> str:
        """Delete, of these rows, those that are over."""
        found = self.kinds[kind]
        return f"DELETE FROM {found.table} WHERE {found.key} IN ({keys}) AND {found.over}"

    def lock_over(self, kind: str, keys: str) -> str:
        """Lock them, but for those that somebody else has locked."""
        found = self.kinds[kind]
        return (
            f"SELECT {found.key} FROM {found.table} WHERE {found.key} IN ({keys}) AND {found.over}"
            f"{self.skip_locked}"
        )

    def delete_rows(self, kind: str, keys: str) -> str:
        found = self.kinds[kind]
        return f"DELETE FROM {found.table} WHERE {found.key} IN ({keys})"

    def count_over(self, kind: str, *, dead_go: bool = False) -> str:
        """How many are over; ``dead_go``: once dead letters of ``dead_age`` seconds and more are gone."""
        over = self.kinds[kind].over
        if dead_go and kind in ("history", "metadata", "schedules"):
            over = {
                "history": self._history(dead_go=True),
                "metadata": self._unknown(f"{METADATA}.job_id", dead_go=True),
                "schedules": self._gone(f"{SCHEDULED_JOBS}.job_id", dead_go=True),
            }[kind]
        return f"SELECT COUNT(*) FROM {self.kinds[kind].table} WHERE {over}"

    def size(self, column: str) -> str:
        """The bytes of a text."""
        return f"LENGTH({column})"

    # -- conditions -------------------------------------------------------------------------------

    @property
    def _is_expired(self) -> str:
        return f"expires_at <= {self.now}"

    def _dead(self, row: str, age: str) -> str:
        """A dead letter that is old enough and, where other programs write some, has side rows of ours.

        The history of a job that has had to leave its id for a higher one says nothing about the letter
        that has this id.
        """
        is_old = f"{row}.died_at <= {self.now} - %({age})s"
        if not self.adopts_tables:
            return is_old
        sides = [
            f"EXISTS (SELECT 1 FROM {table} side WHERE side.job_id = {row}.id)"
            for table in (ATTEMPTS, METADATA, SCHEDULED_JOBS)
        ]
        has_left = (
            f"EXISTS (SELECT 1 FROM {ATTEMPTS} side WHERE side.job_id = {row}.id "
            "AND side.kind = 'renumbered' AND side.other_id > side.job_id)"
        )
        return f"{is_old} AND ({' OR '.join(sides)}) AND NOT {has_left}"

    def _gone(self, job: str, *, dead_go: bool = False) -> str:
        """That a job is neither live nor dead, so that it never comes back.

        Not EXISTS: PostgreSQL would read all ids of the tables to ask for these.
        """
        stays = f" AND NOT ({self._dead('job', 'dead_age')})" if dead_go else ""
        return (
            f"(SELECT job.id FROM {LIVE} job WHERE job.id = {job}) IS NULL "
            f"AND (SELECT job.id FROM {DEAD} job WHERE job.id = {job}{stays}) IS NULL"
        )

    def _unknown(self, job: str, *, dead_go: bool = False) -> str:
        """That no table knows a job any more."""
        return (
            f"{self._gone(job, dead_go=dead_go)} AND (SELECT run.job_id FROM {RUNS} run "
            f"WHERE run.job_id = {job} AND (run.expires_at IS NULL OR run.expires_at > {self.now})) IS NULL"
        )

    def _history(self, *, dead_go: bool = False) -> str:
        """That neither the job is known, nor, if it was renumbered, the one that it has become, or was."""
        other = (
            f"SELECT 1 FROM {ATTEMPTS} moved WHERE moved.job_id = {ATTEMPTS}.job_id "
            f"AND moved.kind = 'renumbered' AND NOT ({self._unknown('moved.other_id', dead_go=dead_go)})"
        )
        return f"{self._unknown(f'{ATTEMPTS}.job_id', dead_go=dead_go)} AND NOT EXISTS ({other})"
