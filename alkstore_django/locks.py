"""Named locks: of all processes of a database one at a time has a name, for a time, by its clock."""

from __future__ import annotations

from .models import Lock, LockManager

BATCH = 500
"""Rows that one transaction of a sweep deletes at most."""

MARGIN = 3_600
"""Seconds for which a lock that has ended is kept: who leads the schedulers next looks who did before."""


def sweep_expired(using: str) -> int:
    """Delete up to ``BATCH`` locks that ended more than ``MARGIN`` seconds ago; how many. They were free
    already: this only tidies up."""
    return _locks(using).sweep(MARGIN, BATCH)


def count_expired(using: str) -> int:
    """How many locks ``sweep_expired`` would delete in all."""
    return _locks(using).count_ended(MARGIN)


def _locks(using: str) -> LockManager:
    return Lock.objects.db_manager(using)
