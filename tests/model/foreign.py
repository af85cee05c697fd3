"""Another program at the same tables, by honker's rules (honker-spec 2.1), without our history."""

from __future__ import annotations

from typing import Any

from alkstore_django.models import DeadJob, Job


def claim(queue: str, worker: str, n: int, now: int, visibility: int) -> list[int]:
    """honker's claim: exhausted rows die first, lapsed claims are taken again in place."""
    rows = [row for row in Job.objects.filter(queue=queue) if row.expires_at is None or row.expires_at > now]
    rows = [row for row in rows if _free(row, now)]
    for row in rows:
        if row.attempts >= row.max_attempts and not DeadJob.objects.filter(pk=row.pk).exists():
            bury(row, "max attempts exceeded")
    mine = sorted(
        (row for row in rows if row.attempts < row.max_attempts),
        key=lambda row: (-row.priority, row.run_at, row.pk),
    )[:n]
    for row in mine:
        held: dict[str, Any] = {"state": "processing", "worker_id": worker, "attempts": row.attempts + 1}
        Job.objects.filter(pk=row.pk).update(**held, claim_expires_at=now + visibility)
    return [row.pk for row in mine]


def _free(row: Job, now: int) -> bool:
    if row.state == "pending":
        return bool(row.run_at <= now)
    return bool(row.claim_expires_at < now)


def bury(row: Job, error: str) -> None:
    kept = {name: getattr(row, name) for name in ("queue", "payload", "priority", "run_at")}
    DeadJob.objects.create(
        id=row.pk, attempts=row.attempts, max_attempts=row.max_attempts, last_error=error, **kept
    )
    Job.objects.filter(pk=row.pk).delete()
