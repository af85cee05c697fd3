"""``RateLimit``: a row for each window of a fixed-window limit, in honker's table; ``RatePeriod`` beside."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import models

from alkstore_django.sql import tables

from .base import SQLManager, placeholders, retrying
from .fields import NameField

TRIES = 8
"""How often a call is counted that meets the end of a window, or somebody who opens one, each time."""

AT_ONCE = 200
"""Windows per statement: two parameters each."""


class Counted(NamedTuple):
    """``calls`` are those that the window has counted, ``left`` the seconds until its end, if it is full."""

    allowed: bool
    calls: int
    left: float


class RateLimitManager(SQLManager):
    """Counts calls. ``per`` and ``age`` are in whole seconds."""

    def try_count(self, name: str, limit: int, per: int) -> Counted:
        """Count a call in the window that it is now, unless it has counted ``limit``."""
        row = {"name": name, "limit": limit, "per": per}
        left = 0.0
        for _ in range(TRIES):
            count = retrying(self.database, lambda: self._count(row))
            if count:
                return Counted(True, count, 0.0)
            left, count = self._window(row)
            if count >= limit and left > 0:
                break
        return Counted(False, limit, max(0.0, left))

    def _count(self, row: dict[str, Any]) -> int:
        """How many calls these are now; 0 if it was not counted."""
        dialect = self.dialect
        if dialect.counts_calls_in_one_statement:
            rows = self.fetch(dialect.count_call, row)
            return int(rows[0][0]) if rows else 0
        if self.execute(dialect.count_call, row):
            return self._window(row)[1] or int(row["limit"])
        return 1 if self.execute(dialect.open_window, row) else 0

    def _window(self, row: dict[str, Any]) -> tuple[float, int]:
        """Seconds until the end of the window, and how many calls it has counted."""
        left, count = self.fetch(self.dialect.window_now, row)[0]
        return float(left), int(count or 0)

    def note_period(self, name: str, per: int) -> None:
        """Write down that a name has windows of that length, unless longer ones are known."""
        row = {"name": name, "per": per}
        known = self.fetch(self.dialect.rate_period, row)
        if not known or known[0][0] < per:
            retrying(self.database, lambda: self.execute(self.dialect.note_period, row))

    # -- maintenance ------------------------------------------------------------------------------

    def sweep(self, age: int, n: int) -> int:
        """Delete up to ``n`` windows that began more than ``age`` seconds ago and are over; how many."""
        row = {"age": age, "n": n}
        return retrying(self.database, lambda: self.execute(self.dialect.sweep_windows, row))

    def sweep_ended(self, margin: int, n: int) -> int:
        """Delete up to ``n`` windows, of names with a known period, that ended more than ``margin`` seconds
        ago, and up to ``n`` names that have none any more; how many rows."""
        row = {"margin": margin, "n": n}
        found = self.fetch(self.dialect.ended_windows, row)
        deleted = sum(self._delete(found[at : at + AT_ONCE], row) for at in range(0, len(found), AT_ONCE))
        return deleted + self._forget_periods(n)

    def count_ended(self, margin: int) -> int:
        """How many rows there are for it to delete."""
        return sum(map(int, self.fetch(self.dialect.count_ended, {"margin": margin})[0]))

    def _delete(self, windows: list[tuple[Any, ...]], row: dict[str, Any]) -> int:
        terms = []
        params = dict(row)
        for index, (name, start) in enumerate(windows):
            terms.append(f"(name = %(name{index})s AND window_start = %(start{index})s)")
            params |= {f"name{index}": name, f"start{index}": start}
        statement = self.dialect.delete_ended_windows(" OR ".join(terms))
        return retrying(self.database, lambda: self.execute(statement, params))

    def _forget_periods(self, n: int) -> int:
        unused = [name for (name,) in self.fetch(self.dialect.unused_periods, {"n": n})]
        if not unused:
            return 0
        names, params = placeholders(unused)
        return retrying(self.database, lambda: self.execute(self.dialect.forget_periods(names), params))


class RateLimit(models.Model):
    """How often a name was let through in the window that began at ``window_start``."""

    pk = models.CompositePrimaryKey("name", "window_start")
    name = NameField()
    window_start = models.BigIntegerField()
    count = models.BigIntegerField(db_default=0)

    objects = RateLimitManager()

    class Meta:
        db_table = tables.RATE_LIMITS

    def __str__(self) -> str:
        return f"{self.name} from {self.window_start}"


class RatePeriod(models.Model):
    """The longest window of a name: the rows of windows do not say when they end."""

    name = NameField(primary_key=True)
    seconds = models.BigIntegerField()

    class Meta:
        db_table = tables.RATE_PERIODS

    def __str__(self) -> str:
        return f"period of {self.name}"
