"""``Notification``: a message to whoever listens on a channel now, in honker's table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from django.db import models

from alkstore_django import bells
from alkstore_django.conf import settings
from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .announcements import ring_after_commit
from .base import SQLManager, chunks, light_chunks, placeholders, retrying
from .fields import LenientTextField, NameField, number, readable

BULK = 1_000
"""Rows per INSERT, and per DELETE: a few milliseconds of an SQLite file's only write lock."""


RANGES = 250
"""Ranges of ids in one statement."""

PREPARED = "prepared"
"""See ``NotificationManager.writers``."""


class Message(NamedTuple):
    """A row as the driver gave it (``raw`` is bytes on SQLite); ``raw`` is ``None`` where nobody listens."""

    id: int
    channel: str
    raw: str | bytes | None
    created_at: int


class NotificationManager(SQLManager):
    """Put in, hear and prune."""

    def notify(self, channel: str, payload: str) -> int:
        """Insert one row; its id."""
        row = {"channel": channel, "payload": payload}
        statement = self.dialect.notify_on + self.notice
        found = retrying(self.database, lambda: self.insert(statement, row))
        ring_after_commit(self.database, bells.EAR)
        return found

    def notify_many(self, channel: str, payloads: Iterable[str]) -> list[int]:
        """Insert rows in few statements; their ids, in the order of the payloads."""
        ids: list[int] = []
        for chunk in light_chunks(payloads, BULK, len):
            ids += self._notify_chunk(channel, chunk)
        if ids:
            ring_after_commit(self.database, bells.EAR)
        return ids

    def _notify_chunk(self, channel: str, payloads: Sequence[str]) -> list[int]:
        dialect = self.dialect
        if dialect.enqueues_in_one_statement:
            row = {"channel": channel, "payloads": dialect.many(payloads)}
            return sorted(int(found[0]) for found in self.fetch(dialect.notify_many() + self.notice, row))
        row = {"channel": channel} | {f"p{index}": payload for index, payload in enumerate(payloads)}
        statement = dialect.notify_rows(len(payloads))
        if dialect.returns_inserted:
            return sorted(int(found[0]) for found in self.fetch(statement, row))
        first = self.insert(statement, row)
        # One INSERT of a known number of rows takes its ids in one go, whatever innodb_autoinc_lock_mode.
        step = int(self.fetch("SELECT @@auto_increment_increment")[0][0])
        return list(range(first, first + step * len(payloads), step))

    @property
    def notice(self) -> str:
        """What an INSERT .. RETURNING gets at its end."""
        return self.dialect.notifications_notice if settings.NOTIFY else ""

    # -- those who listen -------------------------------------------------------------------------

    def listen(self) -> None:
        """See ``Dialect.listen_for_notifications``; only where there is one."""
        self.execute(self.dialect.listen_for_notifications or "")

    def after(self, after: int, n: int, channels: Collection[str]) -> list[Message]:
        """The first ``n`` rows above an id, with the payloads of those on these channels."""
        names, params = placeholders(sorted(channels), "c")
        statement = self.dialect.notifications_after(names)
        return self._messages(statement, params | {"after": after, "n": n})

    def among(self, ranges: Sequence[tuple[int, int]], n: int, channels: Collection[str]) -> list[Message]:
        """The same, of the rows whose ids are in these ranges."""
        names, params = placeholders(sorted(channels), "c")
        found: list[Message] = []
        for chunk in chunks(ranges, RANGES):
            where, bounds = _within(chunk)
            statement = self.dialect.notifications_among(where, names)
            found += self._messages(statement, params | bounds | {"n": n - len(found)})
            if len(found) >= n:
                break
        return found

    def with_ids(self, ids: Sequence[int], channel: str) -> list[Message]:
        return self.among([(each, each) for each in ids], len(ids), [channel])

    def ids_between(self, first: int, last: int) -> list[int]:
        where, bounds = _within([(first, last)])
        statement = self.dialect.notification_ids(where)
        rows = retrying(self.database, lambda: self.fetch(statement, bounds | {"n": last - first + 1}))
        return [int(row[0]) for row in rows]

    def writers(self) -> frozenset[str] | None:
        """The transactions that may have put in what is not committed; ``PREPARED`` stands for those of
        two-phase commits. ``None`` where nobody can tell."""
        statement = self.dialect.notification_writers
        return None if statement is None else frozenset(str(row[0]) for row in self.fetch(statement))

    def uncommitted(self, ranges: Sequence[tuple[int, int]], n: int) -> list[int]:
        """The first ``n`` ids in these ranges, also of rows that are not committed; only where those can be
        read. Outside of a transaction."""
        ids: list[int] = []
        for chunk in chunks(ranges, RANGES):
            where, bounds = _within(chunk)
            self.execute(self.dialect.read_uncommitted or "")
            ids += [
                int(row[0]) for row in self.fetch(self.dialect.notification_ids(where), bounds | {"n": n})
            ]
        return ids[:n]

    def _messages(self, statement: str, params: dict[str, Any]) -> list[Message]:
        rows = retrying(self.database, lambda: self.fetch(statement, params))
        return [Message(row[0], readable(row[1]) or "", row[2], number(row[3]) or 0) for row in rows]

    # -- pruning ----------------------------------------------------------------------------------

    def newest_id(self) -> int:
        """0 if there is none."""
        return int(self.fetch(self.dialect.newest_notification)[0][0] or 0)

    def last_of_oldest(self, after: int, n: int = BULK, channel: str | None = None) -> int | None:
        """The last id of the ``n`` oldest after an id; ``None`` if there is none after it."""
        params = {"after": after, "n": n, "channel": channel}
        found = self.fetch(self.dialect.oldest_notifications(channel is not None), params)[0][0]
        return None if found is None else int(found)

    def first_to_lose(self, max_keep: int, channel: str | None = None) -> int:
        """The highest id that is not among the ``max_keep`` newest, 0 if all are."""
        params = {"max_keep": max_keep, "channel": channel}
        found = self.fetch(self.dialect.first_to_lose(channel is not None), params)
        return int(found[0][0]) if found else 0

    def delete_between(
        self, after: int, last: int, *, age: int | None = None, cut: int = 0, channel: str | None = None
    ) -> int:
        """Delete of the ids from the one after ``after`` to ``last`` those that are older than ``age``, and
        those up to ``cut``; how many."""
        dialect = self.dialect
        conditions = ([] if age is None else [dialect.is_old]) + ([dialect.is_outranked] if cut else [])
        params = {"after": after, "last": last, "age": age, "cut": cut, "channel": channel}
        statement = dialect.prune_notifications(conditions, channel is not None)
        return retrying(self.database, lambda: self.execute(statement, params)) if conditions else 0


def _within(ranges: Sequence[tuple[int, int]]) -> tuple[str, dict[str, Any]]:
    """A condition for ids, and its parameters."""
    terms: list[str] = []
    params: dict[str, Any] = {}
    for index, (first, last) in enumerate(ranges):
        terms.append(f"id BETWEEN %(first{index})s AND %(last{index})s")
        params |= {f"first{index}": first, f"last{index}": last}
    return " OR ".join(terms), params


class Notification(models.Model):
    """A message; listeners read those that come after they began to listen."""

    id = models.BigAutoField(primary_key=True)
    channel = NameField()
    payload = LenientTextField()
    created_at = models.BigIntegerField(db_default=EpochNow())

    objects = NotificationManager()

    class Meta:
        db_table = tables.NOTIFICATIONS

    def __str__(self) -> str:
        return f"notification {self.pk} on {self.channel}"
