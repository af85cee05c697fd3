"""What a pool of executors has in hand, whether they are threads or coroutines."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from .execution import Assignment

STALL = 1.0
"""Seconds that an assignment waits while nothing of its pool starts."""


class Pool:
    """Assignments that wait and those that run. What has not started can be taken back.

    Two runs of one job never overlap here: the second waits for the end of the first, whose claim
    was lost.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        """How many run at the same time."""
        self._waiting: deque[Assignment] = deque()
        self._running: dict[int, Assignment] = {}
        self._ready = threading.Condition()
        self._moved = 0.0

    def hand_out(self, assignments: list[Assignment]) -> None:
        with self._ready:
            if not self._waiting:
                self._moved = time.monotonic()
            self._waiting.extend(assignments)
            try:
                self._notify(len(assignments))
            except BaseException:  # there is nobody who would run them
                self._waiting = deque(each for each in self._waiting if each not in assignments)
                raise

    def take_back(self, claims: Iterable[Any] | None = None) -> list[Any]:
        """The claims (of ``claims``) that have not started; none will."""
        wanted = None if claims is None else {(claim.id, claim.attempts) for claim in claims}
        with self._ready:
            waiting = [assignment.claim for assignment in self._waiting]
            taken = [claim for claim in waiting if wanted is None or (claim.id, claim.attempts) in wanted]
            kept = [each for each in self._waiting if each.claim not in taken]
            self._waiting = deque(kept)
        return taken

    def running(self) -> list[Assignment]:
        """The assignments whose tasks run now."""
        with self._ready:
            return list(self._running.values())

    def held(self) -> int:
        """How many wait or run; what runs together is one."""
        with self._ready:
            together = sum(len(each.companions) for each in self._running.values())
            return len(self._waiting) + len(self._running) - together

    def waiting(self) -> int:
        """How many wait."""
        with self._ready:
            return len(self._waiting)

    def stalls_in(self) -> float:
        """Seconds until what waits has waited too long; infinite while nothing waits."""
        with self._ready:
            return max(0.0, self._moved + STALL - time.monotonic()) if self._waiting else math.inf

    def _notify(self, n: int) -> None:
        """``n`` more assignments wait (the lock is held)."""
        raise NotImplementedError

    def _begin(self) -> Assignment | None:
        """The next assignment to run, which counts as running from now on (the lock is held)."""
        for place, assignment in enumerate(self._waiting):
            if assignment.claim.id not in self._running:
                self._moved = time.monotonic()
                del self._waiting[place]
                self._running[assignment.claim.id] = assignment
                return assignment
        return None

    def _add_companions(self, assignment: Assignment) -> None:
        """Of those that wait: for the same outbox, and likewise for the first time (the lock is held)."""
        queue, most = assignment.claim.queue, assignment.batch - 1
        suitable = [
            each
            for each in self._waiting
            if each.batch > 1 and each.claim.queue == queue and each.claim.id not in self._running
        ]
        assignment.companions = suitable[:most]
        for each in assignment.companions:
            self._waiting.remove(each)
            self._running[each.claim.id] = each

    def forget(self, assignment: Assignment) -> None:
        """It does not count as running any more, nor does what ran with it."""
        with self._ready:
            if self._running.get(assignment.claim.id) is assignment:
                del self._running[assignment.claim.id]
                for each in assignment.companions:
                    self._running.pop(each.claim.id, None)
