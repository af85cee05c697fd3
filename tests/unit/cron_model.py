"""Cron as slowly and as plainly as it can be said: every minute is looked at, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE = timedelta(minutes=1)
LEAD = timedelta(days=1, hours=1)
"""The model must have seen the clocks before they were changed."""

RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
Clock = list[tuple[datetime, datetime]]


@dataclass(frozen=True)
class Written:
    """A field as text, with what it means."""

    text: str
    values: frozenset[int]

    @property
    def star(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Line:
    """Five or six fields, the second among them always (a fixed 0 is not written)."""

    fields: tuple[Written, ...]

    @property
    def text(self) -> str:
        texts = [field.text for field in self.fields]
        return " ".join(texts[1:] if texts[0] == "0" else texts)

    @property
    def fixed(self) -> bool:
        return not (self.fields[1].star or self.fields[2].star)

    @property
    def either_day(self) -> bool:
        return not (self.fields[3].star or self.fields[5].star)

    def matches(self, local: datetime) -> bool:
        second, minute, hour, day, month, weekday = (field.values for field in self.fields)
        days = (local.day in day, local.isoweekday() % 7 in weekday)
        return (
            local.minute in minute
            and local.hour in hour
            and local.second in second
            and local.month in month
            and (any(days) if self.either_day else all(days))
        )


@lru_cache(maxsize=64)
def clock(zone: str, start: datetime, end: datetime, step: timedelta = MINUTE) -> Clock:
    """What the clocks on the wall show, at every step of real time."""
    place, shown, instant = ZoneInfo(zone), [], start
    while instant < end:
        shown.append((instant, instant.astimezone(place).replace(tzinfo=None, fold=0)))
        instant += step
    return shown


def debian(line: Line, shown: Clock, step: timedelta = MINUTE) -> list[datetime]:
    """What a daemon does that wakes up at each step and looks at the clock on the wall."""
    fired, reached = [], shown[0][1] - step
    for instant, local in shown:
        new = local > reached
        due = line.matches(local) and (new or not line.fixed)
        if line.fixed and new and not due and local - reached - step < timedelta(hours=3):
            skipped = reached + step
            while skipped < local and not due:
                due = line.matches(skipped)
                skipped += step
        if due:
            fired.append(instant)
        reached = max(reached, local)
    return fired


# -- honker's dialect: a reference that was compared with honker itself ---------------------------------


def number(text: str) -> int:
    digits = text[1:] if text[:1] == "+" else text
    if not (digits.isascii() and digits.isdigit()) or int(digits) >= 2**32:
        raise ValueError(text)
    return int(digits)


def honker_field(text: str, low: int, high: int) -> list[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        stride = number(step) if slash else 1
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (number(end) for end in span.split("-", 1))
        else:
            first = last = number(span)
        if stride == 0 or first < low or last > high or first > last:
            raise ValueError(part)
        values.update(range(first, last + 1, stride))
    return sorted(values)


def honker_parse(text: str) -> int | list[list[int]]:
    text = text.strip()
    if text.startswith("@every"):
        body = text[6:].strip()
        count, unit = body[:-1], body[-1:]
        if not (count.isascii() and count.isdigit()) or unit not in tuple("smhd"):
            raise ValueError(text)
        seconds = int(count) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
        if not 0 < seconds < 2**63:
            raise ValueError(text)
        return seconds
    parts = text.split()
    if len(parts) not in (5, 6):
        raise ValueError(text)
    return [honker_field(part, *RANGES[i]) for i, part in enumerate(["0"] * (6 - len(parts)) + parts)]


def honker_next(text: str, instant: datetime, zone: str) -> datetime:
    """Raises ``ValueError`` where a hundred years hold no match."""
    parsed = honker_parse(text)
    if isinstance(parsed, int):
        return instant + timedelta(seconds=parsed)
    place = ZoneInfo(zone)
    seconds, minutes, hours, days, months, weekdays = parsed
    local = instant.astimezone(place).replace(tzinfo=None, fold=0) + timedelta(seconds=1)
    day, at = local.date(), (local.hour, local.minute, local.second)
    while day.year <= local.year + 100:
        if day.month in months and day.day in days and day.isoweekday() % 7 in weekdays:
            for hour in hours:
                for minute in minutes if hour >= at[0] else ():
                    for second in seconds:
                        if (hour, minute, second) >= at:
                            return honker_instant(
                                datetime(day.year, day.month, day.day, hour, minute, second), place
                            )
        if day.month not in months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        else:
            day += timedelta(days=1)
        at = (0, 0, 0)
    raise ValueError("no match within a hundred years")


def honker_instant(local: datetime, place: ZoneInfo) -> datetime:
    while True:
        for fold in (1, 0):
            instant = local.replace(tzinfo=place, fold=fold).astimezone(UTC)
            if instant.astimezone(place).replace(tzinfo=None, fold=0) == local:
                return instant
        local += timedelta(seconds=1)


# -- expressions ----------------------------------------------------------------------------------------


def walk(number: int, first: int, last: int) -> list[int]:
    """From first to last through one field, around its end if need be."""
    low, high = RANGES[number]
    values = [first]
    while values[-1] != last:
        values.append(low if values[-1] == high else values[-1] + 1)
    return values


@st.composite
def items(draw: Callable[[st.SearchStrategy[int]], int], number: int, *, star: bool = True) -> Written:
    low, high = RANGES[number]
    value = st.integers(low, high)
    first, last = draw(value), draw(value)
    every, from_first, span = range(low, high + 1), range(first, high + 1), walk(number, first, last)
    steps = [draw(st.integers(1, len(values))) for values in (every, from_first, span)]
    forms = [
        Written(f"{first}", frozenset([first])),
        Written(f"{first}-{last}", frozenset(span)),
        Written(f"{first}/{steps[1]}", frozenset(from_first[:: steps[1]])),
        Written(f"{first}-{last}/{steps[2]}", frozenset(span[:: steps[2]])),
    ]
    if star:
        forms += [Written("*", frozenset(every)), Written(f"*/{steps[0]}", frozenset(every[:: steps[0]]))]
    return forms[draw(st.integers(0, len(forms) - 1))]


def written(number: int) -> st.SearchStrategy[Written]:
    def joined(parts: list[Written]) -> Written:
        return Written(
            ",".join(part.text for part in parts), frozenset().union(*(part.values for part in parts))
        )

    return st.lists(items(number), min_size=1, max_size=2).map(joined)


def lines(*, seconds: bool = False) -> st.SearchStrategy[Line]:
    """Days and months are mostly open, so that something happens within a few days."""
    star = Written("*", frozenset(range(100)))
    second = written(0) if seconds else st.just(Written("0", frozenset([0])))
    rest = [st.just(star) | written(number) for number in (3, 4, 5)]
    return st.builds(lambda *fields: Line(fields), second, written(1), written(2), *rest)


def upcoming(
    next_after: Callable[[datetime], datetime | None], start: datetime, end: datetime
) -> list[datetime]:
    """All instants later than start and before end."""
    return list(_upcoming(next_after, start, end))


def _upcoming(
    next_after: Callable[[datetime], datetime | None], instant: datetime, end: datetime
) -> Iterator[datetime]:
    while (found := next_after(instant)) is not None and found < end:
        assert found > instant
        yield found
        instant = found
