"""Statements that put jobs in and claim them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .clauses import LET_GO, Clauses
from .tables import LIVE


class Claiming(Clauses):
    """From enqueue to claim."""

    @property
    def _enqueued_values(self) -> str:
        return (
            f"COALESCE(%(run_at)s, {self.now} + %(delay)s), %(priority)s, %(max_attempts)s, "
            f"{self.now} + %(expires)s"
        )

    @property
    def enqueue(self) -> str:
        """``run_at`` and ``expires`` may be NULL; a sum with NULL is NULL, so no expiry."""
        returning = " RETURNING id, created_at" if self.returns_inserted else ""
        return (
            f"INSERT INTO {LIVE} (queue, payload, run_at, priority, max_attempts, expires_at) "
            f"VALUES (%(queue)s, %(payload)s, {self._enqueued_values}){returning}"
        )

    def enqueue_rows(self, count: int) -> str:
        """One INSERT of ``count`` rows; payloads are the parameters ``p0``, ``p1``, ..."""
        rows = ", ".join(f"(%(queue)s, %(p{i})s, {self._enqueued_values})" for i in range(count))
        returning = " RETURNING id, created_at" if self.returns_inserted else ""
        return (
            f"INSERT INTO {LIVE} (queue, payload, run_at, priority, max_attempts, expires_at) "
            f"VALUES {rows}{returning}"
        )

    @property
    def created_at(self) -> str:
        """When a live row was put in, where INSERT does not return it."""
        return f"SELECT created_at FROM {LIVE} WHERE id = %(id)s"

    def many(self, payloads: Sequence[str]) -> Any:
        """The payloads as the one parameter that ``enqueue_many`` takes."""
        return list(payloads)

    def enqueue_many(self) -> str:
        """One INSERT of all payloads; only where ``enqueues_in_one_statement``."""
        raise NotImplementedError

    def claim_pending(self, tasks_only: bool) -> str:
        """One statement that claims up to ``n`` rows; only where ``claims_in_one_statement``."""
        raise NotImplementedError

    @property
    def next_priority(self) -> str:
        """The highest priority below ``ceiling`` that has pending rows: one seek in the claim index.

        ORDER BY, not MAX(): MariaDB does not use a descending index for MAX (27 ms at 100 k rows).
        """
        return (
            f"SELECT priority FROM {LIVE}{self.live_claim_hint} WHERE queue = %(queue)s "
            "AND state = 'pending' AND priority < %(ceiling)s ORDER BY priority DESC LIMIT 1"
        )

    def pick_pending(self, tasks_only: bool) -> str:
        """Lock up to ``n`` claimable rows of one priority, in the order of claim; with the time."""
        return (
            f"SELECT {self.columns()}, {self.now} FROM {LIVE}{self.live_claim_hint} WHERE queue = %(queue)s "
            f"AND priority = %(priority)s AND {self.claimable}{self.only(tasks_only)} "
            f"ORDER BY run_at, id LIMIT %(n)s{self.skip_locked}"
        )

    def take(self, ids: str) -> str:
        """Make locked rows the caller's; ``ids`` is a list of bound parameters."""
        return (
            f"UPDATE {LIVE} SET state = 'processing', worker_id = %(worker_id)s, attempts = attempts + 1, "
            f"claim_expires_at = {self.now} + %(visibility)s, claimed_at = {self.now} WHERE id IN ({ids})"
        )

    def take_at(self, ids: str) -> str:
        """The same at a time that was read before, so that the caller knows what it wrote."""
        return self.take(ids).replace(self.now, "%(now)s")

    def claims(self, ids: str) -> str:
        """Read rows by their ids, as after ``take``."""
        return f"SELECT {self.columns()} FROM {LIVE} WHERE id IN ({ids})"

    def lapsed_claims(self, tasks_only: bool) -> str:
        """Lock lapsed claims through the deadline index, the longest lapsed first."""
        return (
            f"SELECT {self.columns()}, CASE WHEN expires_at <= {self.now} THEN 1 ELSE 0 END FROM {LIVE} "
            f"WHERE queue = %(queue)s AND {self.lapsed}{self.only(tasks_only)} "
            f"ORDER BY claim_expires_at LIMIT %(n)s{self.skip_locked}"
        )

    def any_lapsed(self, tasks_only: bool) -> str:
        wanted = f"queue = %(queue)s AND {self.lapsed}{self.only(tasks_only)}"
        # The index's order: without it PostgreSQL expects a third of the rows to do, and reads the table.
        return f"SELECT 1 FROM {LIVE} WHERE {wanted} ORDER BY claim_expires_at LIMIT 1"

    def any_lapsed_unlocked(self, tasks_only: bool) -> str:
        """The same, but for rows that somebody has locked, such as an atomic run; locks what it finds."""
        return f"{self.any_lapsed(tasks_only)}{self.skip_locked}"

    @property
    def any_task(self) -> str:
        wanted = f"queue = %(queue)s AND state IN ('pending', 'processing') AND {self.is_task}"
        return f"SELECT 1 FROM {LIVE} WHERE {wanted} LIMIT 1"

    @property
    def next_queue(self) -> str:
        """The first queue after a name: one seek in the claim index, however many rows it has."""
        return (
            f"SELECT queue FROM {LIVE}{self.live_claim_hint} WHERE queue > %(after)s ORDER BY queue LIMIT 1"
        )

    @property
    def queues(self) -> str:
        """All distinct queues by such seeks; only where ``finds_queues_in_one_statement``."""
        raise NotImplementedError

    def _distinct_queues(self, source: str) -> str:
        """``source`` is the table and the condition of the index that is to be walked."""
        first = f"SELECT queue FROM {source} ORDER BY queue LIMIT 1"
        following = f"SELECT queue FROM {source} AND queue > present.queue ORDER BY queue LIMIT 1"
        return (
            f"WITH RECURSIVE present(queue) AS (SELECT ({first}) UNION ALL SELECT ({following}) "
            f"FROM present WHERE present.queue IS NOT NULL) "
            f"SELECT {self.text('queue')} FROM present WHERE queue IS NOT NULL"
        )

    @property
    def held_by(self) -> str:
        return (
            f"SELECT {self.columns()} FROM {LIVE} WHERE queue = %(queue)s AND state = 'processing' "
            f"AND claim_expires_at >= {self.now} AND worker_id = %(worker_id)s"
        )

    def reopen(self, ids: str) -> str:
        """Lapsed claims become pending again; the attempt stays spent."""
        return f"UPDATE {LIVE} SET state = 'pending', {LET_GO} WHERE id IN ({ids}) AND {self.lapsed}"

    def unsettled(self, queues: str, tasks_only: bool) -> str:
        """A job that runs, is due, or waits for a retry: what a draining worker still waits for."""
        return (
            f"SELECT 1 FROM {LIVE} WHERE queue IN ({queues}) AND (state = 'processing' "
            f"OR (state = 'pending' AND (run_at <= {self.now} OR attempts > 0)))"
            f"{self.only(tasks_only)} LIMIT 1"
        )

    @property
    def next_claim_at(self) -> str:
        """When a waiting row is due next, after now; and the last second of the claim that ends first
        (honker-spec 2.1)."""
        wanted = f"attempts < max_attempts AND (expires_at IS NULL OR expires_at > {self.now})"
        return (
            f"SELECT (SELECT run_at FROM {LIVE} WHERE queue = %(queue)s AND state = 'pending' "
            f"AND run_at > {self.now} AND {wanted} ORDER BY run_at LIMIT 1), "
            f"(SELECT claim_expires_at FROM {LIVE} WHERE queue = %(queue)s AND state = 'processing' "
            f"AND claim_expires_at >= {self.now} AND {wanted} ORDER BY claim_expires_at LIMIT 1)"
        )

    @property
    def lock_live(self) -> str:
        return f"SELECT {self.columns()} FROM {LIVE} WHERE id = %(id)s{self.for_update}"

    def lock_live_at_once(self, ids: str) -> str:
        """The same for many without waiting: rows that somebody has locked are not found."""
        return f"SELECT {self.columns()} FROM {LIVE} WHERE id IN ({ids}){self.skip_locked}"

    @property
    def live_payload(self) -> str:
        """The payload of a claimed row, whether it is locked or not."""
        return f"SELECT {self.text('payload')} FROM {LIVE} WHERE id = %(id)s AND state = 'processing'"

    @property
    def counts(self) -> str:
        """Per queue: ready, delayed, running, since when the longest waiting job is due, and now."""
        ready = f"state = 'pending' AND run_at <= {self.now}"
        return (
            f"SELECT {self.text('queue')}, SUM(CASE WHEN {ready} THEN 1 ELSE 0 END), "
            f"SUM(CASE WHEN state = 'pending' AND run_at > {self.now} THEN 1 ELSE 0 END), "
            "SUM(CASE WHEN state = 'processing' THEN 1 ELSE 0 END), "
            f"MIN(CASE WHEN {ready} THEN run_at END), {self.now} FROM {LIVE} GROUP BY queue"
        )
