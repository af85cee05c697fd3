"""A month of a busy site, as rows: what it has left behind, of which most has been kept for long enough."""

from __future__ import annotations

from django.db import connection

from alkstore_django.sql import get_dialect, tables
from tests.factories import ask

SERIES = {
    "sqlite": "(WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s LIMIT {n}) SELECT i FROM s)",
    "postgresql": "(SELECT generate_series(0::bigint, {last}) AS i)",
    "mysql": "(SELECT seq AS i FROM seq_0_to_{last})",
}

DAY = 86_400
FIRST = 1_000_000_000
"""Ids of the month begin here; those of new jobs lie before and after."""

PAYLOAD = '{"__honker_task__":{"task":"shop.tasks.send_receipt","args":[1],"kwargs":{}}}'
TRACEBACK = "Traceback (most recent call last):\n" + "  File shop/tasks.py, line 7, in send_receipt\n" * 30
EACH = {"queue": "'default'", "priority": "0", "attempts": "3", "max_attempts": "3"}


class Month:
    """``finished`` jobs, and of the other kinds in proportion: at 500,000 there are 20,000 dead letters of a
    year and 200,000 notifications of a month. Every thousandth result has 200 kB."""

    def __init__(self, finished: int) -> None:
        self.finished = finished
        self.dead = finished // 25
        self.notifications = finished * 2 // 5
        self.locks = finished // 100
        self.windows = finished // 20

    def fill(self) -> int:
        """Write it, in few long statements; how many rows."""
        finished = self._finished()
        return finished + self._dead() + self._messages() + self._locks() + self._windows()

    def _finished(self) -> int:
        n, ended = self.finished, ago(30, self.finished)
        ids, kept = f"{FIRST} + i", f"{ended} + {7 * DAY}"
        run = {**EACH, "job_id": ids, "task": "'t'", "payload": "%s", "status": "'succeeded'"}
        run |= {"worker_id": "'w'", "enqueued_at": ended, "finished_at": ended, "expires_at": kept}
        value = f"CASE WHEN i %% 1000 = 0 THEN {long_text(200_000)} ELSE %s END"
        result = {"job_id": ids, "value": value, "created_at": ended, "expires_at": kept}
        return (
            insert(tables.RUNS, run, n, PAYLOAD)
            + insert(tables.RESULTS, result, n, '"' + "y" * 100 + '"')
            + insert(tables.METADATA, {"job_id": ids, "value": "%s"}, n // 20, '{"done": 1}')
            + insert(tables.ATTEMPTS, attempt(FIRST), n // 10, TRACEBACK)
        )

    def _dead(self) -> int:
        first, died = FIRST + self.finished, ago(360, self.dead)
        letter = {**EACH, "id": f"{first} + i", "payload": "%s", "created_at": died, "died_at": died}
        history = sum(insert(tables.ATTEMPTS, attempt(first), self.dead, TRACEBACK) for _ in range(3))
        return insert(tables.DEAD, letter, self.dead, PAYLOAD) + history

    def _messages(self) -> int:
        n = self.notifications
        row = {"channel": "'orders'", "payload": "%s", "created_at": ago(30, n)}
        return insert(tables.NOTIFICATIONS, row, n, '{"id": 1}')

    def _locks(self) -> int:
        ended = {"name": text("ended "), "owner": "'o'", "expires_at": f"{now()} - {DAY}"}
        held = {**ended, "name": text("held "), "expires_at": f"{now()} + {DAY}"}
        return insert(tables.LOCKS, ended, self.locks) + insert(tables.LOCKS, held, 100)

    def _windows(self) -> int:
        """Of fifty names, one a minute."""
        periods = insert(tables.RATE_PERIODS, {"name": text("rate "), "seconds": "60"}, 50)
        row = {"name": text("rate ", "i %% 50"), "window_start": ago(30, self.windows), "count": "1"}
        return periods + insert(tables.RATE_LIMITS, row, self.windows)


def attempt(first: int) -> dict[str, str]:
    row = {"job_id": f"{first} + i", "queue": "'default'", "kind": "'failed'", "attempt": "1", "life": "1"}
    row |= {"worker_id": "'w'", "ended_at": now(), "error_class": "'OSError'", "error": "'no answer'"}
    return row | {"traceback": "%s"}


def now() -> str:
    return get_dialect(connection).now


def ago(days: int, n: int) -> str:
    """The moments of ``n`` rows, from so many days ago until now."""
    return f"{now()} - {days * DAY} + {days * DAY} * i / {n}"


def text(start: str, number: str = "i") -> str:
    return f"'{start}' || ({number})" if connection.vendor == "sqlite" else f"CONCAT('{start}', {number})"


def long_text(size: int) -> str:
    """A JSON string of so many characters, which PostgreSQL and InnoDB cannot compress to nothing."""
    if connection.vendor == "sqlite":
        return f"'\"' || hex(randomblob({size // 2})) || '\"'"
    return f"CONCAT('\"', REPEAT(md5(CONCAT(i, '')), {size // 32}), '\"')"


def insert(table: str, row: dict[str, str], n: int, *params: str) -> int:
    """``n`` rows of SQL expressions of the number ``i``."""
    series = SERIES[connection.vendor].format(n=n, last=n - 1)
    ask(f"INSERT INTO {table} ({', '.join(row)}) SELECT {', '.join(row.values())} FROM {series} s", params)
    return n
