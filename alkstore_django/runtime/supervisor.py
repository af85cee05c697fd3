"""Several worker processes from one command (``--processes``), and somebody who looks after them.

The supervisor runs no task and has no connection to a database. Its processes are new interpreters
with the same command line; nothing is forked, so they share nothing with it but the pipe that is
their ``Lifeline``.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from alkstore_django.logs import get_logger

from .exits import DONE, FAILED
from .place import Place
from .shutdown import Shutdown, hear_of_children

logger = get_logger("alkstore_django.supervisor")


class Supervisor:
    """``grace`` is how many seconds running tasks get after a stop. With ``endless``, a process that
    has ended well is replaced; otherwise its place stays empty, and with the last one all ends.
    """

    def __init__(self, command: Sequence[str], processes: int, grace: float, *, endless: bool) -> None:
        self._endless = endless
        self._inbox: SimpleQueue[Place | None] = SimpleQueue()
        # From the terminal that this was started in, a hang-up says that nobody is there any more.
        hang_up = None if sys.stdin and sys.stdin.isatty() else self.renew
        self._shutdown = Shutdown(grace, wake=lambda: self._inbox.put(None), hang_up=hang_up)
        self._places = [Place(number, command, grace, self._inbox.put) for number in range(1, processes + 1)]
        self._to_renew: deque[Place] = deque()

    def renew(self) -> None:
        """Replace all processes, each when all are at work. Safe in a signal handler."""
        self._to_renew = deque(self._places)
        self._inbox.put(None)

    def run(self) -> int:
        """Returns the exit code: 0, or 1 if a process ended badly and no other took its place."""
        logger.info("The supervisor starts %s workers.", len(self._places))
        hear_of_children()
        with self._shutdown:
            while not all(place.is_empty for place in self._places):
                self._look_after()
                self._wait()
        logger.info("The supervisor ends.")
        return DONE if all(place.ended_well for place in self._places) else FAILED

    def _look_after(self) -> None:
        for place in self._places:
            if self._shutdown.requested:
                place.stop(self._shutdown.requests)
            elif place.start_at <= time.monotonic():
                place.start()
            if place.kill_at <= time.monotonic():
                place.kill()
        if self._to_renew and all(place.is_empty or place.is_at_work for place in self._places):
            self._to_renew.popleft().renew()

    def _wait(self) -> None:
        """Until a process has begun or ended, a signal has come, or something is due."""
        moments = [moment for place in self._places for moment in (place.start_at, place.kill_at)]
        seconds = min(moments, default=math.inf) - time.monotonic()
        with suppress(Empty):
            changed = self._inbox.get(timeout=min(max(0.0, seconds), 1.0))
            if changed is not None:
                changed.reap(endless=self._endless)
