"""Statements about notifications: put in, heard by who listens, pruned."""

from __future__ import annotations

from collections.abc import Sequence

from .clauses import Clauses
from .tables import NOTIFICATIONS


class Notifying(Clauses):
    """Ids are given before the commit: where there are several writers a lower one may be seen later."""

    notifications_notice = ""
    """What an INSERT .. RETURNING gets at its end, so that its commit tells those who listen."""

    @property
    def _id(self) -> str:
        return "" if self.tells_last_id else " RETURNING id"

    @property
    def notify_on(self) -> str:
        return f"INSERT INTO {NOTIFICATIONS} (channel, payload) VALUES (%(channel)s, %(payload)s){self._id}"

    def notify_rows(self, count: int) -> str:
        """One INSERT of ``count`` rows; payloads are the parameters ``p0``, ``p1``, ..."""
        rows = ", ".join(f"(%(channel)s, %(p{i})s)" for i in range(count))
        return f"INSERT INTO {NOTIFICATIONS} (channel, payload) VALUES {rows}{self._id}"

    def notify_many(self) -> str:
        """One INSERT of all payloads; only where ``enqueues_in_one_statement``."""
        raise NotImplementedError

    # -- those who listen -------------------------------------------------------------------------

    listen_for_notifications: str | None = None
    """What begins listening, on a session of its own, for the channels that are notified on."""

    notification_writers: str | None = None
    """The transactions that have the table open for writing, where the database tells."""

    read_uncommitted: str | None = None
    """What has the next statement see rows that are not committed, where that can be."""

    @property
    def newest_notification(self) -> str:
        return f"SELECT MAX(id) FROM {NOTIFICATIONS}"

    def _messages(self, channels: str) -> str:
        """With the payloads of those on these channels: a list of bound parameters, or empty."""
        payload = self.text("payload")
        heard = f"CASE WHEN channel IN ({channels}) THEN {payload} END" if channels else "NULL"
        return f"SELECT id, {self.text('channel')}, {heard}, created_at FROM {NOTIFICATIONS}"

    def notifications_after(self, channels: str) -> str:
        return f"{self._messages(channels)} WHERE id > %(after)s ORDER BY id LIMIT %(n)s"

    def notifications_among(self, within: str, channels: str) -> str:
        return f"{self._messages(channels)} WHERE {within} ORDER BY id LIMIT %(n)s"

    def notification_ids(self, within: str) -> str:
        return f"SELECT id FROM {NOTIFICATIONS} WHERE {within} ORDER BY id LIMIT %(n)s"

    # -- pruning ----------------------------------------------------------------------------------

    def oldest_notifications(self, of_channel: bool) -> str:
        """The last id of the ``n`` oldest after an id."""
        return (
            f"SELECT MAX(id) FROM (SELECT id FROM {NOTIFICATIONS} WHERE id > %(after)s{_of(of_channel)} "
            "ORDER BY id LIMIT %(n)s) oldest"
        )

    def first_to_lose(self, of_channel: bool) -> str:
        """The id of the newest one that is not among the ``max_keep`` newest."""
        return (
            f"SELECT id FROM {NOTIFICATIONS} WHERE id > 0{_of(of_channel)} "
            "ORDER BY id DESC LIMIT 1 OFFSET %(max_keep)s"
        )

    def prune_notifications(self, conditions: Sequence[str], of_channel: bool) -> str:
        """Delete among the ids from ``after`` to ``last`` what meets one of the conditions."""
        return (
            f"DELETE FROM {NOTIFICATIONS} WHERE id > %(after)s AND id <= %(last)s{_of(of_channel)} "
            f"AND ({' OR '.join(conditions)})"
        )

    @property
    def is_old(self) -> str:
        return f"created_at < {self.now} - %(age)s"

    is_outranked = "id <= %(cut)s"


def _of(channel: bool) -> str:
    return " AND channel = %(channel)s" if channel else ""
