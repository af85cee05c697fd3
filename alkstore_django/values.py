"""Numbers and times as callers give them, turned into the whole numbers that the tables hold.

Everything is checked before any SQL runs, so that bad input never costs a transaction.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

LAST_SECOND = 253_402_300_799
"""9999-12-31T23:59:59Z: the last instant that Python's ``datetime`` can show."""

LONGEST = LAST_SECOND - 2**32
"""The longest duration in seconds: added to the clock, it stays within the year 9999 (until 2106)."""

MAX_INT = 2**31 - 1


def whole(name: str, value: object, low: int, high: int = MAX_INT) -> int:
    """``value`` as an int from ``low`` to ``high``. Raises ``TypeError`` or ``ValueError``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a whole number, not {value!r}.")
    if value != value or value in (math.inf, -math.inf) or value != int(value):
        raise ValueError(f"{name} must be a whole number, not {value!r}.")
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {value!r}.")
    return int(value)


def seconds(name: str, value: object, *, low: int = 0) -> int:
    """A duration in whole seconds from seconds or a ``timedelta``; fractions are rounded up."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be seconds or a timedelta, not {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number of seconds, not {value!r}.")
    if not low <= value <= LONGEST:
        raise ValueError(f"{name} must be from {low} to {LONGEST} seconds, not {value!r}.")
    return math.ceil(value)


UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def duration(name: str, value: object, *, low: int = 0) -> int:
    """Like ``seconds``, and from text as people type it: ``90``, ``90s``, ``10m``, ``2h``, ``1d``."""
    if not isinstance(value, str):
        return seconds(name, value, low=low)
    found = re.fullmatch(r"([0-9]{1,15})([smhd]?)", value.strip())
    if found is None:
        raise ValueError(f"{name} must be a duration such as 90s, 10m, 2h or 1d, not {value!r}.")
    return seconds(name, int(found[1]) * UNITS[found[2] or "s"], low=low)


def span(name: str, value: object, *, low: float) -> float:
    """A duration by the worker's own clock, in seconds and fractions, from seconds or a ``timedelta``."""
    seconds(name, value)
    exact = value.total_seconds() if isinstance(value, timedelta) else float(value)  # type: ignore[arg-type]
    if exact < low:
        raise ValueError(f"{name} must be at least {low} seconds, not {value!r}.")
    return exact


def instant(name: str, value: object) -> int:
    """A moment in Unix seconds from an aware ``datetime`` or from Unix seconds; rounded up.

    A naive ``datetime`` is refused under ``USE_TZ`` and otherwise read in ``TIME_ZONE``. What lies
    after the year 9999 is refused: it is most often a time in milliseconds.
    """
    if isinstance(value, datetime):
        if timezone.is_naive(value):
            if settings.USE_TZ:
                raise ValueError(f"{name} must be an aware datetime while USE_TZ is on, not {value!r}.")
            value = timezone.make_aware(value, timezone.get_default_timezone())
        value = value.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be an aware datetime or Unix seconds, not {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number of Unix seconds, not {value!r}.")
    if not 0 <= value <= LAST_SECOND:
        raise ValueError(f"{name} must lie from 1970 to 9999, in Unix seconds (not milliseconds): {value!r}.")
    return math.ceil(value)


def exception_classes(name: str, value: object) -> tuple[type[BaseException], ...]:
    """One class or several as a tuple. Raises ``TypeError``."""
    classes = value if isinstance(value, tuple | list) else (value,)
    for item in classes:
        if not isinstance(item, type) or not issubclass(item, BaseException):
            raise TypeError(f"{name} takes exception classes, not {item!r}.")
    return tuple(classes)


def as_datetime(value: object) -> datetime | None:
    """A stored instant as an aware UTC ``datetime``, naive local time without ``USE_TZ``; for showing.

    ``None`` for what is no number, and for what no ``datetime`` can show in every zone: the last day of
    9999 is the year 10000 in some.
    """
    if not isinstance(value, int | float) or not 0 <= value <= LAST_SECOND - 86_400:
        return None
    moment = datetime.fromtimestamp(value, tz=UTC)
    return moment if settings.USE_TZ else timezone.make_naive(moment, timezone.get_default_timezone())


def utc(seconds: int) -> datetime:
    """Stored seconds as an aware datetime in UTC. Raises ``ValueError``, and nothing else, for what no
    datetime can show: Python has three errors for it, by the size of the number."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{seconds} is no Unix time that the calendar has.") from error


def moment(seconds: int | None) -> datetime | None:
    """Stored seconds as an aware datetime in UTC; ``None`` for what no datetime can show."""
    if seconds is None or not 0 <= seconds <= LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC)
