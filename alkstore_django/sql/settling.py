"""Statements that say what became of a claim, and keep its result."""

from __future__ import annotations

from .clauses import LET_GO, Clauses
from .tables import LIVE, RESULTS, RUNS

RUN_COLUMNS: tuple[str, ...] = (
    "job_id",
    "queue",
    "task",
    "payload",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "worker_id",
    "enqueued_at",
    "started_at",
)


class Settling(Clauses):
    """Every write here that names a worker carries a fence: ``held``, or ``mine`` on locked rows."""

    @property
    def ack(self) -> str:
        return f"DELETE FROM {LIVE} WHERE id = %(id)s AND {self.held}"

    def ack_many(self, pairs: str) -> str:
        return f"DELETE FROM {LIVE} WHERE {self.held_by_worker(pairs)}"

    def held_by_worker(self, pairs: str) -> str:
        """The fence for many claims of one worker; ``pairs`` names their ids and attempts."""
        return (
            f"({pairs}) AND worker_id = %(worker_id)s AND state = 'processing' "
            f"AND claim_expires_at >= {self.now}"
        )

    def retry(self, fence: str) -> str:
        return (
            f"UPDATE {LIVE} SET state = 'pending', run_at = {self.now} + %(delay)s, {LET_GO} "
            f"WHERE id = %(id)s AND {fence}"
        )

    @property
    def heartbeat(self) -> str:
        return (
            f"UPDATE {LIVE} SET claim_expires_at = {self.now} + %(extend)s WHERE id = %(id)s AND {self.held}"
        )

    def give_back(self, fence: str) -> str:
        """Undo a claim that never started: the attempt is not spent."""
        return (
            f"UPDATE {LIVE} SET state = 'pending', attempts = attempts - 1, {LET_GO} "
            f"WHERE id = %(id)s AND {fence}"
        )

    def interrupt(self, fence: str) -> str:
        """Put a stopped job back: its attempt is spent, but never its last one (design 5.1)."""
        return (
            f"UPDATE {LIVE} SET state = 'pending', run_at = {self.now}, "
            f"attempts = {self.least}(attempts, max_attempts - 1), {LET_GO} "
            f"WHERE id = %(id)s AND {fence}"
        )

    @property
    def is_mine(self) -> str:
        return f"SELECT 1 FROM {LIVE} WHERE id = %(id)s AND {self.mine}"

    def lock_held(self, pairs: str) -> str:
        """Lock and return those of ``(id, attempts)`` pairs whose claims this worker still holds."""
        return f"SELECT id, attempts FROM {LIVE} WHERE {self.held_by_worker(pairs)}{self.for_update}"

    def renew(self, pairs: str) -> str:
        extended = f"claim_expires_at = {self.now} + %(extend)s"
        return f"UPDATE {LIVE} SET {extended} WHERE {self.held_by_worker(pairs)}"

    def delete_live(self, ids: str) -> str:
        """Delete rows that this transaction has locked, so the fence has been judged already."""
        return f"DELETE FROM {LIVE} WHERE id IN ({ids})"

    def save_results(self, count: int) -> str:
        """``count`` rows of id, value, ttl; ``created_at`` stays that of the first value, as in honker."""
        rows = ", ".join([f"(%s, %s, {self.now} + %s)"] * count)
        return self.upsert(RESULTS, ("job_id", "value", "expires_at"), rows)

    @property
    def save_result(self) -> str:
        """One row; whoever waits for the result of that job is told, where the database can."""
        return self.upsert(
            RESULTS, ("job_id", "value", "expires_at"), f"(%(id)s, %(value)s, {self.now} + %(ttl)s)"
        )

    def record_runs(self, count: int) -> str:
        """``count`` rows of the first columns of ``RUN_COLUMNS``, duration and ttl."""
        given = ", ".join(["%s"] * len(RUN_COLUMNS))
        rows = ", ".join([f"({given}, %s, {self.now}, {self.now} + %s)"] * count)
        return self.upsert(RUNS, (*RUN_COLUMNS, "duration_ms", "finished_at", "expires_at"), rows)

    @property
    def is_kept(self) -> str:
        """Whether the time of a result is not over; at its very second it is."""
        return f"(expires_at IS NULL OR expires_at > {self.now})"

    def result_values(self, ids: str) -> str:
        return (
            f"SELECT job_id, {self.text('value')} FROM {RESULTS} WHERE job_id IN ({ids}) AND {self.is_kept}"
        )

    def saved_results(self, ids: str) -> str:
        """The same without the values, which may be long."""
        wanted = f"job_id IN ({ids}) AND value IS NOT NULL"
        return f"SELECT job_id FROM {RESULTS} WHERE {wanted} AND {self.is_kept}"
