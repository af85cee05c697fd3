"""``WorkerProcess`` and ``QueueControl``: who works, and which queues are paused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import OperationalError, models
from django.utils.translation import gettext_lazy as _

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager, in_transaction, retrying
from .fields import LenientTextField, NameField, readable

T = TypeVar("T")


class WorkerProcessManager(SQLManager):
    """Rows about workers. No work ever waits for them: a row that somebody locks is left as it is."""

    def register(self, age: int, **row: Any) -> None:
        """Write the row of a worker that started ``age`` seconds ago, in place of one of the same id."""
        self._hastily(lambda: self.execute(self.dialect.register, {**row, "age": age}))

    def beat(self, age: int, **row: Any) -> None:
        """Note that a worker is alive; write its row again if somebody has deleted it."""
        if not self.dialect.skip_locked:  # one writer: nobody holds a row, and one statement is the shortest
            if not retrying(self.database, lambda: self.execute(self.dialect.beat, row)):
                self.register(age, **row)
            return

        def beat() -> None:
            if self.fetch(self.dialect.lock_worker, row):
                self.execute(self.dialect.beat, row)
            elif not self.fetch(self.dialect.any_worker, row):
                self.execute(self.dialect.register, {**row, "age": age})

        self._hastily(beat)

    def unregister(self, worker_id: str) -> None:
        self._delete(self.dialect.unregister, {"worker_id": worker_id})

    def forget_silent(self, age: int) -> int:
        """Delete the rows of workers without a heartbeat for more than ``age`` seconds; how many."""
        silent = self.fetch(self.dialect.silent_workers, {"age": age})
        return sum(
            self._delete(self.dialect.forget_worker, {"worker_id": readable(worker_id), "age": age})
            for (worker_id,) in silent
        )

    def count_silent(self, age: int) -> int:
        return len(self.fetch(self.dialect.silent_workers, {"age": age}))

    def clock(self) -> int:
        """Unix seconds by the database's clock."""
        return int(self.fetch(self.dialect.clock)[0][0])

    def rows(self) -> list[tuple[Any, ...]]:
        """Worker, host, pid, queues, version, start, heartbeat, running, seconds since the heartbeat."""
        return [
            (readable(worker_id) or "", readable(host) or "", pid, readable(queues) or "", *rest)
            for worker_id, host, pid, queues, *rest in self.fetch(self.dialect.workers)
        ]

    def _delete(self, sql: str, row: dict[str, Any]) -> int:
        def delete() -> int:
            return self.execute(sql, row) if self.fetch(self.dialect.lock_worker, row) else 0

        return self._hastily(delete) or 0

    def _hastily(self, work: Callable[[], T]) -> T | None:
        """What ``work`` returns; ``None`` if somebody keeps it from being done."""

        def hurry() -> T:
            if self.dialect.impatience:
                self.execute(self.dialect.impatience)
            return work()

        try:
            return in_transaction(self.database, hurry)
        except OperationalError as error:
            if self.dialect.error_code(error) not in self.dialect.lock_codes:
                raise
            return None


class WorkerProcess(models.Model):
    """A worker that is, or was lately, running. ``heartbeat_at`` is by the database's clock."""

    worker_id = NameField(primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.BigIntegerField()
    queues = LenientTextField()
    version = models.CharField(max_length=32)
    started_at = models.BigIntegerField()
    heartbeat_at = models.BigIntegerField()
    running = models.IntegerField(default=0)

    SILENT_FOR = models.ExpressionWrapper(
        EpochNow() - models.F("heartbeat_at"), output_field=models.BigIntegerField()
    )
    """For ``annotate``: seconds since the last heartbeat, by the clock of the database."""

    objects = WorkerProcessManager()

    class Meta:
        db_table = tables.WORKERS
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return str(self.worker_id)


class QueueControlManager(SQLManager):
    """Pauses by the database's clock; one that has ended is as good as none."""

    def pause(self, queue: str, seconds: int | None, by: str) -> None:
        """Pause a queue from now, in place of a pause that it may have."""
        row = {"queue": queue, "by": by, "seconds": seconds}
        retrying(self.database, lambda: self.execute(self.dialect.pause, row))

    def resume(self, queue: str) -> bool:
        return retrying(self.database, lambda: self.execute(self.dialect.resume, {"queue": queue})) > 0

    def paused(self) -> list[tuple[str, int, str, int | None, int | None]]:
        """Queue, since when, by whom, until when, and for how many seconds more."""
        return [
            (readable(queue) or "", since, readable(by) or "", until, more)
            for queue, since, by, until, more in self.fetch(self.dialect.paused)
        ]

    def forget_ended(self) -> int:
        if not self.count_ended():
            return 0
        return retrying(self.database, lambda: self.execute(self.dialect.forget_ended_pauses))

    def count_ended(self) -> int:
        return int(self.fetch(self.dialect.ended_pauses)[0][0])


class QueueControl(models.Model):
    """A paused queue: nothing of it is claimed until ``paused_until`` (NULL: until it is resumed)."""

    queue = NameField(primary_key=True)
    paused_at = models.BigIntegerField()
    paused_by = NameField(max_length=255)
    paused_until = models.BigIntegerField(null=True)

    IN_FORCE = models.Q(paused_until__isnull=True) | models.Q(paused_until__gt=EpochNow())
    """For ``filter``: pauses that have not ended."""

    objects = QueueControlManager()

    class Meta:
        db_table = tables.QUEUE_CONTROLS
        verbose_name = _("paused queue")
        verbose_name_plural = _("paused queues")
        permissions = [("pause_queuecontrol", "Can pause and resume queues")]

    def __str__(self) -> str:
        return str(self.queue)
