"""When a worker has had its time, and makes room for a fresh process."""

from __future__ import annotations

import math
import random
import time

from . import memory
from .options import Options

SPREAD = 0.1
"""Limits are lowered by a random share of up to this: workers that start together do not end together."""

LOOK = 0.1
"""Seconds between two looks at the memory."""

MB = 1024 * 1024


def spread(limit: int | None) -> int | None:
    """The limit, or up to a tenth less. Below 10 nothing changes."""
    if limit is None:
        return None
    return limit - random.randint(0, int(limit * SPREAD))  # noqa: S311 - no secret


class Recycling:
    """Whether the worker has reached a limit other than its number of tasks. Clock: the monotonic one."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._started = self._busy = time.monotonic()
        self._look_at_memory = 0.0
        self.reason = ""
        """Why the worker ends; once it is there, it stays."""
        self.wants_replacement = False
        """Whether another process should take its place: not after idling."""

    def look(self, *, busy: bool, has_worked: bool) -> str:
        """Look at all limits; the reason to end, empty as long as there is none."""
        now = time.monotonic()
        if busy:
            self._busy = now
        if not self.reason:
            self.reason = self._limit(now) or (self._memory(now) if has_worked else "")
            self.wants_replacement = bool(self.reason)
        if not self.reason and not busy and now >= self._idle_until:
            self.reason = f"it had nothing to do for {self._options.max_idle:g} s"
        return self.reason

    def due_in(self, *, busy: bool) -> float:
        """Seconds until a limit of time is reached; infinite when there is none, or one has been."""
        if self.reason:
            return math.inf
        return max(0.0, min(self._until, math.inf if busy else self._idle_until) - time.monotonic())

    @property
    def _until(self) -> float:
        return self._started + (self._options.max_seconds or math.inf)

    @property
    def _idle_until(self) -> float:
        return math.inf if self._options.max_idle is None else self._busy + self._options.max_idle

    def _limit(self, now: float) -> str:
        return f"it has run for {self._options.max_seconds} s" if now >= self._until else ""

    def _memory(self, now: float) -> str:
        """Only after a task: a limit that an idle process is over does not end it before its first."""
        if self._options.max_rss is None or now < self._look_at_memory:
            return ""
        self._look_at_memory = now + LOOK
        size = memory.resident()
        return f"it occupies {size // MB} MB" if size is not None and size > self._options.max_rss else ""
