"""Statements about the keys of unique jobs: which job has one, and how another takes it.

A row names the job that took the key last, and says nothing about whether that still holds it: a job that
is not live does not, whoever ended it. So no end of a job writes here. Every taking writes a ``stamp``
that no other has, and goes by the stamp that was seen when the key was found free: if somebody else was
faster, nothing is written.
"""

from __future__ import annotations

from .clauses import Clauses
from .tables import LIVE, UNIQUE_KEYS


class Holding(Clauses):
    """``rows`` are VALUES, ``digests``, ``stamps`` and ``ids`` lists of bound parameters."""

    returns_taken = True
    """``take`` returns the digests of the keys that it took; otherwise ``taken`` is asked for them."""

    def key_holders(self, digests: str) -> str:
        """Keys with their jobs: digest, stamp, id, whether the time that it was taken for is not over,
        whether the job has a future (it runs, or can still be claimed), whether it was claimed, and the
        columns of a claim; NULL for a job that is not live."""
        not_over = f"(job.expires_at IS NULL OR job.expires_at > {self.now})"
        has_future = f"{not_over} AND job.attempts < job.max_attempts"
        is_running = "job.state = 'processing'"
        is_held = f"job.state = 'processing' AND job.claim_expires_at >= {self.now}"
        return (
            f"SELECT held.digest, held.stamp, held.job_id, {_flag(f'held.holds_until > {self.now}')}, "
            f"{_flag(f'({has_future}) OR ({is_held})')}, {_flag(is_running)}, "
            f"{self.columns('job')} FROM {UNIQUE_KEYS} held LEFT JOIN {LIVE} job ON job.id = held.job_id "
            f"WHERE held.digest IN ({digests})"
        )

    def take_keys(self, rows: str, stamps: str) -> str:
        """Let jobs have keys that nobody had, or whose stamps are those that were seen. Waits for
        transactions that take the same keys."""
        updates = ", ".join(f"{name} = excluded.{name}" for name in ("job_id", "stamp", "holds_until"))
        return (
            f"{self._keys(rows)} ON CONFLICT (digest) DO UPDATE SET {updates} "
            f"WHERE {UNIQUE_KEYS}.stamp IN ({stamps}) RETURNING digest"
        )

    def _keys(self, rows: str) -> str:
        return f"INSERT INTO {UNIQUE_KEYS} (digest, job_id, stamp, holds_until) VALUES {rows}"

    def key_row(self, number: int, timed: bool) -> str:
        """One of the rows of ``take_keys``; ``timed``: held until ``lasts`` seconds from now at most."""
        until = f"{self.now} + %(lasts)s" if timed else "NULL"
        return f"(%(digest{number})s, %(id{number})s, %(stamp{number})s, {until})"

    def taken_keys(self, digests: str, stamps: str) -> str:
        return f"SELECT digest FROM {UNIQUE_KEYS} WHERE digest IN ({digests}) AND stamp IN ({stamps})"

    def lock_keys(self, digests: str) -> str:
        """Lock keys, and tell which jobs have them now, also where this transaction reads older rows."""
        return (
            f"SELECT job_id FROM {UNIQUE_KEYS} WHERE digest IN ({digests}) ORDER BY digest{self.for_update}"
        )

    @property
    def rename_holder(self) -> str:
        return f"UPDATE {UNIQUE_KEYS} SET job_id = %(new_id)s WHERE digest = %(digest)s AND job_id = %(id)s"

    def lock_live_rows(self, ids: str) -> str:
        """Lock live rows, waiting for whoever has them."""
        return f"SELECT {self.columns()} FROM {LIVE} WHERE id IN ({ids}) ORDER BY id{self.for_update}"

    def keep_waiting(self, ids: str) -> str:
        """Keep waiting jobs from being claimed until this transaction ends; those that are not waiting
        any more are not found."""
        return f"SELECT id FROM {LIVE} WHERE id IN ({ids}) AND state = 'pending' ORDER BY id{self.for_share}"

    for_share = " FOR SHARE"

    # -- maintenance ------------------------------------------------------------------------------

    @property
    def look_at_keys(self) -> str:
        """The ``n`` keys after one, and whether each is of no use any more."""
        return (
            f"SELECT held.digest, held.stamp, {_flag(self._is_useless)} "
            f"FROM {UNIQUE_KEYS} held WHERE held.digest > %(after)s ORDER BY held.digest LIMIT %(n)s"
        )

    @property
    def count_useless_keys(self) -> str:
        return f"SELECT COUNT(*) FROM {UNIQUE_KEYS} held WHERE {self._is_useless}"

    @property
    def _is_useless(self) -> str:
        is_over = f"held.holds_until IS NULL OR held.holds_until <= {self.now}"
        # Not EXISTS: PostgreSQL would read all ids of the live table to ask for these.
        is_gone = f"(SELECT job.id FROM {LIVE} job WHERE job.id = held.job_id) IS NULL"
        return f"({is_over}) AND {is_gone}"

    def lock_orphans(self, digests: str, stamps: str) -> str:
        """Lock keys that nobody has taken since; not those that somebody is about to take."""
        return f"{self.taken_keys(digests, stamps)}{self.skip_locked}"

    def delete_keys(self, digests: str) -> str:
        return f"DELETE FROM {UNIQUE_KEYS} WHERE digest IN ({digests})"


def _flag(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"
