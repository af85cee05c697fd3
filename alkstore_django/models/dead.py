"""``DeadJob``: a row of ``_honker_dead``, and every move to there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext_lazy as _

from alkstore_django.exceptions import AttemptsExhausted, TaskExpired, WorkerLost
from alkstore_django.failures import Failure, of
from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .attempt import Attempt
from .base import chunks, placeholders
from .claim import Claim
from .fields import LenientTextField, NameField, readable
from .reviving import RevivingManager


class DeadJobManager(RevivingManager):
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
