"""Statements about named locks; at the very second of its end a lock is free (honker-spec 2.2)."""

from __future__ import annotations

from .clauses import Clauses
from .tables import LOCKS


class Locking(Clauses):
    """Each a single write, so that of two who want a lock one gets it, with or without a transaction."""

    @property
    def lock_holder(self) -> str:
        """The owner, the end, and for how many seconds more; not above 0 where the lock is free."""
        return (
            f"SELECT {self.text('owner')}, expires_at, expires_at - {self.now} FROM {LOCKS} "
            "WHERE name = %(name)s"
        )

    @property
    def take_lock(self) -> str:
        """Take over one that is free, or extend one's own."""
        return (
            f"UPDATE {LOCKS} SET owner = %(owner)s, expires_at = {self.now} + %(ttl)s "
            f"WHERE name = %(name)s AND (owner = %(owner)s OR expires_at <= {self.now})"
        )

    @property
    def insert_lock(self) -> str:
        """Nothing, if there is a row of that name."""
        return self.insert_new(
            LOCKS, ("name", "owner", "expires_at"), f"%(name)s, %(owner)s, {self.now} + %(ttl)s"
        )

    @property
    def renew_lock(self) -> str:
        return (
            f"UPDATE {LOCKS} SET expires_at = {self.now} + %(ttl)s "
            f"WHERE name = %(name)s AND owner = %(owner)s AND expires_at > {self.now}"
        )

    @property
    def release_lock(self) -> str:
        return f"DELETE FROM {LOCKS} WHERE name = %(name)s AND owner = %(owner)s"
