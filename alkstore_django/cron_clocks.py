"""From local times to instants: what happens on the days when the clocks of a zone change.

Instants are ``datetime`` in UTC without tzinfo, in whole seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from .cron_fields import Every
from .cron_wall import EARLIEST, LATEST, Wall
from .cron_zones import SECOND, Change, last_change, next_change, offset

MADE_UP = timedelta(hours=3)
"""Debian's cron makes up for fixed times that a shorter jump forward skipped; a longer one is a new date."""

LONGEST_REPEAT = timedelta(days=1)
"""No clock was ever put back by more."""

TEN_YEARS = timedelta(days=3_653)


class Clock(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """The first instant later than ``after``; None if there is none."""

    def previous(self, before: datetime) -> datetime | None:
        """The last instant earlier than ``before``; None if there is none."""

    def count(self, after: datetime, until: datetime) -> int:
        """How many instants are later than ``after``, and not later than ``until``."""

    def obstacle(self, since: datetime) -> str | None:
        """Why honker, reading the canonical form in the same zone, finds other instants in ten years."""


class Interval:
    """Of ``@every``: seconds, whatever clocks show."""

    def __init__(self, every: Every) -> None:
        self._every = every

    def next(self, after: datetime) -> datetime | None:
        return self._beyond(after, self._every.seconds)

    def previous(self, before: datetime) -> datetime | None:
        return self._beyond(before, -self._every.seconds)

    def count(self, after: datetime, until: datetime) -> int:
        return max(0, (until - after) // timedelta(seconds=self._every.seconds))

    def obstacle(self, since: datetime) -> str | None:
        return None

    @staticmethod
    def _beyond(instant: datetime, seconds: int) -> datetime | None:
        try:
            found = instant + timedelta(seconds=seconds)
        except OverflowError:
            return None
        return found if EARLIEST <= found <= LATEST else None


class DebianClock:
    """Of our tables. Fixed times happen once a day: in the first of two passes, or, when a jump of less
    than three hours skips them, right after it. All other times follow the wall clock as it goes."""

    def __init__(self, wall: Wall, zone: ZoneInfo, *, fixed: bool, either_day: bool) -> None:
        self._wall, self._zone, self._fixed, self._either_day = wall, zone, fixed, either_day

    def next(self, after: datetime) -> datetime | None:
        shift = offset(self._zone, after)
        local = self._wall.next(self._start(after, after + shift))
        while local is not None:
            change = next_change(self._zone, after, until=local - shift)
            if change is None:
                return local - shift
            if change.forward and local < change.new:
                if self._makes_up(change):
                    return change.at
                local = self._wall.next(change.new - SECOND)
            elif not change.forward and not self._fixed:
                local = self._wall.next(change.new - SECOND)
            after, shift = change.at, change.after
        return None

    def previous(self, before: datetime) -> datetime | None:
        until = before - SECOND
        shift = offset(self._zone, until)
        local = self._wall.previous(until + shift + SECOND)
        while local is not None:
            change = last_change(self._zone, until, since=local - shift - LONGEST_REPEAT)
            if change is None or local >= (max(change.old, change.new) if self._fixed else change.new):
                return local - shift
            if change.forward and local >= change.old and self._makes_up(change):
                return change.at
            until, shift = change.at - SECOND, change.before
            local = self._wall.previous(change.old)
        return None

    def count(self, after: datetime, until: datetime) -> int:
        shift = offset(self._zone, after)
        start, found = self._start(after, after + shift), 0
        while change := next_change(self._zone, after, until):
            found += self._wall.count(start + SECOND, change.old)
            start = (change.old if self._fixed else change.new) - SECOND
            if change.forward:
                start = change.new - SECOND
                if self._makes_up(change) and not self._wall.holds(change.new, change.new + SECOND):
                    found += self._wall.holds(change.old, change.new)
            after, shift = change.at, change.after
        return found + self._wall.count(start + SECOND, until + shift + SECOND)

    def obstacle(self, since: datetime) -> str | None:
        if self._either_day:
            return "honker wants both the day of month and the day of week to match, not one of them"
        until = since + TEN_YEARS
        change = next_change(self._zone, since - LONGEST_REPEAT, until)
        while change is not None:
            if problem := self._disagreement(change):
                return f"{problem}, as on {change.at + change.before:%Y-%m-%d}"
            change = next_change(self._zone, change.at, until)
        return None

    def _start(self, after: datetime, local: datetime) -> datetime:
        """Where to look from: fixed times are not looked for in a second pass."""
        change = last_change(self._zone, after, since=after - LONGEST_REPEAT) if self._fixed else None
        return local if change is None else max(local, change.old - SECOND)

    def _makes_up(self, change: Change) -> bool:
        return self._fixed and change.after - change.before < MADE_UP

    def _disagreement(self, change: Change) -> str | None:
        if not change.forward:
            if self._wall.holds(change.new, change.old):
                ours = "in the first" if self._fixed else "in both"
                return f"when clocks repeat these times, honker runs in the second pass and this {ours}"
            return None
        made_up = self._makes_up(change) or self._wall.holds(change.new, change.new + SECOND)
        if self._wall.holds(change.old, change.new) and not made_up:
            return "when clocks skip these times, honker runs right after and this does not"
        return None


class HonkerClock:
    """Of tables that honker wrote: skipped times happen right after, repeated ones in the second pass."""

    def __init__(self, wall: Wall, zone: ZoneInfo) -> None:
        self._wall, self._zone = wall, zone

    def next(self, after: datetime) -> datetime | None:
        local = self._wall.next(after + offset(self._zone, after))
        return None if local is None else self._instant(local)

    def previous(self, before: datetime) -> datetime | None:
        until = before - SECOND
        local = self._wall.previous(until + offset(self._zone, until) + SECOND)
        while local is not None and (found := self._instant(local)) >= before:
            change = next_change(self._zone, until, found)  # to the second pass, which is yet to come
            local = self._wall.previous(change.new if change else local)
        return None if local is None else found

    def count(self, after: datetime, until: datetime) -> int:
        shift = offset(self._zone, after)
        start, found = after + shift, 0
        while change := next_change(self._zone, after, until):
            found += self._wall.count(start + SECOND, min(change.old, change.new))
            if change.forward and not self._wall.holds(change.new, change.new + SECOND):
                found += self._wall.holds(change.old, change.new)
            start = max(start, change.new - SECOND)
            after, shift = change.at, change.after
        end = until + shift + SECOND
        ahead = next_change(self._zone, until, until + LONGEST_REPEAT)
        if ahead is not None and not ahead.forward:  # what is repeated is yet to come
            end = min(end, ahead.new)
        return found + self._wall.count(start + SECOND, end)

    def obstacle(self, since: datetime) -> str | None:
        return None

    def _instant(self, local: datetime) -> datetime:
        late, early = (local - self._offset(local, fold) for fold in (1, 0))
        for instant in (late, early):
            if instant + offset(self._zone, instant) == local:
                return instant
        change = next_change(self._zone, late, early)  # skipped: in between is the jump
        return early if change is None else change.at

    def _offset(self, local: datetime, fold: int) -> timedelta:
        return local.replace(tzinfo=self._zone, fold=fold).utcoffset() or timedelta()
