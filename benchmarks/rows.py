"""Many rows at once, for backlogs of a given shape."""

from __future__ import annotations

from django.db import connections

from alkstore_django.sql import get_dialect, tables

_SERIES = {
    "sqlite": "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s LIMIT {n}) SELECT i FROM s)",
    "postgresql": "(SELECT generate_series(1, {n}) AS i)",
    "mysql": "(SELECT seq AS i FROM seq_1_to_{n})",
}
PAYLOAD = '{{"__honker_task__":{{"task":"benchmarks.tasks.{task}","args":[],"kwargs":{{}}}}}}'


def live(
    n: int,
    *,
    queue: str = "default",
    priority: str = "0",
    due_in: int = 0,
    in_flight: bool = False,
    task: str = "nothing",
    using: str = "default",
) -> None:
    """``n`` rows; ``priority`` is an SQL expression of the row number ``i``, ``due_in`` seconds from now."""
    now = get_dialect(connections[using]).now
    row = {
        "queue": "%s",
        "payload": "%s",
        "state": "'processing'" if in_flight else "'pending'",
        "priority": priority,
        "run_at": f"{now} - 1 + {due_in}",
        "worker_id": "'elsewhere'" if in_flight else "NULL",
        "claim_expires_at": f"{now} + 3600" if in_flight else "NULL",
        "attempts": str(int(in_flight)),
    }
    _insert(tables.LIVE, row, n, queue, task, using)


def dead(n: int, *, queue: str = "default") -> None:
    _insert(tables.DEAD, {"id": "i", "queue": "%s", "payload": "%s"}, n, queue, "nothing", "default")


def results(n: int, *, expires_in: int) -> None:
    """Values of twenty characters, which end so many seconds from now."""
    now = get_dialect(connections["default"]).now
    row = {"job_id": "i", "value": "'\"abcdefghijklmnopqrst\"'", "expires_at": f"{now} + {expires_in}"}
    _insert(tables.RESULTS, row, n, None, "nothing", "default")


def _insert(table: str, row: dict[str, str], n: int, queue: str | None, task: str, using: str) -> None:
    connection = connections[using]
    series = _SERIES[connection.vendor].format(n=n)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(row)}) SELECT {', '.join(row.values())} FROM {series} numbers",
            [] if queue is None else [queue, PAYLOAD.format(task=task)],
        )
