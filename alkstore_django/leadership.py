"""Who leads: of all schedulers of a database, ours and other programs', one holds honker's lock and fires.

Two that fire at once do no harm, each boundary is fired once all the same: the lock keeps them from doing
everything twice, and from firing by two sets of rules.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from . import schedule_changes
from .logs import get_logger
from .models import Lock, LockManager
from .schedule_rows import Schedule, rows
from .values import moment

logger = get_logger("alkstore_django.scheduler")

LOCK = "honker-scheduler"
TTL = 60
"""Seconds that the lock holds; with the name, what all programs have agreed on (honker-spec 3.5)."""

RENEWAL = 20.0
"""Seconds from one renewal to the next."""

OURS = "alkstore-"
"""How the owners begin that are schedulers of ours."""


@dataclass(frozen=True, slots=True)
class Leader:
    """Who holds the lock. ``is_ours``: it is a scheduler of this package. ``until`` is in UTC."""

    owner: str
    until: datetime | None

    @property
    def is_ours(self) -> bool:
        return self.owner.startswith(OURS)


def leader(using: str) -> Leader | None:
    """Who leads now; ``None`` if nobody does."""
    holder = _locks(using).holder(LOCK)
    return Leader(holder[0], moment(holder[1])) if holder and holder[2] > 0 else None


class Leadership:
    """One scheduler's part in it. ``owner`` begins with ``OURS`` and is nobody else's."""

    def __init__(self, using: str, owner: str) -> None:
        self.owner = owner
        self.is_held = False
        self._using = using
        self._renewed = 0.0
        self._predecessor: str | None = None
        """The owner that was seen last beside us, until we have taken over from it."""

    def hold(self, *, surely: bool = False) -> bool:
        """Lead, if nobody else does; whether it is so.

        Asks the database where a renewal is due and, ``surely``, in any case: somebody may have taken the
        lock away. What happens after the answer is left to the guard of each firing.
        """
        if not (self._renew(surely=surely) if self.is_held else self._acquire()):
            return False
        self._take_over()
        return True

    def release(self) -> None:
        """Let another lead at once."""
        if self.is_held:
            self.is_held = False
            _locks(self._using).release(LOCK, self.owner)
            logger.info("Scheduler %s has stopped leading.", self.owner)

    def forget(self) -> None:
        """Nothing is known: the database is away."""
        self._renewed = 0.0

    def _renew(self, *, surely: bool) -> bool:
        asked = time.monotonic()
        if asked - self._renewed < RENEWAL and (not surely or self._is_still_held()):
            return True
        if _locks(self._using).renew(LOCK, self.owner, TTL):
            self._renewed = asked
            return True
        self.is_held = False
        logger.warning("Scheduler %s does not lead any more: its lock has ended.", self.owner)
        return False

    def _is_still_held(self) -> bool:
        holder = _locks(self._using).holder(LOCK)
        return holder is not None and holder[0] == self.owner and holder[2] > 0

    def _acquire(self) -> bool:
        locks, asked = _locks(self._using), time.monotonic()
        holder = locks.holder(LOCK)
        if holder is not None and holder[0] != self.owner:
            if holder[0] != self._predecessor and holder[2] > 0:
                logger.info("Scheduler %s stands by: %s leads.", self.owner, holder[0])
            self._predecessor = holder[0]
            if holder[2] > 0:
                return False
        if not locks.acquire(LOCK, self.owner, TTL):
            return False
        self.is_held, self._renewed = True, asked
        logger.info("Scheduler %s leads.", self.owner)
        return True

    def _take_over(self) -> None:
        """Another program has counted by its own rules: what these do not agree on with ours begins anew.
        What the database has cut short is done the next time."""
        predecessor = self._predecessor
        if predecessor is not None and not predecessor.startswith(OURS):
            for row in rows(self._using).rows():
                if row.enabled and not row.is_foreign and not Schedule.of(row).portable:
                    schedule_changes.restart(self._using, row)
                    logger.info("Schedule %s is counted anew: %s led before.", row.name, predecessor)
        self._predecessor = None


def _locks(using: str) -> LockManager:
    return Lock.objects.db_manager(using)
