"""Statements about the operation: who works, and which queues are paused."""

from __future__ import annotations

from .clauses import Clauses
from .tables import DEAD, LIVE, QUEUE_CONTROLS, WORKERS

LOOKED_AT = 1_000
"""Due jobs of a queue among which the oldest task is looked for: other programs' jobs may lie before it."""

NEWEST = 10_000
"""Dead letters, from the highest id down, of which those of late are counted: no index knows when."""


class Operating(Clauses):
    """Small tables of our own, which no other program writes to."""

    # -- workers ----------------------------------------------------------------------------------

    @property
    def register(self) -> str:
        """Write the whole row of a worker that started ``age`` seconds ago, in place of an older one."""
        names = ("worker_id", "host", "pid", "queues", "version", "started_at", "heartbeat_at", "running")
        row = "(%(worker_id)s, %(host)s, %(pid)s, %(queues)s, %(version)s"
        return self.upsert(WORKERS, names, f"{row}, {self.now} - %(age)s, {self.now}, %(running)s)")

    @property
    def lock_worker(self) -> str:
        return f"SELECT 1 FROM {WORKERS} WHERE worker_id = %(worker_id)s{self.skip_locked}"

    @property
    def any_worker(self) -> str:
        return f"SELECT 1 FROM {WORKERS} WHERE worker_id = %(worker_id)s"

    @property
    def beat(self) -> str:
        return (
            f"UPDATE {WORKERS} SET heartbeat_at = {self.now}, running = %(running)s "
            "WHERE worker_id = %(worker_id)s"
        )

    @property
    def unregister(self) -> str:
        return f"DELETE FROM {WORKERS} WHERE worker_id = %(worker_id)s"

    @property
    def workers(self) -> str:
        columns = f"{self.text('worker_id')}, {self.text('host')}, pid, {self.text('queues')}, version"
        return (
            f"SELECT {columns}, started_at, heartbeat_at, running, {self.now} - heartbeat_at FROM {WORKERS}"
        )

    @property
    def silent_workers(self) -> str:
        """Those without a heartbeat for more than ``age`` seconds."""
        return f"SELECT {self.text('worker_id')} FROM {WORKERS} WHERE heartbeat_at < {self.now} - %(age)s"

    @property
    def forget_worker(self) -> str:
        return f"{self.unregister} AND heartbeat_at < {self.now} - %(age)s"

    @property
    def clock(self) -> str:
        return f"SELECT {self.now}"

    # -- pauses -----------------------------------------------------------------------------------

    @property
    def is_in_force(self) -> str:
        """Whether a pause has not ended; at its very second it has."""
        return f"(paused_until IS NULL OR paused_until > {self.now})"

    @property
    def pause(self) -> str:
        """``seconds`` may be NULL: a sum with NULL is NULL, so no end."""
        row = f"(%(queue)s, {self.now}, %(by)s, {self.now} + %(seconds)s)"
        return self.upsert(QUEUE_CONTROLS, ("queue", "paused_at", "paused_by", "paused_until"), row)

    @property
    def resume(self) -> str:
        return f"DELETE FROM {QUEUE_CONTROLS} WHERE queue = %(queue)s AND {self.is_in_force}"

    @property
    def paused(self) -> str:
        return (
            f"SELECT {self.text('queue')}, paused_at, {self.text('paused_by')}, paused_until, "
            f"paused_until - {self.now} FROM {QUEUE_CONTROLS} WHERE {self.is_in_force}"
        )

    @property
    def ended_pauses(self) -> str:
        return f"SELECT COUNT(*) FROM {QUEUE_CONTROLS} WHERE paused_until <= {self.now}"

    @property
    def forget_ended_pauses(self) -> str:
        return f"DELETE FROM {QUEUE_CONTROLS} WHERE paused_until <= {self.now}"

    # -- queues -----------------------------------------------------------------------------------

    @property
    def any_job(self) -> str:
        """Whether a queue has a job, in two looks: each state has an index of its own on PostgreSQL."""
        one = f"SELECT 1 FROM {LIVE} WHERE queue = %(queue)s AND state = "
        return f"{one}'pending' UNION ALL {one}'processing' LIMIT 1"

    def oldest_due(self, tasks_only: bool) -> str:
        """For how many seconds the oldest due job of a queue has waited; NULL for none."""
        counts = f"CASE WHEN {self.claimable}{self.only(tasks_only)} THEN 1 ELSE 0 END AS counts"
        due = f"queue = %(queue)s AND state = 'pending' AND run_at <= {self.now}"
        return (
            f"SELECT {self.now} - MIN(run_at) FROM (SELECT run_at, {counts} FROM {LIVE} WHERE {due} "
            f"ORDER BY run_at LIMIT {LOOKED_AT}) AS looked WHERE counts = 1"
        )

    def oldest_lapsed(self, tasks_only: bool) -> str:
        """The same for jobs whose worker vanished, from the end of its claim on."""
        counts = f"CASE WHEN {self.is_task if tasks_only else '1 = 1'} THEN 1 ELSE 0 END AS counts"
        return (
            f"SELECT {self.now} - MIN(claim_expires_at) FROM (SELECT claim_expires_at, {counts} FROM {LIVE} "
            f"WHERE queue = %(queue)s AND {self.lapsed} ORDER BY claim_expires_at LIMIT {LOOKED_AT}) "
            "AS looked WHERE counts = 1"
        )

    @property
    def recently_dead(self) -> str:
        return (
            f"SELECT COUNT(*) FROM (SELECT died_at FROM {DEAD} ORDER BY id DESC LIMIT {NEWEST}) AS newest "
            f"WHERE died_at > {self.now} - %(seconds)s"
        )
