"""Statements about named locks; at the very second of its end a lock is free (honker-spec 2.2)."""

from __future__ import annotations

from .clauses import Clauses
from .tables import LOCK_TOKENS, LOCKS


class Locking(Clauses):
    """Each a single write, so that of two who want a lock one gets it, with or without a transaction."""

    takes_locks_in_one_statement = False
    """``take_with_token`` is one; otherwise the manager takes the lock, and gives it a token, in a
    transaction."""

    picks_locks_first = False
    """``sweep_locks`` would wait for a lock that somebody is about to take: it is done in two steps."""

    @property
    def lock_holder(self) -> str:
        """The owner, the end, and for how many seconds more; not above 0 where the lock is free. Then the
        same with a fraction."""
        return (
            f"SELECT {self.text('owner')}, expires_at, expires_at - {self.now}, "
            f"expires_at - {self.precise_now} FROM {LOCKS} WHERE name = %(name)s"
        )

    @property
    def locks_held(self) -> str:
        return (
            f"SELECT {self.text('name')}, {self.text('owner')}, expires_at FROM {LOCKS} "
            f"WHERE expires_at > {self.now}"
        )

    @property
    def take_lock(self) -> str:
        """Take over one that is free, or extend one's own."""
        return (
            f"UPDATE {LOCKS} SET owner = %(owner)s, expires_at = {self.now} + %(ttl)s "
            f"WHERE name = %(name)s AND (owner = %(owner)s OR expires_at <= {self.now})"
        )

    @property
    def take_ended_lock(self) -> str:
        """Take over one that is free, whoever had it."""
        return (
            f"UPDATE {LOCKS} SET owner = %(owner)s, expires_at = {self.now} + %(ttl)s "
            f"WHERE name = %(name)s AND expires_at <= {self.now}"
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

    @property
    def force_lock(self) -> str:
        return f"{self.release_lock} AND expires_at > {self.now}"

    # -- fencing tokens ---------------------------------------------------------------------------

    @property
    def next_token(self) -> str:
        """Larger than any before. The clock's microseconds make it also larger than what was given in a
        transaction that was rolled back, or lost with the last second of a server."""
        return f"{self.greatest}({LOCK_TOKENS}.token + 1, {self.microseconds})"

    @property
    def give_token(self) -> str:
        row = f"%(name)s, {self.microseconds}"
        return self.upsert_by(LOCK_TOKENS, ("name", "token"), row, f"token = {self.next_token}")

    @property
    def take_with_token(self) -> str:
        raise NotImplementedError

    @property
    def lock_hold(self) -> str:
        """The end of one's own lock, for how many seconds and fractions more, and the newest token."""
        token = f"(SELECT token FROM {LOCK_TOKENS} WHERE name = %(name)s)"
        return (
            f"SELECT expires_at, expires_at - {self.precise_now}, {token} FROM {LOCKS} "
            "WHERE name = %(name)s AND owner = %(owner)s"
        )

    # -- maintenance ------------------------------------------------------------------------------

    @property
    def _ended_locks(self) -> str:
        return f"FROM {LOCKS} WHERE expires_at < {self.now} - %(margin)s"

    @property
    def count_ended_locks(self) -> str:
        return f"SELECT COUNT(*) {self._ended_locks}"

    @property
    def any_ended_lock(self) -> str:
        return f"SELECT 1 {self._ended_locks} LIMIT 1"

    @property
    def pick_ended_locks(self) -> str:
        return f"SELECT name {self._ended_locks} ORDER BY name LIMIT %(n)s{self.skip_locked}"

    @property
    def sweep_locks(self) -> str:
        return f"DELETE {self._ended_locks} AND name IN ({self.pick_ended_locks})"

    def delete_ended_locks(self, ids: str) -> str:
        return f"DELETE {self._ended_locks} AND name IN ({ids})"
