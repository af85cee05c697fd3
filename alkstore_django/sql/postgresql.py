"""PostgreSQL: one-statement claims, partial indexes, arrays as parameters."""

from __future__ import annotations

from typing import Any

from .base import Dialect
from .postgresql_turn import PostgreSQLTurn, told
from .tables import CHANNEL, ENDS, HEARD, LIVE, LOCK_TOKENS, LOCKS, NOTIFICATIONS, STREAM, WAITERS

_SEQUENCE = f"pg_get_serial_sequence('\"{LIVE}\"', 'id')"
_LAST_GIVEN = f"COALESCE(pg_sequence_last_value({_SEQUENCE}), 0)"
_STEPS = 10_000
_CLOCK = "floor(extract(epoch from clock_timestamp()))::bigint"


class PostgreSQLDialect(PostgreSQLTurn, Dialect):
    # clock_timestamp() is volatile: bare, it would be a filter and not an index condition. As a
    # sub-select it is computed once (an InitPlan). floor(), since a cast to bigint rounds up.
    now = f"(SELECT {_CLOCK})"
    now_default = f"({_CLOCK})"
    connect_options = {"connect_timeout": 10}
    precise_now = "(SELECT extract(epoch from clock_timestamp())::float8)"
    claims_in_one_statement = True
    enqueues_in_one_statement = True
    finds_queues_in_one_statement = True
    notice = f", pg_notify('{CHANNEL}', '')"
    notify = f"SELECT pg_notify('{CHANNEL}', '')"
    listen = (f"LISTEN {CHANNEL}", f"UNLISTEN {CHANNEL}")
    # The lock first: who sees it tells, and is heard from the next statement on.
    listen_for_ends = f"SELECT pg_advisory_lock_shared({WAITERS}); LISTEN {ENDS}"
    notifications_notice = f", pg_notify('{HEARD}', channel)"
    listen_for_notifications = f"LISTEN {HEARD}"
    # An INSERT has this lock from before its row has a number until its transaction ends.
    notification_writers = (
        "SELECT DISTINCT CASE WHEN pid IS NULL THEN 'prepared' ELSE virtualtransaction END FROM pg_locks "
        f"WHERE relation = '{NOTIFICATIONS}'::regclass AND mode = 'RowExclusiveLock' AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    counts_what_it_deletes = True
    # Without fresh statistics (after a burst, a batch) it would read and sort the whole backlog for each
    # claim: 120 ms instead of 2 ms at 100 k rows; or, sorting step by step, all that one bulk enqueued in
    # a second. Our own transactions have an index for every order.
    opening = (
        "SELECT set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)"
    )
    read_committed = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
    transient_codes = frozenset({"40001", "40P01"})
    """Serialization failure and deadlock."""

    limit_idling = (
        "SELECT set_config('idle_in_transaction_session_timeout', '10s', false) "
        "WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
    )
    impatience = "SET LOCAL lock_timeout = '1s'"
    lock_codes = frozenset({"55P03"})
    refused_codes = frozenset({"54000"})  # a value of a gigabyte
    unready_codes = frozenset({"42P01", "42703", "42P10", "42501", "3F000"})
    """No such table, column, unique index; no right to it; no such schema."""

    def error_code(self, error: BaseException) -> Any:
        return getattr(error.__cause__, "sqlstate", None)

    def size(self, column: str) -> str:
        return f"pg_column_size({column})"  # without reading what is stored out of line

    def can_listen(self, connection: Any) -> bool:
        return str(connection.Database.__name__) == "psycopg"  # and not psycopg2

    @property
    def enqueue(self) -> str:
        # An untyped NULL parameter has no type of its own in PostgreSQL.
        return _typed(super().enqueue)

    def enqueue_many(self) -> str:
        """All payloads in one array parameter; ids come in the order of the array."""
        return _typed(
            f"INSERT INTO {LIVE} (queue, payload, run_at, priority, max_attempts, expires_at) "
            f"SELECT %(queue)s, item.payload, {self._enqueued_values} "
            "FROM unnest(%(payloads)s::text[]) WITH ORDINALITY AS item(payload, position) "
            "ORDER BY item.position RETURNING id, created_at"
        )

    def notify_many(self) -> str:
        return (
            f"INSERT INTO {NOTIFICATIONS} (channel, payload) SELECT %(channel)s, item.payload "
            "FROM unnest(%(payloads)s::text[]) WITH ORDINALITY AS item(payload, position) "
            "ORDER BY item.position RETURNING id"
        )

    def claim_pending(self, tasks_only: bool) -> str:
        return (
            f"UPDATE {LIVE} SET state = 'processing', worker_id = %(worker_id)s, attempts = attempts + 1, "
            f"claim_expires_at = {self.now} + %(visibility)s, claimed_at = {self.now} "
            f"WHERE id = ANY(ARRAY({self.pick(self.only(tasks_only))})) RETURNING {self.columns()}"
        )

    def pick(self, only: str) -> str:
        """One index walk per distinct priority, highest first, until ``n`` rows are locked.

        To be read into an array, which is the fence: a join could update more rows than LIMIT says.
        LATERAL pulls lazily, so only what is claimed is locked.
        """
        return (
            "WITH RECURSIVE level(priority) AS ("
            f"(SELECT priority FROM {LIVE} WHERE queue = %(queue)s AND state = 'pending' "
            "ORDER BY priority DESC LIMIT 1) UNION ALL "
            f"SELECT (SELECT lower.priority FROM {LIVE} lower WHERE lower.queue = %(queue)s "
            "AND lower.state = 'pending' AND lower.priority < level.priority "
            "ORDER BY lower.priority DESC LIMIT 1) FROM level WHERE level.priority IS NOT NULL) "
            "SELECT picked.id FROM level CROSS JOIN LATERAL ("
            f"SELECT id FROM {LIVE} WHERE queue = %(queue)s AND priority = level.priority "
            f"AND {self.claimable}{only} "
            "ORDER BY run_at, id LIMIT %(n)s FOR UPDATE SKIP LOCKED) picked "
            "WHERE level.priority IS NOT NULL LIMIT %(n)s"
        )

    def delete_live(self, ids: str) -> str:
        gone = f"WITH gone AS (DELETE FROM {LIVE} WHERE id IN ({ids}) RETURNING id)"
        return f"{gone} SELECT count(*), ({told('gone')}) FROM gone"

    @property
    def save_result(self) -> str:
        saved = f"WITH saved AS ({super().save_result} RETURNING job_id AS id)"
        return f"{saved} SELECT count(*), ({told('saved')}) FROM saved"

    @property
    def queues(self) -> str:
        """Those with waiting jobs, then those with running ones: each state has an index of its own."""
        waiting, running = (
            self._distinct_queues(f"{LIVE} WHERE state = '{state}'") for state in ("pending", "processing")
        )
        return f"({waiting}) UNION ALL ({running})"

    takes_locks_in_one_statement = True

    @property
    def take_with_token(self) -> str:
        """Take a lock that is free, or that nobody has had; the answer is that of ``lock_hold``. A row that
        somebody else holds is not locked, as it would be by ON CONFLICT DO UPDATE."""
        fresh = (
            f"INSERT INTO {LOCKS} (name, owner, expires_at) SELECT %(name)s, %(owner)s, "
            f"{self.now} + %(ttl)s WHERE NOT EXISTS (SELECT 1 FROM ended) "
            "ON CONFLICT DO NOTHING RETURNING expires_at"
        )
        given = (
            f"INSERT INTO {LOCK_TOKENS} (name, token) SELECT %(name)s, {self.microseconds} FROM taken "
            f"ON CONFLICT (name) DO UPDATE SET token = {self.next_token} RETURNING token"
        )
        return (
            f"WITH ended AS ({self.take_ended_lock} RETURNING expires_at), fresh AS ({fresh}), "
            "taken AS (SELECT expires_at FROM ended UNION ALL SELECT expires_at FROM fresh), "
            f"given AS ({given}) "
            f"SELECT expires_at, expires_at - {self.precise_now}, token FROM taken CROSS JOIN given"
        )

    def position(self, part: str, text: str) -> str:
        return f"strpos({text}, {part})"

    last_given_id = f"SELECT {_LAST_GIVEN}"

    # Up by nextval(), which never sets a sequence back beside enqueues and waits for nobody. A long way
    # is cut short, as far below the goal as no enqueues of the same moment get.
    raise_sequence = (
        f"SELECT setval({_SEQUENCE}, %(id)s - {_STEPS}) WHERE {_LAST_GIVEN} < %(id)s - 2 * {_STEPS}",
        f"SELECT count(nextval({_SEQUENCE})) FROM generate_series(1, %(id)s - {_LAST_GIVEN})",
    )

    indexes = (
        f"CREATE INDEX alkstore_live_claim ON {LIVE} (queue, priority DESC, run_at, id) "
        "WHERE state = 'pending'",
        f"CREATE INDEX alkstore_live_due ON {LIVE} (queue, run_at) WHERE state = 'pending'",
        f"CREATE INDEX alkstore_live_deadline ON {LIVE} (queue, claim_expires_at) WHERE state = 'processing'",
        f"CREATE INDEX alkstore_live_expiry ON {LIVE} (queue, expires_at) WHERE expires_at IS NOT NULL",
        f'CREATE INDEX alkstore_stream_topic ON {STREAM} (topic, "offset")',
        f"CREATE INDEX alkstore_notify_recent ON {NOTIFICATIONS} (channel, id)",
    )


def _typed(statement: str) -> str:
    """Say the type of parameters that may be NULL."""
    for name in ("run_at", "delay", "expires"):
        statement = statement.replace(f"%({name})s", f"%({name})s::bigint")
    return statement
