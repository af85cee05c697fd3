"""A turn on PostgreSQL: one statement that settles and one that claims, prepared, in one pipeline."""

from __future__ import annotations

import json
from typing import Any

from .clauses import LET_GO
from .settling import RUN_COLUMNS
from .tables import ENDS, LIVE, RESULTS, RUNS, WAITERS
from .turning import ENTRY, RUN, WISH, Rows, Turning

_SETTINGS = ("enable_sort", "enable_seqscan")


_SOURCE = {"job_id": "id", "status": "'succeeded'", "enqueued_at": "created_at", "started_at": "claimed_at"}
_RUN = [_SOURCE.get(name, name) for name in RUN_COLUMNS]
_JOB = [name for name in _RUN if name not in ("task", "'succeeded'")]
_SAID = [name for name, _ in ENTRY if name not in _JOB]


def _rows(parameter: str, columns: tuple[tuple[str, str], ...]) -> str:
    """A JSON array of arrays as a table: one parameter of one type, so that one plan serves all turns."""
    items = ", ".join(f"(item->>{index})::{kind} AS {name}" for index, (name, kind) in enumerate(columns))
    return f"SELECT {items} FROM jsonb_array_elements(%({parameter})s::jsonb) AS item"


def told(ended: str) -> str:
    """Tell those who wait of the jobs that ``ended`` (rows with an id), from the commit on.

    They share a lock, so whoever gets it for himself has nobody to tell: that costs some microseconds,
    where every commit with a NOTIFY waits for every other one. A payload holds 8,000 bytes; an empty
    one says: look.
    """
    ids = "CASE WHEN length(ids) < 7500 THEN ids ELSE '' END"
    return (
        f"SELECT CASE WHEN pg_try_advisory_lock({WAITERS}) THEN pg_advisory_unlock({WAITERS})::text "
        f"ELSE pg_notify('{ENDS}', {ids})::text END "
        f"FROM (SELECT string_agg(id::text, ' ') AS ids FROM {ended}) AS ends WHERE ids IS NOT NULL"
    )


class PostgreSQLTurn(Turning):
    takes_turns = True

    # A plan that was made while the table was small, or before its statistics, serves for long: with an
    # index for everything, there is no case in which another way were better.
    turn_opening = (
        "SELECT "
        + ", ".join(f"set_config('{name}', 'off', true)" for name in _SETTINGS)
        + ", set_config('plan_cache_mode', 'force_generic_plan', true)"
    )

    def pipeline_cursor(self, connection: Any) -> Any:
        driver = connection.connection
        if connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS") or not hasattr(driver, "pipeline"):
            return None
        from psycopg import Cursor, Pipeline

        return Cursor(driver) if Pipeline.is_supported() else None

    def turn_params(self, entries: Rows, wishes: Rows) -> dict[str, Any]:
        return {"entries": json.dumps(entries), "wishes": json.dumps(wishes)}

    def pick(self, only: str) -> str:
        raise NotImplementedError

    @property
    def settle(self) -> str:
        """Each entry is looked up by its id: state and deadline are written so that no index on them fits,
        which the planner thinks cheaper while few rows are in flight. What changes something comes to pass
        although nothing reads what it returns."""

        def of(what: str) -> str:
            return f"id = ANY(ARRAY(SELECT id FROM held WHERE what = '{what}'))"

        acked = "held WHERE what = 'ack'"
        runs = self.upsert_from(
            RUNS,
            RUN,
            f"SELECT {', '.join(_RUN)}, duration_ms, {self.now}, {self.now} + ttl FROM {acked}",
        )
        results = self.upsert_from(
            RESULTS,
            ("job_id", "value", "expires_at"),
            f"SELECT id, value, {self.now} + ttl FROM {acked} AND value IS NOT NULL",
        )
        return (
            f"WITH entry AS MATERIALIZED ({_rows('entries', ENTRY)}), "
            f"held AS MATERIALIZED (SELECT job.*, {', '.join(_SAID)} FROM entry CROSS JOIN LATERAL ("
            f"SELECT {', '.join(_JOB)} FROM {LIVE} WHERE id = entry.id AND attempts = entry.attempts "
            "AND worker_id = %(worker_id)s AND state || '' = 'processing' "
            f"AND claim_expires_at + 0 >= {self.now} FOR UPDATE) job), "
            f"runs AS ({runs}), results AS ({results}), "
            f"acked AS (DELETE FROM {LIVE} WHERE {of('ack')}), "
            f"given_back AS (UPDATE {LIVE} SET state = 'pending', attempts = attempts - 1, {LET_GO} "
            f"WHERE {of('give back')}), "
            f"renewed AS (UPDATE {LIVE} job SET claim_expires_at = {self.now} + "
            f"(SELECT held.extend FROM held WHERE held.id = job.id) WHERE {of('renew')}) "
            f"SELECT id, attempts, ({told(acked)}) FROM held"
        )

    @property
    def grant(self) -> str:
        pick = self.pick(f" AND (NOT wish.tasks_only OR {self.is_task})") % {
            "queue": "wish.queue",
            "n": "wish.n",
        }
        return (
            f"WITH wish AS MATERIALIZED ({_rows('wishes', WISH)}) "
            f"UPDATE {LIVE} job SET state = 'processing', worker_id = %(worker_id)s, "
            f"attempts = job.attempts + 1, claimed_at = {self.now}, claim_expires_at = {self.now} + "
            "(SELECT wish.visibility FROM wish WHERE wish.queue = job.queue LIMIT 1) "
            f"WHERE id = ANY(ARRAY(SELECT granted.id FROM wish CROSS JOIN LATERAL ({pick}) granted "
            f"LIMIT %(room)s)) RETURNING {self.columns('job')}"
        )
