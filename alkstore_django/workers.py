"""The registry of workers: a row for each process of ``alkworker``, with a heartbeat."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from . import __version__
from .models import WorkerProcess, WorkerProcessManager, alias
from .selection import Selection

STALE = 60
"""Seconds without a heartbeat after which a worker is taken for dead: it beats every 10 s."""

FORGET = 300
"""Seconds without a heartbeat after which the row of a worker is deleted by the others."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process as it registered itself.

    ``queues`` and ``excluded`` are names and patterns as on the command line. ``started_at`` and
    ``heartbeat_at`` are Unix seconds by the database's clock, ``silent_for`` seconds since the last
    heartbeat, ``running`` how many tasks ran at that time.
    """

    worker_id: str
    host: str
    pid: int
    queues: tuple[str, ...]
    excluded: tuple[str, ...]
    version: str
    started_at: int
    heartbeat_at: int
    running: int
    silent_for: int

    @property
    def is_stale(self) -> bool:
        """Whether it was killed, hangs, or has lost the database."""
        return self.silent_for > STALE

    def serves(self, queue: str) -> bool:
        return Selection(self.queues, self.excluded).serves(queue)


def workers(using: str | None = None) -> list[WorkerInfo]:
    """Every worker that has not ended in order, the stale ones among them for a few minutes; by start."""
    found = [_info(*row) for row in _processes(alias(using)).rows()]
    return sorted(found, key=lambda worker: (worker.started_at, worker.worker_id))


def _info(
    worker_id: str,
    host: str,
    pid: int,
    queues: str,
    version: str,
    start: int,
    beat: int,
    running: int,
    ago: int,
) -> WorkerInfo:
    served, excluded = _patterns(queues)
    return WorkerInfo(
        worker_id=worker_id,
        host=host,
        pid=pid,
        queues=tuple(served),
        excluded=tuple(excluded),
        version=version,
        started_at=start,
        heartbeat_at=beat,
        running=running,
        silent_for=max(0, ago),
    )


def described(queues: str) -> str:
    """The stored queues of a worker, for people."""
    served, excluded = _patterns(queues)
    return ", ".join(served) + (f", not {', '.join(excluded)}" if excluded else "")


def _patterns(queues: str) -> tuple[list[str], list[str]]:
    """What is served and what is not; nothing, if somebody has changed the row."""
    try:
        served, excluded = json.loads(queues)
        return [str(each) for each in served], [str(each) for each in excluded]
    except (ValueError, TypeError):
        return [], []


class Entry:
    """The row of this process, which started with the making of this object."""

    def __init__(
        self, using: str, worker_id: str, queues: Sequence[str], excluded: Sequence[str] = ()
    ) -> None:
        self._using = using
        self._row = {
            "worker_id": worker_id,
            "host": socket.gethostname()[:255],
            "pid": os.getpid(),
            "queues": json.dumps([list(queues), list(excluded)]),
            "version": __version__[:32],
        }

    def write(self, running: int) -> None:
        _processes(self._using).register(0, running=running, **self._row)

    def beat(self, running: int, age: int) -> None:
        """``age`` is for how many seconds the process has run: a row that was lost is written again."""
        _processes(self._using).beat(age, running=running, **self._row)

    def delete(self) -> None:
        _processes(self._using).unregister(str(self._row["worker_id"]))


def forget_stale(using: str) -> int:
    """Delete what workers that were killed have left behind; how many rows."""
    return _processes(using).forget_silent(FORGET)


def count_stale(using: str) -> int:
    """How many rows that would delete."""
    return _processes(using).count_silent(FORGET)


def _processes(using: str) -> WorkerProcessManager:
    return WorkerProcess.objects.db_manager(using)
