"""What a worker was told."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``alkworker``; durations in seconds, ``max_rss`` in bytes, queues as patterns
    (``selection``)."""

    using: str
    queues: Sequence[str] = ()
    excluded: Sequence[str] = ()
    threads: int = 4
    async_concurrency: int = 20
    prefetch: int = 32
    batch: bool = False
    max_tasks: int | None = None
    max_seconds: int | None = None
    max_rss: int | None = None
    max_idle: float | None = None
    interval: float | None = None
    listen: bool = True
    scheduler: bool = False
    maintenance: bool = False
    shutdown_timeout: float = 25
    visibility_timeout: int | None = None
    worker_id: str | None = None
    health_file: str | None = None


def new_worker_id() -> str:
    """Unique for each start of a process, readable, and shorter than 64 characters."""
    return f"alkstore-{socket.gethostname()[:24]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
