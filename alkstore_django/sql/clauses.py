"""What a database says differently, and the conditions that every statement of the queue is made of.

Parameters are always bound (``%(name)s``). ``now`` is the database's clock in whole Unix seconds. A
claim is *held* while ``claim_expires_at >= now`` (honker-spec 2.1: the second of its end still counts)
and has *lapsed* when ``claim_expires_at < now``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .tables import TASK_PREFIX

CLAIM_COLUMNS: tuple[str, ...] = ("id", "queue", "payload", "priority", "run_at", "attempts", "max_attempts")
CLAIM_COLUMNS += ("worker_id", "claim_expires_at", "created_at", "claimed_at", "expires_at")

LET_GO = "worker_id = NULL, claim_expires_at = NULL, claimed_at = NULL"
"""What every put back sets: honker does not write ``claimed_at``, so an old one would stay."""


class Clauses:
    """A correct answer for any database with ``FOR UPDATE SKIP LOCKED``; subclasses do better."""

    now = "now"
    now_default = "now"
    """``now`` as it may stand in a column's DEFAULT."""

    precise_now = "now"
    """The database's clock in Unix seconds with a fraction."""

    skip_locked = " FOR UPDATE SKIP LOCKED"
    for_update = " FOR UPDATE"
    live_claim_hint = ""
    """Text after the table that makes the planner take the claim index."""

    least = "least"
    greatest = "greatest"
    same = "IS NOT DISTINCT FROM"
    """``=`` by which NULL is NULL."""

    integer = "BIGINT"
    """What to cast to for a whole number of 64 bits."""

    claims_in_one_statement = False
    """``claim_pending`` is one UPDATE .. RETURNING; otherwise the manager picks, locks and updates."""

    enqueues_in_one_statement = False
    """``enqueue_many`` takes all payloads as one parameter."""

    finds_queues_in_one_statement = False
    """``queues`` is one statement; otherwise the manager asks for one after the other."""

    returns_inserted = True
    """INSERT can say RETURNING."""

    tells_last_id = False
    """The driver knows the id of the row that was put in last; otherwise RETURNING does."""

    has_one_writer = False
    """A write transaction keeps all others out, of the whole database."""

    reads_lock_in_writes = False
    """INSERT .. SELECT locks what it reads until the end of the transaction."""

    has_doorbells = False
    """Workers are woken through sockets, which whoever commits has to ring."""

    data_version: str | None = None
    """A read whose answer changes when another connection has committed."""

    notice = ""
    """What an INSERT .. RETURNING gets at its end, so that its commit wakes the workers."""

    notify: str | None = None
    """The statement that does the same by itself."""

    listen: tuple[str, str] | None = None
    """The statements that begin and end listening on a connection."""

    listen_for_ends: str | None = None
    """What begins listening, on a session of its own, for the ends of jobs."""

    counts_what_it_deletes = False
    """``delete_live`` tells those who wait for the ends of jobs, and answers how many it deleted."""

    adopts_tables = False
    """The tables may have been made by another program: create them only where they are missing."""

    name_collation: str | None = None
    """Collation that compares names byte by byte, where the default does not."""

    opening: str | None = None
    """The statement that a transaction of our own begins with, where one is needed."""

    impatience: str | None = None
    """A statement by which the present transaction does not wait for a table that somebody locks."""

    lock_codes: frozenset[Any] = frozenset()
    """Error codes by which a statement says that it has waited for a lock in vain."""

    limit_idling: str | None = None
    """Has the server end this session once it has done nothing in a transaction for 10 s, unless the project
    has set a limit itself."""

    read_committed: str | None = None
    """A statement that gives the present transaction READ COMMITTED, as its first."""

    transient_codes: frozenset[Any] = frozenset()
    """Error codes after which the whole transaction may simply be run again."""

    largest_packet: str | None = None
    """Asks for the bytes that one statement may have, where there is a limit to reckon with."""

    fatal_codes: frozenset[Any] = frozenset()
    """Error codes after which the server closes the connection."""

    refused_codes: frozenset[Any] = frozenset()
    """Error codes, beside data and integrity errors, by which the database refuses a value for good."""

    unready_codes: frozenset[Any] = frozenset()
    """Error codes, beside operational errors, of a database that lacks tables, columns or rights, as while a
    backup is restored."""

    @property
    def microseconds(self) -> str:
        """The database's clock in Unix microseconds. The parameter ``microseconds`` is our own."""
        return f"CAST({self.precise_now} * 1000000 AS {self.integer})"

    def opening_for(self, connection: Any) -> str | None:
        """``opening``, if it depends on how the project connects."""
        return self.opening

    def can_listen(self, connection: Any) -> bool:
        """Whether the driver can be asked for what was heard."""
        return False

    def text(self, column: str) -> str:
        """How to select a text column that may hold anything."""
        return column

    def error_code(self, error: BaseException) -> Any:
        """The database's code of an error that Django wrapped (its cause is the driver's)."""
        raise NotImplementedError

    def is_transient(self, error: BaseException) -> bool:
        """Whether running the transaction again is the cure: deadlock, serialization failure, busy."""
        return self.error_code(error) in self.transient_codes

    def columns(self, table_alias: str = "") -> str:
        """The columns of a claim, in the order of ``CLAIM_COLUMNS``."""
        prefix = f"{table_alias}." if table_alias else ""
        text = {"queue", "payload", "worker_id"}
        return ", ".join(
            self.text(prefix + name) if name in text else prefix + name for name in CLAIM_COLUMNS
        )

    mine = "worker_id = %(worker_id)s AND attempts = %(attempts)s AND state = 'processing'"
    """The fence of a write on a claim that this transaction has locked while it was held: nobody can
    take it any more, and its last second may pass between the two statements."""

    @property
    def held(self) -> str:
        """The fence of every other write on a claim."""
        return f"{self.mine} AND claim_expires_at >= {self.now}"

    @property
    def lapsed(self) -> str:
        return f"state = 'processing' AND claim_expires_at < {self.now}"

    @property
    def claimable(self) -> str:
        """What a pending row needs to be claimed now; one that expires this second no longer can be."""
        return (
            f"state = 'pending' AND run_at <= {self.now} AND attempts < max_attempts "
            f"AND (expires_at IS NULL OR expires_at > {self.now})"
        )

    @property
    def is_task(self) -> str:
        return f"substr(payload, 1, {len(TASK_PREFIX)}) = '{TASK_PREFIX}'"

    def only(self, tasks_only: bool) -> str:
        return f" AND {self.is_task}" if tasks_only else ""

    def upsert(self, table: str, names: Sequence[str], rows: str) -> str:
        """INSERT of ``rows`` (VALUES lists) that replaces all but the first column, the key."""
        return self.upsert_from(table, names, f"VALUES {rows}")

    def upsert_from(self, table: str, names: Sequence[str], source: str) -> str:
        """The same from any source of rows."""
        key, *columns = names
        updates = ", ".join(f"{column} = excluded.{column}" for column in columns)
        insert = f"INSERT INTO {table} ({', '.join(names)}) {source}"
        return f"{insert} ON CONFLICT ({key}) DO UPDATE SET {updates}"

    def insert_new(self, table: str, names: Sequence[str], values: str = "") -> str:
        """INSERT of one row, of the parameters of those names if nothing else is said; nothing, if there is
        a row of that key."""
        return f"{self._insert(table, names, values)} ON CONFLICT DO NOTHING"

    def upsert_by(self, table: str, names: Sequence[str], values: str, update: str, keys: int = 1) -> str:
        """INSERT of one row; where there is one of that key, the columns are changed as ``update`` says.

        The key is the first ``keys`` of the columns.
        """
        key = ", ".join(names[:keys])
        return f"{self._insert(table, names, values)} ON CONFLICT ({key}) DO UPDATE SET {update}"

    @staticmethod
    def _insert(table: str, names: Sequence[str], values: str) -> str:
        row = values or ", ".join(f"%({name})s" for name in names)
        return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({row})"
