"""A worker in the process of the test, and what it leaves behind."""

from __future__ import annotations

from alkstore_django.models import Attempt, DeadJob, Job, Result, Run, WorkerProcess
from alkstore_django.runtime.options import Options
from alkstore_django.runtime.worker import Worker


def work(*queues: str, using: str = "default") -> None:
    """One pass of the real worker, in this thread. Raises ``KeyboardInterrupt`` if a task did: it stops
    the worker, which is how it gets to whoever has started that."""
    worker = Worker(Options(using=using, queues=queues, batch=True, threads=1, interval=0.01))
    worker.run()
    if worker.shutdown.requested:
        raise KeyboardInterrupt


class OwnRows:
    """A ``TransactionTestCase`` that writes to our tables only. They are emptied with DELETE: to TRUNCATE
    all that Django has takes longer than most tests."""

    def _fixture_teardown(self) -> None:
        for model in (Attempt, DeadJob, Job, Result, Run, WorkerProcess):
            model._default_manager.all().delete()
