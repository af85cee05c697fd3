"""The scheduler: it leads or stands by, sleeps until the next boundary, and fires what is due."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from django.db import Error, connections

from alkstore_django import firing, schedules
from alkstore_django.exceptions import TablesMissing
from alkstore_django.health import require_tables
from alkstore_django.leadership import Leadership
from alkstore_django.logs import get_logger

from .lines import Line
from .options import new_worker_id
from .outage import Outage, may_pass

logger = get_logger("alkstore_django.scheduler")

INTERVAL = 4.0
"""Seconds after which it looks for what others have changed, and whether the leader has gone. It never
sleeps longer, so that it finds out when the clock of the database is set."""

AFTER_VAIN = 0.05
"""Seconds after a look that found something due which could not be fired; doubled each time."""

PATIENCE = 5.0
"""Seconds that a worker waits for the end of its scheduler."""

AFTER_BUG = 5.0
"""Seconds after an error that should not have happened."""


class Scheduler:
    """Runs in the thread that calls ``run``, on that thread's connection.

    ``begun`` is called when the database has answered and the declared schedules are written. With
    ``had_tables`` the database is known to be migrated: it waits for tables that are not there.
    """

    def __init__(
        self,
        using: str,
        interval: float = INTERVAL,
        begun: Callable[[], None] = lambda: None,
        outage: Outage | None = None,
        had_tables: bool = False,
    ) -> None:
        self.using = using
        self.interval = interval
        self.leadership = Leadership(using, new_worker_id())
        self.outage = outage or Outage()
        self._begun = begun
        self._had_tables = had_tables
        self._line = Line(using)
        self._mail: SimpleQueue[None] = SimpleQueue()  # its put may interrupt itself, in a signal handler
        self._is_stopped = False
        self._has_begun = False
        self._led = False
        self._vain = 0

    def stop(self) -> None:
        """Safe from any thread, and in a signal handler."""
        self._is_stopped = True
        self._mail.put(None)

    def run(self) -> None:
        """Until it is stopped. Waits for a database that is away. Raises ``TablesMissing`` for one that is
        not migrated when it begins; other errors of a pass are logged, and do not end it."""
        try:
            while not self._is_stopped:
                wait = self._pass_or_wait()
                with suppress(Empty):
                    if wait > 0:
                        self._mail.get(timeout=wait)
        finally:
            self._end()

    def _pass_or_wait(self) -> float:
        """Do what is due; how many seconds to wait after it."""
        try:
            if self.outage.is_on:
                connections[self.using].close()
            self._line.check()
            if not self._has_begun:
                self._begin()
            wait = self._pass()
            self.outage.over()
            return wait
        except Exception as error:
            if may_pass(error, self.using, had_tables=self._had_tables or self._has_begun):
                self.leadership.forget()
                return self.outage.wait_after(error)
            if isinstance(error, TablesMissing):
                raise
            return self._complain()

    def _begin(self) -> None:
        require_tables(self.using)
        schedules.sync(using=self.using)
        schedules.heal(using=self.using)
        self._has_begun = True
        logger.info("Scheduler %s looks after %r.", self.leadership.owner, self.using)
        self._begun()

    def _pass(self) -> float:
        due_in = schedules.due_in(using=self.using)
        if due_in is None:  # then nobody needs a leader
            self._led = False
            self.leadership.release()
            return self.interval
        if not self.leadership.hold(surely=due_in <= 0):
            self._led = False
            return self.interval
        if not self._led:
            schedules.heal(using=self.using)
            self._led = True
        if due_in > 0:
            self._vain = 0
            return min(due_in, self.interval)
        if self._fire():
            self._vain = 0
            return 0.0
        self._vain += 1
        return min(self.interval, AFTER_VAIN * 2.0 ** min(self._vain, 10))

    def _fire(self) -> bool:
        """Whether anything was done. Between two batches it may lose the lead, and be told to stop."""
        has_fired = False
        while True:
            done = firing.fire_due(self.using)
            has_fired |= done.moved > 0
            if done.is_last or not done.moved or self._is_stopped:
                return has_fired
            if not self.leadership.hold(surely=True):
                return has_fired

    def _complain(self) -> float:
        logger.exception("The scheduler met an error, and goes on in %s s.", AFTER_BUG)
        with suppress(Error):
            connections[self.using].close()
        return AFTER_BUG

    def _end(self) -> None:
        try:
            if not self.outage.is_on:
                self.leadership.release()
        except Error as error:
            logger.info("The scheduler could not give back its lock, which ends by itself: %s", error)
        finally:
            connections[self.using].close()


class QuietOutage(Outage):
    """Of a scheduler beside a clerk, which speaks of the database already."""

    def _say_begun(self, error: Exception) -> None:
        logger.debug("The scheduler waits for the database: %s", error)

    def _say_over(self, seconds: float) -> None:
        logger.debug("The scheduler goes on after %.1f s.", seconds)


class SchedulerThread:
    """A scheduler beside the work of a process."""

    def __init__(self, using: str) -> None:
        self._scheduler = Scheduler(using, outage=QuietOutage(), had_tables=True)
        self._thread = threading.Thread(target=self._scheduler.run, name="alkworker-scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end, which lets another lead."""
        self._scheduler.stop()

    def close(self, *, is_reachable: bool) -> None:
        """Stop it, and wait until it has given back its lock, if the database is there to take it."""
        self.stop()
        if self._thread.is_alive() and is_reachable:
            self._thread.join(PATIENCE)
