"""A table in words, for people who do not read cron."""

from __future__ import annotations

from .cron_fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Every, Field, Table, Values, runs_of

LONG_NAMES = {
    MONTH: (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    WEEKDAY: ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
}
MANY = 6
"""So many times of a day are listed one by one, not more."""


def describe(table: Every | Table) -> str:
    """English, without the zone and without a full stop: ``at 09:00 on Monday to Friday``."""
    if isinstance(table, Every):
        unit, seconds = next((unit, size) for unit, size in _UNITS if table.seconds % size == 0)
        return _each(table.seconds // seconds, unit)
    return " ".join(part for part in (_times(table), _days(table), _months(table)) if part)


_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def _each(count: int, unit: str) -> str:
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def _times(table: Table) -> str:
    seconds, minutes, hours = table.values[:3]
    if len(seconds) == 1 and len(minutes) * len(hours) <= MANY:
        suffix = f":{seconds[0]:02}" if seconds[0] else ""
        return "at " + _list([f"{hour:02}:{minute:02}{suffix}" for hour in hours for minute in minutes])
    parts = []
    if seconds != (0,):
        parts.append(_part(SECOND, seconds))
    if minutes != MINUTE.all or not parts:
        parts.append(_part(MINUTE, minutes))
    if hours != HOUR.all:
        parts.append(_part(HOUR, hours))
    elif not parts[-1].startswith("every"):
        parts.append("every hour")
    return " of ".join(parts)


def _part(field: Field, values: Values) -> str:
    """``every 15 minutes``, ``minute 5 and 35``: the values of one field of the time."""
    for step in range(1, len(field.all) // 2 + 1):
        if len(field.all) % step == 0 and values == field.all[::step]:
            return _each(step, field.name)
    return f"{_counted(field.name, values)} {_ranges(field, values)}"


def _counted(name: str, values: Values) -> str:
    return name if len(values) == 1 else f"{name}s"


def _days(table: Table) -> str:
    days, _, weekdays = table.values[3:]
    by_date = "" if days == DAY.all else f"on {_counted('day', days)} {_ranges(DAY, days)} of the month"
    by_week = "" if weekdays == WEEKDAY.all else f"on {_ranges(WEEKDAY, weekdays)}"
    if by_date and by_week:
        if table.either_day:
            return f"{by_date} or {by_week}"
        return f"{by_date} if that is {_ranges(WEEKDAY, weekdays, 'or')}"
    if by_date or by_week:
        return by_date or by_week
    return "every day" if len(table.values[2]) < len(HOUR.all) else ""


def _months(table: Table) -> str:
    months = table.values[4]
    return "" if months == MONTH.all else f"in {_ranges(MONTH, months)}"


def _ranges(field: Field, values: Values, word: str = "and") -> str:
    names = LONG_NAMES.get(field)
    words = []
    for run in runs_of(values):
        shown = [names[value - field.low] if names else str(value) for value in run]
        words += shown if len(run) < 3 else [f"{shown[0]} to {shown[-1]}"]
    return _list(words, word)


def _list(words: list[str], word: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"
