"""When a schedule is due: cron expressions in a time zone. Pure: no Django and no database.

The dialect is that of Debian's cron, with what people expect beyond it; the engine behind is croniter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from . import cron_fields, cron_foreign
from .cron_clocks import TEN_YEARS, Clock, DebianClock, HonkerClock, Interval
from .cron_fields import CronError, Every, Table
from .cron_wall import EARLIEST, LATEST, Wall
from .cron_words import describe
from .cron_zones import SECOND, zone

__all__ = ["Cron", "CronError"]


@dataclass(frozen=True)
class Cron:
    """An expression in a zone; made by ``parse``. Two of the same expression and zone are equal.

    Instants go in with any tzinfo and come out in UTC, in whole seconds, from 1900 to 9998.
    """

    expression: str
    """As it was written."""

    timezone: str
    """The name of the zone whose wall clock counts; ``@every`` asks none."""

    foreign: bool
    """Whether it is read as honker reads it."""

    canonical: str = field(compare=False)
    """In the grammar that every honker understands: what is stored, so that no scheduler stumbles."""

    _meaning: Every | Table = field(compare=False, repr=False)
    _clock: Clock = field(compare=False, repr=False)

    @classmethod
    def parse(cls, expression: str, timezone: str = "UTC") -> Cron:
        """Read an expression by our rules. Raises ``CronError`` (a ``ValueError``), which says what to do.

        An expression whose date never comes, such as 31 February, is read; it is not ``possible``.
        """
        meaning, place = cron_fields.parse(expression), zone(timezone)
        clock: Clock
        if isinstance(meaning, Every):
            clock = Interval(meaning)
        else:
            wall = Wall(meaning)
            clock = DebianClock(wall, place, fixed=meaning.fixed, either_day=meaning.either_day)
        return cls(expression, timezone, False, meaning.canonical, meaning, clock)

    @classmethod
    def parse_foreign(cls, expression: str, timezone: str = "UTC") -> Cron:
        """Read an expression that another program stored, by honker's rules. Raises ``CronError``.

        Both day fields must match; ``5/15`` is 5; of repeated local times the second is meant.
        """
        if not isinstance(expression, str):
            raise CronError(f"A cron expression is a string, not {type(expression).__name__}.")
        meaning, place = cron_foreign.parse(expression), zone(timezone)
        clock: Clock
        clock = Interval(meaning) if isinstance(meaning, Every) else HonkerClock(Wall(meaning), place)
        return cls(expression, timezone, True, meaning.canonical, meaning, clock)

    @property
    def possible(self) -> bool:
        """Whether there is such a date at all; if not, ``next_after`` is always None."""
        return isinstance(self._meaning, Every) or self._meaning.possible

    @property
    def is_interval(self) -> bool:
        """Whether it is an ``@every``: a distance, which asks no clock on a wall."""
        return isinstance(self._meaning, Every)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first instant later than ``instant``; None if none comes.

        Raises ``CronError`` for an instant without a time zone.
        """
        after = max(_utc(instant).replace(microsecond=0), EARLIEST)
        return _aware(self._clock.next(after) if after < LATEST else None)

    def previous(self, instant: datetime) -> datetime | None:
        """The last instant earlier than ``instant``; None if there was none. Raises as ``next_after``.

        An ``@every`` has no phase of its own: the answer is one interval before.
        """
        exact = min(_utc(instant), LATEST)
        before = exact.replace(microsecond=0) + (SECOND if exact.microsecond else timedelta())
        return _aware(self._clock.previous(before) if before > EARLIEST + SECOND else None)

    def due(self, after: datetime, until: datetime) -> tuple[int, datetime | None]:
        """How many instants are later than ``after`` and not later than ``until``, and the last of them:
        as ``next_after`` would find them one by one, in a time that does not grow with their number."""
        low, high = (max(_utc(each).replace(microsecond=0), EARLIEST) for each in (after, until))
        high = min(high, LATEST)
        count = self._clock.count(low, high) if low < high else 0
        if not count:
            return 0, None
        if isinstance(self._meaning, Every):
            return count, _aware(low + timedelta(seconds=count * self._meaning.seconds))
        return count, _aware(self._clock.previous(high + SECOND))

    def upcoming(self, n: int, *, after: datetime | None = None) -> list[datetime]:
        """The next ``n`` instants later than ``after`` (default: now); fewer if no more come."""
        return list(islice(self._from(after), n))

    def is_like(self, other: Cron) -> bool:
        """Whether both mean the same instants, however they are written."""
        return (self._meaning, self.timezone, self.foreign) == (other._meaning, other.timezone, other.foreign)

    @property
    def portable(self) -> bool:
        """Whether ``why_not_portable()`` has nothing to say."""
        return self.why_not_portable() is None

    def why_not_portable(self, since: datetime | None = None) -> str | None:
        """What other instants honker finds in the ten years from ``since`` (default: now), in words.

        None: a honker in the same zone that reads the canonical form finds the same.
        """
        start = _utc(datetime.now(UTC) if since is None else since).replace(microsecond=0)
        return self._clock.obstacle(min(max(start, EARLIEST), LATEST - TEN_YEARS))

    def describe(self) -> str:
        """In English words, without the zone: ``at 09:00 on Monday to Friday``."""
        return describe(self._meaning)

    def _from(self, after: datetime | None) -> Iterator[datetime]:
        found = self.next_after(datetime.now(UTC) if after is None else after)
        while found is not None:
            yield found
            found = self.next_after(found)


def _utc(instant: datetime) -> datetime:
    """In UTC, without tzinfo."""
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise CronError(f"An instant is a datetime with a time zone, not {instant!r}.")
    try:
        return instant.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # at an end of the calendar, where the zone does not matter any more
        return instant.replace(tzinfo=None)


def _aware(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.replace(tzinfo=UTC)
