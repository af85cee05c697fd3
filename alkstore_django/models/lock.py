"""``Lock``: a named lock with an owner and an end, in honker's table."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from alkstore_django.sql import tables
from alkstore_django.sql.functions import EpochNow

from .base import SQLManager, retrying
from .fields import NameField, readable


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

    def renew(self, name: str, owner: str, ttl: int) -> bool:
        """Hold it for ``ttl`` from now; ``False`` if it has ended, or somebody else has it."""
        row = {"name": name, "owner": owner, "ttl": ttl}
        return retrying(self.database, lambda: self.execute(self.dialect.renew_lock, row)) > 0

    def release(self, name: str, owner: str) -> bool:
        """Give it back; whether it was the owner's."""
        row = {"name": name, "owner": owner}
        return retrying(self.database, lambda: self.execute(self.dialect.release_lock, row)) > 0

    def holder(self, name: str) -> tuple[str, int, int] | None:
        """The owner, the end in Unix seconds, and for how many seconds more: at 0 and below the lock is free
        to take. ``None`` if there is no row."""
        rows = self.fetch(self.dialect.lock_holder, {"name": name})
        return (readable(rows[0][0]) or "", int(rows[0][1]), int(rows[0][2])) if rows else None


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

    def __str__(self) -> str:
        return str(self.name)
