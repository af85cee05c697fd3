"""``immediate`` and ``manual``: when a test's tasks run."""

from __future__ import annotations

from typing import Any

from django.test.utils import TestContextDecorator

from alkstore_django.backends import AlkstoreBackend
from alkstore_django.compat import task_backends, task_enqueued

from .draining import drain
from .inline import InlineWorker

_modes: list[_Mode] = []
"""The innermost is in force, in all threads: a live server's, too."""


class _Mode(TestContextDecorator):
    """A context manager, and a decorator of sync and async tests and of ``TestCase`` classes."""

    def enable(self) -> Any:
        if not _modes:
            task_enqueued.connect(_run, dispatch_uid=__name__)
        _modes.append(self)
        return drain

    def disable(self) -> None:
        _modes.remove(self)
        if not _modes:
            task_enqueued.disconnect(dispatch_uid=__name__)

    def enqueued(self, using: str, job_id: int) -> bool:
        """A job is there; whether something was done about it."""
        raise NotImplementedError


class immediate(_Mode):
    """Run each task within its ``enqueue``, which answers with the result as it is then.

    In the thread and the transaction of whoever enqueues, as a worker runs it: with context, signals,
    ``atomic=True``, retries and dead letters. What is not due stays, such as a retry, and what is paused:
    ``drain`` runs it. ``propagate``: raise what a task raised in its last attempt.
    """

    def __init__(self, *, propagate: bool = False) -> None:
        super().__init__()
        self._propagate = propagate

    def enqueued(self, using: str, job_id: int) -> bool:
        with InlineWorker(using) as worker:
            claim = worker.claim(job_id)
            if claim is None:
                return False
            ran = worker.run(claim)
        if self._propagate and ran.error is not None and ran.ended != "retried":
            raise ran.error
        return True


class manual(_Mode):
    """Leave jobs in the tables until ``drain``: what holds without a mode, also inside of ``immediate``.

    ``with manual() as drain: ...``
    """

    def enqueued(self, using: str, job_id: int) -> bool:
        return False


def _run(sender: Any, task_result: Any, **kwargs: Any) -> None:
    if not issubclass(sender, AlkstoreBackend) or not getattr(task_result, "created", True):
        return
    using = task_backends[task_result.backend].using  # type: ignore[attr-defined] # ours
    if _modes[-1].enqueued(using, int(task_result.id)):
        task_result.refresh()
