"""The driver alone with the least SQL that does the job: what the ratios compare with."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection

from alkstore_django.sql import tables

INSERT = f"INSERT INTO {tables.LIVE} (queue, payload, priority, max_attempts) VALUES (%s, %s, 0, 3)"
_DUE = "queue = 'default' AND state = 'pending' ORDER BY priority DESC, run_at, id"
_PICK = f"SELECT id FROM {tables.LIVE} WHERE {_DUE}"
_SET = "state = 'processing', worker_id = 'raw', attempts = attempts + 1"


class Raw:
    """A cursor of the driver, in autocommit, on Django's connection."""

    def __init__(self) -> None:
        connection.ensure_connection()
        self.driver: Any = connection.connection
        self.cursor: Any = self.driver.cursor()
        self.is_sqlite = connection.vendor == "sqlite"

    def execute(self, sql: str, params: Any = ()) -> Any:
        self.cursor.execute(sql.replace("%s", "?") if self.is_sqlite else sql, params)
        return self.cursor

    def enqueue(self, n: int, queue: str = "default") -> None:
        for number in range(n):
            self.execute(INSERT, (queue, json.dumps({"i": number})))

    def enqueue_many(self, n: int) -> None:
        """``executemany`` in one transaction; VALUES lists on MariaDB, whose driver sends row by row."""
        rows = [("default", json.dumps({"i": number})) for number in range(n)]
        self.execute("BEGIN")
        if connection.vendor == "mysql":
            head, values = INSERT.split(" VALUES ")
            for start in range(0, n, 500):
                chunk = rows[start : start + 500]
                lists = ", ".join([values] * len(chunk))
                self.execute(f"{head} VALUES {lists}", [value for row in chunk for value in row])
        else:
            self.cursor.executemany(INSERT.replace("%s", "?") if self.is_sqlite else INSERT, rows)
        self.execute("COMMIT")

    def drain(self, n: int, batch: int) -> None:
        """Claim ``batch`` and ack them, each in a transaction of its own, until ``n`` are done."""
        for _ in range(n // batch):
            ids = self._claim(batch)
            self.execute(f"DELETE FROM {tables.LIVE} WHERE id IN ({', '.join(map(str, ids))})")

    def _claim(self, batch: int) -> list[int]:
        by_vendor = {
            "sqlite": self._claim_sqlite,
            "postgresql": self._claim_postgresql,
            "mysql": self._claim_mysql,
        }
        return by_vendor[connection.vendor](batch)

    def _claim_sqlite(self, batch: int) -> list[int]:
        # Word for word the condition of the index, and its name: else SQLite sorts the backlog.
        due = _DUE.replace("state =", "state IN ('pending', 'processing') AND state =")
        pick = f"SELECT id FROM {tables.LIVE} INDEXED BY _honker_live_claim WHERE {due} LIMIT {batch}"
        return self._update("unixepoch()", f"id IN ({pick})")

    def _claim_postgresql(self, batch: int) -> list[int]:
        pick = f"{_PICK} LIMIT {batch} FOR UPDATE SKIP LOCKED"
        return self._update("extract(epoch from now())::bigint", f"id = ANY(ARRAY({pick}))")

    def _update(self, now: str, picked: str) -> list[int]:
        update = f"UPDATE {tables.LIVE} SET {_SET}, claim_expires_at = {now} + 60 WHERE {picked}"
        return [row[0] for row in self.execute(f"{update} RETURNING id, payload").fetchall()]

    def _claim_mysql(self, batch: int) -> list[int]:
        self.execute("BEGIN")
        ids = [row[0] for row in self.execute(f"{_PICK} LIMIT {batch} FOR UPDATE SKIP LOCKED").fetchall()]
        if not ids:
            self.execute("COMMIT")
            return []
        listed = f"id IN ({', '.join(map(str, ids))})"
        self.execute(f"SELECT payload FROM {tables.LIVE} WHERE {listed}").fetchall()
        self.execute(
            f"UPDATE {tables.LIVE} SET {_SET}, claim_expires_at = unix_timestamp() + 60 WHERE {listed}"
        )
        self.execute("COMMIT")
        return ids
