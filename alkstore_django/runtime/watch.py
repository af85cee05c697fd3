"""The watch over tasks with a ``timeout``: one thread that rings when their time is over."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

GRACE = 5.0
"""Seconds that a task has, once it was told that its time is over, before it counts as stuck."""


class Alarm:
    """``ring`` is called after ``limit`` seconds. If the alarm is not stopped ``GRACE`` seconds later,
    ``subject`` is stuck."""

    __slots__ = ("due", "has_rung", "ring", "subject")

    def __init__(self, limit: float, ring: Callable[[], Any], subject: Any) -> None:
        self.due = time.monotonic() + limit
        self.has_rung = False
        self.ring = ring
        self.subject = subject


class Watch:
    """The alarms of the tasks that run now: few, as there are few executors. Safe from any thread.

    A thread of its own, started with the first alarm: neither a clerk that waits for the database nor
    a task that blocks the event loop holds it up.
    """

    def __init__(self, stuck: Callable[[Any], None]) -> None:
        self._stuck = stuck
        self._alarms: set[Alarm] = set()
        self._changed = threading.Condition()
        self._next = math.inf
        self._thread: threading.Thread | None = None
        self._closed = False

    def set(self, alarm: Alarm) -> None:
        with self._changed:
            if self._thread is None:
                thread = threading.Thread(target=self._keep, name="alkworker-watch", daemon=True)
                thread.start()  # which fails where there are too many: the next one tries again
                self._thread = thread
            elif alarm.due < self._next:
                self._changed.notify()
            self._alarms.add(alarm)

    def stop(self, alarm: Alarm) -> None:
        with self._changed:
            self._alarms.discard(alarm)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _keep(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                due = [alarm for alarm in self._alarms if alarm.due <= now]
                if not due:
                    self._next = min((alarm.due for alarm in self._alarms), default=math.inf)
                    self._changed.wait(min(self._next - now, threading.TIMEOUT_MAX))
            for alarm in due:
                self._go_off(alarm)

    def _go_off(self, alarm: Alarm) -> None:
        if not alarm.has_rung:
            alarm.has_rung, alarm.due = True, time.monotonic() + GRACE
            alarm.ring()
            return
        with self._changed:
            alarm.due = math.inf
            if alarm in self._alarms:
                self._stuck(alarm.subject)
