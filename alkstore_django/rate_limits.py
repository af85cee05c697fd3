"""Rate limits: so many calls in each window of time, counted in the database for all processes together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from .models import RateLimit, RateLimitManager, alias
from .names import checked
from .values import seconds, whole

BATCH = 500
"""Rows that one transaction of a sweep deletes at most."""

MARGIN = 3_600
"""Seconds for which a window is kept after its end: a clock that is set back by less grants nothing again."""

REMEMBERED = 10_000
"""Names of which this process remembers that their periods are written down."""

_periods: dict[tuple[str, str], int] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a call is allowed; true if it is.

    ``remaining`` is how many more the window had room for, ``wait`` the seconds until it ends, with a
    fraction: 0 if the call is allowed.
    """

    allowed: bool
    limit: int
    remaining: int
    wait: float

    def __bool__(self) -> bool:
        return self.allowed


def try_acquire(name: str, limit: int, per: int | float | timedelta, using: str | None = None) -> Answer:
    """Count a call, if less than ``limit`` were counted in this window of ``per`` seconds; else do not.

    Windows begin at the multiples of ``per`` since 1970, by the database's clock, and are the same for all
    processes and for programs of honker. ``limit`` is from 1; ``per`` is in whole seconds or a ``timedelta``,
    from 1, a fraction rounded up. It is one write, in the caller's transaction if there is one: a rollback
    takes the call back, and until the commit others who ask for the same name wait.

    Raises ``TypeError`` and ``ValueError`` for bad input, before any SQL.
    """
    checked("rate limit", name)
    limit, per = whole("limit", limit, 1), seconds("per", per, low=1)
    database = alias(using)
    counted = _limits(database).try_count(name, limit, per)
    _note_period(database, name, per, opened=counted.allowed and counted.calls == 1)
    return Answer(
        allowed=counted.allowed,
        limit=limit,
        remaining=max(0, limit - counted.calls),
        wait=math.ceil(counted.left * 1000) / 1000,
    )


def sweep(older_than: int | float | timedelta, using: str | None = None) -> int:
    """Delete windows that began more than ``older_than`` seconds ago; how many, in short transactions.

    One that is not over stays, whatever ``older_than`` says: see the documentation for those that only other
    programs count in. Raises ``TypeError`` and ``ValueError`` for bad input.
    """
    age, limits = seconds("older_than", older_than), _limits(alias(using))
    total = 0
    while deleted := limits.sweep(age, BATCH):
        total += deleted
    return total


def sweep_old(using: str) -> int:
    """Delete up to ``BATCH`` windows that ended more than ``MARGIN`` seconds ago, and as many names that have
    none any more; how many rows. Windows that only other programs count in stay: nobody knows when they end.
    """
    return _limits(using).sweep_ended(MARGIN, BATCH)


def count_old(using: str) -> int:
    """How many rows ``sweep_old`` would delete in all."""
    return _limits(using).count_ended(MARGIN)


def _note_period(using: str, name: str, per: int, *, opened: bool) -> None:
    """Write down how long the windows of a name are, the first time here, and with each new window: the note
    may be gone by then, together with the windows before."""
    key = using, name
    if not opened and _periods.get(key, 0) >= per:
        return
    _limits(using).note_period(name, per)
    connection = connections[using]
    if connection.in_atomic_block:
        transaction.on_commit(partial(_remember, key, per), using=using)
    elif connection.get_autocommit():
        _remember(key, per)


def _remember(key: tuple[str, str], per: int) -> None:
    if len(_periods) >= REMEMBERED:
        _periods.clear()
    _periods[key] = max(per, _periods.get(key, 0))


def _limits(using: str) -> RateLimitManager:
    return RateLimit.objects.db_manager(using)


atry_acquire = sync_to_async(try_acquire)
asweep = sync_to_async(sweep)
