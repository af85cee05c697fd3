"""``DeadJob``: a row of ``_honker_dead``, and every move between the two tables."""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from typing import Any, NamedTuple

from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext_lazy as _

from alkstore_django.exceptions import AttemptsExhausted, TaskExpired, WorkerLost
from alkstore_django.failures import Failure, of
from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .attempt import Attempt, AttemptManager
from .base import SQLManager, chunks, placeholders
from .claim import Claim
from .fields import LenientTextField, NameField, number, readable
from .job import Job, JobManager

logger = getLogger(__name__)


class Letter(NamedTuple):
    """A dead letter that is about to be requeued; the payload is raw (bytes on SQLite)."""

    id: int
    payload: str | bytes
    created_at: int


class DeadJobManager(SQLManager):
    """Moves are INSERT, then DELETE, in one savepoint: a job is never in neither table.

    Every method wants an open transaction, in which the rows of ``claims`` are locked.
    """

    def bury(
        self, claims: Sequence[Claim], failure: Failure, kind: str, *, duration_ms: int | None = None
    ) -> None:
        """Move locked live rows to the dead letters, with a row of their history each."""
        for chunk in chunks(claims):
            buried = chunk
            try:
                with transaction.atomic(using=self.database):
                    names, ids = placeholders([claim.id for claim in chunk])
                    self.execute(self.dialect.bury(names), ids | {"error": failure.summary})
                    self._jobs().delete_locked([claim.id for claim in chunk])
            except IntegrityError:
                buried = [claim._replace(id=self._bury_one(claim, failure)) for claim in chunk]
            self._attempts().record(buried, kind, failure, duration_ms=duration_ms)

    def _bury_one(self, claim: Claim, failure: Failure) -> int:
        """Bury under its own id, or under a fresh one if that is taken: a job can always die. The id."""
        params: dict[str, Any] = {"id": claim.id, "new_id": claim.id, "error": failure.summary}
        try:
            with transaction.atomic(using=self.database):
                self.execute(self.dialect.bury_as, params)
                self._jobs().delete_locked([claim.id])
        except IntegrityError:
            with transaction.atomic(using=self.database):
                params["new_id"] = self._jobs().fresh_id()
                self.execute(self.dialect.bury_as, params)
                self._jobs().delete_locked([claim.id])
                self._renumbered(claim.id, params["new_id"])
        return int(params["new_id"])

    def bury_lapsed(self, lapsed: Sequence[tuple[Claim, bool]]) -> list[Claim]:
        """Judge locked lapsed claims: the expired and the exhausted die; the others are returned.

        Every one of them gets the attempt of the worker that vanished into its history.
        """
        expired = [claim for claim, has_expired in lapsed if has_expired]
        others = [claim for claim, has_expired in lapsed if not has_expired]
        again = [claim for claim in others if claim.attempts < claim.max_attempts]
        alive = [(claim, Attempt.LOST, _lost(claim), None) for claim in expired + again]
        self._attempts().record_each(alive)
        self.bury(expired, of(TaskExpired, "expired"), Attempt.EXPIRED)
        exhausted: dict[Failure, list[Claim]] = {}
        for claim in others:
            if claim.attempts >= claim.max_attempts:
                exhausted.setdefault(_lost(claim), []).append(claim)
        for failure, claims in exhausted.items():
            self.bury(claims, failure, Attempt.LOST)
        return again

    def sweep_expired(self, queue: str, n: int, *, tasks_only: bool = False) -> int:
        """Move up to ``n`` jobs past their ``expires_at`` to the dead letters, zombies included."""
        rows = self.fetch(self.dialect.expired(tasks_only), {"queue": queue, "n": n})
        claims = [Claim.from_row(row[:-1]) for row in rows]
        waiting = [claim for claim in claims if not claim.worker_id]
        self.bury(waiting, of(TaskExpired, "expired"), Attempt.EXPIRED)
        self.bury_lapsed([(claim, True) for claim in claims if claim.worker_id])
        return len(claims)

    def sweep_exhausted(self, queue: str, n: int, *, tasks_only: bool = False) -> int:
        """Move up to ``n`` due jobs without an attempt left to the dead letters."""
        rows = self.fetch(self.dialect.exhausted(tasks_only), {"queue": queue, "n": n})
        claims = [Claim.from_row(row[:-1]) for row in rows]
        self.bury(claims, of(AttemptsExhausted, "max attempts exceeded"), Attempt.EXPIRED)
        return len(claims)

    def counts(self) -> list[tuple[str, int]]:
        """Dead letters per queue."""
        return [(readable(queue) or "", int(count)) for queue, count in self.fetch(self.dialect.dead_counts)]

    def died_within(self, seconds: int) -> int:
        """How many of the newest dead letters died in the last ``seconds``."""
        return int(self.fetch(self.dialect.recently_dead, {"seconds": seconds})[0][0])

    def lock(self, job_id: int, queue: str | None = None) -> Letter | None:
        """Lock a dead letter (of that queue), waiting for whoever requeues it."""
        rows = self.fetch(self.dialect.lock_dead, {"id": job_id, "queue": queue})
        return Letter(job_id, rows[0][0], number(rows[0][1])) if rows else None

    def revive(self, job_id: int) -> int:
        """Give a locked dead letter a new life; its live id: the same, unless a live job has it by now."""
        new_id = self._revive(job_id)
        self.execute(self.dialect.delete_dead, {"id": job_id})
        if new_id != job_id:
            self._renumbered(job_id, new_id)
        self._attempts().record_event(new_id, Attempt.REQUEUED)
        return new_id

    def _revive(self, job_id: int) -> int:
        try:
            with transaction.atomic(using=self.database):
                self.execute(self.dialect.revive, {"id": job_id, "new_id": job_id})
                return job_id
        except IntegrityError:
            new_id = self._jobs().fresh_id()
            self.execute(self.dialect.revive, {"id": job_id, "new_id": new_id})
            return new_id

    def _renumbered(self, old_id: int, new_id: int) -> None:
        """Both ids go into the history of both, so that either finds the other."""
        logger.warning("Job id=%s is now id=%s: its id was taken.", old_id, new_id)
        self.execute(self.dialect.rename_run, {"id": old_id, "new_id": new_id})
        self.execute(self.dialect.rename_event, {"id": old_id, "new_id": new_id})
        self._attempts().record_event(old_id, Attempt.RENUMBERED, other_id=new_id)
        self._attempts().record_event(new_id, Attempt.RENUMBERED, other_id=old_id)

    def _jobs(self) -> JobManager:
        return Job.objects.db_manager(self.database)

    def _attempts(self) -> AttemptManager:
        return Attempt.objects.db_manager(self.database)


def _lost(claim: Claim) -> Failure:
    """That the worker of a lapsed claim vanished; honker's words first where no attempt is left."""
    exhausted = "max attempts exceeded: " if claim.attempts >= claim.max_attempts else ""
    attempt = f"in attempt {claim.attempts} of {claim.max_attempts}"
    return of(WorkerLost, f"{exhausted}worker {claim.worker_id} vanished {attempt}")


class DeadJob(models.Model):
    """A dead letter: a job that ended without success, kept with its payload until it is requeued."""

    id = models.BigIntegerField(primary_key=True)
    queue = NameField()
    payload = LenientTextField()
    priority = models.BigIntegerField(db_default=0)
    run_at = models.BigIntegerField(db_default=0)
    attempts = models.BigIntegerField(db_default=0)
    max_attempts = models.BigIntegerField(db_default=0)
    last_error = LenientTextField(null=True)
    created_at = models.BigIntegerField(db_default=EpochNow())
    died_at = models.BigIntegerField(db_default=EpochNow())

    objects = DeadJobManager()

    class Meta:
        db_table = tables.DEAD
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        permissions = [("requeue_deadjob", "Can requeue dead letters")]

    def __str__(self) -> str:
        return f"dead letter {self.pk} of {self.queue}"
