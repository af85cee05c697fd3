"""SQLite: honker's own tables and indexes, one writer, one-statement claims."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from . import mirror
from .base import Dialect
from .sqlite_turn import SQLiteTurn, few
from .tables import LIVE, NOTIFICATIONS

_CLAIM_INDEX = "INDEXED BY _honker_live_claim"
_DUE_INDEX = "INDEXED BY _honker_live_pending_deadline"

# The planner takes a partial index only if its condition stands in the statement word for word.
_INDEXED = "queue = %(queue)s AND state IN ('pending', 'processing')"


class SQLiteDialect(SQLiteTurn, Dialect):
    now = "unixepoch()"
    now_default = "(unixepoch())"
    precise_now = "((julianday() - 2440587.5) * 86400.0)"
    skip_locked = for_update = for_share = ""  # one writer: a write transaction locks everything
    least, greatest = "min", "max"
    same = "IS"
    claims_in_one_statement = True
    enqueues_in_one_statement = True
    finds_queues_in_one_statement = True
    tells_last_id = True  # 5 us cheaper than RETURNING
    has_one_writer = True
    has_doorbells = True
    data_version = "PRAGMA data_version"
    adopts_tables = True
    # A read that turns into a write fails at once if another process wrote in between, whatever the
    # timeout; an UPDATE of nothing takes the lock first. With transaction_mode IMMEDIATE it is idle.
    opening = f"UPDATE {LIVE} SET id = id WHERE 0"
    # Not SQLITE_BUSY itself: the driver has waited for the whole timeout then, and the caller is told.
    transient_codes = frozenset(
        {sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_LOCKED_SHAREDCACHE}
    )

    @property
    def microseconds(self) -> str:
        # Its clock counts milliseconds; it is the machine's, so that of our process goes on where it ends.
        return f"max(%(microseconds)s, {super().microseconds})"

    def text(self, column: str) -> str:
        # One invalid byte in a TEXT value makes the driver fail the whole fetch; bytes never do.
        return f"CAST({column} AS BLOB)"

    def size(self, column: str) -> str:
        return f"length({self.text(column)})"  # of text it would be characters

    def error_code(self, error: BaseException) -> Any:
        return getattr(error.__cause__, "sqlite_errorcode", None)

    def enqueue_many(self) -> str:
        """All payloads as one JSON array of strings."""
        return (
            f"INSERT INTO {LIVE} (queue, payload, run_at, priority, max_attempts, expires_at) "
            f"SELECT %(queue)s, value, {self._enqueued_values} FROM json_each(%(payloads)s) "
            "ORDER BY key RETURNING id, created_at"
        )

    def notify_many(self) -> str:
        return (
            f"INSERT INTO {NOTIFICATIONS} (channel, payload) SELECT %(channel)s, value "
            "FROM json_each(%(payloads)s) ORDER BY key RETURNING id"
        )

    def many(self, payloads: Sequence[str]) -> Any:
        return json.dumps(list(payloads))

    def claim_pending(self, tasks_only: bool) -> str:
        return (
            f"UPDATE {LIVE} SET state = 'processing', worker_id = %(worker_id)s, attempts = attempts + 1, "
            f"claim_expires_at = {self.now} + %(visibility)s, claimed_at = {self.now} "
            f"WHERE id IN ({self.pick(self.only(tasks_only))}) RETURNING {self.columns()}"
        )

    def pick(self, only: str) -> str:
        """Two ways to the same order, one of which is empty (spike.md 4).

        With one priority in the queue the due index gives ``run_at, id`` and holds no rows in flight;
        with several, each distinct priority is one walk of the claim index, so future rows of a
        higher priority are skipped. CROSS JOIN fixes the order of the loops: ``level`` is outermost,
        so its recursion is lazy and LIMIT ends it early; ``single`` is asked before any row (as a mere
        condition it would be asked for every row of the backlog). The order of claim is that of the
        indexes: an ORDER BY would sort the backlog.
        """
        wanted = f"{self.claimable}{only}"
        top = f"SELECT priority FROM {LIVE} {_CLAIM_INDEX} WHERE {_INDEXED} ORDER BY priority DESC LIMIT 1"
        bottom = f"SELECT priority FROM {LIVE} {_CLAIM_INDEX} WHERE {_INDEXED} ORDER BY priority LIMIT 1"
        below = (
            f"SELECT priority FROM {LIVE} {_CLAIM_INDEX} WHERE {_INDEXED} AND priority < level.priority "
            "ORDER BY priority DESC LIMIT 1"
        )
        return (
            f"WITH RECURSIVE span(single) AS MATERIALIZED (SELECT ({top}) IS ({bottom})), "
            f"level(priority) AS (SELECT ({top}) UNION ALL SELECT ({below}) FROM level "
            "WHERE level.priority IS NOT NULL) "
            f"SELECT id FROM (SELECT job.id FROM span CROSS JOIN {LIVE} job {_DUE_INDEX} "
            f"WHERE span.single AND queue = %(queue)s AND {wanted} LIMIT %(n)s) UNION ALL "
            f"SELECT id FROM (SELECT job.id FROM level CROSS JOIN span CROSS JOIN {LIVE} job {_CLAIM_INDEX} "
            f"WHERE {few('level.priority IS NOT NULL')} AND NOT span.single AND {_INDEXED} "
            f"AND job.priority = level.priority AND {wanted} LIMIT %(n)s)"
        )

    @property
    def queues(self) -> str:
        return self._distinct_queues(f"{LIVE} {_CLAIM_INDEX} WHERE state IN ('pending', 'processing')")

    last_given_id = (
        f"SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{LIVE}'), 0), "
        f"COALESCE((SELECT MAX(id) FROM {LIVE} WHERE id < {2**62}), 0))"
    )

    mirror_tables = mirror.STATEMENTS
    mirror_columns = mirror.LATER_COLUMNS
    restored_indexes = mirror.INDEX_STATEMENTS
