"""Statements about rate limits: honker's fixed windows (honker-spec 2.5), and what their lengths are."""

from __future__ import annotations

from .clauses import Clauses
from .tables import RATE_LIMITS, RATE_PERIODS


class Limiting(Clauses):
    """A window is a row by its start, which does not say how long it is: that stands beside, by name."""

    counts_calls_in_one_statement = True
    """``count_call`` opens a window where there is none; otherwise ``open_window`` does."""

    division = "/"
    """That of whole numbers, rounded down."""

    @property
    def window(self) -> str:
        """The start of the window that it is now; asks the clock once."""
        return f"({self.now} {self.division} %(per)s) * %(per)s"

    @property
    def count_call(self) -> str:
        """Count one call in the window, if it has room; how many these are now. No row, if it is full."""
        row = f"%(name)s, {self.window}, 1"
        return (
            f"{self._insert(RATE_LIMITS, ('name', 'window_start', 'count'), row)} "
            "ON CONFLICT (name, window_start) DO UPDATE "
            f"SET count = {RATE_LIMITS}.count + 1 WHERE {RATE_LIMITS}.count < %(limit)s RETURNING count"
        )

    @property
    def open_window(self) -> str:
        """Count the first call of a window; nothing, if there is one."""
        row = f"%(name)s, {self.window}, 1"
        return self.insert_new(RATE_LIMITS, ("name", "window_start", "count"), row)

    @property
    def window_now(self) -> str:
        """The seconds and fractions until the end of the window, and how many calls it has counted; NULL,
        if nobody has opened it."""
        counted = f"SELECT count FROM {RATE_LIMITS} WHERE name = %(name)s AND window_start = {self.window}"
        return f"SELECT {self.window} + %(per)s - {self.precise_now}, ({counted})"

    # -- the lengths of windows -------------------------------------------------------------------

    @property
    def rate_period(self) -> str:
        return f"SELECT seconds FROM {RATE_PERIODS} WHERE name = %(name)s"

    @property
    def note_period(self) -> str:
        return self.upsert_by(
            RATE_PERIODS,
            ("name", "seconds"),
            "%(name)s, %(per)s",
            f"seconds = {self.greatest}({RATE_PERIODS}.seconds, %(per)s)",
        )

    # -- maintenance ------------------------------------------------------------------------------

    @property
    def _period(self) -> str:
        """That of a name; NULL, if nobody has said it."""
        return f"(SELECT p.seconds FROM {RATE_PERIODS} p WHERE p.name = {RATE_LIMITS}.name)"

    @property
    def _old_windows(self) -> str:
        """Those that began longer ago than ``age``, and are over for sure. Where nobody has said how long
        they are, they are taken for the longest that there is."""
        longest = f"COALESCE({self._period}, (SELECT MAX(seconds) FROM {RATE_PERIODS}), 0)"
        return (
            f"FROM {RATE_LIMITS} WHERE window_start < {self.now} - %(age)s "
            f"AND window_start < {self.now} - {longest}"
        )

    @property
    def sweep_windows(self) -> str:
        """Up to ``n`` of them."""
        picked = f"SELECT name, window_start {self._old_windows} LIMIT %(n)s"
        return f"DELETE FROM {RATE_LIMITS} WHERE (name, window_start) IN ({picked}{self.skip_locked})"

    @property
    def ended_windows(self) -> str:
        """Up to ``n`` windows, of names whose periods are known, that ended more than ``margin`` seconds
        ago."""
        return (
            f"SELECT w.name, w.window_start FROM {RATE_PERIODS} p JOIN {RATE_LIMITS} w ON w.name = p.name "
            f"AND w.window_start < {self.now} - p.seconds - %(margin)s LIMIT %(n)s"
        )

    @property
    def count_ended(self) -> str:
        """How many of these there are, and how many names have no other windows."""
        ended = f"w.name = p.name AND w.window_start < {self.now} - p.seconds - %(margin)s"
        stays = f"w.name = p.name AND w.window_start >= {self.now} - p.seconds - %(margin)s"
        return (
            f"SELECT (SELECT COUNT(*) FROM {RATE_PERIODS} p JOIN {RATE_LIMITS} w ON {ended}), "
            f"(SELECT COUNT(*) FROM {RATE_PERIODS} p "
            f"WHERE NOT EXISTS (SELECT 1 FROM {RATE_LIMITS} w WHERE {stays}))"
        )

    def delete_ended_windows(self, pairs: str) -> str:
        return (
            f"DELETE FROM {RATE_LIMITS} WHERE ({pairs}) "
            f"AND window_start < {self.now} - %(margin)s - {self._period}"
        )

    @property
    def unused_periods(self) -> str:
        """Up to ``n`` names without a window."""
        return (
            f"SELECT p.name FROM {RATE_PERIODS} p WHERE NOT EXISTS "
            f"(SELECT 1 FROM {RATE_LIMITS} w WHERE w.name = p.name) LIMIT %(n)s"
        )

    def forget_periods(self, ids: str) -> str:
        return (
            f"DELETE FROM {RATE_PERIODS} WHERE name IN ({ids}) AND NOT EXISTS "
            f"(SELECT 1 FROM {RATE_LIMITS} w WHERE w.name = {RATE_PERIODS}.name)"
        )
