"""MariaDB and MySQL (Django calls both ``mysql``): pick, lock, update; no UPDATE .. RETURNING."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import Dialect
from .tables import LIVE, NOTIFICATIONS, RATE_LIMITS, STREAM

_TAKEN = ("job_id", "holds_until", "stamp")


class MySQLDialect(Dialect):
    now = "UNIX_TIMESTAMP()"
    now_default = "(UNIX_TIMESTAMP())"
    connect_options = {"connect_timeout": 10}
    precise_now = "UNIX_TIMESTAMP(NOW(6))"
    live_claim_hint = " FORCE INDEX (alkstore_live_claim)"
    returns_inserted = False
    tells_last_id = True
    reads_lock_in_writes = True  # above READ COMMITTED: a renewal would wait for the task's transaction
    name_collation = "utf8mb4_0900_bin"
    offset = "`offset`"
    transient_codes = frozenset({1020, 1205, 1213})
    """A row that changed since the snapshot (MariaDB's ``innodb_snapshot_isolation``), lock wait timeout
    and deadlock."""
    largest_packet = "SELECT @@max_allowed_packet"
    fatal_codes = frozenset({1153})
    refused_codes = frozenset({1153, 1366})
    """A packet too large, and characters that the column's character set does not have."""

    unready_codes = frozenset({1146})
    """No such table. No such column, index or right is an operational error to the driver."""

    def opening_for(self, connection: Any) -> str | None:
        # A claim under REPEATABLE READ also locks the gaps between the rows that it passes: enqueues
        # wait for it, and twelve processes deadlock faster than they can try again.
        is_calm = connection.isolation_level == "read committed"
        return None if is_calm else "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

    def error_code(self, error: BaseException) -> Any:
        cause = error.__cause__
        return cause.args[0] if cause is not None and cause.args else None

    tells_last_given_id = False  # MySQL keeps what information_schema says for a day
    # Another transaction may be raising it to the same id: whoever comes second finds it raised.
    raise_sequence = (
        f"INSERT IGNORE INTO {LIVE} (id, queue, payload) VALUES (%(id)s, '', '')",
        f"DELETE FROM {LIVE} WHERE id = %(id)s AND queue = ''",
    )

    def upsert_from(self, table: str, names: Sequence[str], source: str) -> str:
        updates = ", ".join(f"{column} = VALUES({column})" for column in names[1:])
        return f"INSERT INTO {table} ({', '.join(names)}) {source} ON DUPLICATE KEY UPDATE {updates}"

    def upsert_by(self, table: str, names: Sequence[str], values: str, update: str, keys: int = 1) -> str:
        return f"{self._insert(table, names, values)} ON DUPLICATE KEY UPDATE {update}"

    def insert_new(self, table: str, names: Sequence[str], values: str = "") -> str:
        # ON DUPLICATE KEY UPDATE counts a row that was there as changed (Django sets FOUND_ROWS).
        return self._insert(table, names, values).replace("INSERT", "INSERT IGNORE", 1)

    integer = "SIGNED"
    same = "<=>"
    division = "DIV"
    counts_calls_in_one_statement = False  # there is no condition, and full counts as changed
    picks_locks_first = True
    deletes_with_limit = True
    returns_counted = False

    @property
    def count_call(self) -> str:
        return (
            f"UPDATE {RATE_LIMITS} SET count = count + 1 "
            f"WHERE name = %(name)s AND window_start = {self.window} AND count < %(limit)s"
        )

    @property
    def sweep_windows(self) -> str:
        return f"DELETE {self._old_windows} LIMIT %(n)s"

    returns_taken = False  # RETURNING (MariaDB) tells of rows that were not changed, too
    for_share = " LOCK IN SHARE MODE"

    def take_keys(self, rows: str, stamps: str) -> str:
        # There is no condition but in the values, and the stamp must be the last to change.
        values = (f"{name} = IF(stamp IN ({stamps}), VALUES({name}), {name})" for name in _TAKEN)
        return f"{self._keys(rows)} ON DUPLICATE KEY UPDATE {', '.join(values)}"

    @property
    def locked_schedule(self) -> str:
        # In a REPEATABLE READ of the caller's a plain read would answer what was there when that began, and
        # who writes it back takes back what others have changed.
        return f"{self.schedule}{self.for_update}"

    read_uncommitted = "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"

    # Plain column indexes: expression indexes are skipped silently on MariaDB.
    indexes = (
        f"CREATE INDEX alkstore_live_claim ON {LIVE} (queue, state, priority DESC, run_at, id)",
        f"CREATE INDEX alkstore_live_due ON {LIVE} (queue, state, run_at)",
        f"CREATE INDEX alkstore_live_deadline ON {LIVE} (queue, state, claim_expires_at)",
        f"CREATE INDEX alkstore_stream_topic ON {STREAM} (topic, `offset`)",
        f"CREATE INDEX alkstore_notify_recent ON {NOTIFICATIONS} (channel, id)",
    )


class MariaDBDialect(MySQLDialect):
    returns_inserted = returns_counted = True  # INSERT .. RETURNING since 10.5
    tells_last_id = False
    name_collation = "utf8mb4_nopad_bin"
    tells_last_given_id = True
    limit_idling = (
        "SET SESSION idle_transaction_timeout = "
        "IF(@@idle_transaction_timeout = 0, 10, @@idle_transaction_timeout)"
    )
    last_given_id = (
        "SELECT COALESCE(MAX(AUTO_INCREMENT), 1) - 1 FROM information_schema.TABLES "
        f"WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{LIVE}'"
    )
