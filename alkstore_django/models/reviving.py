"""Dead letters that come back: how they are found, and every move from there to the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from alkstore_django.logs import get_logger

from .attempt import Attempt, AttemptManager
from .base import SQLManager, chunks, placeholders
from .fields import number, readable
from .job import Job, JobManager

logger = get_logger("alkstore_django.models.dead")


class Letter(NamedTuple):
    """A dead letter that is about to be requeued; the payload is raw (bytes on SQLite)."""

    id: int
    payload: str | bytes
    created_at: int


class FoundLetter(NamedTuple):
    """A dead letter that somebody looks for; the payload is raw, and empty if it was not asked for."""

    id: int
    queue: str
    payload: str | bytes


class Wanted(NamedTuple):
    """What the database can tell of dead letters: all that is given must hold.

    Of one of these queues; with that text in the message or the class of the last error; died from ``since``
    on and before ``until``, in Unix seconds.
    """

    queues: Sequence[str] = ()
    error: str = ""
    since: int | None = None
    until: int | None = None


class RevivingManager(SQLManager):
    """A revival is INSERT, then DELETE, in an open transaction that has locked the dead letters."""

    def last_id(self) -> int | None:
        """The highest id of a dead letter; ``None`` if there is none."""
        found = self.fetch(self.dialect.last_dead_id)[0][0]
        return None if found is None else int(found)

    def step(self, after: int, last: int, n: int) -> int | None:
        """The id of the last of the next ``n`` rows by id, up to ``last``; ``None`` at the end."""
        found = self.fetch(self.dialect.step, {"after": after, "last": last, "n": n})[0][0]
        return None if found is None else int(found)

    def between(self, after: int, last: int, wanted: Wanted, *, payloads: bool) -> list[FoundLetter]:
        """Those that are wanted, by id, after one id and up to another. Locks none."""
        where, params = self._where(wanted)
        statement = self.dialect.letters(where, payloads=payloads)
        return self._found(statement, params | {"after": after, "last": last})

    def among(self, ids: Sequence[int], wanted: Wanted, *, payloads: bool) -> list[FoundLetter]:
        """Those of the ids that are wanted, by id. Locks none."""
        where, params = self._where(wanted)
        names, named = placeholders(ids)
        return self._found(self.dialect.letters(where, names, payloads=payloads), params | named)

    def lock(self, ids: Sequence[int], wanted: Wanted) -> list[Letter]:
        """Lock those of the ids that are wanted, by id, waiting for whoever requeues them."""
        where, params = self._where(wanted)
        found = []
        for chunk in chunks(sorted(ids)):
            names, named = placeholders(chunk)
            rows = self.fetch(self.dialect.lock_dead(names, where), params | named)
            found += [Letter(int(row[0]), row[1], number(row[2])) for row in rows]
        return found

    def revive(self, ids: Sequence[int]) -> dict[int, int]:
        """Give locked dead letters a new life; the live id of each: its own, unless a live job has it."""
        revived: dict[int, int] = {}
        for chunk in chunks(ids):
            names, params = placeholders(chunk)
            try:
                with transaction.atomic(using=self.database):
                    self.execute(self.dialect.revive(names), params)
                    self.execute(self.dialect.delete_dead(names), params)
                revived |= {job_id: job_id for job_id in chunk}
            except IntegrityError:
                revived |= {job_id: self._revive_one(job_id) for job_id in chunk}
        self._attempts().record_requeues(list(revived.values()))
        return revived

    def _revive_one(self, job_id: int) -> int:
        """Under its own id, or under a fresh one if that is taken."""
        new_id = job_id
        try:
            with transaction.atomic(using=self.database):
                self.execute(self.dialect.revive_as, {"id": job_id, "new_id": job_id})
        except IntegrityError:
            new_id = self._jobs().fresh_id()
            self.execute(self.dialect.revive_as, {"id": job_id, "new_id": new_id})
        self.execute(self.dialect.delete_dead("%(id)s"), {"id": job_id})
        if new_id != job_id:
            self._renumbered(job_id, new_id)
        return new_id

    def _where(self, wanted: Wanted) -> tuple[str, dict[str, Any]]:
        names, params = placeholders(wanted.queues, "q")
        given = {"error": wanted.error or None, "since": wanted.since, "until": wanted.until}
        flags = {name: value is not None for name, value in given.items()}
        return self.dialect.letter_is(names, **flags), params | given

    def _found(self, statement: str, params: dict[str, Any]) -> list[FoundLetter]:
        rows = self.fetch(statement, params)
        return [FoundLetter(int(row[0]), readable(row[1]) or "", row[2]) for row in rows]

    # -- what all moves share ---------------------------------------------------------------------

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
