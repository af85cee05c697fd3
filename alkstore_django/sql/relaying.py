"""Statements about the order of outbox events: keys, and the events that stand in line for them.

An event that is not the first of its key waits with ``run_at`` at ``PARKED``, so that no claim passes it;
what is first is armed: it gets the time that it is now.
"""

from __future__ import annotations

from .clauses import Clauses
from .tables import DEAD, INBOX, LIVE, OUTBOX_EVENTS, OUTBOX_KEYS

PARKED = 253_402_300_799
"""9999-12-31T23:59:59Z."""

_IS_LIVE = f"EXISTS (SELECT 1 FROM {LIVE} job WHERE job.id = e.job_id AND job.queue = e.queue)"
_IS_DEAD = f"EXISTS (SELECT 1 FROM {DEAD} dead WHERE dead.id = e.job_id AND dead.queue = e.queue)"
"""Of the job of an event ``e``."""

_FIRST = (
    f"SELECT MIN(f.sequence) FROM {OUTBOX_EVENTS} f WHERE f.queue = k.queue AND f.event_key = k.event_key"
)
"""In the line of a key ``k``."""


class Relaying(Clauses):
    """A key's row is locked by whoever puts an event in line, and by whoever moves the line on."""

    returns_counted = True
    """``count_events`` answers like ``event_counts``."""

    @property
    def count_events(self) -> str:
        """Lock a key, and count ``n`` events more."""
        updates = ", ".join(
            f"{column} = {OUTBOX_KEYS}.{column} + %(n)s" for column in ("sequence", "waiting")
        )
        statement = self.upsert_by(
            OUTBOX_KEYS,
            ("queue", "event_key", "sequence", "waiting", "touched_at"),
            f"%(queue)s, %(key)s, %(n)s, %(n)s, {self.now}",
            f"{updates}, touched_at = {self.now}",
            keys=2,
        )
        return f"{statement} RETURNING sequence, waiting" if self.returns_counted else statement

    @property
    def event_counts(self) -> str:
        """The last sequence of a key that this transaction has locked, and how many stand in line."""
        return f"SELECT sequence, waiting FROM {OUTBOX_KEYS} WHERE queue = %(queue)s AND event_key = %(key)s"

    def add_events(self, count: int) -> str:
        rows = ", ".join(f"(%(id{i})s, %(queue)s, %(key{i})s, %(sequence{i})s)" for i in range(count))
        return f"INSERT INTO {OUTBOX_EVENTS} (job_id, queue, event_key, sequence) VALUES {rows}"

    @property
    def any_event(self) -> str:
        return f"SELECT 1 FROM {OUTBOX_EVENTS} WHERE queue = %(queue)s LIMIT 1"

    def event_keys(self, ids: str) -> str:
        return (
            f"SELECT job_id, {self.text('queue')}, {self.text('event_key')} FROM {OUTBOX_EVENTS} "
            f"WHERE job_id IN ({ids})"
        )

    # -- the line moves on ------------------------------------------------------------------------

    def lock_event_keys(self, keys: str) -> str:
        """Those of these keys of a queue that nobody has locked."""
        return (
            f"SELECT {self.text('event_key')} FROM {OUTBOX_KEYS} WHERE queue = %(queue)s "
            f"AND event_key IN ({keys}) ORDER BY event_key{self.skip_locked}"
        )

    def ended_events(self, ids: str) -> str:
        """Those of these that are in line and need not be: ``skips`` is 1 where a dead letter stands in
        nobody's way. Whether the job is gone for good."""
        return (
            f"SELECT e.job_id, {self.text('e.event_key')}, e.sequence IS NULL, NOT {_IS_DEAD} "
            f"FROM {OUTBOX_EVENTS} e WHERE e.job_id IN ({ids}) AND e.queue = %(queue)s "
            f"AND NOT {_IS_LIVE} AND (%(skips)s = 1 OR NOT {_IS_DEAD})"
        )

    def drop_events(self, ids: str) -> str:
        return f"DELETE FROM {OUTBOX_EVENTS} WHERE job_id IN ({ids})"

    def leave_line(self, ids: str) -> str:
        """Dead letters that stand in nobody's way keep their key, and no place."""
        return f"UPDATE {OUTBOX_EVENTS} SET sequence = NULL WHERE job_id IN ({ids})"

    def discount_events(self, keys: str) -> str:
        return (
            f"UPDATE {OUTBOX_KEYS} SET waiting = waiting - %(n)s, touched_at = {self.now} "
            f"WHERE queue = %(queue)s AND event_key IN ({keys})"
        )

    def first_events(self, keys: str) -> str:
        """The job that is first in the line of each of these keys."""
        return (
            f"SELECT e.job_id FROM {OUTBOX_KEYS} k JOIN {OUTBOX_EVENTS} e ON e.queue = k.queue "
            f"AND e.event_key = k.event_key AND e.sequence = ({_FIRST}) "
            f"WHERE k.queue = %(queue)s AND k.event_key IN ({keys})"
        )

    def arm(self, ids: str) -> str:
        return (
            f"UPDATE {LIVE} SET run_at = {self.now} WHERE id IN ({ids}) AND queue = %(queue)s "
            f"AND state = 'pending' AND run_at = {PARKED}"
        )

    # -- looking and tidying ----------------------------------------------------------------------

    def walk_events(self, skips: str) -> str:
        """``n`` events by job id, and whether each still stands in line, or is kept, for nothing."""
        skipped = f"e.sequence IS NOT NULL AND e.queue IN ({skips})"
        return (
            f"SELECT e.job_id, {self.text('e.queue')}, {self.text('e.event_key')}, "
            f"NOT {_IS_LIVE} AND (NOT {_IS_DEAD} OR ({skipped})) FROM "
            f"(SELECT job_id, queue, event_key, sequence FROM {OUTBOX_EVENTS} WHERE job_id > %(after)s "
            "ORDER BY job_id LIMIT %(n)s) e ORDER BY e.job_id"
        )

    @property
    def rename_event(self) -> str:
        return f"UPDATE {OUTBOX_EVENTS} SET job_id = %(new_id)s WHERE job_id = %(id)s"

    @property
    def blocked_events(self) -> str:
        """Keys of a queue whose first event is a dead letter: the id of that, and how many stand in line."""
        return (
            f"SELECT {self.text('e.event_key')}, e.job_id, k.waiting "
            f"FROM {OUTBOX_EVENTS} e JOIN {DEAD} dead ON dead.id = e.job_id AND dead.queue = e.queue "
            f"JOIN {OUTBOX_KEYS} k ON k.queue = e.queue AND k.event_key = e.event_key "
            f"WHERE k.queue = %(queue)s AND e.sequence = ({_FIRST}) ORDER BY e.event_key LIMIT %(n)s"
        )

    @property
    def _idle(self) -> str:
        """Keys that nobody stands in line for, and that nobody has used for ``age`` seconds."""
        return f"waiting = 0 AND touched_at < {self.now} - %(age)s"

    @property
    def idle_keys(self) -> str:
        names = f"{self.text('queue')}, {self.text('event_key')}"
        return f"SELECT {names} FROM {OUTBOX_KEYS} WHERE {self._idle} LIMIT %(n)s"

    @property
    def count_idle_keys(self) -> str:
        return f"SELECT COUNT(*) FROM {OUTBOX_KEYS} WHERE {self._idle}"

    def forget_keys(self, keys: str) -> str:
        return f"DELETE FROM {OUTBOX_KEYS} WHERE queue = %(queue)s AND event_key IN ({keys}) AND {self._idle}"

    # -- the inbox --------------------------------------------------------------------------------

    @property
    def take_in(self) -> str:
        """Nothing, if the message is there."""
        return self.insert_new(
            INBOX, ("source", "message_id", "received_at"), f"%(source)s, %(message_id)s, {self.now}"
        )

    @property
    def sweep_inbox(self) -> str:
        """Up to ``n`` of those that came ``age`` seconds ago or before."""
        old = f"received_at <= {self.now} - %(age)s ORDER BY received_at LIMIT %(n)s"
        if self.deletes_with_limit:
            return f"DELETE FROM {INBOX} WHERE {old}"
        picked = f"SELECT source, message_id FROM {INBOX} WHERE {old}{self.skip_locked}"
        return f"DELETE FROM {INBOX} WHERE (source, message_id) IN ({picked})"

    deletes_with_limit = False

    @property
    def any_in_inbox(self) -> str:
        return f"SELECT 1 FROM {INBOX} WHERE received_at <= {self.now} - %(age)s LIMIT 1"

    @property
    def count_inbox(self) -> str:
        return f"SELECT COUNT(*) FROM {INBOX} WHERE received_at <= {self.now} - %(age)s"
