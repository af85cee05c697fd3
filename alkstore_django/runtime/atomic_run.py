"""Run a task of ``@task(atomic=True)``: its effects and the end of its job in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import Error, connections, transaction

from alkstore_django import atomic_claims
from alkstore_django.exceptions import TaskInterrupted, TaskTimedOut
from alkstore_django.logs import get_logger
from alkstore_django.tasks import check_database
from alkstore_django.turns import Outcome, Verdict

from .atomic_runs import AtomicRuns
from .reconciliation import is_settled
from .timeouts import Interruption

logger = get_logger("alkstore_django.worker")

ONE_WRITER_TIMEOUT = 2.0
"""Seconds: the timeout of an atomic task that has none, where it keeps all other writers waiting."""


class AtomicRun:
    """One attempt of an atomic task: begin, call in a savepoint, write how it ended, commit, tell.

    A failure undoes the savepoint, and is written in the same transaction. What ends the transaction
    itself (a deadlock, a full disk, a lost connection) leaves the outcome to the clerk; so does a task
    that was cut off: that may have come in the middle of a driver's work.
    """

    def __init__(self, execution: Any, atomics: AtomicRuns) -> None:
        self.execution = execution
        self.atomics = atomics
        self.claim = execution.claim
        self.using = atomics.using
        self._job = f"Job id={self.claim.id} of queue={self.claim.queue}"
        self.error: BaseException | None = None
        self.outcome: Outcome | None = None
        self.has_begun = self.is_committed = False

    def run(self) -> Outcome:
        check_database(self.execution.task, self.using)
        if self.atomics.has_one_writer and self.execution.limit is None:
            self.execution.limit = ONE_WRITER_TIMEOUT
        self.execution.interruption = Interruption()
        try:
            with (
                self.atomics.run(self.execution.assignment) as leave,
                self.atomics.transaction(),
            ):
                transaction.on_commit(lambda: self._committed(leave), using=self.using)
                visibility = self.atomics.own_visibility(self.claim)
                self.has_begun = atomic_claims.begin(self.using, self.claim, visibility)
                if self.has_begun:
                    self._attempt(visibility)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._failed(error)
        if self.outcome is None:
            # The claim was lost, or the database refused the beginning: nothing has been done.
            return Outcome(self.claim, Verdict.GIVE_BACK)
        self._tell(self.outcome)
        return self.outcome

    def _attempt(self, visibility: int) -> None:
        began = time.monotonic()
        try:
            with transaction.atomic(using=self.using):
                self._write(self.execution.attempt())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.error = error
            self.execution.record.undo()
            if self._was_cut_off or atomic_claims.has_ended(self.using, error):
                raise
            self._write(self.execution.judge(error))
        took = time.monotonic() - began
        if self.atomics.has_one_writer and took > visibility / 3:
            logger.warning(
                "%s kept all other writers waiting for %.1f s, more than a third of its visibility timeout: "
                "claims could not be renewed meanwhile.",
                self._job,
                took,
            )

    def _write(self, outcome: Outcome) -> None:
        self.execution.keep_metadata()
        if atomic_claims.write(self.using, outcome):
            self.outcome = replace(outcome, is_written=True)
        else:
            logger.warning("%s was ended by its own task.", self._job)
            self.outcome = None

    @property
    def _was_cut_off(self) -> bool:
        return isinstance(self.error, TaskTimedOut) or self.execution.interruption.raised is not None

    def _committed(self, leave: Callable[[], None]) -> None:
        """The first of the callbacks of the commit: those of the task need no lock any more."""
        self.is_committed = True
        leave()

    def _failed(self, error: BaseException) -> None:
        if self.is_committed:
            logger.exception("%s is done; a callback of its commit failed.", self._job)
        elif self.has_begun and not self._was_written():
            self.error = self.error or error
            if self._was_cut_off:
                self.execution.let_go_of_connections()
            self.outcome = self.execution.judge(self.error)
            self.execution.record.undo()
            self.execution.keep_metadata()
        elif self.has_begun:
            logger.warning("%s is done; the answer to its commit was lost: %s", self._job, error)
        elif isinstance(error, (Error, TaskInterrupted)):
            logger.warning("%s could not begin and is put back: %s", self._job, error)
        else:
            raise error

    def _was_written(self) -> bool:
        """Whether the outcome is in the tables although its commit has failed: its answer was lost. Whoever
        cannot be asked has not written it, as far as anybody is told; the clerk asks again."""
        if self.error is not None or self.outcome is None:
            return False
        try:
            connections[self.using].close()
            return is_settled(self.using, self.claim)
        except Error:
            return False

    def _tell(self, outcome: Outcome) -> None:
        if self.error is None:
            self.execution.tell_unless_given_up(outcome)
            return
        try:
            raise self.error
        except BaseException as error:
            self.execution.tell_unless_given_up(outcome, error)
