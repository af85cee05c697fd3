"""The wall clock: which local times a table names, found by croniter, which is told of no zone."""

from __future__ import annotations

from copy import copy
from datetime import datetime

from croniter import croniter

from .cron_fields import Table

EARLIEST, LATEST = datetime(1900, 1, 1), datetime(9998, 12, 31)
"""No instant and no local time is looked for beyond these; near the year 9999 a date cannot be shown."""


class Wall:
    """The local times of a table, as ``datetime`` without tzinfo, in whole seconds."""

    def __init__(self, table: Table) -> None:
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

    def _look(self, way: str, start: datetime) -> datetime | None:
        if self._engine is None:
            return None
        engine = copy(self._engine)  # it remembers where it stands, and threads may share this
        try:
            found: datetime = getattr(engine, way)(datetime, start_time=start)
        except (ValueError, OverflowError):  # the end of the calendar, or no match in fifty years
            return None
        return found if EARLIEST <= found <= LATEST else None
