"""Move the tasks that wait in django-tasks-db to our queues. It must still be in ``INSTALLED_APPS``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.apps import apps
from django.db import connections, router
from django.db.models import Count

from . import arrivals, keys, served
from .compat import InvalidTask, TaskResultStatus
from .envelopes import Envelope, arguments
from .exceptions import UnknownTask
from .models.base import chunks, in_transaction
from .registry import find
from .tasks import check_database, option, stored_name

APP = "django_tasks_database"
"""The label of django-tasks-db."""

NO_TIME = 9999
"""The year that their rows have for no ``run_after``."""

BATCH = 500
"""Tasks in one transaction."""


class NothingToMove(Exception):
    """Why there can be nothing to move."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task of theirs: its id, the path of its function, and its queue."""

    id: str
    path: str
    queue: str


@dataclass(slots=True)
class Batch:
    """What became of some tasks, committed: ``moved`` with the new ids (none in a dry run), ``left`` with
    the reasons. What their workers took meanwhile is in neither.

    ``joined`` are those of ``moved`` that are unique by now, and whose key another job has: its id is the
    new one. A dry run does not know them.
    """

    moved: list[tuple[Waiting, str]] = field(default_factory=list)
    joined: list[Waiting] = field(default_factory=list)
    left: list[tuple[Waiting, str]] = field(default_factory=list)


class Source:
    """The table of django-tasks-db, in the database ``using``, where the jobs are to be.

    Raises ``NothingToMove`` if it is not there, or not in that database: a move is one transaction.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        if not apps.is_installed("django_tasks_db"):
            raise NothingToMove("django_tasks_db is not in INSTALLED_APPS: it must be until all is moved.")
        self._model: Any = apps.get_model(APP, "DBTaskResult")
        table, database = self._model._meta.db_table, router.db_for_write(self._model)
        if database != using:
            raise NothingToMove(
                f"The tasks of django-tasks-db are in database {database!r}, our jobs in {using!r}: "
                "a task cannot move from one to the other in one transaction."
            )
        if table not in connections[using].introspection.table_names():
            raise NothingToMove(f"Database {using!r} has no table {table}.")
        self._backends = {backend.alias for backend in served.backends(using)}

    def counts(self) -> dict[tuple[str, str], int]:
        """How many tasks it holds, by the alias of their backend and their status."""
        groups = self._rows().order_by().values_list("backend_name", "status").annotate(n=Count("pk"))
        return {(alias, status): count for alias, status, count in groups}

    def is_ours(self, alias: str) -> bool:
        """Whether a backend of that alias is ours by now."""
        return alias in self._backends

    def move(self, *, dry_run: bool = False, size: int = BATCH) -> Iterator[Batch]:
        """Move the READY tasks of the aliases that are ours by now, in the order in which their workers
        would run them; a batch is yielded when it is committed. ``dry_run`` only looks.

        What our own enqueue refuses stays where it is.
        """
        for ids in list(chunks(self._ready(), size)):
            yield self._look(ids) if dry_run else in_transaction(self.using, partial(self._move, ids))

    def _rows(self) -> Any:
        return self._model.objects.using(self.using)

    def _ready(self) -> Sequence[Any]:
        ready = self._rows().filter(status=TaskResultStatus.READY, backend_name__in=self._backends)
        return list(ready.values_list("pk", flat=True))  # in the order of the model

    def _look(self, ids: Sequence[Any]) -> Batch:
        batch = Batch()
        for _, _, waiting in self._sound(self._rows(), ids, batch):
            batch.moved.append((waiting, ""))
        return batch

    def _move(self, ids: Sequence[Any]) -> Batch:
        skips = connections[self.using].features.has_select_for_update_skip_locked
        batch = Batch()
        for task, row, waiting in self._sound(self._rows().select_for_update(skip_locked=skips), ids, batch):
            call = row.args_kwargs
            result = task.get_backend().enqueue(task, call["args"], call["kwargs"])
            batch.moved.append((waiting, str(result.id)))
            if not result.created:
                batch.joined.append(waiting)
        gone = self._rows().filter(pk__in=[waiting.id for waiting, _ in batch.moved])
        deleted = gone.filter(status=TaskResultStatus.READY).delete()[0]
        if deleted != len(batch.moved):  # the rows were not locked: undo the batch
            raise RuntimeError(f"{len(batch.moved) - deleted} tasks were taken by a worker while they moved.")
        return batch

    @staticmethod
    def _sound(rows: Any, ids: Sequence[Any], batch: Batch) -> Iterator[tuple[Any, Any, Waiting]]:
        """Those that can be enqueued, with their tasks; the others are left in the batch."""
        for row in rows.filter(pk__in=ids, status=TaskResultStatus.READY):
            waiting = Waiting(str(row.pk), row.task_path, row.queue_name)
            try:
                task = _task(row)
            except (UnknownTask, InvalidTask, TypeError, ValueError, KeyError) as error:
                batch.left.append((waiting, f"{type(error).__name__}: {error}"))
            else:
                yield task, row, waiting


def _task(row: Any) -> Any:
    """The task of a row, after everything that an enqueue asks of it and of its arguments."""
    task = find(row.task_path).using(
        priority=row.priority,
        queue_name=row.queue_name,
        run_after=None if row.run_after.year == NO_TIME else row.run_after,
        backend=row.backend_name,
    )
    check_database(task, task.get_backend().using)
    arrivals.row(1, run_at=task.run_after)
    envelope = Envelope(stored_name(task), *arguments(row.args_kwargs["args"], row.args_kwargs["kwargs"]))
    envelope.seal()
    if option(task, "unique") is not None:
        keys.stored(task, envelope)
    return task
