"""The heartbeat of the worker: its row in the registry, and its health file."""

from __future__ import annotations

import time

from django.db import DatabaseError, Error, connections

from alkstore_django import pauses, workers
from alkstore_django.logs import get_logger

from .health_file import HealthFile
from .options import Options
from .outage import TROUBLE
from .plan import Plan

logger = get_logger("alkstore_django.worker")

EVERY = 10.0
"""Seconds between two heartbeats."""

TIDY = 6
"""Of so many beats, the first deletes what others have left behind."""


class Registration:
    """Beats in the thread of the clerk, after a turn that went well: a clerk that hangs has no heartbeat.

    Trouble with the registry alone is logged once and stops nothing.
    """

    def __init__(self, options: Options, worker_id: str, plan: Plan) -> None:
        self._using = options.using
        self._entry = workers.Entry(options.using, worker_id, *plan.patterns)
        self._file = HealthFile(options.health_file, worker_id) if options.health_file else None
        self._started = time.monotonic()
        self._due = 0.0
        self._beats = 0
        self._has_failed = False

    def beat(self, running: int) -> None:
        """Beat, if it is time; ``running`` is how many tasks run. Raises what ends the connection."""
        now = time.monotonic()
        if now < self._due:
            return
        is_well = self._write(running, int(now - self._started))
        self._due = time.monotonic() + EVERY
        if is_well and self._file:
            self._file.write(running=running, beat_at=int(time.time()))

    def due_in(self) -> float:
        """Seconds until the next beat."""
        return max(0.0, self._due - time.monotonic())

    def end(self, *, is_reachable: bool) -> None:
        """Nobody need miss this worker."""
        if self._file:
            self._file.remove()
        if self._beats and is_reachable:
            try:
                self._entry.delete()
            except Error as error:
                logger.debug("The worker could not be taken off the registry: %s", error)

    def _write(self, running: int, age: int) -> bool:
        """Whether nothing speaks against the database."""
        session = connections[self._using].connection
        try:
            if self._beats:
                self._entry.beat(running, age)
            else:
                self._entry.write(running)
            self._beats += 1
            if self._beats % TIDY == 1:
                workers.forget_stale(self._using)
                pauses.forget_ended(self._using)
            self._has_failed = False
            return True
        except TROUBLE as error:
            if not self._still_has(session):
                raise
            self._complain(error)
            return False
        except DatabaseError as error:
            self._complain(error)
            return True

    def _still_has(self, session: object) -> bool:
        """Whether the connection outlived the error: Django may have made a new one already."""
        connection = connections[self._using]
        return session is not None and connection.connection is session and connection.is_usable()

    def _complain(self, error: Exception) -> None:
        if not self._has_failed:
            logger.warning("The registry of workers cannot be written, the work goes on: %s", error)
        self._has_failed = True
