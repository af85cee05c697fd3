"""Named locks: of all processes of a database one at a time has a name, for a time, by its clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async

from .exceptions import LockHeld
from .held_locks import HeldLock
from .logs import get_logger
from .models import Lock, LockManager, alias
from .named_locks import TRIES, NamedLock
from .names import checked, is_text
from .values import moment, seconds, span

__all__ = [
    "HeldLock",
    "Holder",
    "LockHeld",
    "NamedLock",
    "aforce_release",
    "aheld",
    "aholder",
    "force_release",
    "held",
    "holder",
    "lock",
]

logger = get_logger("alkstore_django.locks")

BATCH = 500
"""Rows that one transaction of a sweep deletes at most."""

MARGIN = 3_600
"""Seconds for which a lock that has ended is kept: who leads the schedulers next looks who did before."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock. ``expires_at``, in UTC, is when it ends without a renewal; ``None`` for a time that
    no ``datetime`` can show."""

    name: str
    owner: str
    expires_at: datetime | None


def lock(
    name: str,
    ttl: int | float | timedelta = 60,
    owner: str | None = None,
    wait: int | float | timedelta | None = None,
    renew: bool = False,
    using: str | None = None,
) -> NamedLock:
    """A lock by name, for ``with``, ``async with``, and above ``def`` and ``async def``.

    ``ttl`` is for how long it holds: whole seconds or a ``timedelta``, from 1, a fraction rounded up. It ends
    by the database's clock, in whole seconds, so up to a second early. Without ``wait`` a lock that somebody
    else has raises ``LockHeld`` at once, else after so many seconds at most, or a ``timedelta``. With
    ``renew`` a thread holds it for as long as this process lives, for ``ttl`` from a third of it to the next.
    ``owner`` is another name for each acquisition, unless it is given: then to acquire what the owner has is
    to extend it, and calls with the same owner do not exclude each other.

    ``with`` gives a ``HeldLock``. Raises ``TypeError`` and ``ValueError`` for bad input, before any SQL.
    """
    held_for = seconds("ttl", ttl, low=1)
    if renew and held_for < 2:
        raise ValueError("ttl must be at least 2 seconds with renew=True: a lock ends at a whole second.")
    return NamedLock(
        checked("lock", name),
        held_for,
        None if owner is None else checked("lock owner", owner),
        0.0 if wait is None else span("wait", wait, low=0),
        bool(renew),
        using,
    )


def holder(name: str, using: str | None = None) -> Holder | None:
    """Who holds a lock now; ``None`` if nobody does. Raises ``TypeError`` for what is no string."""
    if not isinstance(name, str):
        raise TypeError(f"A lock name must be a string, not {type(name).__name__}.")
    if not is_text(name):
        return None
    found = _locks(alias(using)).look(name)
    return None if found is None else Holder(name, found[0], moment(found[1]))


def held(using: str | None = None) -> list[Holder]:
    """All locks that somebody holds now, by name; those of programs of honker and of the scheduler that leads
    (``honker-scheduler``) among them."""
    return [Holder(name, owner, moment(end)) for name, owner, end in sorted(_locks(alias(using)).held())]


def force_release(name: str, using: str | None = None, owner: str | None = None) -> bool:
    """Take a lock away from whoever holds it, or only from ``owner``; ``False`` if it is not held so.

    Its holder is not stopped. It finds that the lock is lost when it renews it, or its time is over, and its
    token is smaller than the next one's. Raises ``TypeError`` for a name that is no string.
    """
    for _ in range(TRIES):
        found = holder(name, using)
        if found is None or owner not in (None, found.owner):
            return False
        if _locks(alias(using)).force(name, found.owner):
            logger.warning("Lock %r was taken away from %r.", name, found.owner)
            return True
    return False


def sweep_expired(using: str) -> int:
    """Delete up to ``BATCH`` locks that ended more than ``MARGIN`` seconds ago; how many. They were free
    already: this only tidies up."""
    return _locks(using).sweep(MARGIN, BATCH)


def count_expired(using: str) -> int:
    """How many locks ``sweep_expired`` would delete in all."""
    return _locks(using).count_ended(MARGIN)


def _locks(using: str) -> LockManager:
    return Lock.objects.db_manager(using)


aholder = sync_to_async(holder)
aheld = sync_to_async(held)
aforce_release = sync_to_async(force_release)
