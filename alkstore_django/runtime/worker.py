"""The worker: one clerk, in the calling thread, and the executors that run the tasks.

After each turn of the clerk it waits for whatever comes first: a finished task, a wake from the
database, the next deadline, a stop.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import ProgrammingError, connections

from alkstore_django.exceptions import TablesMissing
from alkstore_django.health import require_tables
from alkstore_django.logs import get_logger

from . import exits
from .atomic_runs import PATIENCE
from .clerk import Clerk
from .executors import Executors
from .lines import Line
from .options import Options
from .outage import TROUBLE, Outage, may_pass
from .recycling import Recycling
from .scheduler import SchedulerThread
from .shutdown import Shutdown
from .wake.choice import choose
from .wake.polling import Polling

logger = get_logger("alkstore_django.worker")


SWITCH = 0.0005
"""Seconds that a thread may keep Python's interpreter lock from others; Python's own default is ten times as
long. Beside tasks that compute, the clerk's turns take a half to a ninth of the time (spike.md 3.3)."""


GATHER = 0.005
"""Seconds that the clerk leaves outcomes of short tasks alone at most, while more of them follow."""


LOOK = 0.05
"""Seconds between two looks at what still runs although the grace is over."""


@contextmanager
def _prompt_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Worker:
    """Runs until it is told to stop, is drained (``batch``), or has reached a limit of its options.

    ``begun`` is called when the database has answered and the work begins.
    """

    def __init__(self, options: Options, begun: Callable[[], None] = lambda: None) -> None:
        self.options = options
        self.using = options.using
        self.executors = Executors(options.threads, options.async_concurrency, interrupted=self.stop)
        self.shutdown = Shutdown(options.shutdown_timeout, wake=lambda: self.executors.finished.put(None))
        self.clerk = Clerk(options, self.executors)
        self.line = Line(options.using)
        self.outage = Outage()
        self.recycling = Recycling(options)
        self.scheduler = SchedulerThread(options.using) if options.scheduler else None
        self._begun = begun
        self.interval = options.interval or 0.0
        self._has_begun = False

    def stop(self) -> None:
        """Ask for a graceful stop; a second time, for a prompt one. Safe from any thread and in a signal."""
        self.shutdown.request()

    @property
    def wants_replacement(self) -> bool:
        """Whether it has ended because of a limit, not because there was nothing to do, nor by a stop."""
        return self.recycling.wants_replacement or self.clerk.has_run_enough()

    def run(self) -> int:
        """Work. Returns the exit code (``exits``).

        Waits for a database that is away. Raises ``TablesMissing`` for one that was not migrated.
        """
        with self.shutdown, _prompt_switches():
            try:
                while not self._is_done():
                    wait = self._turn_or_wait()
                    self._wait(wait)
            finally:
                if self.scheduler:
                    self.scheduler.close(is_reachable=not self.outage.is_on)
                self.clerk.hand.heartbeats.close()
                self.executors.close()
                self.executors.finished.close()
                self.clerk.lookout.wake.close()
                if self.clerk.cleaning:
                    self.clerk.cleaning.end(is_reachable=self._can_write())
                self.clerk.registration.end(is_reachable=self._can_write())
        logger.info("Worker %s ends after %s tasks.", self.clerk.worker_id, self.clerk.hand.started)
        if self.executors.stuck:
            return exits.STUCK
        return exits.FAILED if self.clerk.hand.interrupted or self.executors.go_on else exits.DONE

    def _turn_or_wait(self) -> float:
        """Take a turn; how many seconds to wait after it."""
        if self.executors.stuck:
            self._retire("a task goes on although its time is over")
            self.clerk.hand.give_up()
        if self.shutdown.requested:
            self._wind_down()
        elif reason := self.recycling.look(busy=self._is_busy(), has_worked=self.clerk.hand.has_settled()):
            self._retire(reason)
        try:
            if self.outage.is_on:
                self.clerk.lookout.wake.let_go()
                connections[self.using].close()
            if not self._has_begun:
                self._begin()
            elif self.outage.is_on:
                require_tables(self.using)  # perhaps it comes from a backup, and gives ids a second time
                self.clerk.reconcile()
            self.line.check()
            self.clerk.turn()
            self.outage.over()
            return self._next_deadline()
        except (*TROUBLE, ProgrammingError, TablesMissing) as error:
            if not may_pass(error, self.using, had_tables=self._has_begun):
                raise
            return min(self.outage.wait_after(error), self._stop_deadline())

    def _wait(self, seconds: float) -> None:
        wakes = not self.outage.is_on and self.clerk.listens()
        if gathers := self.executors.threads.gathers:
            seconds = min(seconds, GATHER)
        try:
            self.executors.finished.wait(seconds, self.clerk.lookout.wake if wakes else None)
        except TROUBLE as error:
            self.outage.wait_after(error)  # the next turn will see how bad it is
        outcomes = self.executors.finished.take()
        if gathers and not outcomes:  # what it waits for takes long: it wants to be told
            self.executors.threads.gathers = False
        self.clerk.hand.outcomes.add(outcomes)

    def _begin(self) -> None:
        require_tables(self.using)
        self.clerk.registration.beat(0)
        self.clerk.lookout.wake = wake = choose(self.using, self.options.listen, self.options.interval)
        if self.options.interval is None:
            self.interval = min(wake.interval, Polling.interval) if self.options.batch else wake.interval
        self.executors.start()
        if self.scheduler:
            self.scheduler.start()
        self._has_begun = True
        logger.info("Worker %s serves %s.", self.clerk.worker_id, self.clerk.plan.description)
        self._begun()

    def _wind_down(self) -> None:
        """Put back what has not started and, when its time is over, what is still running."""
        is_new = not self.clerk.closed
        running = self.clerk.close()
        if self.scheduler:
            self.scheduler.stop()
        self.executors.tell_of_stop()
        if is_new:
            logger.info("Worker %s stops; it waits for %s tasks.", self.clerk.worker_id, running)
        self.clerk.hand.atomics.patience = min(PATIENCE, self.shutdown.remaining)
        if self.shutdown.due:
            self.clerk.hand.interrupt()

    def _can_write(self) -> bool:
        return not (self.outage.is_on or self.clerk.hand.atomics.are_in_the_way)

    def _is_busy(self) -> bool:
        """Also while nobody knows: before the first turn, and while the database is away."""
        return not self._has_begun or self.outage.is_on or self.clerk.hand.is_busy

    def _retire(self, reason: str) -> None:
        """Put back what has not started; what runs takes the time that it needs."""
        if not self.clerk.closed:
            logger.info("Worker %s makes room for another: %s.", self.clerk.worker_id, reason)
        self.clerk.close()

    def _is_done(self) -> bool:
        clerk = self.clerk
        if not self._can_write() and self._is_over():
            clerk.hand.abandon()
            return True
        if clerk.hand.leases or clerk.hand.outcomes or (self.executors.running() and not self.shutdown.due):
            return False
        return bool(
            self.shutdown.requested
            or clerk.drained
            or clerk.has_run_enough()
            or self.recycling.reason
            or self.executors.stuck
        )

    def _is_over(self) -> bool:
        """Whether there is nothing left to wait for, written or not."""
        atomics = self.clerk.hand.atomics
        is_unwinding = atomics.are_in_the_way and atomics.may_unwind
        return atomics.given_up or (self.shutdown.due and not is_unwinding)

    # -- deadlines, in seconds from now -----------------------------------------------------------

    def _next_deadline(self) -> float:
        if self.executors.finished.has_mail or self._is_done() or self.clerk.wants_more():
            return 0.0
        recycling = self.recycling.due_in(busy=self._is_busy())
        deadline = min(self.clerk.next_deadline(), self._stop_deadline(), recycling)
        if self.clerk.orders():
            idle = self.interval * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
            deadline = min(deadline, idle, self.clerk.idle_deadline())
        return deadline

    def _stop_deadline(self) -> float:
        return max(self.shutdown.remaining, LOOK) if self.shutdown.requested else math.inf
