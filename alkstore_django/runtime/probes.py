"""Which of the queues that a pattern matches hold tasks at all.

A queue of another program may hold a million payloads that are none, and a claim would pass them all,
on SQLite with the file locked. So it is asked for claims only while it holds a task; to find out is a
read, and what takes long is done the more seldom.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from alkstore_django import turns

EVERY = 0.25
"""Seconds between two looks at a queue, and in addition 20 times what the last one took."""


class Probes:
    """What is known of each queue: whether it holds tasks, and until when that is believed."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._known: dict[str, tuple[bool, float]] = {}

    def taskless(self, queues: Iterable[str], *, now: bool) -> frozenset[str]:
        """The queues that hold no task; ``now``: whatever is believed."""
        known, self._known = self._known, {}
        for queue in queues:
            has_tasks, until = known.get(queue, (False, 0.0))
            if now or until <= time.monotonic():
                has_tasks, until = self._look(queue)
            self._known[queue] = has_tasks, until
        return frozenset(queue for queue, (has_tasks, _) in self._known.items() if not has_tasks)

    def due_in(self) -> float:
        """Seconds until a queue without tasks is to be looked at; infinite if there is none."""
        dues = (until for has_tasks, until in self._known.values() if not has_tasks)
        return max(0.0, min(dues, default=math.inf) - time.monotonic())

    def _look(self, queue: str) -> tuple[bool, float]:
        started = time.monotonic()
        has_tasks = turns.has_task(self._using, queue)
        finished = time.monotonic()
        return has_tasks, finished + EVERY + 20 * (finished - started)
