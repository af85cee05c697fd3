"""Which boundaries of a schedule are fired when several are due, and which are skipped. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from .cron import Cron
from .schedule_values import ALL, NONE
from .values import utc

CAP = 64
"""Boundaries of one schedule that ``all`` makes up for; then it jumps (honker-spec 2.3)."""


class NeverAgain(ValueError):
    """There is no next boundary."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``boundaries`` are to be fired; of all that are due ``skipped`` are left out. ``next`` is the first
    that is not due."""

    boundaries: list[datetime]
    skipped: int
    next: datetime


def plan(cron: Cron, due: int, now: int, catch_up: str, grace: int) -> Plan:
    """For a schedule whose boundary of ``due`` is not later than ``now``, both in Unix seconds.

    ``latest`` fires the newest, ``none`` the newest if it is at most ``grace`` seconds old, ``all`` the
    oldest ``CAP``. Raises ``NeverAgain``, and ``ValueError`` for what is no time. Takes no longer when more
    are due.
    """
    first, present = utc(due), utc(now)
    following = cron.next_after(first)
    later, last = (0, None) if following is None or following > present else cron.due(first, present)
    newest = first if last is None else last
    if catch_up == ALL:
        fired = [first, *islice(_after(cron, first), min(later, CAP - 1))]
        newest = fired[-1] if later < CAP else present
    elif catch_up == NONE and present - newest > timedelta(seconds=grace):
        fired = []
    else:
        fired = [newest]
    if newest is not first:
        following = cron.next_after(newest)
    if following is None:
        raise NeverAgain("there is no later date")
    return Plan(fired, 1 + later - len(fired), following)


def _after(cron: Cron, instant: datetime) -> Iterator[datetime]:
    found = cron.next_after(instant)
    while found is not None:
        yield found
        found = cron.next_after(found)
