"""The fast search against the slow model, on the days when clocks change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from alkstore_django import cron_fields
from alkstore_django.cron import Cron
from alkstore_django.cron_zones import changes
from tests.unit.cron_model import (
    LEAD,
    Line,
    Written,
    clock,
    debian,
    honker_next,
    honker_parse,
    items,
    lines,
    upcoming,
)

MOMENTS = [
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-04"),  # half an hour back
    ("Australia/Lord_Howe", "2026-10-03"),  # and forward
    ("Pacific/Apia", "2011-12-30"),  # a day that never was
    ("Pacific/Apia", "2012-04-01"),
    ("Africa/Casablanca", "2026-02-15"),  # the month of Ramadan
    ("Africa/Casablanca", "2026-03-22"),
    ("Europe/Dublin", "2026-03-29"),  # where winter is the exception
    ("Europe/Dublin", "2026-10-25"),
    ("Antarctica/Troll", "2026-03-29"),  # two hours
    ("Antarctica/Troll", "2026-10-25"),
    ("Africa/Cairo", "2026-04-24"),  # midnight is skipped
    ("Africa/Cairo", "2026-10-29"),
    ("America/St_Johns", "2010-11-07"),  # at a minute past midnight
    ("Asia/Pyongyang", "2018-05-04"),
    ("America/Caracas", "2016-05-01"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Asia/Kolkata", "2026-02-28"),
    ("UTC", "2028-02-28"),
]  # fmt: skip
moments = st.sampled_from(MOMENTS)
sparse = st.sampled_from(["7", "0,30", "*/20", "15-40/25", "59", "*/30,5"])
hours = st.sampled_from(["*", "0-3", "1", "2", "*/2", "12", "*/3,2", "23-1"])


def window(date: str, days: int = 2) -> tuple[datetime, datetime]:
    start = datetime.fromisoformat(date).replace(tzinfo=UTC) - timedelta(days=1)
    return start, start + timedelta(days=days + 1)


def change_at(zone: str, date: str) -> datetime:
    """When the clocks change about that date; where they do not, its first second."""
    near = datetime.fromisoformat(date)
    found = (each.at for each in changes(ZoneInfo(zone), near.year) if abs(each.at - near) < LEAD)
    return next(found, near).replace(tzinfo=UTC)


def around(zone: str, date: str) -> list[datetime]:
    """Instants before, at and after the change, some of them on whole hours."""
    return [change_at(zone, date) + timedelta(minutes=12 * step) for step in range(-11, 12)]


@pytest.mark.parametrize("moment", MOMENTS[:20], ids=str)
def test_the_clocks_change_at_these_moments(moment: tuple[str, str]) -> None:
    zone, date = moment
    start, end = (instant.replace(tzinfo=None) for instant in window(date))
    assert [change for change in changes(ZoneInfo(zone), start.year) if start < change.at < end]


@settings(max_examples=150, deadline=None)
@given(line=lines(), moment=moments, offset=st.integers(0, 3 * 86_400 * 2))
def test_all_that_a_daemon_would_do(line: Line, moment: tuple[str, str], offset: int) -> None:
    zone, date = moment
    start, end = window(date)
    fired = [found for found in debian(line, clock(zone, start - LEAD, end)) if found >= start]
    cron = Cron.parse(line.text, zone)
    assert upcoming(cron.next_after, start - timedelta(seconds=1), end) == fired

    for instant in [start + timedelta(seconds=offset / 2), *around(zone, date)]:
        later, earlier = fired[bisect_right(fired, instant) :], fired[: bisect_left(fired, instant)]
        found = cron.next_after(instant)
        assert (found if found is not None and found < end else None) == (later[0] if later else None)
        found = cron.previous(instant)
        assert (found if found is not None and found >= start else None) == (earlier[-1] if earlier else None)


@settings(max_examples=30, deadline=None)
@given(line=lines(seconds=True), moment=moments)
def test_seconds(line: Line, moment: tuple[str, str]) -> None:
    zone, date = moment
    step = timedelta(seconds=1)
    start = change_at(zone, date) - timedelta(hours=1)
    end = start + timedelta(hours=3)
    fired = [found for found in debian(line, clock(zone, start, end, step), step) if found >= start]
    cron = Cron.parse(line.text, zone)
    assert upcoming(cron.next_after, start - step, end)[:300] == fired[:300]
    if fired:
        assert cron.previous(end) == fired[-1]


@settings(max_examples=150, deadline=None)
@given(line=lines(), zone=moments.map(lambda moment: moment[0]), instant=st.datetimes(
    datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)))  # fmt: skip
def test_the_next_and_the_previous_agree(line: Line, zone: str, instant: datetime) -> None:
    cron = Cron.parse(line.text, zone)
    ahead = cron.upcoming(3, after=instant)
    assert all(first < second for first, second in pairwise([instant, *ahead]))
    for first, second in pairwise(ahead):
        assert cron.previous(second) == first
        assert cron.previous(second + timedelta(microseconds=1)) == second
    if ahead:
        before = cron.previous(ahead[0])
        assert before is None or before <= instant
        assert before is None or cron.next_after(before) == ahead[0]


@settings(max_examples=200, deadline=None)
@given(line=lines(seconds=True))
def test_the_canonical_form(line: Line) -> None:
    """Honker reads it, as what was written, but for days of which either counts; and so do we."""
    table = cron_fields.parse(line.text)
    assert isinstance(table, cron_fields.Table)
    parsed = honker_parse(table.canonical)
    assert isinstance(parsed, list)
    assert [tuple(values) for values in parsed] == list(table.values)
    assert table.values[:3] == tuple(tuple(sorted(field.values)) for field in line.fields[:3])
    foreign = Cron.parse_foreign(table.canonical)
    assert foreign.canonical == Cron.parse(table.canonical).canonical == table.canonical
    if table.possible:
        honker_next(table.canonical, datetime(2026, 1, 1, tzinfo=UTC), "UTC")


@settings(max_examples=200, deadline=None)
@given(
    line=lines(seconds=True),
    moment=moments,
    offset=st.integers(-7_200, 7_200) | st.integers(-86_400, 86_400),
)
def test_honkers_reading(line: Line, moment: tuple[str, str], offset: int) -> None:
    zone, date = moment
    table = cron_fields.parse(line.text)
    assume(isinstance(table, cron_fields.Table) and table.possible)
    cron = Cron.parse_foreign(table.canonical, zone)
    instant = change_at(zone, date) + timedelta(seconds=offset)
    for _ in range(5):
        found = cron.next_after(instant)
        assert found == honker_next(table.canonical, instant, zone)
        assert found is not None
        before = cron.previous(found)
        assert before is not None
        assert before < found
        assert cron.next_after(before) == found
        instant = found


@settings(max_examples=60, deadline=None)
@given(minute=sparse, hour=hours, day=items(3), weekday=items(5), zone=st.sampled_from(
    ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll", "UTC"]))  # fmt: skip
def test_portable_is_what_honker_finds_too(
    minute: str, hour: str, day: Written, weekday: Written, zone: str
) -> None:
    """Near all changes of ten years, and in the month after."""
    cron = Cron.parse(f"{minute} {hour} {day.text} * {weekday.text}", zone)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    spans = [(since, since + timedelta(days=31))]
    for year in range(2026, 2036):
        for change in changes(ZoneInfo(zone), year):
            at = change.at.replace(tzinfo=UTC)
            spans.append((at - timedelta(hours=3), at + timedelta(hours=3)))
    differs = [
        start
        for start, end in spans
        if upcoming(cron.next_after, start, end)
        != upcoming(lambda instant: honker_next(cron.canonical, instant, zone), start, end)
    ]
    why = cron.why_not_portable(since)
    assert (why is None) == (not differs), (why, differs)
