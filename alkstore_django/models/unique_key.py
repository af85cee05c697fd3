"""``UniqueKey``: which job took the key of a unique task last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from secrets import randbits
from typing import Any, NamedTuple

from django.db import models

from alkstore_django.sql import tables

from .base import SQLManager, chunks, placeholders
from .claim import Claim
from .fields import NameField

AT_ONCE = 200
"""Keys per statement: four parameters each."""


class Seen(NamedTuple):
    """A key as it was found. ``job`` is a live row, ``in_time`` whether the time that the key was taken for
    is not over, ``has_future`` whether the job runs or can still be claimed."""

    digest: str
    stamp: int
    job_id: int
    in_time: bool = False
    has_future: bool = False
    is_running: bool = False
    job: Claim | None = None

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Seen:
        digest, stamp, job_id, in_time, has_future, is_running, *live = row
        job = None if live[0] is None else Claim.from_row(live)
        return cls(digest, stamp, job_id, bool(in_time), bool(has_future), bool(is_running), job)


class Take(NamedTuple):
    """A job that wants a key, with the stamp that was on the key when it was found free (0: no row)."""

    digest: str
    job_id: int
    seen: int = 0


class UniqueKeyManager(SQLManager):
    """A key is free or held by what else is known about its job; here it is only taken, by one."""

    def begin(self) -> None:
        """Take the write lock where there is one: a transaction that has only read could not write later."""
        if self.dialect.has_one_writer and self.dialect.opening:
            self.execute(self.dialect.opening)

    def look(self, digests: Collection[str]) -> dict[str, Seen]:
        """The keys that some job has taken once."""
        found: dict[str, Seen] = {}
        for chunk in chunks(sorted(digests)):
            names, params = placeholders(chunk)
            for row in self.fetch(self.dialect.key_holders(names), params):
                found[row[0]] = Seen.from_row(row)
        return found

    def take(self, wanted: Collection[Take], lasts: int | None) -> set[str]:
        """Take keys for jobs, until ``lasts`` seconds from now at most; the digests of those that nobody
        else has taken since they were seen. In the order of the digests, so that others wait in turn."""
        taken: set[str] = set()
        for chunk in chunks(sorted(wanted), AT_ONCE):
            taken |= self._take(chunk, lasts)
        return taken

    def _take(self, chunk: Sequence[Take], lasts: int | None) -> set[str]:
        dialect = self.dialect
        seen, params = placeholders([take.seen for take in chunk if take.seen] or [0], "seen")
        digests, names = placeholders([take.digest for take in chunk], "digest")
        stamps, fresh = placeholders([randbits(62) + 1 for _ in chunk], "stamp")
        _, ids = placeholders([take.job_id for take in chunk])
        params |= names | fresh | ids | {"lasts": lasts}
        rows = ", ".join(dialect.key_row(number, lasts is not None) for number in range(len(chunk)))
        statement = dialect.take_keys(rows, seen)
        if dialect.returns_taken:
            return {row[0] for row in self.fetch(statement, params)}
        self.execute(statement, params)
        return {row[0] for row in self.fetch(dialect.taken_keys(digests, stamps), params)}

    def lock(self, digests: Collection[str]) -> None:
        """Keep others from taking these keys, as far as they have rows."""
        for chunk in chunks(sorted(digests)):
            names, params = placeholders(chunk)
            self.fetch(self.dialect.lock_keys(names), params)

    def lock_jobs(self, job_ids: Sequence[int]) -> list[Claim]:
        """Lock live rows, waiting for whoever has them, and return those that there are."""
        found: list[Claim] = []
        for chunk in chunks(sorted(job_ids)):
            names, params = placeholders(chunk)
            found += map(Claim.from_row, self.fetch(self.dialect.lock_live_rows(names), params))
        return found

    def keep_waiting(self, job_ids: Sequence[int]) -> set[int]:
        """Keep waiting jobs from being claimed until this transaction ends; those that were waiting."""
        found: set[int] = set()
        for chunk in chunks(sorted(job_ids)):
            names, params = placeholders(chunk)
            found |= {int(row[0]) for row in self.fetch(self.dialect.keep_waiting(names), params)}
        return found

    def newest_holder(self, digest: str) -> int | None:
        """The id of the job that has a key now, whatever this transaction can see; locks the key."""
        rows = self.fetch(self.dialect.lock_keys("%(digest)s"), {"digest": digest})
        return int(rows[0][0]) if rows else None

    def rename(self, digest: str, job_id: int, new_id: int) -> None:
        """The job that has a key has another id from now on."""
        self.execute(self.dialect.rename_holder, {"digest": digest, "id": job_id, "new_id": new_id})

    # -- maintenance ------------------------------------------------------------------------------

    def orphans(self, after: str, n: int) -> tuple[str, dict[str, int]]:
        """Of the ``n`` keys after one those that no job has a use for, with their stamps; the last digest
        that was looked at, empty at the end."""
        rows = self.fetch(self.dialect.look_at_keys, {"after": after, "n": n})
        return rows[-1][0] if len(rows) == n else "", {row[0]: row[1] for row in rows if row[2]}

    def count_orphans(self) -> int:
        return int(self.fetch(self.dialect.count_useless_keys)[0][0])

    def forget(self, stamps: dict[str, int]) -> int:
        """Delete keys that nobody has taken since; how many. In a transaction; waits for nobody."""
        digests, params = placeholders(list(stamps), "digest")
        given, more = placeholders(list(stamps.values()), "stamp")
        free = [row[0] for row in self.fetch(self.dialect.lock_orphans(digests, given), params | more)]
        if not free:
            return 0
        names, params = placeholders(free, "digest")
        return self.execute(self.dialect.delete_keys(names), params)


class UniqueKey(models.Model):
    """The key of a unique task by its digest. ``holds_until`` is a time where its hold has an end of its own,
    ``stamp`` a number that is another one whenever a job takes the key."""

    digest = NameField(max_length=64, primary_key=True)
    job_id = models.BigIntegerField()
    stamp = models.BigIntegerField()
    holds_until = models.BigIntegerField(null=True)

    objects = UniqueKeyManager()

    class Meta:
        db_table = tables.UNIQUE_KEYS

    def __str__(self) -> str:
        return f"key of job {self.job_id}"
