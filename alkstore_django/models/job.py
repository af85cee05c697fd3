"""``Job``: a row of ``_honker_live``, waiting or claimed, and the statements that move it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import models, router

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .announcements import ring_after_commit
from .arrival import Arrival
from .base import chunks, in_transaction, light_chunks, pairs, placeholders, retrying
from .claim import Claim
from .fields import LenientTextField, NameField
from .looking import LookingManager
from .pruning import PruningManager
from .turn import TurnManager

BULK = 1_000
"""Payloads per INSERT: more gains nothing on any database (spike.md 2)."""


class JobManager(LookingManager):
    """Enqueue, claim, and every write on a claim. One fence guards them all (``Dialect.held``)."""

    def enqueue(self, queue: str, payload: str, **options: int | None) -> Arrival:
        """Insert one row; ``options`` are run_at, delay, priority, max_attempts and expires."""
        row = {"queue": queue, "payload": payload, **options}
        dialect = self.dialect
        statement = dialect.enqueue + self.notice
        if dialect.returns_inserted:
            arrival = retrying(self.database, lambda: self._returned(statement, row))
        else:  # a worker that sees it could be done with it before it is read
            arrival = in_transaction(self.database, lambda: self._read_back(statement, row))
        ring_after_commit(self.database)
        return arrival

    def _returned(self, sql: str, row: dict[str, Any]) -> Arrival:
        job_id, created_at, *_ = self.fetch(sql, row)[0]
        return Arrival(int(job_id), int(created_at))

    def _read_back(self, sql: str, row: dict[str, Any]) -> Arrival:
        job_id = self.insert(sql, row)
        return Arrival(job_id, self._created_at(job_id))

    def _created_at(self, job_id: int) -> int:
        return int(self.fetch(self.dialect.created_at, {"id": job_id})[0][0])

    def enqueue_many(self, queue: str, payloads: Iterable[str], **options: int | None) -> list[Arrival]:
        """Insert rows in few statements; what there is to say of them in the order of the payloads."""
        arrivals: list[Arrival] = []
        for chunk in light_chunks(payloads, BULK, len):
            arrivals += self._enqueue_chunk({"queue": queue, **options}, chunk)
        if arrivals:
            ring_after_commit(self.database)
        return arrivals

    def _enqueue_chunk(self, row: dict[str, Any], payloads: Sequence[str]) -> list[Arrival]:
        dialect = self.dialect
        if dialect.enqueues_in_one_statement:
            statement = dialect.enqueue_many() + self.notice
            rows = self.fetch(statement, row | {"payloads": dialect.many(payloads)})
            return sorted(Arrival(*map(int, found[:2])) for found in rows)
        row |= {f"p{index}": payload for index, payload in enumerate(payloads)}
        if dialect.returns_inserted:
            rows = self.fetch(dialect.enqueue_rows(len(payloads)), row)
            return sorted(Arrival(*map(int, found[:2])) for found in rows)
        first = self.insert(dialect.enqueue_rows(len(payloads)), row)
        # One INSERT of a known number of rows takes its ids in one go, whatever innodb_autoinc_lock_mode.
        step = int(self.fetch("SELECT @@auto_increment_increment")[0][0])
        moment = self._created_at(first)
        return [Arrival(job_id, moment) for job_id in range(first, first + step * len(payloads), step)]

    # -- claim ------------------------------------------------------------------------------------

    def claim_pending(
        self, queue: str, worker_id: str, n: int, visibility: int, *, tasks_only: bool = False
    ) -> list[Claim]:
        """Claim up to ``n`` due rows in the order of claim; each claim spends an attempt.

        Where the database needs several statements for it, the caller has opened a transaction.
        """
        params = {"queue": queue, "worker_id": worker_id, "n": n, "visibility": visibility}
        if self.dialect.claims_in_one_statement:
            rows = self.fetch(self.dialect.claim_pending(tasks_only), params)
            return sorted(map(Claim.from_row, rows), key=lambda claim: claim.rank)
        return self._claim_stepwise(params, tasks_only)

    def _claim_stepwise(self, params: dict[str, Any], tasks_only: bool) -> list[Claim]:
        picked: list[Claim] = []
        now = 0
        ceiling = 2**63  # above every priority
        while len(picked) < params["n"]:
            found = self.fetch(self.dialect.next_priority, params | {"ceiling": ceiling})
            if not found:
                break
            ceiling = found[0][0]
            level = params | {"priority": ceiling, "n": params["n"] - len(picked)}
            for row in self.fetch(self.dialect.pick_pending(tasks_only), level):
                picked.append(Claim.from_row(row[:-1]))
                now = row[-1]
        for chunk in chunks(picked):
            names, ids = placeholders([claim.id for claim in chunk])
            self.execute(self.dialect.take_at(names), params | ids | {"now": now})
        # Nobody else can have changed them, so there is no need to read them again.
        return [claim.taken_by(params["worker_id"], now, params["visibility"]) for claim in picked]

    def _take(self, picked: Sequence[Claim], params: dict[str, Any]) -> list[Claim]:
        """Make rows the caller's that this transaction has locked."""
        taken: list[Claim] = []
        for chunk in chunks(picked):
            names, ids = placeholders([claim.id for claim in chunk])
            self.execute(self.dialect.take(names), params | ids)
            taken += map(Claim.from_row, self.fetch(self.dialect.claims(names), ids))
        return sorted(taken, key=lambda claim: claim.rank)

    def reclaim(self, lapsed: Sequence[Claim], worker_id: str, visibility: int) -> list[Claim]:
        """Claim lapsed rows that this transaction has locked; each spends an attempt."""
        return self._take(lapsed, {"worker_id": worker_id, "visibility": visibility})

    def lapsed_claims(self, queue: str, n: int, *, tasks_only: bool = False) -> list[tuple[Claim, bool]]:
        """Lock up to ``n`` lapsed claims, with whether the job has expired as well."""
        rows = self.fetch(self.dialect.lapsed_claims(tasks_only), {"queue": queue, "n": n})
        return [(Claim.from_row(row[:-1]), bool(row[-1])) for row in rows]

    def reopen(self, lapsed: Sequence[Claim]) -> None:
        for chunk in chunks(lapsed):
            names, ids = placeholders([claim.id for claim in chunk])
            self.execute(self.dialect.reopen(names), ids)

    def held_by(self, worker_id: str, queue: str) -> list[Claim]:
        rows = self.fetch(self.dialect.held_by, {"worker_id": worker_id, "queue": queue})
        return [Claim.from_row(row) for row in rows]

    def untasked(self, queue: str, after: int, n: int) -> list[Claim]:
        """Due rows that are not tasks, by id, from the one after ``after`` on."""
        rows = self.fetch(self.dialect.untasked, {"queue": queue, "after": after, "n": n})
        return [Claim.from_row(row) for row in rows]

    # -- writes on a claim ------------------------------------------------------------------------

    def ack(self, claim: Claim) -> bool:
        return self._guarded(self.dialect.ack, claim)

    def ack_many(self, worker_id: str, claims: Sequence[tuple[int, int]]) -> int:
        """Delete, of ``(id, attempts)`` pairs, those that the worker still holds; how many."""
        acked = 0
        for chunk in chunks(claims, 100):
            terms, params = pairs(chunk)
            acked += self.execute(self.dialect.ack_many(terms), params | {"worker_id": worker_id})
        return acked

    def retry(self, claim: Claim, delay: int, *, locked: bool = False) -> bool:
        """``locked``, here and below: ``lock_held`` has found the claim held in this transaction."""
        return self._guarded(self.dialect.retry(self._fence(locked)), claim, delay=delay)

    def heartbeat(self, claim: Claim, extend: int) -> bool:
        return self._guarded(self.dialect.heartbeat, claim, extend=extend)

    def give_back(self, claim: Claim, *, locked: bool = False) -> bool:
        return self._guarded(self.dialect.give_back(self._fence(locked)), claim)

    def interrupt(self, claim: Claim, *, locked: bool = False) -> bool:
        return self._guarded(self.dialect.interrupt(self._fence(locked)), claim)

    def _fence(self, locked: bool) -> str:
        return self.dialect.mine if locked else self.dialect.held

    def _guarded(self, sql: str, claim: Any, **params: int) -> bool:
        fence = {"id": claim.id, "worker_id": claim.worker_id, "attempts": claim.attempts}
        return retrying(self.database, lambda: self.execute(sql, fence | params)) == 1

    def lock_held(self, worker_id: str, claims: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """Lock and return, of ``(id, attempts)`` pairs, those that the worker still holds."""
        held: set[tuple[int, int]] = set()
        for chunk in chunks(claims, 100):
            terms, params = pairs(chunk)
            sql = self.dialect.lock_held(terms)
            held |= {(int(row[0]), int(row[1])) for row in self.fetch(sql, params | {"worker_id": worker_id})}
        return held

    def renew(self, worker_id: str, claims: Sequence[tuple[int, int]], extend: int) -> int:
        """Extend many claims of one worker from now; how many of them it still held."""
        renewed = 0
        for chunk in chunks(claims, 100):
            terms, params = pairs(chunk)
            renewed += self.execute(
                self.dialect.renew(terms), params | {"worker_id": worker_id, "extend": extend}
            )
        return renewed

    def lock(self, job_id: int) -> Claim | None:
        """Lock a live row, waiting for whoever has it, and return it as a claim."""
        rows = self.fetch(self.dialect.lock_live, {"id": job_id})
        return Claim.from_row(rows[0]) if rows else None

    def lock_many_at_once(self, ids: Sequence[int]) -> list[Claim]:
        """The same for many without waiting: but for rows that somebody else has locked. By id."""
        names, params = placeholders(ids)
        rows = self.fetch(self.dialect.lock_live_at_once(names), params)
        return sorted(map(Claim.from_row, rows), key=lambda claim: claim.id)

    def claimed_payload(self, job_id: int) -> str | bytes | None:
        """The payload of a job that somebody holds."""
        rows = self.fetch(self.dialect.live_payload, {"id": job_id})
        return rows[0][0] if rows else None

    def is_mine(self, claim: Claim) -> bool:
        """Whether the claim is what it was when this transaction locked its row."""
        fence = {"id": claim.id, "worker_id": claim.worker_id, "attempts": claim.attempts}
        return bool(self.fetch(self.dialect.is_mine, fence))

    def delete_locked(self, ids: Sequence[int]) -> int:
        """Delete rows that this transaction has locked after judging their fence."""
        deleted = 0
        for chunk in chunks(ids):
            names, params = placeholders(chunk)
            statement = self.dialect.delete_live(names)
            if self.dialect.counts_what_it_deletes:
                deleted += int(self.fetch(statement, params)[0][0])
            else:
                deleted += self.execute(statement, params)
        return deleted

    def restore_indexes(self) -> None:
        """Make again what is missing of the indexes that the statements name."""
        for statement in self.dialect.restored_indexes:
            self.execute(statement)

    def unsafe_id(self) -> int | None:
        """The highest id that any table remembers, if the sequence is known to lie below it."""
        return self._id_to_raise_to() if self.dialect.tells_last_given_id else None

    def _id_to_raise_to(self) -> int | None:
        known = int(self.fetch(self.dialect.highest_known_id)[0][0])
        return known if known > int(self.fetch(self.dialect.last_given_id)[0][0]) else None

    def raise_sequence(self) -> None:
        """Keep new ids above every id that any table remembers (call it inside a transaction)."""
        if known := self._id_to_raise_to():
            for statement in self.dialect.raise_sequence:
                self.execute(statement, {"id": known} if "%(id)s" in statement else None)

    def fresh_id(self) -> int:
        """An id that no table remembers and that nobody else will be given (inside a transaction)."""
        self.raise_sequence()
        job_id = self.insert(self.dialect.reserve, {})
        self.delete_locked([job_id])
        return job_id


class Job(models.Model):
    """A job that waits or runs. Times are Unix seconds; see honker-spec 1.1 for every column."""

    PENDING = "pending"
    PROCESSING = "processing"

    id = models.BigAutoField(primary_key=True)
    queue = NameField()
    payload = LenientTextField()
    state = NameField(max_length=16, db_default=PENDING)
    priority = models.BigIntegerField(db_default=0)
    run_at = models.BigIntegerField(db_default=EpochNow())
    worker_id = NameField(null=True)  # noqa: DJ001 - honker's column, NULL while nobody holds it
    claim_expires_at = models.BigIntegerField(null=True)
    attempts = models.BigIntegerField(db_default=0)
    max_attempts = models.BigIntegerField(db_default=3)
    created_at = models.BigIntegerField(db_default=EpochNow())
    expires_at = models.BigIntegerField(null=True)
    claimed_at = models.BigIntegerField(null=True)

    objects = JobManager()
    turns = TurnManager()
    pruning = PruningManager()

    class Meta:
        db_table = tables.LIVE

    def __str__(self) -> str:
        return f"job {self.pk} of {self.queue}"


def alias(using: str | None) -> str:
    """The database alias meant by ``using``: itself, or the router's answer for jobs."""
    return using or router.db_for_write(Job)
