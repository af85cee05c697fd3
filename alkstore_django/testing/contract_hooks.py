"""What ``BackendContract`` asks its author for, and how it looks at the backend."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db import connections

from alkstore_django.compat import (
    InvalidTask,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)

from . import contract_tasks

if TYPE_CHECKING:
    from django.test import TransactionTestCase as Case
else:
    Case = object

READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
FAILED, SUCCESSFUL = TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL

SIGNALS = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}

ELSEWHERE = """
import json, sys
from django.conf import settings
given = json.loads(sys.argv[1])
for alias, name in given["names"].items():
    settings.DATABASES[alias]["NAME"] = name
settings.TASKS = given["tasks"]
import django
django.setup()
from django.db import connections
from alkstore_django.compat import task_backends
result = task_backends[given["alias"]].get_result(given["id"])
print(json.dumps([result.id, result.status, result.return_value, result.attempts]))
connections.close_all()
"""


class Heard(NamedTuple):
    """A signal as it was sent; ``facts`` are the result's at that moment, ``error`` was being handled."""

    signal: str
    sender: Any
    facts: dict[str, Any]
    error: BaseException | None


class Hooks(Case):
    """The part that a backend's author fills in."""

    alias = "default"
    """The backend's alias in ``TASKS``. Its ``QUEUES`` must be ``[]``."""

    attempts = 1
    """How often ``run_enqueued`` starts a task that always fails: 1 for a backend without retries."""

    def run_enqueued(self) -> None:
        """Run what was enqueued and is due, as a worker does, in this process, and come back when nothing
        is left. Retries are run too, without waiting for their time. A ``KeyboardInterrupt`` of a task
        may be raised, or end the run."""
        raise NotImplementedError

    @contextmanager
    def forgotten(self, task: Any, instead: Any = None) -> Iterator[None]:
        """The code has this task no more, or ``instead`` something else under its name. To be extended
        by backends that remember tasks by other means than their path."""
        module, name = import_module(task.func.__module__), task.func.__name__
        delattr(module, name)
        if instead is not None:
            setattr(module, name, instead)
        try:
            yield
        finally:
            setattr(module, name, task)

    def result_elsewhere(self, result_id: str) -> list[Any]:
        """``id``, ``status``, ``return_value`` and ``attempts`` of a result as another process finds them.

        It gets the same settings, and the names of the test databases, which must not be in memory.
        """
        names = {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
        given = {"names": names, "tasks": settings.TASKS, "alias": self.alias, "id": result_id}
        done = subprocess.run(  # noqa: S603 - ourselves
            [sys.executable, "-c", ELSEWHERE, json.dumps(given)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        found: list[Any] = json.loads(done.stdout)
        return found

    # -- what the tests use -----------------------------------------------------------------------

    def setUp(self) -> None:
        super().setUp()
        contract_tasks.SAID.clear()

    @property
    def backend(self) -> Any:
        return task_backends[self.alias]

    def of(self, task: Any, **changes: Any) -> Any:
        """The task for this backend."""
        changes |= {} if task.backend == self.alias else {"backend": self.alias}
        return task.using(**changes) if changes else task

    def run_task(self, task: Any, *args: Any, **kwargs: Any) -> list[Heard]:
        """Enqueue it and run it; what was heard of that."""
        with self.listening() as heard:
            self.of(task).enqueue(*args, **kwargs)
            self.run_enqueued()
        return heard

    def finished(self, task: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The facts of the one ``task_finished`` of a task that is enqueued and run."""
        ends = [each for each in self.run_task(task, *args, **kwargs) if each.signal == "finished"]
        self.assertEqual(len(ends), 1, "task_finished is sent once for each task")
        return ends[0].facts

    @contextmanager
    def listening(self) -> Iterator[list[Heard]]:
        """What is sent meanwhile, in order."""
        heard: list[Heard] = []

        def receiver(signal: str) -> Any:
            def receive(sender: Any, task_result: Any, **kwargs: Any) -> None:
                heard.append(Heard(signal, sender, facts(task_result), sys.exc_info()[1]))

            return receive

        receivers = {signal: receiver(name) for name, signal in SIGNALS.items()}
        for signal, receive in receivers.items():
            signal.connect(receive, weak=False)
        try:
            yield heard
        finally:
            for signal, receive in receivers.items():
                signal.disconnect(receive)

    def has_results(self) -> bool:
        """Whether results can be read again; if not, the backend has to say so."""
        if not self.backend.supports_get_result:
            with self.assertRaises(NotImplementedError):
                self.backend.get_result("1")
        return bool(self.backend.supports_get_result)

    def refuses(self, task: Any, **changes: Any) -> None:
        with self.assertRaises(InvalidTask):
            self.of(task, **changes)


def facts(result: Any) -> dict[str, Any]:
    """What a result says now: workers change the one that they have."""
    names = ("id", "status", "attempts", "backend", "enqueued_at", "started_at", "last_attempted_at")
    errors = [(error.exception_class, error.traceback) for error in result.errors]
    value = result.return_value if result.status == SUCCESSFUL else None
    return {
        **{name: getattr(result, name) for name in names},
        "finished_at": result.finished_at,
        "worker_ids": list(result.worker_ids),
        "errors": errors,
        "value": value,
        "value_text": json.dumps(value, default=repr),
    }
