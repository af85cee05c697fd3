"""Put jobs in and learn when that was, which the ids that ``Queue.enqueue`` answers with do not say."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from functools import lru_cache
from typing import Any

from .models import Arrival, Job, JobManager
from .models.base import in_transaction
from .values import instant, seconds, whole


def row(
    max_attempts: Any,
    run_at: Any = None,
    delay: Any = None,
    priority: Any = 0,
    expires: Any = None,
) -> dict[str, int | None]:
    """What jobs say beside queue and payload, checked. Raises ``TypeError`` and ``ValueError``."""
    if run_at is not None and delay is not None:
        raise ValueError("Give run_at or delay, not both.")
    return {
        "run_at": None if run_at is None else instant("run_at", run_at),
        "delay": 0 if delay is None else seconds("delay", delay),
        "priority": whole("priority", priority, -(2**31)),
        "expires": None if expires is None else seconds("expires", expires),
        "max_attempts": whole("max_attempts", max_attempts, 1),
    }


def add(using: str, queue: str, text: str, row: dict[str, int | None]) -> Arrival:
    """One job in the caller's transaction."""
    return _jobs(using).enqueue(queue, text, **row)


def add_many(using: str, queue: str, texts: Iterable[str], row: dict[str, int | None]) -> list[Arrival]:
    """Many jobs, all or none, in the order of the texts."""
    return in_transaction(
        using,
        lambda: _jobs(using).enqueue_many(queue, texts, **row),
        again=isinstance(texts, Sized),
    )


@lru_cache(maxsize=64)
def _jobs(using: str) -> JobManager:
    """Kept: to make one costs as much as a tenth of an INSERT."""
    return Job.objects.db_manager(using)
