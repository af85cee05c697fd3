"""What ``django.tasks`` shows of a running task: a ``TaskResult``, and the signals that carry it.

Both cost more than a short task itself (spike.md 3.2), so they are made only for those who can see
them: a task that takes its context, a receiver beside Django's own, or Django's own, which write to
the log. Who comes while a task runs sees how it ends, with the same content as the others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from alkstore_django import task_results
from alkstore_django.compat import (
    AnyTaskResult,
    TaskError,
    TaskResultStatus,
    task_finished,
    task_started,
)
from alkstore_django.contexts import Hold, TaskContext
from alkstore_django.envelopes import Envelope, unseal
from alkstore_django.failures import Failure
from alkstore_django.handlers import Handler
from alkstore_django.observers import backend_class, is_observed
from alkstore_django.signals import task_retried

from .telling import tell


class Observation:
    """One attempt as the observers see it; ``history`` is that of the job's present life."""

    def __init__(self, claim: Any, history: Sequence[Any]) -> None:
        self.claim = claim
        self.history = history
        self._task: Any = None
        self._result: AnyTaskResult | None = None

    def start(self, task: Any, envelope: Envelope) -> None:
        """The task was found and is about to be called. A handler's job is no task, and has no observers."""
        if isinstance(task, Handler):
            return
        self._task = task
        if task.takes_context or is_observed(task_started, logging.INFO):
            self._result = self._make(envelope)
            self._send(task_started)

    def context(self, hold: Hold, record: Any) -> TaskContext:
        """The ``TaskContext`` for a task that takes it."""
        return TaskContext(task_result=self.result, claim=self.claim, hold=hold, record=record)

    def tell_metadata(self, values: dict[str, Any]) -> None:
        """What the observers of the end see as metadata."""
        object.__setattr__(self.result, "raw_metadata", dict(values))

    def succeed(self, value: Any) -> None:
        if self._task is not None and (self._result is not None or is_observed(task_finished, logging.INFO)):
            object.__setattr__(self.result, "_return_value", value)
            self._finish(TaskResultStatus.SUCCESSFUL)

    def retry(self, failure: Failure, delay: int) -> None:
        if self._task is not None and (self._result is not None or task_retried.receivers):
            self._note(failure)
            object.__setattr__(self.result, "status", TaskResultStatus.READY)
            self._send(task_retried, delay=delay)

    def fail(self, failure: Failure) -> None:
        """To be called while the exception is handled: receivers ask ``sys.exc_info()``."""
        if self._task is None:
            return  # a task that was not found has no result to tell of
        if self._result is not None or is_observed(task_finished, logging.ERROR):
            self._note(failure)
            self._finish(TaskResultStatus.FAILED)

    @property
    def result(self) -> AnyTaskResult:
        """Made late, it is read from the payload anew: the task may have changed its arguments."""
        if self._result is None:
            self._result = self._make(unseal(self.claim.payload))
        return self._result

    def _make(self, envelope: Envelope) -> AnyTaskResult:
        return task_results.running(self.claim, self._task, envelope, self.history)

    def _note(self, failure: Failure) -> None:
        error = TaskError(exception_class_path=failure.class_path, traceback=failure.traceback)
        self.result.errors.append(error)

    def _finish(self, status: TaskResultStatus) -> None:
        object.__setattr__(self.result, "status", status)
        started_at, now = self.result.started_at, timezone.now()  # two clocks, which may disagree
        object.__setattr__(self.result, "finished_at", now if started_at is None else max(started_at, now))
        self._send(task_finished)

    def _send(self, signal: Any, **extra: Any) -> None:
        """Send with the backend class as sender; what a receiver raises is logged, and nothing else."""
        self._dispatch(signal, sender=backend_class(self.result.backend), task_result=self.result, **extra)

    def _dispatch(self, signal: Any, **named: Any) -> None:
        tell(signal.send_robust, **named)
