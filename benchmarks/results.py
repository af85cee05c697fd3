"""Results: save and get, beside the same INSERT and SELECT of the driver; and dead letters that come back.

Raw SQL saves by an upsert that adds the time to keep it, and reads with the same condition; it requeues by
one INSERT .. SELECT and one DELETE for each hundred, without history, keys or a look at what is meant.
"""

from __future__ import annotations

from django.db import connection

from alkstore_django import dead_letters, results
from alkstore_django.models import DeadJob
from alkstore_django.sql import tables

from .database import clear
from .measure import medians, rate, show
from .raw import Raw

NOW = {
    "sqlite": "unixepoch()",
    "postgresql": "extract(epoch from clock_timestamp())::bigint",
    "mysql": "UNIX_TIMESTAMP()",
}
VALUE = {"status": "done", "width": 120}
TEXT = '{"status":"done","width":120}'
TASK = '{"__honker_task__":{"task":"benchmarks.tasks.nothing","args":[],"kwargs":{}}}'


def run(quick: bool) -> None:
    n, letters = (500, 2_000) if quick else (3_000, 20_000)
    raw, now = Raw(), NOW[connection.vendor]
    replace = "ON CONFLICT (job_id) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at"
    if connection.vendor == "mysql":
        replace = "ON DUPLICATE KEY UPDATE value = VALUES(value), expires_at = VALUES(expires_at)"
    save = f"INSERT INTO {tables.RESULTS} (job_id, value, expires_at) VALUES (%s, %s, {now} + 3600) {replace}"
    kept = f"(expires_at IS NULL OR expires_at > {now})"
    get = f"SELECT value FROM {tables.RESULTS} WHERE job_id = %s AND {kept}"

    def save_and_get_raw() -> None:
        for number in range(n):
            raw.execute(save, (number, TEXT))
            raw.execute(get, (number,)).fetchone()

    def save_and_get() -> None:
        for number in range(n):
            results.save(number, VALUE, ttl=3600)
            results.get(number)

    def requeue_raw() -> None:
        moved = "queue, payload, priority, run_at, 0, max_attempts, created_at"
        into = "id, queue, payload, priority, run_at, attempts, max_attempts, created_at"
        for start in range(1, letters + 1, 100):
            among = f"WHERE id BETWEEN {start} AND {start + 99}"
            raw.execute("BEGIN")
            raw.execute(f"INSERT INTO {tables.LIVE} ({into}) SELECT id, {moved} FROM {tables.DEAD} {among}")
            raw.execute(f"DELETE FROM {tables.DEAD} {among}")
            raw.execute("COMMIT")

    def after_burying(work: object) -> float:
        clear()
        DeadJob.objects.bulk_create(
            (
                DeadJob(id=number, queue="q", payload=TASK, max_attempts=3, last_error="boom")
                for number in range(1, letters + 1)
            ),
            batch_size=150,
        )
        return rate(letters, work)  # type: ignore[arg-type]

    clear()
    rates = medians({"raw SQL": lambda: rate(n, save_and_get_raw), "results": lambda: rate(n, save_and_get)})
    show(f"Save a result and get it ({n:,})", rates, "raw SQL")
    rates = medians(
        {
            "raw SQL": lambda: after_burying(requeue_raw),
            "requeue by queue": lambda: after_burying(lambda: dead_letters.requeue(queue="q")),
            "requeue by task and error": lambda: after_burying(
                lambda: dead_letters.requeue(task="*.nothing", error="boom")
            ),
        }
    )
    show(f"Requeue {letters:,} dead letters", rates, "raw SQL")
    clear()
