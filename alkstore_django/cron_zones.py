"""Time zones by name, and when their clocks change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .cron_fields import CronError

SECOND = timedelta(seconds=1)
STEP = timedelta(hours=12)
"""Two changes of one zone are further apart, in all that is recorded since 1970."""


@dataclass(frozen=True)
class Change:
    """A moment ``at`` (UTC, without tzinfo) from which the clocks of a zone show another offset."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def old(self) -> datetime:
        """What the clocks would show at that moment, had they not been changed."""
        return self.at + self.before

    @property
    def new(self) -> datetime:
        """What they show."""
        return self.at + self.after

    @property
    def forward(self) -> bool:
        """Whether times from ``old`` to ``new`` are skipped; else those from ``new`` to ``old`` repeat."""
        return self.after > self.before


def zone(name: str) -> ZoneInfo:
    """The zone of that name. Raises ``CronError``."""
    if not isinstance(name, str):
        raise CronError(f"A time zone is given by its name, such as 'Europe/Berlin', not by {name!r}.")
    if name == "localtime":
        raise CronError("The time zone 'localtime' is another one on each host; name the one that you mean.")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # the last for the name of a folder
        raise CronError(f"There is no time zone {name!r}; use a name such as 'Europe/Berlin'.") from error


def offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    """What to add to an instant (UTC, without tzinfo) to get the wall clock's time."""
    return zone.fromutc(instant.replace(tzinfo=zone)).replace(tzinfo=None) - instant


def next_change(zone: ZoneInfo, after: datetime, until: datetime) -> Change | None:
    """The first change later than ``after``, if there is one by ``until``."""
    for year in range(after.year, until.year + 1):
        for change in changes(zone, year):
            if after < change.at <= until:
                return change
    return None


def last_change(zone: ZoneInfo, until: datetime, since: datetime) -> Change | None:
    """The last change by ``until``, if it is not before ``since``."""
    for year in range(until.year, since.year - 2, -1):
        for change in reversed(changes(zone, year)):
            if since <= change.at <= until:
                return change
    return None


@lru_cache(maxsize=4_096)
def changes(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """All changes after the first second of that year, up to the first second of the next, in order."""
    found = []
    start, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)
    before = offset(zone, start)
    while start < end:
        step = min(start + STEP, end)
        after = offset(zone, step)
        if after != before:
            found.append(Change(_moment(zone, start, step, before), before, after))
        start, before = step, after
    return tuple(found)


def _moment(zone: ZoneInfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    """The second in which the offset stops being ``before``, by halves."""
    while high - low > SECOND:
        middle = low + timedelta(seconds=(high - low) // SECOND // 2)
        if offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high
