"""What a cron expression says: its grammar, checked token by token, and its form in honker's grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_LENGTH = 500
"""Characters of an expression."""

LONGEST_EVERY = 36_500 * 86_400
"""Seconds of the longest ``@every``: about a hundred years."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ITEM = re.compile(r"(?P<first>\*|[0-9]+|[a-z]+)(?:(?<!\*)-(?P<last>[0-9]+|[a-z]+))?(?:/(?P<step>[0-9]+))?")
_EVERY = re.compile(r"@(?i:every)\s*(?P<count>[0-9]{1,15})(?P<unit>[smhd])", re.ASCII)
_FOREIGN = re.compile(r"l|l?w|[0-9]*[lw]|[0-9a-z]+#[0-9]+|l[0-9a-z]+|l-[0-9]+|lw|[rh](\(.*\))?(/[0-9]+)?")

Values = tuple[int, ...]


class CronError(ValueError):
    """An expression, a time zone or an instant that no schedule can have; the message says what to do."""


@dataclass(frozen=True)
class Field:
    """One column of the table: its name, its values and their names."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def all(self) -> Values:
        return tuple(range(self.low, self.high + 1))

    @property
    def is_weekday(self) -> bool:
        return self.high == 6

    def parse(self, text: str) -> Values:
        """The values that ``text`` names, in order. Raises ``CronError``."""
        found: set[int] = set()
        for token in text.split(","):
            if not token:
                raise self.error(text, "there is nothing between two commas, or at an end.")
            found.update(self._item(token))
        return tuple(sorted(found))

    def error(self, token: str, why: str) -> CronError:
        return CronError(f"In the {self.name} field, {token!r}: {why}")

    def _item(self, token: str) -> Iterable[int]:
        found = _ITEM.fullmatch(token.lower())
        if found is None or (found["first"].isalpha() and not self.names):
            raise self._unreadable(token)
        if found["first"] == "*":
            walk: Values = self.all
        else:
            first = self._value(token, found["first"])
            last = first if found["last"] is None else self._value(token, found["last"])
            if found["last"] is None and found["step"] is not None:
                last = self.high
            walk = self._range(first, last)
        return walk[:: self._step(token, found["step"], len(walk))]

    def _range(self, first: int, last: int) -> Values:
        """From ``first`` to ``last``, around the end of the field if need be; 7 ends a week on Sunday."""
        if self.is_weekday and last == 7:
            return tuple(day % 7 for day in range(first, 8)) if first else self.all
        if first <= last:
            return tuple(range(first, last + 1))
        return (*range(first, self.high + 1), *range(self.low, last + 1))

    def _value(self, token: str, text: str) -> int:
        if text.isalpha():
            if text not in self.names:
                raise self.error(token, f"{text!r} is not a name; the names are {', '.join(self.names)}.")
            return self.low + self.names.index(text)
        high = 7 if self.is_weekday else self.high
        if len(text) > 4 or not self.low <= int(text) <= high:
            raise self.error(token, f"{text} is out of range; use {self.low} to {high}.")
        return int(text)

    def _step(self, token: str, text: str | None, size: int) -> int:
        if text is None:
            return 1
        if not text.strip("0"):
            raise self.error(token, "a step of 0 leads nowhere; use 1 or more.")
        if len(text) > 4 or int(text) > size:
            raise self.error(token, f"the step {text} is larger than its range of {size}; use 1 to {size}.")
        return int(text)

    def _unreadable(self, token: str) -> CronError:
        if token[:1] == "?":
            return self.error(token, "'?' is not supported; write '*'.")
        if _FOREIGN.fullmatch(token.lower()):
            return self.error(token, "L, W, #, R and H are not supported; write numbers, names or ranges.")
        return self.error(
            token, "this is none of '*', a value, a range 'a-b', or one of them with a '/step'; write one."
        )


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
WEEKDAY = Field("day of week", 0, 6, WEEKDAYS)
FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)

LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days of each month, in the longest year."""


@dataclass(frozen=True)
class Every:
    """``@every``: a fixed distance in seconds, with no calendar and no zone."""

    seconds: int

    @property
    def canonical(self) -> str:
        for unit in "dhm":
            if self.seconds % UNITS[unit] == 0:
                return f"@every {self.seconds // UNITS[unit]}{unit}"
        return f"@every {self.seconds}s"


@dataclass(frozen=True)
class Table:
    """Which seconds, minutes, hours and days: the values of each field, in order.

    ``either_day``: the day of month or the week day decides, not both together. ``fixed``: a job with a
    fixed time of day, for Debian's rules on the days when clocks change.
    """

    values: tuple[Values, ...]
    either_day: bool = False
    fixed: bool = True

    @property
    def possible(self) -> bool:
        """Whether any year has such a date; 31 February is in none."""
        _, _, _, days, months, _ = self.values
        return self.either_day or days[0] <= max(LENGTHS[month - 1] for month in months)

    @property
    def canonical(self) -> str:
        fields = [_written(field, values) for field, values in zip(FIELDS, self.values, strict=True)]
        return " ".join(fields[1:] if self.values[0] == (0,) else fields)


def parse(expression: str) -> Every | Table:
    """Read an expression by the rules of Vixie's cron, and what we take beyond them. Raises ``CronError``."""
    text = _checked(expression).strip()
    if text.startswith("@"):
        if text.lower() not in MACROS:
            return _every(text)
        text = MACROS[text.lower()]
    written = text.split()
    if len(written) not in (5, 6):
        raise CronError(
            f"{text!r} has {len(written)} field{'s' * (len(written) > 1)}; a cron expression has 5"
            " (minute, hour, day of month, month, day of week), or 6 with the second before them."
        )
    if len(written) == 5:
        written = ["0", *written]
    values = [field.parse(part) for field, part in zip(FIELDS, written, strict=True)]
    stars = [part.startswith("*") for part in written]
    either_day = not (stars[3] or stars[5])
    if either_day:
        values, either_day = _settled(values)
    return Table(tuple(values), either_day, fixed=not (stars[1] or stars[2]))


def _checked(expression: str) -> str:
    if not isinstance(expression, str):
        raise CronError(f"A cron expression is a string, not {type(expression).__name__}.")
    if len(expression) > MAX_LENGTH:
        raise CronError(f"A cron expression has at most {MAX_LENGTH} characters, not {len(expression)}.")
    for character in expression:
        if not (character.isascii() and (character.isprintable() or character in "\t\n\r")):
            raise CronError(f"{expression!r} holds the character {character!r}; use plain ASCII and spaces.")
    if not expression.strip():
        raise CronError("The cron expression is empty; every minute is '* * * * *'.")
    return expression


def _every(text: str) -> Every:
    if not text.lower().startswith("@every"):
        raise CronError(f"{text!r} is not known; there are {', '.join(MACROS)} and '@every 90s'.")
    found = _EVERY.fullmatch(text)
    if found is None:
        raise CronError(f"{text!r} is not readable; write one number and s, m, h or d, as in '@every 90s'.")
    seconds = int(found["count"]) * UNITS[found["unit"]]
    if not 1 <= seconds <= LONGEST_EVERY:
        raise CronError(f"{text!r} is out of range; use 1 to {LONGEST_EVERY} seconds.")
    return Every(seconds)


def _settled(values: list[Values]) -> tuple[list[Values], bool]:
    """Days that are OR-ed, without what cannot matter: then they need not be OR-ed."""
    days, months, weekdays = values[3:]
    longest = max(LENGTHS[month - 1] for month in months)
    possible = sum(day <= longest for day in days)
    if possible == longest or weekdays == WEEKDAY.all:
        return [*values[:3], DAY.all, months, WEEKDAY.all], False
    if possible == 0:
        return [*values[:3], DAY.all, months, weekdays], False
    return values, True


def _written(field: Field, values: Values) -> str:
    """The shortest plain spelling: ``*``, ``*/n``, or a list of numbers and ranges."""
    if values == field.all:
        return "*"
    for step in range(2, len(field.all)):
        if len(values) > 2 and values == field.all[::step]:
            return f"*/{step}"
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs_of(values))


def runs_of(values: Values) -> list[list[int]]:
    """Numbers in their order, those that follow each other together."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs
