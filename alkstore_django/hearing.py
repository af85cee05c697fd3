"""Hear of notifications: each one that is committed, once, whatever the order of their ids.

Ids are given when a row is inserted, and rows are seen when their transactions commit: with several writers
a lower id may come after a higher one. So the ids in between that were not seen are looked for again, until
they come or it is certain that they never will.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from .exceptions import UndecodablePayload
from .gaps import Gap, Gaps
from .logs import get_logger
from .models import PREPARED, Message, Notification, NotificationManager
from .models.base import has_one_writer
from .models.fields import readable
from .payloads import decode

__all__ = ["Heard", "Hearing", "Message", "listen"]

logger = get_logger("alkstore_django.notifications")

PAGE = 500
"""Rows that one look reads at most."""

WINDOW = 10_000
"""Ids below the newest among which, at the beginning, those are looked for that are not committed yet."""

GRACE = 10.0
"""Seconds from a number's being given to its row's being there, where only the row can be seen (MariaDB):
an INSERT gives many numbers at once, and writes the rows one by one."""

YOUNG = 1.0
"""Seconds in which a gap is looked for in every look; where it has no sign of life, then once in so many."""

CHECK = 5.0
"""Seconds between two looks whether the numbers have begun again, as in a restored database."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification. ``payload`` is its JSON decoded, the text itself where that is no JSON, ``None`` for
    none. ``created_at`` is when it was put in, in Unix seconds by the database's clock."""

    id: int
    channel: str
    payload: Any
    created_at: int

    @classmethod
    def of(cls, message: Message) -> Heard:
        return cls(message.id, message.channel, _decoded(message.raw), message.created_at)


def _decoded(raw: str | bytes | None) -> Any:
    try:
        return decode(raw) if raw else None
    except UndecodablePayload:
        return readable(raw)


class Hearing:
    """What has been heard in a database so far, by one connection. ``alone``: nobody else's rows can be
    seen, as in the transaction of a ``TestCase``."""

    def __init__(self, using: str, *, alone: bool = False) -> None:
        self._rows: NotificationManager = Notification.objects.db_manager(using)
        self._can_be_late = not alone and not has_one_writer(using)
        self._newest = 0
        self._gaps = Gaps()
        self._held: list[Message] = []
        self._checked = self._searched = 0.0

    def begin(self) -> None:
        """From here on: nothing of what is committed by now, everything that is committed later."""
        self._newest = self._rows.newest_id()
        self._gaps = Gaps()
        if self._can_be_late and (writers := self._rows.writers()) != frozenset():
            first = max(1, self._newest - WINDOW + 1)
            seen = self._rows.ids_between(first, self._newest)
            self._gaps.add_missing(seen, first, self._newest, time.monotonic())
            self._gaps.limit()
            if writers is not None:
                _remember(list(self._gaps), writers)

    def look(self, channels: Collection[str], *, thoroughly: bool = False) -> tuple[list[Message], bool]:
        """What has come on these channels, by id, and whether there is more to read at once.

        ``thoroughly`` leaves out no gap: what is committed by now is heard by now.
        """
        now = time.monotonic()
        if now - self._checked >= CHECK:
            self.check()
        rows = self._rows.after(self._newest, PAGE, channels)
        for row in rows:
            if self._can_be_late and row.id > self._newest + 1:
                self._gaps.add(self._newest + 1, row.id - 1, now)
            self._newest = row.id
        self._held += rows  # if what follows fails, the next look has them
        is_more = len(rows) == PAGE
        if not is_more and self._gaps:
            late, is_more = self._search(channels, thoroughly)
            self._held += late
        rows, self._held = sorted(self._held), []
        return [row for row in rows if row.channel in channels], is_more

    def again(self, ids: Sequence[int], channel: str) -> list[Message]:
        """What was seen on a channel before, by id, as far as it is still there."""
        return self._rows.with_ids(ids, channel)

    def check(self) -> None:
        """If there is nothing above an id that was seen, what comes next may have a lower one."""
        self._checked = time.monotonic()
        newest = self._rows.newest_id()
        if newest < self._newest:
            self._newest = newest
            self._gaps.keep(lambda gap: gap.last <= newest)

    def _search(self, channels: Collection[str], thoroughly: bool) -> tuple[list[Message], bool]:
        """Look for what is missing; ask before who may still bring it, so that it is there if they end."""
        if given_up := self._gaps.limit():
            logger.warning("Too much is missing: %d gaps in the ids of notifications are given up.", given_up)
        now = time.monotonic()
        writers = self._rows.writers()
        if writers is not None:
            gaps = list(self._gaps)
            _remember(gaps, writers)
        else:
            is_whole = thoroughly or now - self._searched >= YOUNG
            gaps = [gap for gap in self._gaps if is_whole or gap.is_pending or now - gap.since < YOUNG]
            self._mark_pending(gaps)
        rows = self._rows.among([(gap.first, gap.last) for gap in gaps], PAGE, channels)
        self._gaps.fill(row.id for row in rows)
        if len(rows) == PAGE:
            return rows, True
        if writers is not None:
            self._gaps.keep(lambda gap: bool(gap.writers))
        elif is_whole:
            self._searched = now
            self._gaps.keep(lambda gap: gap.is_pending or now - gap.since < GRACE)
        return rows, False

    def _mark_pending(self, gaps: Sequence[Gap]) -> None:
        pending = self._rows.uncommitted([(gap.first, gap.last) for gap in gaps], PAGE)
        beyond = pending[-1] if len(pending) == PAGE else gaps[-1].last if gaps else 0
        for gap in gaps:
            at = bisect_left(pending, gap.first)
            gap.is_pending = gap.last > beyond or (at < len(pending) and pending[at] <= gap.last)


def _remember(gaps: Sequence[Gap], writers: frozenset[str]) -> None:
    """Who may bring what is missing is among those who were writing when it was found missing."""
    for gap in gaps:
        gap.writers = writers | {PREPARED} if gap.writers is None else gap.writers & writers


def listen(using: str) -> None:
    """Begin to be told, on this connection, of the channels that are notified on, until it is closed
    (PostgreSQL)."""
    Notification.objects.db_manager(using).listen()
