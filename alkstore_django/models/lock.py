"""``Lock``: a named lock with an owner and an end, in honker's table; ``LockToken`` beside it."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager, in_transaction, placeholders, retrying
from .fields import NameField, readable

SLOW = 0.5
"""Seconds after which the end of a lock that was taken is read again."""

GRAIN = 0.002
"""Seconds by which a database may be late: SQLite tells whole milliseconds, as a fraction of days."""


class Hold(NamedTuple):
    """A lock that was taken: its end in Unix seconds, and by ``time.monotonic()``; its fencing token."""

    expires_at: int
    until: float
    token: int


class LockManager(SQLManager):
    """Take, hold and give back. An owner is a string that nobody else has; ``ttl`` is in seconds, from 1."""

    def acquire(self, name: str, owner: str, ttl: int) -> bool:
        """Take a lock that is free, or hold one's own for ``ttl`` from now; whether it is the owner's."""
        row = {"name": name, "owner": owner, "ttl": ttl}

        def take() -> bool:
            return self.execute(self.dialect.take_lock, row) > 0 or (
                self.execute(self.dialect.insert_lock, row) > 0
            )

        return retrying(self.database, take)

    def take(self, name: str, owner: str, ttl: int, *, is_new: bool) -> Hold | None:
        """``acquire`` with a token, which is larger than any before; that of a lock which is extended stays.
        ``None`` if somebody else has it. ``is_new``: no lock is the owner's yet."""
        row = {"name": name, "owner": owner, "ttl": ttl}
        hold = None if is_new else self._extend(row)
        if hold is not None:
            return hold
        started = time.monotonic()
        if self.dialect.takes_locks_in_one_statement:
            hold = retrying(self.database, lambda: self._hold(self.dialect.take_with_token, row))
        else:
            hold = in_transaction(self.database, lambda: self._take(row))
        if hold is not None and time.monotonic() - started > SLOW:
            return self._own(row)  # it has waited for another transaction, and its time ran meanwhile
        return hold

    def extend(self, name: str, owner: str, ttl: int) -> Hold | None:
        """``renew``, and what is held then."""
        return self._extend({"name": name, "owner": owner, "ttl": ttl})

    def renew(self, name: str, owner: str, ttl: int) -> bool:
        """Hold it for ``ttl`` from now; ``False`` if it has ended, or somebody else has it."""
        row = {"name": name, "owner": owner, "ttl": ttl}
        return retrying(self.database, lambda: self.execute(self.dialect.renew_lock, row)) > 0

    def release(self, name: str, owner: str) -> bool:
        """Give it back; whether it was the owner's."""
        row = {"name": name, "owner": owner}
        return retrying(self.database, lambda: self.execute(self.dialect.release_lock, row)) > 0

    def force(self, name: str, owner: str) -> bool:
        """Take it away from who holds it; whether that one did."""
        row = {"name": name, "owner": owner}
        return retrying(self.database, lambda: self.execute(self.dialect.force_lock, row)) > 0

    def holder(self, name: str) -> tuple[str, int, int] | None:
        """The owner, the end in Unix seconds, and for how many seconds more: at 0 and below the lock is free
        to take. ``None`` if there is no row."""
        rows = self.fetch(self.dialect.lock_holder, {"name": name})
        return (readable(rows[0][0]) or "", int(rows[0][1]), int(rows[0][2])) if rows else None

    def look(self, name: str) -> tuple[str, int, float] | None:
        """Who holds a lock: the owner, the end, and for how many seconds and fractions more. ``None`` if it
        is free."""
        rows = self.fetch(self.dialect.lock_holder, {"name": name})
        if not rows or rows[0][2] <= 0:
            return None
        return readable(rows[0][0]) or "", int(rows[0][1]), max(0.0, float(rows[0][3]))

    def held(self) -> list[tuple[str, str, int]]:
        """Name, owner and end of every lock that is held."""
        return [
            (readable(name) or "", readable(owner) or "", int(end))
            for name, owner, end in self.fetch(self.dialect.locks_held)
        ]

    def sweep(self, margin: int, n: int) -> int:
        """Delete up to ``n`` locks that ended more than ``margin`` seconds ago; how many. Waits for nobody
        who is about to take one."""
        row = {"margin": margin, "n": n}
        if not self.fetch(self.dialect.any_ended_lock, row):
            return 0
        if not self.dialect.picks_locks_first:
            return retrying(self.database, lambda: self.execute(self.dialect.sweep_locks, row))

        def sweep() -> int:
            picked = [name for (name,) in self.fetch(self.dialect.pick_ended_locks, row)]
            names, params = placeholders(picked)
            return self.execute(self.dialect.delete_ended_locks(names), params | row) if picked else 0

        return in_transaction(self.database, sweep)

    def count_ended(self, margin: int) -> int:
        """How many such locks there are."""
        return int(self.fetch(self.dialect.count_ended_locks, {"margin": margin})[0][0])

    def _take(self, row: dict[str, Any]) -> Hold | None:
        dialect = self.dialect
        is_taken = self.execute(dialect.take_ended_lock, row)
        # Looked for, and not just inserted: on MariaDB that would lock the row of a holder.
        if not is_taken and (dialect.has_one_writer or not self.fetch(dialect.lock_holder, row)):
            is_taken = self.execute(dialect.insert_lock, row)
        if not is_taken:
            return None
        self._give_token(row)
        return self._own(row)

    def _extend(self, row: dict[str, Any]) -> Hold | None:
        if not retrying(self.database, lambda: self.execute(self.dialect.renew_lock, row)):
            return None
        hold = self._own(row)
        if hold is None:  # taken by ``acquire``, or by another program under the same name
            retrying(self.database, lambda: self._give_token(row))
            hold = self._own(row)
        return hold

    def _give_token(self, row: dict[str, Any]) -> None:
        """Within the lock of the row, or of the file: later than whoever had it before."""
        self.execute(self.dialect.give_token, row | {"microseconds": time.time_ns() // 1_000})

    def _own(self, row: dict[str, Any]) -> Hold | None:
        return self._hold(self.dialect.lock_hold, row)

    def _hold(self, sql: str, row: dict[str, Any]) -> Hold | None:
        asked = time.monotonic()
        for end, left, token in self.fetch(sql, row):
            if token is not None and left > 0:
                return Hold(int(end), asked + float(left) - GRAIN, int(token))
        return None


class Lock(models.Model):
    """A row means held until ``expires_at`` (Unix seconds); at that very second it is free to take."""

    name = NameField(primary_key=True)
    owner = NameField()
    expires_at = models.BigIntegerField()

    HELD = models.ExpressionWrapper(models.Q(expires_at__gt=EpochNow()), output_field=models.BooleanField())
    """For ``annotate``: whether a lock is held, by the clock of the database."""

    objects = LockManager()

    class Meta:
        db_table = tables.LOCKS
        verbose_name = _("lock")
        verbose_name_plural = _("locks")
        permissions = [("release_lock", "Can release locks by force")]

    def __str__(self) -> str:
        return str(self.name)


class LockToken(models.Model):
    """The newest fencing token of a name. Kept for ever: a token never comes again."""

    name = NameField(primary_key=True)
    token = models.BigIntegerField()

    class Meta:
        db_table = tables.LOCK_TOKENS

    def __str__(self) -> str:
        return f"token of {self.name}"
