"""``OutboxKey`` and ``OutboxEvent``: the lines in which the events of a key stand.

An event without a key has no row here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django.db import models

from alkstore_django.sql import tables
from alkstore_django.sql.relaying import PARKED as PARKED

from .base import SQLManager, chunks, placeholders
from .fields import NameField, readable

AT_ONCE = 200
"""Events per INSERT: three parameters each."""


class Place(NamedTuple):
    """Where an event of a key stands: ``sequence`` rises by one with each event of the key."""

    job_id: int
    key: str
    sequence: int


class Lined(NamedTuple):
    """The job of an event with a key, and where its line is."""

    job_id: int
    queue: str
    key: str


class Blocked(NamedTuple):
    """A key whose first event is a dead letter. ``waiting`` counts those in line, that one included."""

    queue: str
    key: str
    job_id: int
    waiting: int


class OutboxManager(SQLManager):
    """All within a transaction of the caller's."""

    def extend(self, queue: str, key: str, n: int) -> tuple[int, int]:
        """Lock a key until the end of the transaction, and count ``n`` events more; the sequence of the last
        of them, and how many stand in line now."""
        row = {"queue": queue, "key": key, "n": n}
        if self.dialect.returns_counted:
            rows = self.fetch(self.dialect.count_events, row)
        else:
            self.execute(self.dialect.count_events, row)
            rows = self.fetch(self.dialect.event_counts, row)
        sequence, waiting = rows[0]
        return int(sequence), int(waiting)

    def add(self, queue: str, places: Sequence[Place]) -> None:
        for chunk in chunks(places, AT_ONCE):
            row: dict[str, str | int] = {"queue": queue}
            for index, place in enumerate(chunk):
                row |= {f"id{index}": place.job_id, f"key{index}": place.key}
                row[f"sequence{index}"] = place.sequence
            self.execute(self.dialect.add_events(len(chunk)), row)

    def any(self, queue: str) -> bool:
        """Whether any event of the queue has a key."""
        return bool(self.fetch(self.dialect.any_event, {"queue": queue}))

    def of_jobs(self, job_ids: Sequence[int]) -> list[Lined]:
        """Queue and key of those of the jobs that have one."""
        found: list[Lined] = []
        for chunk in chunks(job_ids):
            names, ids = placeholders(chunk)
            for job_id, queue, key in self.fetch(self.dialect.event_keys(names), ids):
                found.append(Lined(int(job_id), readable(queue) or "", readable(key) or ""))
        return found

    # -- the line moves on ------------------------------------------------------------------------

    def lock(self, queue: str, keys: Collection[str]) -> list[str]:
        """Lock those of the keys that nobody has locked; waits for nobody."""
        names, params = placeholders(sorted(keys), "key")
        rows = self.fetch(self.dialect.lock_event_keys(names), params | {"queue": queue})
        return [readable(row[0]) or "" for row in rows]

    def move_on(self, queue: str, keys: Sequence[str], job_ids: Sequence[int], *, skips: bool) -> int:
        """Take those of the jobs that have ended out of the lines of these locked keys, and arm the first
        event of each; how many were armed."""
        self._take_out(queue, keys, job_ids, skips)
        names, params = placeholders(keys, "key")
        params["queue"] = queue
        first = [int(row[0]) for row in self.fetch(self.dialect.first_events(names), params)]
        if not first:
            return 0
        names, params = placeholders(first)
        return self.execute(self.dialect.arm(names), params | {"queue": queue})

    def _take_out(self, queue: str, keys: Sequence[str], job_ids: Sequence[int], skips: bool) -> None:
        names, params = placeholders(job_ids)
        params |= {"queue": queue, "skips": int(skips)}
        rows = self.fetch(self.dialect.ended_events(names), params)
        ended = [row for row in rows if (readable(row[1]) or "") in keys]
        counts: dict[str, int] = {}
        for _, key, is_out, _ in ended:
            if not is_out:
                counts[readable(key) or ""] = counts.get(readable(key) or "", 0) + 1
        for statement, ids in (
            (self.dialect.drop_events, [row[0] for row in ended if row[3]]),
            (self.dialect.leave_line, [row[0] for row in ended if not row[3]]),
        ):
            if ids:
                names, params = placeholders(ids)
                self.execute(statement(names), params)
        for n in set(counts.values()):
            names, params = placeholders([key for key, count in counts.items() if count == n], "key")
            self.execute(self.dialect.discount_events(names), params | {"queue": queue, "n": n})

    # -- looking and tidying ----------------------------------------------------------------------

    def walk(self, after: int, n: int, skipping: Sequence[str]) -> tuple[int, list[Lined]]:
        """Of ``n`` events by job id, from ``after`` on, those that have ended: their jobs are gone, or dead
        letters of the queues ``skipping``. The last id that was looked at, 0 at the end."""
        names, params = placeholders([*skipping] or [""], "skip")
        rows = self.fetch(self.dialect.walk_events(names), params | {"after": after, "n": n})
        last = int(rows[-1][0]) if len(rows) == n else 0
        return last, [
            Lined(int(row[0]), readable(row[1]) or "", readable(row[2]) or "") for row in rows if row[3]
        ]

    def blocked(self, queue: str, n: int) -> list[Blocked]:
        """Up to ``n`` keys of a queue whose first event is a dead letter."""
        rows = self.fetch(self.dialect.blocked_events, {"queue": queue, "n": n})
        return [Blocked(queue, readable(key) or "", int(job), int(waiting)) for key, job, waiting in rows]

    def idle(self, age: int, n: int) -> dict[str, list[str]]:
        """Up to ``n`` keys without events that nobody has used for ``age`` seconds, by queue."""
        idle: dict[str, list[str]] = {}
        for queue, key in self.fetch(self.dialect.idle_keys, {"age": age, "n": n}):
            idle.setdefault(readable(queue) or "", []).append(readable(key) or "")
        return idle

    def count_idle(self, age: int) -> int:
        return int(self.fetch(self.dialect.count_idle_keys, {"age": age})[0][0])

    def forget_idle(self, idle: Mapping[str, Collection[str]], age: int) -> int:
        """Delete those of these keys that still are idle; how many."""
        deleted = 0
        for queue, keys in sorted(idle.items()):
            names, params = placeholders(sorted(keys), "key")
            deleted += self.execute(self.dialect.forget_keys(names), params | {"queue": queue, "age": age})
        return deleted


class OutboxKey(models.Model):
    """A key of an outbox: how many events it ever had (``sequence``), and how many stand in line."""

    pk = models.CompositePrimaryKey("queue", "event_key")
    queue = NameField()
    event_key = NameField()
    sequence = models.BigIntegerField()
    waiting = models.BigIntegerField()
    touched_at = models.BigIntegerField()

    class Meta:
        db_table = tables.OUTBOX_KEYS

    def __str__(self) -> str:
        return f"{self.event_key} of {self.queue}"


class OutboxEvent(models.Model):
    """The place of an event, by the id of its job; ``sequence`` NULL: it is out of line for good."""

    job_id = models.BigIntegerField(primary_key=True)
    queue = NameField()
    event_key = NameField()
    sequence = models.BigIntegerField(null=True)

    objects = OutboxManager()

    class Meta:
        db_table = tables.OUTBOX_EVENTS
        constraints = [
            models.UniqueConstraint(fields=["queue", "event_key", "sequence"], name="alkstore_outbox_line")
        ]

    def __str__(self) -> str:
        return f"event {self.job_id} of {self.event_key}"
