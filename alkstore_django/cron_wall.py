"""The wall clock: which local times a table names, found by croniter, which is told of no zone."""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from datetime import date, datetime, timedelta

from croniter import croniter

from .cron_fields import Table

EARLIEST, LATEST = datetime(1900, 1, 1), datetime(9998, 12, 31)
"""No instant and no local time is looked for beyond these; near the year 9999 a date cannot be shown."""


class Wall:
    """The local times of a table, as ``datetime`` without tzinfo, in whole seconds."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._engine: croniter | None = None
        if table.possible:
            # Canonical, so that the engine meets none of the forms that it reads in its own way.
            text = table.canonical
            fields = text if len(text.split()) == 6 else f"0 {text}"
            self._engine = croniter(fields, EARLIEST, day_or=table.either_day, second_at_beginning=True)

    def next(self, after: datetime) -> datetime | None:
        """The first local time later than ``after``."""
        return self._look("get_next", after)

    def previous(self, before: datetime) -> datetime | None:
        """The last local time earlier than ``before``."""
        return self._look("get_prev", before)

    def holds(self, low: datetime, high: datetime) -> bool:
        """Whether there is a local time from ``low`` to just before ``high``."""
        found = self.previous(high)
        return found is not None and found >= low

    def count(self, low: datetime, high: datetime) -> int:
        """How many local times there are from ``low`` to just before ``high``."""
        if self._engine is None or low >= high:
            return 0
        found, day = 0, low.date()
        while day <= high.date():
            if self._is_on(day):
                found += self._times_before(high if day == high.date() else None)
                found -= self._times_before(low) if day == low.date() else 0
            day += timedelta(days=1)
        return found

    def _is_on(self, day: date) -> bool:
        _, _, _, days, months, weekdays = self._table.values
        if day.month not in months:
            return False
        by_date, by_week = day.day in days, day.isoweekday() % 7 in weekdays
        return by_date or by_week if self._table.either_day else by_date and by_week

    def _times_before(self, moment: datetime | None) -> int:
        """How many times of a day are before that of ``moment``; all of them without one."""
        seconds, minutes, hours = self._table.values[:3]
        if moment is None:
            return len(hours) * len(minutes) * len(seconds)
        found = bisect_left(hours, moment.hour) * len(minutes) * len(seconds)
        if moment.hour in hours:
            found += bisect_left(minutes, moment.minute) * len(seconds)
            if moment.minute in minutes:
                found += bisect_left(seconds, moment.second)
        return found

    def _look(self, way: str, start: datetime) -> datetime | None:
        if self._engine is None:
            return None
        engine = copy(self._engine)  # it remembers where it stands, and threads may share this
        try:
            found: datetime = getattr(engine, way)(datetime, start_time=start)
        except (ValueError, OverflowError):  # the end of the calendar, or no match in fifty years
            return None
        return found if EARLIEST <= found <= LATEST else None
